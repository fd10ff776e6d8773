"""The real cohorts beside the repository are read as they are described."""

import numpy as np
import pandas as pd
import pytest
import yaml

from l2m_core.cohort import Cohort


@pytest.mark.shared_data
def test_every_shared_cohort_is_read_with_the_right_kinds(shared_data):
    manifest = yaml.safe_load((shared_data / "manifest.yaml").read_text())
    described = [entry for entry in manifest["datasets"] if str(entry.get("file", "")).endswith(".csv")]
    assert len(described) >= 15
    for entry in described:
        cohort = Cohort.from_csv(shared_data / entry["file"], entry["outcome"], entry["baseline_columns"])
        assert len(cohort) == entry["rows"], entry["name"]
        assert cohort.kind == {"regression": "continuous"}.get(entry["task"], entry["task"]), entry["name"]
        if cohort.kind == "binary":
            assert cohort.classes[1] == str(entry["positive_label"]), entry["name"]
            assert cohort.y.mean() == pytest.approx(entry["prevalence"], abs=1e-4)
        texts = {feature.name for feature in cohort.features if feature.kind != "number"}
        unused = {feature.name for feature in cohort.schema.features if not feature.used}
        assert set(entry["text_columns"]) <= texts and unused <= {"aids"}, entry["name"]
        assert Cohort.from_frame(cohort.frame(), schema=cohort.schema).content_hash == cohort.content_hash


@pytest.mark.shared_data
def test_numbers_of_a_real_cohort_are_those_of_the_file(shared_data):
    frame = pd.read_csv(shared_data / "pima_diabetes.csv")
    cohort = Cohort.from_csv(shared_data / "pima_diabetes.csv", "diabetes")
    assert np.array_equal(cohort.x, frame.drop(columns="diabetes").to_numpy(dtype=np.float32), equal_nan=True)
