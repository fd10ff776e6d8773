"""What is wrong in arrays and mappings is refused by name, or read as 'other' where that is what it means."""

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.cohort import UnseenLevelWarning
from l2m_core.errors import CohortError, FeatureError

SCHEMA = {"features": [{"name": "lactate", "kind": "number", "minimum": 0, "maximum": 0.1}]}


@pytest.fixture(scope="module")
def memory():
    rows = "\n".join(f"{(i % 11) / 100},{'abc'[i % 3]},{i % 2}" for i in range(40))
    return l2m.load().condition(l2m.Cohort.from_csv(f"lactate,ward,died\n{rows}".encode(), "died", schema=SCHEMA))


@pytest.mark.parametrize(
    "row, message",
    [
        ([5.0, 0.0], "Row 1, feature 'lactate': 5 must be 0 to 0.1"),
        ([np.inf, 0.0], "Row 1, feature 'lactate': inf"),
        ([1e300, 0.0], "Row 1, feature 'lactate': inf"),
        ([0.1, 0.5], "Row 1, feature 'ward': 0.5 must be a whole code"),
        ([0.1, -1.0], "Row 1, feature 'ward': -1"),
        ([0.1, np.inf], "Row 1, feature 'ward': inf"),
        (["much", "b"], "must hold numbers. For texts, give a DataFrame"),
    ],
)
@pytest.mark.parametrize("ask", ["predict", "rank", "acquire"])
def test_an_array_of_patients_is_checked_like_a_table(memory, ask, row, message):
    with pytest.raises(FeatureError, match=message):
        getattr(memory, ask)(np.array([[np.nan, np.nan] if row[0] != "much" else ["", ""], row]))


def test_the_cohort_s_own_rows_are_never_refused(memory):
    for x in (memory.cohort.x, memory.cohort.x.astype(np.float64)):
        assert np.array_equal(memory.encode(x), memory.cohort.x, equal_nan=True)


def test_a_code_that_the_cohort_never_held_is_other_with_a_warning(memory):
    other = memory.predict(np.array([[np.nan, 3.0]]))
    with pytest.warns(UnseenLevelWarning, match="'ward': '7' was never seen"):
        assert np.array_equal(memory.predict(np.array([[np.nan, 7.0]])), other)


@pytest.mark.parametrize("values", [[1.0], "lactate", 3, [("lactate", 0.1)]])
def test_a_patient_starts_from_a_mapping(memory, values):
    with pytest.raises(FeatureError, match="must be a mapping of feature to value"):
        memory.start(values)


def test_a_million_columns_are_refused():
    with pytest.raises(CohortError, match="x has 1,000,000 columns; at most"):
        l2m.Cohort.from_arrays(np.zeros((12, 1_000_000), dtype=np.float32), np.arange(12) % 2)
