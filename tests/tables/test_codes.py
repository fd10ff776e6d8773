"""A stated category never passes through a float: no two texts become one level, wherever they come from."""

import io

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort, UnseenLevelWarning
from tests.core.ward import N, loaded

CODES = ["250.1", "250.10", "12345678901234567", "12345678901234568", "1E1", "10", "1.0", "1"]
CATEGORY = {"features": [{"name": "code", "kind": "category"}]}


def columns(codes=CODES) -> dict:
    return {"code": (list(codes) * N)[:N], "age": [40 + i % 30 for i in range(N)], "y": [0, 1] * (N // 2)}


def from_csv() -> Cohort:
    return loaded(columns(), schema=CATEGORY)


def from_frame() -> Cohort:
    return Cohort.from_frame(pd.DataFrame(columns()), "y", schema=CATEGORY)


def from_parquet() -> Cohort:
    buffer = io.BytesIO()
    pd.DataFrame(columns()).to_parquet(buffer)
    return Cohort.from_parquet(buffer.getvalue(), "y", schema=CATEGORY)


@pytest.mark.parametrize("read", [from_csv, from_frame, from_parquet])
def test_no_two_codes_merge(read):
    cohort = read()
    assert sorted(cohort.feature("code").levels) == sorted(CODES)
    assert [cohort.decode("code", code) for code in cohort.x[:8, 0]] == CODES
    for again in (
        Cohort.from_frame(cohort.frame(), schema=cohort.schema),
        Cohort.from_frame(cohort.frame(), schema=cohort.schema.to_yaml()),
    ):
        assert again.content_hash == cohort.content_hash


@pytest.mark.parametrize("code", CODES)
def test_a_patient_s_code_is_the_one_that_was_typed(code):
    cohort = from_csv()
    assert cohort.decode("code", cohort.encode({"code": code})[0, 0]) == code


@pytest.mark.parametrize("typed", ["250.100", "10.0", "1e1", "12345678901234569", 12345678901234569])
def test_a_code_that_the_cohort_never_held_is_no_other_code(typed):
    cohort = loaded(columns([code for code in CODES if code != "1E1"]), schema=CATEGORY)
    with pytest.warns(UnseenLevelWarning, match=str(typed)):
        assert cohort.decode("code", cohort.encode({"code": typed})[0, 0]) == "other"


@pytest.mark.parametrize(
    "codes",
    [
        [12345678901234567, 12345678901234568, 5],
        pd.array([12345678901234567, 12345678901234568, None], dtype="Int64"),
        np.array([2**63 + 1, 2**63 + 2, 7], dtype=np.uint64),
    ],
)
def test_whole_numbers_beyond_floats_stay_apart_in_frames_and_parquet(codes):
    frame = pd.DataFrame({**columns(), "code": pd.Series(codes).take(np.arange(N) % 3).reset_index(drop=True)})
    buffer = io.BytesIO()
    frame.to_parquet(buffer)
    expected = ["" if code is pd.NA else str(code) for code in codes]
    for cohort in (
        Cohort.from_frame(frame, "y", schema=CATEGORY),
        Cohort.from_parquet(buffer.getvalue(), "y", schema=CATEGORY),
    ):
        assert [cohort.decode("code", code) for code in cohort.x[:3, 0]] == expected


def test_levels_that_are_stated_are_cells_as_they_stand():
    schema = {"features": [{"name": "code", "levels": ["250.1", "401", "10"]}]}
    cohort = loaded(columns(["250.1", "250.10", "401", "10"]), schema=schema)
    assert [cohort.decode("code", code) for code in cohort.x[:4, 0]] == ["250.1", "other", "401", "10"]
    assert any("'250.10'" in warning and "'other'" in warning for warning in cohort.warnings)


def test_classes_of_an_outcome_never_merge():
    cells = {**columns(), "y": (["12345678901234567", "12345678901234568"] * N)[:N]}
    cohort = loaded(cells, schema="outcome: {kind: binary}")
    assert cohort.classes == ("12345678901234567", "12345678901234568")


def test_whole_numbers_that_32_bits_cannot_hold_are_announced_with_their_column():
    cohort = loaded(
        {**columns(), "code": [2**24 + 1 + 1000 * i for i in range(N)], "age": [2**24 - i**2 for i in range(N)]}
    )
    (warning,) = cohort.warnings
    assert "'code'" in warning and "16,777,216" in warning and "16777217 to 16777216" in warning
    arrays = Cohort.from_arrays(np.array([[2.0**24 + 1 + i, i] for i in range(12)]), np.arange(12) % 2)
    assert [warning for warning in arrays.warnings if "'x0'" in warning] == list(arrays.warnings) != []


def test_a_category_that_came_as_floats_is_announced_where_codes_may_have_merged():
    frame = pd.DataFrame({**columns(), "code": np.array([1.2345678901234567e16, 2e16, 3.0, 4.0] * (N // 4))})
    assert any(
        "'code'" in warning and "Give it as text" in warning
        for warning in Cohort.from_frame(frame, "y", schema=CATEGORY).warnings
    )


def test_an_outcome_that_32_bits_cannot_hold_is_announced():
    cohort = loaded({**columns(), "y": [2**24 + 1 + 1000 * i for i in range(N)]})
    assert cohort.kind == "continuous" and any("'y'" in warning and "rounded" in warning for warning in cohort.warnings)
