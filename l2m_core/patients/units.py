"""Whether two texts name the same unit. Nothing is converted: a result in another unit is for a person to look at."""

from __future__ import annotations

import re

# As people print them → the UCUM code.
_PRINTED = {
    "years": "a",
    "year": "a",
    "yrs": "a",
    "yr": "a",
    "y": "a",
    "months": "mo",
    "month": "mo",
    "days": "d",
    "day": "d",
    "hours": "h",
    "mmHg": "mm[Hg]",
    "mm Hg": "mm[Hg]",
    "cmH2O": "cm[H2O]",
    "°C": "Cel",
    "°F": "[degF]",
    "bpm": "/min",
    "beats/min": "/min",
    "breaths/min": "/min",
    "1/min": "/min",
    "percent": "%",
    "IU/L": "[iU]/L",
    "mIU/L": "m[iU]/L",
    "kg/m^2": "kg/m2",
    "pH": "[pH]",
    "mEq/L": "meq/L",
    "K/uL": "10*3/uL",
    "G/L": "10*9/L",
    "T/L": "10*12/L",
    "1": "",
}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"10\s*(?:\^|(?=[⁰¹²³⁴⁵⁶⁷⁸⁹]))")
_SMALL_LITRE = re.compile(r"(?<![A-Za-z])([munpfd]?)l(?![A-Za-z])")  # UCUM knows the litre as l and as L
_COUNT = re.compile(r"\{[^{}]*\}")  # UCUM says in braces what is counted


def canonical_unit(text: str) -> str:
    """The UCUM code where the text is a known way to write it; else the text itself."""
    text = text.strip()
    if _COUNT.fullmatch(text):
        return ""
    text = _PRINTED.get(text, text)
    text = text.replace("µ", "u").replace("μ", "u")
    text = re.sub(r"^[xX×]\s*(?=10)", "", text)
    text = _POWER.sub("10*", text).translate(_SUPERSCRIPTS)
    text = _SMALL_LITRE.sub(r"\1L", text)
    return _PRINTED.get(text, text)


def same_unit(one: str, other: str) -> bool:
    return canonical_unit(one) == canonical_unit(other)
