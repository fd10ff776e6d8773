"""Each loader on files of the published layout, on what is absent or damaged, and on the real rows that lie nearby."""

import gzip
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from l2m_core.errors import CohortError
from l2m_core.loaders import load_hospital, load_metabric, load_miniboone, load_mnist
from l2m_core.loaders.meds import STUDY_BASELINE, STUDY_LABS
from l2m_core.loaders.metabric import GENES


def metabric_table(rows: int = 60) -> pd.DataFrame:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"patient_id": np.arange(rows), "age_at_diagnosis": generator.uniform(30, 90, rows).round(2)})
    for gene in (*GENES, "brca1"):
        table[gene] = generator.normal(size=rows).round(4)
    subtypes = np.array(["LumA", "LumB", "Her2", "Basal", "Normal", "claudin-low", "NC"])
    return table.assign(**{"pam50_+_claudin-low_subtype": subtypes[np.arange(rows) % 7]})


def test_metabric_has_the_study_s_features_and_six_subtypes(tmp_path):
    metabric_table().to_csv(tmp_path / "METABRIC_RNA_Mutation.csv", index=False)
    cohort = load_metabric(tmp_path / "METABRIC_RNA_Mutation.csv")
    assert cohort.names == GENES and len(GENES) == 11 and cohort.acquirable.all()
    assert cohort.n_classes == 6 and "NC" not in cohort.classes


def test_a_table_that_is_not_metabric_is_refused_by_the_column_it_lacks(tmp_path):
    metabric_table().drop(columns="e2f7").to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(CohortError, match="e2f7"):
        load_metabric(tmp_path / "m.csv")


def test_miniboone_has_the_study_s_ten_features_and_background_as_the_positive_class(tmp_path):
    values = np.random.default_rng(0).normal(size=(30, 50)).round(3)
    values[4, 31] = -999.0  # Feature 32, the fourth of the study's
    lines = [" 12 18", *(" ".join(f"{v:.6e}" for v in row) for row in values)]
    (tmp_path / "MiniBooNE_PID.txt").write_text("\n".join(lines) + "\n")
    cohort = load_miniboone(tmp_path / "MiniBooNE_PID.txt")
    assert cohort.names == tuple(f"Feature {k}" for k in (1, 17, 23, 32, 3, 27, 12, 4, 25, 2))
    assert cohort.x[:, :3] == pytest.approx(values[:, [0, 16, 22]], abs=1e-6)
    assert cohort.y.sum() == 18 and cohort.y[12:].all() and cohort.classes == ("signal", "background")
    assert np.isnan(cohort.x).sum() == 1 and np.isnan(cohort.x[4, 3])
    part = load_miniboone(tmp_path / "MiniBooNE_PID.txt", rows=15, seed=1)
    assert len(part) == 15


def test_a_miniboone_file_cut_short_is_refused(tmp_path):
    (tmp_path / "m.txt").write_text("2 2\n" + "\n".join([" ".join(["1.0"] * 50)] * 3))
    with pytest.raises(CohortError, match="promises 4"):
        load_miniboone(tmp_path / "m.txt")


