"""A data set that is absent has a stand-in that says so; one that is there and cannot be read is an error."""

import gzip
import struct

import numpy as np
import pandas as pd
import pytest

from l2m_core.errors import CohortError
from train.study.experiments.datasets import find_cohort, find_digits
from train.study.experiments.families import Family, draw, stand_ins

NAMES = {"metabric": 11, "miniboone": 10, "hospital_long_stay": 20, "hospital_death": 20, "hospital_readmission": 20}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_absent_has_a_stand_in_of_its_shape_that_says_so(tmp_path, name):
    found = find_cohort(name, tmp_path)
    assert name in found.note and "made-up" in found.note
    cohort = found.load()
    assert cohort.x.shape[1] == NAMES[name] and cohort.n_classes == (6 if name == "metabric" else 2)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("metabric", "METABRIC_RNA_Mutation.csv"),
        ("miniboone", "MiniBooNE_PID.txt"),
        ("hospital_death", "mimic_iv_meds/data/train/0.parquet"),
    ],
)
def test_a_damaged_data_set_is_never_replaced(tmp_path, name, file):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("damaged\n")
    with pytest.raises(CohortError):
        find_cohort(name, tmp_path)


def test_damaged_pictures_are_never_replaced(tmp_path):
    (tmp_path / "mnist.npz").write_text("damaged")
    with pytest.raises(CohortError, match="mnist.npz"):
        find_digits(tmp_path)


def test_pictures_are_found_as_they_are_published(tmp_path):
    (tmp_path / "mnist").mkdir()
    images = np.arange(3 * 28 * 28).reshape(3, 28, 28).astype(np.uint8)
    for stem, magic, array in (("images-idx3", 0x803, images), ("labels-idx1", 0x801, np.array([4, 5, 6], np.uint8))):
        content = struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()
        (tmp_path / "mnist" / f"train-{stem}-ubyte.gz").write_bytes(gzip.compress(content))
    found = find_digits(tmp_path)
    assert not found.note and found.arrays["labels"].tolist() == [4, 5, 6]


def test_a_cohort_of_the_folder_s_manifest_is_found_by_its_name(tmp_path):
    rows = pd.DataFrame({"age": np.arange(40) % 9 + 50, "lactate": np.arange(40) % 7 + 0.5, "died": np.arange(40) % 2})
    rows.to_csv(tmp_path / "icu.csv", index=False)
    (tmp_path / "manifest.yaml").write_text(
        "datasets: [{name: icu, file: icu.csv, outcome: died, task: binary, rows: 40, baseline_columns: [age], "
        "acquirable_columns: [lactate]}]"
    )
    found = find_cohort("icu", tmp_path)
    assert not found.note and found.load().names == ("age", "lactate")
    family = Family("icu", source="cohort", data="icu", context=900)
    assert stand_ins((family,), tmp_path) == ["icu: contexts of 26 rows in place of 900, because the table has 40."]
    trial = draw(family, 0, tmp_path)
    assert len(trial.context) == 26 and len(trial.x) == 14
