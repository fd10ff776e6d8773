"""Results written as signs: a minus beside a plus is a result, and what is left out is counted."""

import numpy as np
import pytest

from l2m_core.cohort import Cohort, UnseenLevelWarning
from l2m_core.errors import CohortError
from l2m_core.tables.result_signs import is_minus, is_plus
from tests.core.ward import N, loaded

MINUSES = ("-", "\u2212", "\u2013", "\u2014", "--", "\uff0d")
PLUSES = ("+", "++", "+++", "(+)", "\u00b1", "+/-", "-/+", "+-", "2+", "\uff0b", "pos", "POS.", "positive", "positiv")


def ward(cells, **options) -> Cohort:
    columns = {"age": [40 + i % 30 for i in range(N)], "test": (list(cells) * N)[:N], "y": [0, 1] * (N // 2)}
    return loaded(columns, **options)


def cells_of(cohort: Cohort, name: str = "test") -> list[str]:
    """The column as it is held, as texts."""
    return [cohort.decode(name, code) for code in cohort.x[:, cohort.names.index(name)]]


@pytest.mark.parametrize("plus", PLUSES)
@pytest.mark.parametrize("minus", MINUSES)
def test_a_minus_beside_any_plus_is_a_level(plus, minus):
    assert is_plus(plus) and is_minus(minus) and not is_plus(minus) and not is_minus(plus)
    cohort = ward([plus, minus, "NA"])
    assert set(cohort.feature("test").levels) == {plus, minus}
    assert cells_of(cohort) == ([plus, minus, ""] * N)[:N]


@pytest.mark.parametrize("text", ["+3", "-3", "3", "+1.5", "possible", "post", "", "a+b", "O+", "AB-", "minus"])
def test_numbers_and_words_are_no_signs(text):
    assert not is_plus(text) and not is_minus(text)


def test_a_scale_of_signs_keeps_each_of_them_and_counts_what_is_left_out():
    cohort = ward(["+", "-", "(+)", "\u00b1", "++", "?", "NA", ""])
    assert set(cohort.feature("test").levels) == {"+", "-", "(+)", "\u00b1", "++"}
    assert cells_of(cohort)[:8] == ["+", "-", "(+)", "\u00b1", "++", "", "", ""]
    (warning,) = [warning for warning in cohort.warnings if "'test'" in warning]
    assert "10 cells were read as not recorded" in warning and "'?' (5)" in warning and "'NA' (5)" in warning


def test_no_row_is_lost_where_signs_are_the_outcome():
    cells = ["+", "-", "-", "+", "-"] * (N // 5)
    cohort = loaded({"f": range(5, 5 + 3 * N, 3), "y": cells})
    assert (len(cohort), cohort.classes) == (N, ("-", "+"))
    assert cohort.y.tolist() == [int(cell == "+") for cell in cells]


def test_rows_without_a_sign_are_left_out_with_their_count():
    cohort = loaded({"f": range(5, 5 + 3 * N, 3), "y": ["+", "-", "\u00b1", "?"] * (N // 4)})
    assert len(cohort) == 3 * N // 4 and set(cohort.classes) == {"+", "-", "\u00b1"}
    assert any("'?' (10)" in warning for warning in cohort.warnings)
    assert any("10 of 40 rows" in warning for warning in cohort.warnings)


def test_a_minus_among_words_that_say_negative_is_a_result_with_a_word_about_it():
    cohort = ward(["pos", "-", "neg"])
    assert set(cohort.feature("test").levels) == {"pos", "-", "neg"}
    assert any("13 cells '-' are read as a result" in warning for warning in cohort.warnings)
    assert set(ward(["pos", "-", "neg"], missing=["-"]).feature("test").levels) == {"pos", "neg"}


def test_a_dash_among_words_is_not_recorded_and_counted():
    cohort = ward(["low", "high", "-", "\u2013"])
    assert cohort.feature("test").levels == ("low", "high") and np.isnan(cohort.x[2:4, 1]).all()
    (warning,) = [warning for warning in cohort.warnings if "'test'" in warning]
    assert "20 cells were read as not recorded" in warning and "'-' (10)" in warning
    stated = ward(["low", "high", "-"], schema={"features": [{"name": "test", "levels": ["-", "low", "high"]}]})
    assert cells_of(stated)[:3] == ["low", "high", "-"]


def test_a_dash_among_numbers_is_not_recorded():
    cohort = ward(["1.5", "-", "+3"])
    assert np.array_equal(cohort.x[:3, 1], [1.5, np.nan, 3], equal_nan=True)


def test_a_minus_among_grades_is_asked_about():
    with pytest.raises(CohortError, match="'test', row 2: '-' is not a number.*kind: category"):
        ward(["-", "+1", "+2", "+3"])
    stated = ward(["-", "+1", "+2", "+3"], schema={"features": [{"name": "test", "kind": "category"}]})
    assert set(stated.feature("test").levels) == {"-", "+1", "+2", "+3"}


def test_a_minus_of_a_patient_is_read_as_the_cohort_s():
    both, plus_only = ward(["+", "-", "++"]), ward(["+", "++", "NA"])
    assert both.decode("test", both.encode({"test": "-"})[0, 1]) == "-"
    with pytest.warns(UnseenLevelWarning, match="'-' was never seen"):
        assert plus_only.decode("test", plus_only.encode({"test": "-"})[0, 1]) == "other"
    assert np.isnan(ward(["low", "high"]).encode({"test": "-"})[0, 1])
