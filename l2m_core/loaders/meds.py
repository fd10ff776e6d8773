"""Hospital tasks from MIMIC-IV in MEDS form: what is known 48 hours after admission, and what came of it.

MEDS is a folder of Parquet shards under `data/`, one row for each event: subject_id, time, code, numeric_value (and, as
MIMIC-IV-MEDS writes them, hadm_id). One admission per patient, the first that counts:

- the patient is at least 18, and still in hospital, alive, 48 hours after admission (the prediction time);
- a value is the last one recorded from the admission to the prediction time;
- readmission is asked only of those who left alive;
- a death that is known by its date only counts from the end of that day, so that who left alive on it did not die in
  hospital.

The study's features are `STUDY_LABS`, complete cases only, and known from the start age, sex, whether the patient was in an
intensive care unit by the prediction time, diabetes and chronic pulmonary disease. The study does not say how it finds the last
two: here by Charlson's codes among the diagnoses of this admission and earlier ones, since both are known to a patient who comes.
It does not state an age limit either.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.loaders.sources import MIMIC

HOSPITAL_OUTCOMES = {
    "long_stay": "stays at least 7 days beyond the prediction time",
    "died_in_hospital": "dies before discharge",
    "readmitted": "is admitted again within 30 days of discharge",
}
HOURS_KNOWN = 48
LONG_STAY_DAYS = 7
READMISSION_DAYS = 30
ADULT = 18

MEASUREMENTS = {
    "heart_rate": 220045,
    "respiratory_rate": 220210,
    "oxygen_saturation": 220277,
    "systolic_pressure": 220179,
    "diastolic_pressure": 220180,
    "temperature": 223761,
    "creatinine": 50912,
    "urea_nitrogen": 51006,
    "sodium": 50983,
    "potassium": 50971,
    "chloride": 50902,
    "bicarbonate": 50882,
    "anion_gap": 50868,
    "glucose": 50931,
    "calcium": 50893,
    "magnesium": 50960,
    "phosphate": 50970,
    "lactate": 50813,
    "white_cells": 51301,
    "haemoglobin": 51222,
    "platelets": 51265,
    "inr": 51237,
    "ptt": 51275,
    "albumin": 50862,
    "bilirubin": 50885,
    "alt": 50861,
    "ast": 50878,
    "alkaline_phosphatase": 50863,
    "troponin_t": 51003,
    "ph": 50820,
    "oxygen_pressure": 50821,
    "carbon_dioxide_pressure": 50818,
}
"""Feature → MIMIC's item; its codes are LAB//ITEM//UNIT."""

STUDY_LABS = {
    "hemoglobin": 51222,
    "platelet": 51265,
    "rbc": 51279,
    "wbc": 51301,
    "bicarbonate": 50882,
    "bun": 51006,
    "calcium": 50893,
    "chloride": 50902,
    "creatinine": 50912,
    "glucose": 50931,
    "rdw": 51277,
    "inr": 51237,
    "pt": 51274,
    "lymphocytes": 51244,
    "monocytes": 51254,
}
"""The study's acquirable features, in its order."""

DIAGNOSES = {
    "diabetes": {"9": ("250",), "10": ("E08", "E09", "E10", "E11", "E12", "E13", "E14")},
    "chronic_pulmonary_disease": {
        "9": (*(str(code) for code in range(490, 497)), *(str(code) for code in range(500, 506)), "5064"),
        "10": (*(f"J{code}" for code in range(40, 48)), *(f"J{code}" for code in range(60, 68))),
    },
}
"""Feature → the beginnings of its ICD codes, by ICD's revision."""

FEATURES = ("study", "wide")
ADMISSION, DISCHARGE, BIRTH, DEATH = "HOSPITAL_ADMISSION", "HOSPITAL_DISCHARGE", "MEDS_BIRTH", "MEDS_DEATH"
SPLITS = ("train", "tuning", "held_out")
BASELINE = ("age", "sex", "admission_type")
STUDY_BASELINE = ("age", "sex", "icu", *DIAGNOSES)


def load_hospital(
    folder: str | Path, outcome: str, split: str | None = None, features: str = "study", complete: bool | None = None
) -> Cohort:
    """A cohort for one of HOSPITAL_OUTCOMES.

    split: "train", "tuning" or "held_out" of MEDS; None takes all. features: the "study"'s, or the "wide" MEASUREMENTS;
    complete: whether patients without one of the acquirable values are left out; None: of the study's features.
    """
    if features not in FEATURES:
        raise CohortError(f"There are no hospital features {features!r}; choose one of {', '.join(FEATURES)}.")
    if outcome not in HOSPITAL_OUTCOMES:
        raise CohortError(f"There is no hospital outcome {outcome!r}; choose one of {', '.join(HOSPITAL_OUTCOMES)}.")
    if split is not None and split not in SPLITS:
        raise CohortError(f"There is no split {split!r}; choose one of {', '.join(SPLITS)}.")
    folder = MIMIC.require(Path(folder))
    shards = sorted((folder / "data").glob(f"{split or '*'}/*.parquet")) or sorted((folder / "data").glob("*.parquet"))
    if not shards:
        raise CohortError(f"{folder.name} holds no Parquet shards under data/; it should be a MEDS folder. {MIMIC.put}")
    # Shard by shard: MEDS keeps all of a patient's events in one shard, and all events would not fit in memory.
    items, names = (STUDY_LABS, STUDY_BASELINE) if features == "study" else (MEASUREMENTS, BASELINE)
    table = pd.concat([_stays(_read(shard), outcome, names, items) for shard in shards], ignore_index=True)
    if complete if complete is not None else features == "study":
        table = table.dropna(subset=list(items)).reset_index(drop=True)
    if len(table) < 10:
        raise CohortError(f"{folder.name} holds {len(table)} admissions that count for {outcome!r}; 10 are needed.")
    table = table.dropna(axis=1, how="all")
    baseline = [name for name in names if name in table]
    return Cohort.from_frame(table, outcome=outcome, baseline=baseline, positive="yes", name=f"hospital_{outcome}")


