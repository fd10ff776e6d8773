"""The unit of a column, guessed from its name or from the size of its numbers; empty where either leaves doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from l2m_core.tables.role_guesses import NEUTRAL, words_of_name

# As they are written in names, without signs between letters → as they are shown.
WRITTEN: Mapping[str, str] = {
    "mgdl": "mg/dL", "mgl": "mg/L", "gdl": "g/dL", "gl": "g/L", "mmoll": "mmol/L", "umoll": "µmol/L", "nmoll": "nmol/L",
    "pmoll": "pmol/L", "meql": "mEq/L", "iul": "IU/L", "ngml": "ng/mL", "pgml": "pg/mL", "ngl": "ng/L",
    "ugl": "µg/L", "mmhg": "mmHg", "kpa": "kPa", "kg": "kg", "cm": "cm", "kgm2": "kg/m²", "bpm": "/min", "years": "years",
    "months": "months", "days": "days", "hours": "h", "minutes": "min", "percent": "%", "celsius": "°C", "degc": "°C",
    "fahrenheit": "°F", "mlmin": "mL/min", "mmh": "mm/h", "109l": "10⁹/L", "1012l": "10¹²/L",
}  # fmt: skip
# Words beside which a phrase keeps its unit; beside any other it may be something else, such as creatinine kinase.
ANYWHERE = (NEUTRAL - {"blood", "pressure", "rate"}) | {"serum", "plasma", "admission", "arterial", "resting", "level"}
# Phrase of a name → units, each with the range that the median of a cohort lies in. Ranges of one phrase do not overlap,
# and where those of two common units would, the phrase is left out.
BY_SIZE: tuple[tuple[str, tuple[tuple[str, float, float], ...]], ...] = (
    ("age", (("years", 15, 100),)),
    ("temperature", (("°C", 34, 41), ("°F", 94, 106))),
    ("temp", (("°C", 34, 41), ("°F", 94, 106))),
    ("bp sys", (("mmHg", 80, 220),)),
    ("sys bp", (("mmHg", 80, 220),)),
    ("systolic blood pressure", (("mmHg", 80, 220),)),
    ("diastolic blood pressure", (("mmHg", 40, 130),)),
    ("blood glucose", (("mmol/L", 3, 25), ("mg/dL", 55, 450))),
    ("age diagnosis", (("years", 15, 100),)),
    ("heart rate", (("/min", 45, 180),)),
    ("pulse", (("/min", 45, 180),)),
    ("hr", (("/min", 45, 180),)),
    ("respiratory rate", (("/min", 8, 40),)),
    ("resp rate", (("/min", 8, 40),)),
    ("blood pressure", (("mmHg", 45, 220),)),
    ("bp", (("mmHg", 45, 220),)),
    ("sbp", (("mmHg", 80, 220),)),
    ("dbp", (("mmHg", 40, 130),)),
    ("systolic", (("mmHg", 80, 220),)),
    ("diastolic", (("mmHg", 40, 130),)),
    ("spo2", (("%", 70, 100),)),
    ("height", (("m", 1.2, 2.1), ("cm", 120, 210))),
    ("bmi", (("kg/m²", 14, 55),)),
    ("body mass index", (("kg/m²", 14, 55),)),
    ("creatinine", (("mg/dL", 0.3, 10), ("µmol/L", 30, 900))),
    ("glucose", (("mmol/L", 3, 25), ("mg/dL", 55, 450))),
    ("sodium", (("mmol/L", 115, 165),)),
    ("potassium", (("mmol/L", 2.5, 7),)),
    ("chloride", (("mmol/L", 80, 130),)),
    ("bicarbonate", (("mmol/L", 10, 45),)),
    ("calcium", (("mmol/L", 1.5, 3.5), ("mg/dL", 6, 14))),
    ("magnesium", (("mmol/L", 0.5, 1.2), ("mg/dL", 1.4, 3.5))),
    ("hemoglobin", (("g/dL", 9.8, 19), ("g/L", 70, 190))),
    ("haemoglobin", (("g/dL", 9.8, 19), ("g/L", 70, 190))),
    ("hematocrit", (("%", 20, 60),)),
    ("haematocrit", (("%", 20, 60),)),
    ("albumin", (("g/dL", 1.5, 5.5), ("g/L", 15, 55))),
    ("bilirubin", (("mg/dL", 0.1, 3), ("µmol/L", 5, 300))),
    ("hdl", (("mmol/L", 0.6, 2.5), ("mg/dL", 25, 100))),
    ("ldl", (("mmol/L", 1, 7), ("mg/dL", 40, 250))),
    ("cholesterol", (("mmol/L", 3, 9), ("mg/dL", 110, 350))),
    ("platelet", (("10⁹/L", 50, 800), ("/µL", 50_000, 800_000))),
    ("wbc", (("10⁹/L", 2.5, 40), ("/µL", 2_500, 40_000))),
    ("lactate", (("mmol/L", 0.4, 15),)),
    ("ejection fraction", (("%", 15, 80),)),
    ("hba1c", (("%", 4, 14), ("mmol/mol", 20, 130))),
)


def guess_unit(name: str, numbers: np.ndarray) -> str:
    """numbers: (n,) NaN where not recorded. Empty where nothing tells."""
    written = written_unit(name)
    if written:
        return written
    recorded = numbers[~np.isnan(numbers)]
    if not len(recorded):
        return ""
    median, words = float(np.median(recorded)), [word for word in words_of_name(name) if word not in ANYWHERE]
    units = next((units for phrase, units in BY_SIZE if phrase.split() == words), ())
    fitting = [unit for unit, low, high in units if low <= median <= high]
    return fitting[0] if len(fitting) == 1 else ""


def written_unit(name: str) -> str:
    """The unit at the end of a name: 'glucose (mmol/L)', 'crea [umol/l]', 'weight_kg', 'hb_g_dl'."""
    in_brackets = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", name)
    if in_brackets:
        text = in_brackets[1].strip()
        return _known(text) or (text if "/" in text or text in ("%", "°C", "°F") else "")
    parts = re.split(r"[\s_.\-]+", name)
    for count in (2, 1):
        if len(parts) > count and (unit := _known("".join(parts[-count:]))):
            return unit
    return ""


def as_shown(unit: str) -> str:
    """A unit as it is shown, however it is written."""
    return (_known(unit) or unit) if "/" in unit else unit


def _known(text: str) -> str:
    """As it is shown; empty where it is not known, or may be 10⁹/L, which many laboratories write G/l."""
    return "" if re.fullmatch(r"\s*G\s*/?\s*[lL]\s*", text) else WRITTEN.get(_bare(text), "")


def _bare(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold().replace("µ", "u").replace("μ", "u").replace("²", "2"))
