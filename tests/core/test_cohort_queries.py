"""Rows asked of a cohort: understood in any usual form, or refused by name, value and range."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from l2m_core.cohort import Cohort, UnseenLevelWarning
from l2m_core.errors import CohortError, FeatureError
from l2m_core.schema import Feature
from l2m_core.tables.column_reading import ReadingRules
from l2m_core.tables.entered_values import enter_value
from l2m_core.tables.precision import in_double
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
        ({"lactate": np.inf}, ["'lactate'", "inf", "between -3.4e38 and 3.4e38"]),
        ({"age": 1e39}, ["'age'", "between -3.4e38 and 3.4e38"]),
        ({"age": 10**400}, ["'age'", "between -3.4e38 and 3.4e38"]),
        ({"age": True}, ["'age'", "a truth value"]),
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


def test_the_frame_that_a_cohort_was_made_of_is_read_by_its_own_names():
    values = np.random.default_rng(0).normal(size=(4, N))
    frame = pd.DataFrame(
        np.column_stack([*values, np.arange(N) % 2]), columns=[" age ", "lactate", "lactate", "pulse\trate", "died"]
    )
    found = Cohort.from_frame(frame, "died")
    assert found.names == ("age", "lactate", "lactate (2)", "pulse rate")
    np.testing.assert_array_equal(found.encode(frame), found.x)


def test_an_unseen_category_is_other_and_said_once(cohort):
    with pytest.warns(UnseenLevelWarning, match="'ward': 'hospice' .and 1 more such cell. was") as caught:
        codes = cohort.encode([{"ward": "hospice"}, {"ward": "home"}, {"ward": "icu"}])[:, 2]
    assert codes.tolist() == [3, 3, 0] and len(caught) == 1
    assert [cohort.decode("ward", code) for code in codes] == ["other", "other", "icu"]


def european(**options) -> Cohort:
    """Decimal commas, thousands separated by a point, and -999 where nothing was recorded."""
    columns = {
        "cells": ["1.500", "-999", "2.250,5", "3.000"] * (N // 4),
        "lactate": ["1,5", "2,5", "-999,0", "3,0"] * (N // 4),
        "age": [40 + i % 30 for i in range(N)],
        "ward": ["icu", "home", "-999", "none of these"] * (N // 4),
        "smoker": ["1", "2", "-999", "2"] * (N // 4),
        "y": [0, 1] * (N // 2),
    }
    return loaded(columns, **{"missing": ["-999"], **options})


TOLD = [{"decimal": ","}, {}]  # stated by a person, told by the cells


@pytest.mark.parametrize("options", TOLD)
def test_a_text_is_read_by_the_decimal_sign_of_the_cohort(options):
    cohort = european(**options)
    assert np.nanmax(cohort.x[:, 0]) == 3000
    texts = {"cells": "1.500", "lactate": "1,500", "age": "1.040"}  # nothing in the column of ages tells the sign
    for rows in (texts, pd.DataFrame([texts])):
        assert cohort.encode(rows)[0, :3].tolist() == [1500, 1.5, 1040]
    numbers = {"cells": 1.5, "lactate": np.float32(1.5), "age": Decimal("1.04")}
    for rows in (numbers, pd.DataFrame([numbers], dtype=float)):
        np.testing.assert_allclose(cohort.encode(rows)[0, :3], [1.5, 1.5, 1.04], rtol=1e-6)
    with pytest.raises(FeatureError, match="'lactate' must be a number with a decimal comma; '1.5' is not"):
        cohort.encode({"lactate": "1.5"})


@pytest.mark.parametrize("part", [slice(None), slice(0, 12)])
def test_the_cells_of_a_file_read_again_as_rows_are_the_cohort_s_own(part):
    cohort = european().rows(part)
    cells = {name: european().source.columns[i].cells() for i, name in enumerate(european().source.names)}
    assert np.array_equal(cohort.encode(pd.DataFrame(cells))[part], cohort.x, equal_nan=True)


@pytest.mark.parametrize("value", [-999, -999.0, np.int64(-999), np.float32(-999), Decimal(-999), "-999", " -999,0 "])
@pytest.mark.parametrize("options", TOLD)
def test_a_marker_for_not_recorded_is_not_measured(options, value):
    cohort = european(**options)
    names = [name for name in cohort.names if name != "ward" or value != " -999,0 "]  # among words it is one more word
    for rows in ({name: value for name in names}, pd.DataFrame([{name: value for name in names}])):
        assert np.isnan(cohort.encode(rows)[0, [cohort.names.index(name) for name in names]]).all()


def test_markers_are_no_extremes_of_a_numeric_column():
    cohort = european(schema={"features": [{"name": "age", "minimum": 0}]})
    assert np.array_equal(cohort.encode(pd.DataFrame({"age": [50, -999]}))[:, 2], [50, np.nan], equal_nan=True)


def test_a_marker_with_a_decimal_comma_is_also_its_number():
    columns = {"a": ["1,5", "2,5", "-99,9", "-99,90"] * (N // 4), "y": [0, 1] * (N // 2)}
    for decimal in (",", None):
        cohort = loaded(columns, missing=["-99,9"], decimal=decimal)
        assert cohort.r[:4, 0].tolist() == [True, True, False, False]
        assert np.isnan(cohort.encode([{"a": -99.9}, {"a": "-99,90"}])).all()


def test_words_for_not_measured_and_limits_are_read_as_the_cohort_s():
    columns = {"a": ["<5", "6", "nd", "8"] * (N // 4), "y": [0, 1] * (N // 2)}
    cohort = loaded(columns, censored="limit")
    rows = [{"a": text} for text in columns["a"]]
    assert np.array_equal(cohort.encode(rows), cohort.x, equal_nan=True)


@pytest.mark.parametrize(("text", "side"), [("<2.5", "below"), ("≥ 2,5", "above")])
def test_a_detection_limit_that_is_refused_comes_with_how_to_give_it(text, side):
    cohort = loaded({"a": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)})
    with pytest.raises(FeatureError, match=f"is not. Give a detection limit .*'{side}' as its limit.*--censored limit"):
        cohort.encode({"a": text})
    with pytest.raises(FeatureError, match="'<low' is not.$"):
        cohort.encode({"a": "<low"})


def test_a_number_that_is_a_level_is_found_however_it_is_written():
    columns = {"g": ["1", "2"] * (N // 2), "f": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loaded(columns).encode([{"g": "1.0"}, {"g": "2,0"}])[:, 0].tolist() == [0, 1]
        stated = loaded(columns, schema={"features": [{"name": "g", "levels": ["1.0", "2.0"]}]})
        assert stated.encode([{"g": 1}, {"g": "2"}])[:, 0].tolist() == [0, 1]


def test_a_cohort_of_arrays_has_no_markers_and_takes_either_decimal_sign():
    cohort = Cohort.from_arrays(np.arange(24.0).reshape(12, 2), np.arange(12) % 2)
    assert cohort.encode({"x0": -999, "x1": "1,5"}).tolist() == [[-999, 1.5]]


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


@pytest.mark.parametrize(
    "levels", [("nein", "ja"), ("non", "oui"), ("-", "+"), ("neg", "pos"), ("no", "yes"), ("f", "t")]
)
def test_true_and_false_are_yes_and_no_in_any_language_that_cells_are_read_in(levels):
    columns = {"a": levels * (N // 2), "age": [40 + 7 * i % 31 for i in range(N)], "y": ["0", "1"] * (N // 2)}
    cohort = loaded(columns, schema={"features": [{"name": "a", "kind": "binary", "levels": list(levels)}]})
    assert cohort.encode([{"a": False}, {"a": True}])[:, cohort.names.index("a")].tolist() == [0, 1]


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
    for missing in (None, np.nan, pd.NA, pd.NaT, ""):
        with pytest.raises(CohortError, match="Row 1 has no outcome"):
            cohort.encode_outcome([True, missing])
    for wrong, kind in (("True", "a str"), (1, "an int"), (pd.DataFrame({"died": [True]}), "a DataFrame")):
        with pytest.raises(CohortError, match=f"The outcomes are {kind}; give a list"):
            cohort.encode_outcome(wrong)


def test_a_name_that_is_a_number_is_refused_with_how_it_is_given():
    frame = pd.DataFrame({0: np.arange(20.0) % 7, 1: np.arange(20) % 2})
    cohort = Cohort.from_frame(frame, outcome="1")
    assert cohort.encode(frame[[0]]).shape == (20, 1)
    with pytest.raises(FeatureError, match="no feature '0'. Names of numbers are read as texts: '0'"):
        cohort.encode({0: 1.5})


def test_known_numbers_are_read_as_the_cohort_s():
    columns = {"a": [i % 7 for i in range(N)], "stay": [f"{i},5" for i in range(N)]}
    cohort = loaded(columns, outcome="stay", missing=["-999"])
    assert cohort.encode_outcome(["1.500", "2,5", 3.5]).tolist() == [1500, 2.5, 3.5]
    for wrong in ("-999", "long"):
        with pytest.raises(CohortError, match="'stay'"):
            cohort.encode_outcome([wrong])


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float16", object])
def test_numbers_of_fewer_bits_are_what_they_are_written_as(dtype):
    """0.1 of 32 bits became the level 0.10000000149011612, which nobody wrote and no patient has."""
    doses = np.array([0.1, 0.2, 0.7], np.float16 if dtype == "float16" else np.float32)[np.arange(N) % 3]
    column = pd.Series(list(doses), dtype=object) if dtype is object else pd.Series(doses).astype(dtype)
    frame = pd.DataFrame({"dose": column, "age": 40 + np.arange(N) % 7, "y": [0, 1] * (N // 2)})
    cohort = Cohort.from_frame(frame, "y", schema={"features": [{"name": "dose", "kind": "category"}]})
    assert cohort.feature("dose").levels == ("0.1", "0.2", "0.7")
    for value in (0.1, np.float32(0.1), np.float16(0.1), "0.1"):
        assert cohort.encode({"dose": value})[0, 0] == 0
    assert cohort.encode(frame)[:3, 0].tolist() == [0, 1, 2]
    numbers = Cohort.from_frame(frame, "y", schema={"features": [{"name": "dose", "kind": "number"}]}, missing=["0.7"])
    assert np.isnan(numbers.encode(frame)[2, 0]) and np.isnan(numbers.x[2, 0])


def test_a_number_of_fewer_bits_is_recorded_as_it_is_written():
    feature = Feature("lactate")
    assert enter_value(feature, np.float32(2.1), ReadingRules()) == (2.1, 2.1)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=2.0**-60, max_value=2.0**60))
def test_in_double_no_number_of_fewer_bits_changes(value):
    (found,) = in_double(np.array([value], np.float32))
    assert np.float32(found) == np.float32(value) and np.isclose(found, float(str(np.float32(value))), rtol=1e-15)
