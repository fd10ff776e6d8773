"""Columns of numbers that are probably codes are asked about, and ordinary measurements are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from sklearn import datasets

from l2m_core.schema import Overrides
from l2m_core.tables.first_look import FirstLook, first_look
from l2m_core.tables.frames import table_from_frame
from l2m_core.tables.reading import read_table

ICD = ["250.01", "401.9", "428.0", "585"]
ROWS = 60


def look_at(name: str, values: list, stated: dict | None = None) -> FirstLook:
    frame = pd.DataFrame({name: np.resize(np.array(values, dtype=object), ROWS), "died": np.arange(ROWS) % 2})
    return first_look(table_from_frame(frame, name="ward"), Overrides(stated or {}, {"name": "died"}))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ICD-9", ICD),
        ("icd9_code", ["250.1", "250.10", "401.9"]),  # two numbers, three codes
        ("principal diagnosis", ICD),
        ("ZIP", [94110, 10001, 60601]),
        ("PLZ", [4051, 8001, 3011]),
        ("admission_source_id", [1, 2, 4, 7, 9]),
        ("race", [1, 2, 3, 4, 5]),
    ],
)
def test_numbers_that_a_name_calls_codes_are_asked_about_until_a_kind_is_chosen(name: str, values: list) -> None:
    assert look_at(name, values)[name].seems_codes
    assert not look_at(name, values, {name: {"kind": "category"}})[name].seems_codes


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("weight", [70.5, 82, 64.25, 101]),
        ("LDH", [250, 401, 428, 585]),
        ("year of diagnosis", [1998, 2004, 2011]),
        ("number_diagnoses", [1, 5, 9, 16]),
        ("age at diagnosis", [148, 250, 301]),
        ("code status", [1, 2]),
        ("base excess code", [-3, 1, 4]),
        ("z score of the disease", [0.3333, 1.6789, 2.5001]),
    ],
)
def test_what_is_counted_or_measured_is_not_asked_about(name: str, values: list) -> None:
    assert not look_at(name, values)[name].seems_codes


def test_codes_with_leading_zeros_are_read_as_such_without_a_question() -> None:
    seen = look_at("ICD", ["038", "401", "250"])["ICD"]
    assert seen.summary.kind == "category" and not seen.seems_codes


@pytest.mark.shared_data
def test_of_real_cohorts_only_numbered_kinds_of_admission_are_asked_about(shared_data: Path) -> None:
    asked = set()
    for entry in yaml.safe_load((shared_data / "manifest.yaml").read_text())["datasets"]:
        if entry["file"].endswith(".csv"):
            table = read_table((shared_data / entry["file"]).read_bytes())
            found = first_look(table, Overrides({}, {"name": entry["outcome"]}))
            asked |= {name for name, column in found.items() if column.seems_codes}
    assert asked == {"admission_type_id", "discharge_disposition_id", "admission_source_id"}


@pytest.mark.parametrize("bundled", ["breast_cancer", "diabetes", "iris", "wine", "linnerud"])
def test_of_tables_that_come_with_scikit_learn_nothing_is_asked(bundled: str) -> None:
    frame = getattr(datasets, f"load_{bundled}")(as_frame=True).frame
    found = first_look(table_from_frame(frame, name=bundled), Overrides({}, {"name": frame.columns[-1]}))
    assert not any(column.seems_codes for column in found.values())