@pytest.mark.parametrize(
    ("load", "content"),
    [
        (load_metabric, b""),
        (load_metabric, b"\xff\xfe\x00 no text"),
        (load_miniboone, b"1 1\n" + b"high " * 50 + b"\n" + b"1.0 " * 50),
        (load_miniboone, b"\xff\x00\xff"),
        (load_mnist, b"PK\x03\x04 a cut archive"),
        (load_mnist, b"no archive"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, load, content):
    (tmp_path / "given.bin").write_bytes(content)
    with pytest.raises(CohortError, match="given.bin"):
        load(tmp_path / "given.bin")


def write_idx(path: Path, array: np.ndarray, magic: int, zipped: bool) -> None:
    content = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(content) if zipped else content)


@pytest.mark.parametrize("zipped", [True, False])
def test_mnist_is_read_as_published(tmp_path, zipped):
    generator = np.random.default_rng(0)
    images, labels = generator.integers(0, 256, (9, 28, 28)), generator.integers(0, 10, 9)
    end = ".gz" if zipped else ""
    write_idx(tmp_path / f"train-images-idx3-ubyte{end}", images, 0x803, zipped)
    write_idx(tmp_path / f"train-labels-idx1-ubyte{end}", labels, 0x801, zipped)
    read = load_mnist(tmp_path)
    assert (read["images"] == images).all() and (read["labels"] == labels).all()
    with pytest.raises(CohortError, match="t10k-images"):
        load_mnist(tmp_path, part="test")


def test_a_damaged_mnist_file_is_refused_by_name(tmp_path):
    write_idx(tmp_path / "train-images-idx3-ubyte", np.zeros((4, 28, 28)), 0x803, False)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 9) + b"abc")
    with pytest.raises(CohortError, match="train-labels-idx1-ubyte.*cut short"):
        load_mnist(tmp_path)


def test_an_npz_of_other_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "m.npz", pictures=np.zeros(3))
    with pytest.raises(CohortError, match="images and labels"):
        load_mnist(tmp_path / "m.npz")


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (load_metabric, ("Kaggle", "METABRIC_RNA_Mutation.csv")),
        (load_miniboone, ("UCI", "MiniBooNE_PID.txt")),
        (load_mnist, ("train-images-idx3-ubyte", "npz")),
        (lambda path: load_hospital(path, "long_stay"), ("PhysioNet", "credentialed", "mimic_iv_meds")),
    ],
)
def test_what_is_absent_is_explained(tmp_path, load, words):
    with pytest.raises(CohortError) as error:
        load(tmp_path / "nothing_here")
    for word in words:
        assert word in str(error.value)


# -- hospital ---------------------------------------------------------------------------------------------------------

DAY = pd.Timedelta(days=1)
START = pd.Timestamp("2150-03-01 08:00")


class Patient:
    """Events of one patient, as MEDS has them."""

    def __init__(self, number: int, age: float = 60):
        self.number, self.events = number, []
        self.add(START - age * 365.25 * DAY, "MEDS_BIRTH").add(pd.NaT, "GENDER//F")

    def add(self, time, code: str, value: float = np.nan):
        self.events.append({"subject_id": self.number, "time": time, "code": code, "numeric_value": value})
        return self

    def stay(self, start: float, days: float, to: str = "HOME"):
        self.add(START + start * DAY, "HOSPITAL_ADMISSION//EW EMER.//EMERGENCY ROOM")
        return self.add(START + (start + days) * DAY, f"HOSPITAL_DISCHARGE//{to}")

    def lab(self, item: int, day: float, value: float):
        return self.add(START + day * DAY, f"LAB//{item}//unit", value)


def fillers(first: int) -> list[Patient]:
    """Patients enough for a cohort, of either outcome."""
    return [
        Patient(first + i).stay(0, 4 + 8 * (i % 2), "DIED" if i % 3 == 0 else "HOME").lab(50912, 0.1, 1.0 + i)
        for i in range(14)
    ]


def write_meds(folder: Path, patients: list[Patient], split: str = "train") -> Path:
    (folder / "data" / split).mkdir(parents=True)
    for shard in (0, 1):
        events = [event for patient in patients[shard::2] for event in patient.events]
        pd.DataFrame(events).to_parquet(folder / "data" / split / f"{shard}.parquet")
    return folder


def row_of(cohort, age: float) -> pd.Series:
    """Patients of these tests differ in age."""
    frame = cohort.frame()
    return frame[np.isclose(frame["age"].astype(float), age, atol=0.2)].squeeze(axis=0)


def test_the_last_value_before_the_prediction_time_counts(tmp_path):
    patient = (
        Patient(1, 71).stay(0, 10).lab(50912, -1, 9.9).lab(50912, 0.5, 1.1).lab(50912, 1.9, 1.4).lab(50912, 2.1, 5.0)
    )
    cohort = load_hospital(write_meds(tmp_path / "m", [patient, *fillers(100)]), "long_stay", features="wide")
    row = row_of(cohort, 71)
    assert row["creatinine"] == pytest.approx(1.4)
    assert row["long_stay"] == "yes"
    assert not cohort.acquirable[list(cohort.names).index("age")]


