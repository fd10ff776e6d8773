"""The hospital loader on real admissions: the open MIMIC-III demo, written in the layout that MIMIC-IV has in MEDS."""

from pathlib import Path

import pandas as pd
import pytest

from l2m_core.loaders import HOSPITAL_OUTCOMES, load_hospital
from train.study.experiments.datasets import HOSPITAL, find_cohort
from train.study.experiments.families import Family, draw

HOURS = pd.Timedelta(hours=1)
DAYS = pd.Timedelta(days=1)

pytestmark = pytest.mark.shared_data


@pytest.fixture(scope="module")
def raw(shared_data) -> dict[str, pd.DataFrame]:
    folder = shared_data / "mimic3_demo_raw"
    patients = pd.read_csv(folder / "patients.csv", parse_dates=["dob", "dod"])
    admissions = pd.read_csv(folder / "admissions.csv", parse_dates=["admittime", "dischtime", "deathtime"])
    labs = pd.read_csv(folder / "labevents.csv.gz", parse_dates=["charttime"])
    return {"patients": patients, "admissions": admissions, "labs": labs}


@pytest.fixture(scope="module")
def meds(raw, tmp_path_factory) -> Path:
    """One shard of all events, as MIMIC-IV's are coded: LAB//ITEM//UNIT, HOSPITAL_DISCHARGE//DIED …"""
    patients, admissions, labs = raw["patients"], raw["admissions"], raw["labs"]
    death = patients["subject_id"].map(admissions.groupby("subject_id")["deathtime"].min()).fillna(patients["dod"])
    left = admissions["discharge_location"].replace("DEAD/EXPIRED", "DIED")
    number, each = patients["subject_id"], admissions["subject_id"]
    parts = [
        events(number, patients["dob"], "MEDS_BIRTH"),
        events(number, death, "MEDS_DEATH").dropna(subset="time"),
        events(number, pd.NaT, "GENDER//" + patients["gender"]),
        events(each, admissions["admittime"], "HOSPITAL_ADMISSION//" + admissions["admission_type"]),
        events(each, admissions["dischtime"], "HOSPITAL_DISCHARGE//" + left),
        events(labs["subject_id"], labs["charttime"], "LAB//" + labs["itemid"].astype(str), labs["valuenum"]),
    ]
    folder = tmp_path_factory.mktemp("data") / "mimic_iv_meds"
    (folder / "data" / "train").mkdir(parents=True)
    pd.concat(parts, ignore_index=True).to_parquet(folder / "data" / "train" / "0.parquet")
    return folder


def events(subject, time, code, value=float("nan")) -> pd.DataFrame:
    return pd.DataFrame({"subject_id": subject, "time": time, "code": code, "numeric_value": value})


@pytest.fixture(scope="module")
def stays(raw) -> pd.DataFrame:
    """The admissions that should count, from the tables themselves: the first of each adult that lasted two days."""
    table = raw["admissions"].merge(raw["patients"], on="subject_id").sort_values(["subject_id", "admittime"])
    following = table.groupby("subject_id")["admittime"].shift(-1)
    stay = table["dischtime"] - table["admittime"]
    table = table.assign(stay=stay, again=(following - table["dischtime"]) <= 30 * DAYS)
    adult = table["admittime"].dt.year - table["dob"].dt.year >= 20  # nobody of the demo is near eighteen
    alive = ~((table["deathtime"] - table["admittime"]) < 48 * HOURS)
    return table[adult & alive & (stay >= 48 * HOURS)]


def test_the_admissions_that_count_and_their_outcomes_are_the_tables_own(meds, stays):
    first = stays.groupby("subject_id").first()
    death = load_hospital(meds, "died_in_hospital", features="wide").frame()
    assert len(death) == len(first) > 60
    assert (death["died_in_hospital"] == "yes").sum() == first["hospital_expire_flag"].sum() > 10
    long = load_hospital(meds, "long_stay", features="wide").frame()
    assert (long["long_stay"] == "yes").sum() == (first["stay"] >= 9 * DAYS).sum() > 10


def test_readmission_is_asked_of_the_first_stay_survived(meds, stays):
    survived = stays[stays["hospital_expire_flag"] == 0].groupby("subject_id").first()
    again = load_hospital(meds, "readmitted", features="wide").frame()
    assert len(again) == len(survived)
    assert (again["readmitted"] == "yes").sum() == survived["again"].sum() > 0


def test_the_values_are_the_last_ones_of_two_days(meds, raw, stays):
    labs = raw["labs"][raw["labs"]["itemid"] == 50912].dropna(subset="valuenum")
    stay = stays.groupby("subject_id", as_index=False).first()[["subject_id", "admittime"]]
    known = labs.merge(stay, on="subject_id")
    known = known[known["charttime"].between(known["admittime"], known["admittime"] + 48 * HOURS)]
    last = known.sort_values("charttime", kind="stable").groupby("subject_id")["valuenum"].last()
    found = load_hospital(meds, "died_in_hospital", features="wide").frame()["creatinine"].astype(float).dropna()
    assert sorted(found.round(3)) == sorted(last.round(3)) and len(last) > 60


@pytest.mark.parametrize("name", HOSPITAL)
def test_the_experiments_find_the_hospital_tasks_and_draw_trials_from_them(meds, name):
    assert find_cohort(name, meds.parent).note == ""
    trial = draw(Family(name, source="cohort", data=name, context=12, test_rows=6), 0, meds.parent)
    assert len(trial.context) >= 10 and trial.x.shape[0] == 6, "few of the demo have all of the labs"
    assert trial.context.schema.outcome.name == HOSPITAL[name]


@pytest.mark.parametrize("outcome", HOSPITAL_OUTCOMES)
def test_the_cohort_has_the_study_s_roles(meds, outcome):
    cohort = load_hospital(meds, outcome, features="wide")
    assert cohort.kind == "binary" and cohort.classes[1] == "yes"
    assert {"age", "sex", "admission_type"} == set(cohort.names) - set(
        name for name, free in zip(cohort.names, cohort.acquirable, strict=True) if free
    )
    assert cohort.acquirable.sum() >= 20