def _read(shard: Path) -> pd.DataFrame:
    try:
        events = pd.read_parquet(shard)
    except ImportError as error:
        raise CohortError("Reading Parquet needs pyarrow: pip install 'learning-to-measure[app]'.") from error
    except (OSError, ValueError) as error:
        raise CohortError(f"{shard.name} cannot be read as Parquet: {error}.") from error
    absent = [name for name in ("subject_id", "time", "code", "numeric_value") if name not in events]
    if absent:
        raise CohortError(f"{shard.name} lacks the MEDS column {absent[0]!r}.")
    events["time"] = pd.to_datetime(events["time"])
    parts = events["code"].astype(str).str.split("//")
    events["kind"], events["detail"] = parts.str[0], parts.str[1]
    # Text even where a shard has no diagnosis at all
    events["revision"], events["icd"] = (parts.str[part].astype(object).fillna("").astype(str) for part in (2, 3))
    return events


def _stays(events: pd.DataFrame, outcome: str, baseline: tuple[str, ...], items: dict[str, int]) -> pd.DataFrame:
    """One row for each patient of a shard whose admission counts."""
    rows = []
    for _, patient in events.groupby("subject_id", sort=True):
        stay = _first_stay(patient, outcome, items)
        if stay is not None:
            rows.append(stay)
    return pd.DataFrame(rows, columns=[*baseline, *items, outcome])


def _first_stay(patient: pd.DataFrame, outcome: str, items: dict[str, int]) -> dict | None:
    born, died = _time(patient, BIRTH), _end_of_date(_time(patient, DEATH))
    admissions = patient[patient["kind"] == ADMISSION].sort_values("time")
    discharges = patient[patient["kind"] == DISCHARGE].sort_values("time")
    for index, admission in enumerate(admissions.itertuples()):
        start = admission.time
        ends = discharges[discharges["time"] > start]
        if ends.empty or born is None:
            continue
        end, known_until = ends["time"].iloc[0], start + pd.Timedelta(hours=HOURS_KNOWN)
        # Records that hide great ages by shifting birth back some 300 years exceed what a Timedelta holds.
        age = (start.to_pydatetime() - born.to_pydatetime()).days / 365.25
        dead_in_hospital = str(ends["detail"].iloc[0]).upper() == "DIED" or (died is not None and died <= end)
        if age < ADULT or end < known_until or (died is not None and died < known_until):
            continue
        if outcome == "readmitted" and dead_in_hospital:
            continue
        following = admissions["time"].iloc[index + 1 :]
        again = bool(((following > end) & (following <= end + pd.Timedelta(days=READMISSION_DAYS))).any())
        happened = {
            "long_stay": end >= known_until + pd.Timedelta(days=LONG_STAY_DAYS),
            "died_in_hospital": dead_in_hospital,
            "readmitted": again,
        }[outcome]
        known = patient[(patient["time"] >= start) & (patient["time"] <= known_until)]
        facts = {"age": round(age, 1), "sex": _detail(patient, "GENDER"), "admission_type": admission.detail}
        facts |= {"icu": "yes" if (known["kind"] == "ICU_ADMISSION").any() else "no", **_diagnosed(patient, end)}
        return {**facts, **_last_values(known, items), outcome: "yes" if happened else "no"}
    return None


def _diagnosed(patient: pd.DataFrame, end: pd.Timestamp) -> dict[str, str]:
    """Whether each of DIAGNOSES was coded by the day of the discharge, which is when an admission's diagnoses are coded."""
    coded = patient[(patient["kind"] == "DIAGNOSIS") & (patient["time"] <= end + pd.Timedelta(days=1))]
    found = {}
    for name, beginnings in DIAGNOSES.items():
        matches = [coded["icd"][coded["revision"] == r].str.startswith(codes).any() for r, codes in beginnings.items()]
        found[name] = "yes" if any(matches) else "no"
    return found


def _last_values(known: pd.DataFrame, items: dict[str, int]) -> dict[str, float]:
    labs = known[(known["kind"] == "LAB") & known["numeric_value"].notna()].sort_values("time", kind="stable")
    last = labs.groupby("detail")["numeric_value"].last()
    return {name: float(last.get(str(item), np.nan)) for name, item in items.items()}


def _time(patient: pd.DataFrame, kind: str):
    times = patient.loc[patient["kind"] == kind, "time"].dropna()
    return None if times.empty else times.min()


def _end_of_date(time: pd.Timestamp | None) -> pd.Timestamp | None:
    """The day's last second for a time at midnight, as which MIMIC's dates without a time are written."""
    if time is None or time != time.normalize():
        return time
    return time + pd.Timedelta(days=1) - pd.Timedelta(seconds=1)


def _detail(patient: pd.DataFrame, kind: str):
    details = patient.loc[patient["kind"] == kind, "detail"].dropna()
    return None if details.empty else details.iloc[0]