def test_seven_further_days_make_a_stay_long(tmp_path):
    short, exact = Patient(1, 71).stay(0, 8.9), Patient(2, 72).stay(0, 9.0)
    cohort = load_hospital(write_meds(tmp_path / "m", [short, exact, *fillers(100)]), "long_stay", features="wide")
    assert row_of(cohort, 71)["long_stay"] == "no" and row_of(cohort, 72)["long_stay"] == "yes"


def test_the_young_the_soon_discharged_and_the_soon_dead_are_left_out(tmp_path):
    patients = [
        Patient(1, 17).stay(0, 5),
        Patient(2, 72).stay(0, 1.9),
        Patient(3, 73).stay(0, 5, "DIED").add(START + 1 * DAY, "MEDS_DEATH"),
    ]
    cohort = load_hospital(write_meds(tmp_path / "m", [*patients, *fillers(100)]), "died_in_hospital", features="wide")
    assert len(cohort) == 14


def test_the_first_admission_that_counts_is_taken(tmp_path):
    patient = Patient(1, 71).stay(0, 1).stay(20, 5).lab(50983, 20.5, 141)
    cohort = load_hospital(write_meds(tmp_path / "m", [patient, *fillers(100)]), "died_in_hospital", features="wide")
    assert row_of(cohort, 71)["sodium"] == 141


def test_readmission_is_asked_of_survivors_and_within_thirty_days(tmp_path):
    patients = [
        Patient(1, 71).stay(0, 5).stay(34, 3),
        Patient(2, 72).stay(0, 5).stay(36, 3),
        Patient(3, 73).stay(0, 5, "DIED"),
        *(Patient(10 + i, 40 + i).stay(0, 5).stay(12, 3) for i in range(10)),
    ]
    cohort = load_hospital(write_meds(tmp_path / "m", patients), "readmitted", features="wide")
    assert row_of(cohort, 71)["readmitted"] == "yes" and row_of(cohort, 72)["readmitted"] == "no"
    assert len(cohort) == 12


def test_death_is_told_by_the_discharge_or_by_its_date(tmp_path):
    patients = [
        Patient(1, 71).stay(0, 5, "DIED"),
        Patient(2, 72).stay(0, 5, "UNKNOWN").add(START + 4.5 * DAY, "MEDS_DEATH"),
        Patient(3, 73).stay(0, 5).add(START + 50 * DAY, "MEDS_DEATH"),
    ]
    cohort = load_hospital(write_meds(tmp_path / "m", [*patients, *fillers(100)]), "died_in_hospital", features="wide")
    assert [row_of(cohort, age)["died_in_hospital"] for age in (71, 72, 73)] == ["yes", "yes", "no"]


def test_a_date_without_a_time_counts_from_the_end_of_that_day(tmp_path):
    """Of deaths after discharge MIMIC knows the date only, and writes midnight."""
    day = START.normalize()
    patients = [
        Patient(1, 71).stay(0, 5).add(day + 5 * DAY, "MEDS_DEATH"),  # died on the day of leaving alive
        Patient(2, 72).stay(0, 2.5, "DIED").add(day + 2 * DAY, "MEDS_DEATH"),  # hours after the prediction time
        Patient(3, 73).stay(0, 5).add(day + 1 * DAY, "MEDS_DEATH"),  # before it, whatever the hour
    ]
    cohort = load_hospital(write_meds(tmp_path / "m", [*patients, *fillers(100)]), "died_in_hospital", features="wide")
    assert [row_of(cohort, age)["died_in_hospital"] for age in (71, 72)] == ["no", "yes"]
    assert len(cohort) == 16


