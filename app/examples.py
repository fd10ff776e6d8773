"""Cohorts that come with the app: one whose mechanism is known, and two real ones from scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.schema import Feature, Outcome, Schema


@dataclass(frozen=True)
class Example:
    """name: the stored cohort's name; make: builds the cohort, the same each time."""

    name: str
    title: str
    description: str
    make: Callable[[], Cohort]


# -- chest pain: generated, so the truth is known -------------------------------------------------------------------

CHEST_PAIN_ROWS = 1000
PAIN = ("burning", "pressing", "stabbing", "tearing")
ECG = ("normal", "unspecific changes", "ST depression", "ST elevation")
WALL = ("normal", "hypokinetic", "akinetic")


def chest_pain(rows: int = CHEST_PAIN_ROWS, seed: int = 7) -> pd.DataFrame:
    """Patients with chest pain in an emergency department, generated.

    The mechanism: age, sex, smoking and diabetes raise the burden of coronary disease; burden and chance together bring
    about an acute coronary syndrome (the outcome), an infection or strain of the heart come independently. Each test
    reads one of these with its own noise: troponin the syndrome (and strain; later is clearer), ECG and wall motion
    the ischaemia, NT-proBNP the strain, CRP and leukocytes the infection, the calcium score the burden. Heart rate and
    creatinine say nearly nothing, on purpose. Whether a test was done depends on age, the pain and prior infarction
    only, which are always recorded: missing at random in the strict sense.
    """
    draw = np.random.default_rng(seed)

    def noise(scale: float = 1.0) -> np.ndarray:
        return draw.normal(0, scale, rows)

    age = np.clip(draw.normal(61, 14, rows), 22, 95).round()
    male = draw.random(rows) < 0.56
    smoker = draw.random(rows) < 0.27
    diabetes = draw.random(rows) < 0.12 + 0.002 * (age - 40).clip(0)
    burden = 0.045 * (age - 60) + 0.45 * male + 0.55 * smoker + 0.6 * diabetes + noise(0.8)
    prior = draw.random(rows) < _sigmoid(-2.6 + 0.8 * burden)
    syndrome = draw.random(rows) < _sigmoid(-2.0 + 0.85 * burden + 0.5 * prior)
    infection = draw.random(rows) < 0.14
    strain = (draw.random(rows) < _sigmoid(-2.2 + 0.04 * (age - 60))).astype(float)
    ischaemia = syndrome * (0.7 + np.abs(noise(0.6)))
    pain = np.array(PAIN)[
        _choose(
            draw,
            np.column_stack(
                [
                    0.9 - 0.5 * syndrome,
                    0.5 + 1.6 * syndrome,
                    0.8 + 0.6 * infection - 0.7 * syndrome,
                    np.full(rows, -1.8),
                ]
            ),
        )
    ]
    radiates = draw.random(rows) < _sigmoid(-1.3 + 1.3 * syndrome)

    leaks = 1.1 * ischaemia + 0.6 * strain
    ecg = np.clip(np.round(0.35 + 0.7 * ischaemia + 0.2 * burden.clip(0) + noise(0.7)), 0, 3).astype(int)
    wall = np.clip(np.round(0.1 + 0.55 * ischaemia + 0.4 * prior + noise(0.5)), 0, 2).astype(int)
    values = {
        "heart rate": (78 + 7 * infection + 3 * syndrome + noise(13)).clip(38, 180).round(),
        "systolic pressure": (138 + 0.2 * (age - 60) - 6 * syndrome + noise(19)).clip(70, 230).round(),
        "oxygen saturation": (97.4 - 1.4 * infection - 1.2 * strain + noise(1.3)).clip(70, 100).round(),
        "ECG": np.array(ECG)[ecg],
        "troponin at 0 h": np.exp(1.5 + 0.8 * leaks + noise(0.75)).clip(2, 9000).round(1),
        "troponin at 3 h": np.exp(1.5 + 1.4 * leaks + noise(0.75)).clip(2, 20000).round(1),
        "NT-proBNP": np.exp(4.6 + 1.6 * strain + 0.02 * (age - 60) + 0.2 * ischaemia + noise(0.7))
        .clip(10, 35000)
        .round(),
        "D-dimer": np.exp(-0.9 + 0.012 * (age - 60) + 0.5 * infection + noise(0.6)).clip(0.1, 20).round(2),
        "CRP": np.exp(1.0 + 2.4 * infection + noise(0.8)).clip(0.3, 400).round(1),
        "leukocytes": (7.6 + 4.2 * infection + 0.8 * syndrome + noise(1.7)).clip(1.5, 35).round(1),
        "creatinine": np.exp(-0.12 + 0.16 * male + 0.006 * (age - 60) + 0.2 * diabetes + noise(0.22))
        .clip(0.3, 9)
        .round(2),
        "wall motion": np.array(WALL)[wall],
        "coronary calcium": (np.expm1((1.9 + 1.5 * burden + noise(0.9)).clip(0, 8))).round(),
    }
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": np.where(male, "male", "female"),
            "smoker": _yes(smoker),
            "diabetes": _yes(diabetes),
            "prior infarction": _yes(prior),
            "pain": pain,
            "radiates": _yes(radiates),
            **values,
        }
    )
    worry = 0.03 * (age - 60) + 0.8 * (pain == "pressing") + 0.7 * prior
    for group, base, slope in _DONE:
        skipped = draw.random(rows) >= _sigmoid(base + slope * worry)
        for name in group:
            frame[name] = frame[name].astype(object).where(~skipped, None)
    frame["acute coronary syndrome"] = _yes(syndrome)
    numeric = [feature.name for feature in _chest_pain_features() if feature.kind == "number"]
    return frame.astype({name: float for name in numeric})


