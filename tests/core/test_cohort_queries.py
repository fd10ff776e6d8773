"""Rows asked of a cohort: understood in any usual form, or refused by name, value and range."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort, UnseenLevelWarning
from l2m_core.errors import CohortError, FeatureError
from tests.core.ward import N, icu_cohort, loaded


@pytest.fixture
def cohort() -> Cohort:
    return icu_cohort()


def test_rows_are_encoded_from_a_dict_a_list_or_a_frame(cohort):
    row = {"age": 71, "sex": "M", "ward": "icu", "lactate": 3.25}
    expected = np.array([[71, 1, 0, 3.25, np.nan]], dtype=np.float32)
    for rows in (row, [row], pd.DataFrame([row]), {**row, "ph": None}, {**row, "age": "71", "ph": "NA"}):
        assert np.array_equal(cohort.encode(rows), expected, equal_nan=True)
    assert cohort.encode({}).shape == (1, 5) and cohort.encode([]).shape == (0, 5)
    assert cohort.encode([{"age": 1}, {"ph": 7}]).shape == (2, 5)


@pytest.mark.parametrize("value", [3, 3.0, "3", " 3.0 ", np.float32(3), np.int64(3), Decimal(3), "3,0"])
def test_a_number_is_understood_in_any_usual_form(cohort, value):
    assert cohort.encode({"lactate": value})[0, 3] == 3


@pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, "", " ", "?", "NA", "-"])
def test_missing_is_understood_in_any_usual_form(cohort, value):
    for name in cohort.names:
        assert np.isnan(cohort.encode({name: value})[0, cohort.names.index(name)])


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"lactat": 3}, ["'lactat'", "'lactate'"]),
        ({7: 3}, ["'7'"]),
        ({"lactate": 31}, ["'lactate'", "31", "0 to 30 mmol/L"]),
        ({"lactate": -0.1}, ["'lactate'", "-0.1", "0 to 30"]),
        ({"lactate": "high"}, ["'lactate'", "'high'", "number"]),
        ({"lactate": "<5"}, ["'lactate'", "'<5'", "number"]),
        ({"lactate": "1,234"}, ["'lactate'", "1,234", "two ways"]),
        ({"lactate": np.inf}, ["'lactate'", "inf", "finite"]),
        ({"age": 1e39}, ["'age'", "finite"]),
        ({"age": 10**400}, ["'age'", "finite"]),
        ({"age": True}, ["'age'", "True"]),
        ({"age": [1]}, ["'age'", "number"]),
        ({"sex": ["F"]}, ["'sex'", "list"]),
        ("age", ["dict"]),
        (3, ["dict"]),
        ([3], ["dict"]),
    ],
)
def test_what_is_wrong_in_a_query_is_refused_by_name_value_and_range(cohort, row, words):
    with pytest.raises(FeatureError) as refusal:
        cohort.encode(row)
    assert [word for word in words if word not in str(refusal.value)] == []


def test_a_frame_is_checked_like_a_dict(cohort):
    with pytest.raises(FeatureError, match="'lactate' = 31"):
        cohort.encode(pd.DataFrame({"lactate": [2.0, 31.0]}))
    with pytest.raises(FeatureError, match="twice"):
        cohort.encode(pd.DataFrame([[1, 2]], columns=["age", "age"]))
    with pytest.raises(FeatureError, match="'age'"):
        cohort.encode(pd.DataFrame({"age": [True, False]}))


def test_an_unseen_category_is_other_and_said_once(cohort):
    with pytest.warns(UnseenLevelWarning, match="'ward': 'hospice' .*1 more") as caught:
        codes = cohort.encode([{"ward": "hospice"}, {"ward": "home"}, {"ward": "icu"}])[:, 2]
    assert codes.tolist() == [3, 3, 0] and len(caught) == 1
    assert [cohort.decode("ward", code) for code in codes] == ["other", "other", "icu"]


def test_levels_are_understood_in_any_usual_form():
    columns = {
        "f": ["Yes", "No"] * (N // 2),
        "g": [1, 2] * (N // 2),
        "h": range(5, 5 + 3 * N, 3),
        "y": [0, 1] * (N // 2),
    }
    cohort = loaded(columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in ("Yes", "yes", " YES ", True, np.True_):
            assert cohort.encode({"f": value})[0, 0] == 1
        for value in (2, 2.0, "2", np.int64(2), Decimal(2)):
            assert cohort.encode({"g": value})[0, 1] == 1


def test_values_are_shown_as_a_person_wrote_them(cohort):
    row = {"age": 71, "sex": "M", "ward": "icu", "lactate": 3.1}
    shown = [cohort.decode(name, value) for name, value in zip(cohort.names, cohort.encode(row)[0], strict=True)]
    assert shown == ["71", "M", "icu", "3.1", ""]
    with pytest.raises(FeatureError, match="not a code"):
        cohort.decode("ward", 9)


def test_known_outcomes_are_encoded_or_refused(cohort):
    assert cohort.encode_outcome([True, "False", np.bool_(True)]).tolist() == [1, 0, 1]
    with pytest.raises(CohortError, match="'maybe' is not a class"):
        cohort.encode_outcome(["maybe"])