def test_a_split_is_the_one_that_meds_names(tmp_path):
    folder = write_meds(tmp_path / "m", fillers(100))
    write_meds(folder, [Patient(1, 71).stay(0, 5), *fillers(200)[:11]], split="held_out")
    sizes = {split: len(load_hospital(folder, "long_stay", split, "wide")) for split in ("train", "held_out", None)}
    assert sizes == {"train": 14, "held_out": 12, None: 26}
    with pytest.raises(CohortError, match="no Parquet shards"):
        load_hospital(folder, "long_stay", "tuning")


def test_hospital_mistakes_are_named(tmp_path):
    folder = write_meds(tmp_path / "m", fillers(1))
    with pytest.raises(CohortError, match="'lived'.*long_stay"):
        load_hospital(folder, "lived")
    with pytest.raises(CohortError, match="'test'.*held_out"):
        load_hospital(folder, "long_stay", split="test")
    with pytest.raises(CohortError, match="no Parquet shards"):
        (tmp_path / "empty").mkdir()
        load_hospital(tmp_path / "empty", "long_stay")
    with pytest.raises(CohortError, match="'all'.*study"):
        load_hospital(folder, "long_stay", features="all")
    pd.DataFrame({"subject_id": [1]}).to_parquet(folder / "data" / "train" / "0.parquet")
    with pytest.raises(CohortError, match="'time'"):
        load_hospital(folder, "long_stay")


def with_labs(patient: Patient, *absent: str) -> Patient:
    for number, (name, item) in enumerate(STUDY_LABS.items()):
        if name not in absent:
            patient.lab(item, 0.2, 1.0 + number + patient.number % 10)
    return patient


def test_the_study_s_hospital_features_are_complete_and_know_chronic_disease(tmp_path):
    diabetic = with_labs(Patient(1, 71).stay(0, 10)).add(START + 10 * DAY, "DIAGNOSIS//ICD//10//E119")
    breathless = with_labs(Patient(2, 72).stay(0, 10)).add(START + 10 * DAY, "DIAGNOSIS//ICD//9//4928")
    later = with_labs(Patient(3, 73).stay(0, 10)).add(START + 40 * DAY, "DIAGNOSIS//ICD//10//E119")
    intensive = with_labs(Patient(4, 74).stay(0, 10)).add(START + 1 * DAY, "ICU_ADMISSION//MICU")
    no_rdw = with_labs(Patient(5, 75).stay(0, 10), "rdw")
    others = [with_labs(Patient(100 + i, 20 + i).stay(0, 4 + 8 * (i % 2))) for i in range(12)]
    folder = write_meds(tmp_path / "m", [diabetic, breathless, later, intensive, no_rdw, *others])
    cohort = load_hospital(folder, "long_stay")
    assert len(cohort) == 16, "who lacks the RDW is left out"
    free = [name for name, acquirable in zip(cohort.names, cohort.acquirable, strict=True) if acquirable]
    assert free == list(STUDY_LABS) and len(free) == 15
    assert set(cohort.names) - set(free) <= set(STUDY_BASELINE)
    rows = {age: row_of(cohort, age) for age in (71, 72, 73, 74)}
    assert [rows[age]["diabetes"] for age in rows] == ["yes", "no", "no", "no"]
    assert [rows[age]["chronic_pulmonary_disease"] for age in rows] == ["no", "yes", "no", "no"]
    assert [rows[age]["icu"] for age in rows] == ["no", "no", "no", "yes"]
    assert len(load_hospital(folder, "long_stay", complete=False)) == 17


# -- the real rows ----------------------------------------------------------------------------------------------------


@pytest.mark.shared_data
def test_metabric_s_real_rows(shared_data):
    cohort = load_metabric(shared_data / "metabric_pam50.csv")
    assert len(cohort) == 1898 and cohort.n_classes == 6 and cohort.acquirable.sum() == 11


@pytest.mark.shared_data
def test_mnist_s_real_pictures(shared_data):
    arrays = load_mnist(shared_data / "mnist_6000.npz")
    assert arrays["images"].shape == (6000, 28, 28) and set(arrays["labels"]) == set(range(10))