# Tests done together, the log odds that they are done, and how these rise with the patient's worry.
_DONE = (
    (("heart rate", "systolic pressure", "oxygen saturation"), 3.5, 0.0),
    (("ECG",), 2.6, 0.5),
    (("troponin at 0 h",), 2.0, 0.6),
    (("troponin at 3 h",), 0.4, 0.9),
    (("NT-proBNP",), 0.0, 0.5),
    (("D-dimer",), -0.3, -0.3),
    (("CRP", "leukocytes"), 1.6, 0.1),
    (("creatinine",), 1.8, 0.2),
    (("wall motion",), -0.6, 0.8),
    (("coronary calcium",), -1.3, 0.5),
)


def _chest_pain_features() -> tuple[Feature, ...]:
    def known(name: str, kind: str = "binary", **more) -> Feature:
        return Feature(name, kind=kind, role="baseline", cost=0.0, **more)

    def test(
        name: str,
        unit: str,
        cost: float,
        turnaround: float,
        reference: tuple[float | None, float | None],
        allowed: tuple[float, float],
        description: str,
        group: str | None = None,
    ) -> Feature:
        return Feature(
            name,
            unit=unit,
            cost=cost,
            turnaround=turnaround,
            group=group,
            minimum=allowed[0],
            maximum=allowed[1],
            reference_low=reference[0],
            reference_high=reference[1],
            description=description,
        )

    return (
        known("age", "number", unit="years", minimum=18, maximum=110, description="Age on arrival"),
        known("sex", levels=("female", "male")),
        known("smoker", levels=("no", "yes"), description="Smokes now"),
        known("diabetes", levels=("no", "yes")),
        known("prior infarction", levels=("no", "yes"), description="Earlier myocardial infarction"),
        known("pain", "category", levels=PAIN, description="What the pain is like"),
        known("radiates", levels=("no", "yes"), description="Pain radiates into arm, jaw or back"),
        test("heart rate", "/min", 1, 5, (50, 100), (20, 300), "Part of the vital signs", "vital signs"),
        test("systolic pressure", "mmHg", 1, 5, (100, 140), (40, 300), "Part of the vital signs", "vital signs"),
        test("oxygen saturation", "%", 1, 5, (94, None), (50, 100), "Pulse oximetry on room air", "vital signs"),
        Feature("ECG", kind="category", levels=ECG, cost=10, turnaround=10, description="12-lead electrocardiogram"),
        test("troponin at 0 h", "ng/L", 20, 60, (None, 14), (0, 50000), "High-sensitivity troponin T on arrival"),
        test("troponin at 3 h", "ng/L", 20, 240, (None, 14), (0, 50000), "High-sensitivity troponin T after 3 hours"),
        test("NT-proBNP", "ng/L", 30, 60, (None, 300), (0, 70000), "Strain of the heart"),
        test("D-dimer", "mg/L", 15, 60, (None, 0.5), (0, 100), "Fibrin breakdown"),
        test("CRP", "mg/L", 8, 45, (None, 5), (0, 600), "C-reactive protein", "white cells and CRP"),
        test("leukocytes", "10⁹/L", 8, 45, (4, 10), (0, 200), "White blood cells", "white cells and CRP"),
        test("creatinine", "mg/dL", 6, 45, (0.5, 1.2), (0.1, 25), "Kidney function"),
        Feature("wall motion", kind="category", levels=WALL, cost=120, turnaround=45, description="Echocardiography"),
        test("coronary calcium", "Agatston", 180, 120, (None, 100), (0, 8000), "Calcium score by CT"),
    )


def _chest_pain_cohort() -> Cohort:
    outcome = Outcome("acute coronary syndrome", classes=("no", "yes"), description="Within 30 days of arrival")
    return Cohort.from_frame(chest_pain(), schema=Schema(_chest_pain_features(), outcome), name="Chest pain triage")


def _sigmoid(logit: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logit))


def _choose(draw: np.random.Generator, logits: np.ndarray) -> np.ndarray:
    """(N,) one choice in each row, by the Gumbel trick."""
    return (logits + draw.gumbel(size=logits.shape)).argmax(axis=1)


def _yes(mask: np.ndarray) -> np.ndarray:
    return np.where(mask, "yes", "no")


# -- real cohorts ---------------------------------------------------------------------------------------------------


def _breast_cancer_cohort() -> Cohort:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    frame = data.data.copy()
    frame["diagnosis"] = np.where(data.target == 0, "malignant", "benign")
    features = tuple(
        Feature(
            name,
            group=_cell_feature(name),
            cost=1.0,
            minimum=0.0,
            description=f"{name.split(' ')[0].capitalize()} over the cell nuclei of one aspirate",
        )
        for name in frame.columns[:-1]
    )
    outcome = Outcome("diagnosis", classes=("benign", "malignant"), description="Histology of the breast mass")
    return Cohort.from_frame(frame, schema=Schema(features, outcome), name="Breast cancer (Wisconsin)")


def _cell_feature(name: str) -> str | None:
    """Mean, error and worst of one measurement come from one reading of the image."""
    return name.removeprefix("mean ").removeprefix("worst ").removesuffix(" error")


def _diabetes_cohort() -> Cohort:
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True, scaled=False)
    described = {
        "age": ("age", "years", "baseline", 0, "Age"),
        "sex": ("sex", "", "baseline", 0, "Coded 1 and 2 in the source"),
        "bmi": ("body mass index", "kg/m²", "acquirable", 1, "Body mass index"),
        "bp": ("blood pressure", "mmHg", "acquirable", 1, "Average blood pressure"),
        "s1": ("total cholesterol", "mg/dL", "acquirable", 8, "Serum"),
        "s2": ("LDL cholesterol", "mg/dL", "acquirable", 10, "Serum"),
        "s3": ("HDL cholesterol", "mg/dL", "acquirable", 10, "Serum"),
        "s4": ("cholesterol ratio", "", "acquirable", 10, "Total over HDL cholesterol"),
        "s5": ("log triglycerides", "log mg/dL", "acquirable", 8, "Serum, natural logarithm"),
        "s6": ("glucose", "mg/dL", "acquirable", 5, "Blood sugar"),
    }
    frame = data.data.rename(columns={key: value[0] for key, value in described.items()})
    frame["progression"] = data.target
    frame["sex"] = frame["sex"].map({1.0: "1", 2.0: "2"})
    features = []
    for name, unit, role, cost, description in described.values():
        feature = Feature(name, unit=unit, role=role, cost=cost, description=description)
        features.append(replace(feature, kind="binary", levels=("1", "2")) if name == "sex" else feature)
    outcome = Outcome("progression", kind="continuous", description="Disease progression one year later, a score")
    return Cohort.from_frame(frame, schema=Schema(tuple(features), outcome), name="Diabetes progression")


EXAMPLES = (
    Example(
        "Chest pain triage",
        "Chest pain triage (generated)",
        "1,000 generated patients, 20 features with units, costs, turnaround and panels; many tests were not done. "
        "The mechanism is known, so advice can be checked against the truth. Outcome: acute coronary syndrome.",
        _chest_pain_cohort,
    ),
    Example(
        "Breast cancer (Wisconsin)",
        "Breast cancer, Wisconsin (real)",
        "569 real breast masses, 30 measurements of cell nuclei in ten panels, all recorded. Outcome: malignant or "
        "not. From scikit-learn.",
        _breast_cancer_cohort,
    ),
    Example(
        "Diabetes progression",
        "Diabetes progression (real)",
        "442 real patients, 10 features. Outcome: a continuous score of progression after one year. From scikit-learn.",
        _diabetes_cohort,
    ),
)
