"""Arrays become a cohort as they are, or are refused in words."""

import re

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from tests.core.ward import N


def test_arrays_of_the_caller_stay_writable_and_apart():
    x, y = np.zeros((N, 2), dtype=np.float32), np.arange(N) % 2
    cohort = Cohort.from_arrays(x, y)
    x[0, 0] = 5
    y[0] = 1
    assert cohort.x[0, 0] == 0 and cohort.y[0] == 0


def test_lists_are_arrays_too():
    cohort = Cohort.from_arrays([[float(i), i % 3] for i in range(N)], [i % 2 for i in range(N)])
    assert cohort.x.tolist() == [[i, i % 3] for i in range(N)] and cohort.names == ("x0", "x1")


def test_a_frame_names_its_columns():
    frame = pd.DataFrame({"age": np.arange(N), "lactate": np.linspace(0.5, 4, N)})
    assert Cohort.from_arrays(frame, np.arange(N) % 2).names == ("age", "lactate")
    assert Cohort.from_arrays(frame, np.arange(N) % 2, names=["a", "b"]).names == ("a", "b")
    assert Cohort.from_arrays(frame.set_axis([0, 1], axis=1), np.arange(N) % 2).names == ("x0", "x1")


def test_arrays_are_taken_as_they_are():
    x = np.column_stack([np.ones(N), np.arange(N) % 3, np.where(np.arange(N) % 2, np.nan, 1.5)])
    cohort = Cohort.from_arrays(
        x,
        np.arange(N) % 3,
        names=["same", "code", "lab"],
        categorical=[False, True, False],
        acquirable=[False, True, True],
        costs=[1, 2, 3],
        groups=[None, "p", "p"],
        classes=["low", "mid", "high"],
    )
    assert np.array_equal(cohort.x, x.astype(np.float32), equal_nan=True)
    assert (cohort.kind, cohort.classes) == ("multiclass", ("low", "mid", "high"))
    assert cohort.feature("code").levels == ("0", "1", "2")
    assert (cohort.groups.tolist(), cohort.costs.tolist()) == ([0, 1, 1], [1, 3, 3])  # one order, one price
    assert cohort.acquirable.tolist() == [False, True, True] and cohort.categorical.tolist() == [False, True, False]
    again = Cohort.from_frame(cohort.frame(), schema=cohort.schema)
    assert again.content_hash == cohort.content_hash


@pytest.mark.parametrize(
    ("y", "options", "kind", "classes"),
    [
        (np.arange(N) % 2, {}, "binary", ("0", "1")),
        (np.arange(N) % 2 == 0, {}, "binary", ("False", "True")),
        (np.array(["a", "b", "c", "d"] * 10), {}, "multiclass", ("a", "b", "c", "d")),
        (np.arange(N) / 3, {}, "continuous", ()),
        (np.arange(N) % 2, {"kind": "continuous"}, "continuous", ()),
        (np.arange(N) % 2.0, {"kind": "binary"}, "binary", ("0", "1")),
        (np.arange(N) % 2, {"classes": ["a", "b", "c"]}, "multiclass", ("a", "b", "c")),
    ],
)
def test_the_outcome_of_arrays(y, options, kind, classes):
    cohort = Cohort.from_arrays(np.zeros((N, 1)), y, **options)
    assert (cohort.kind, cohort.classes) == (kind, classes)


@pytest.mark.parametrize(
    ("x", "y", "options", "words"),
    [
        (np.zeros((9, 1)), np.arange(9) % 2, {}, "9 rows"),
        (np.zeros(N), np.arange(N) % 2, {}, "shape"),
        (np.full((N, 1), np.inf), np.arange(N) % 2, {}, r"x\[0, 0\]"),
        (np.full((N, 1), "a"), np.arange(N) % 2, {}, "numbers"),
        (np.arange(N).astype("datetime64[D]")[:, None], np.arange(N) % 2, {}, r"x holds datetime64\[D\]; it must hold"),
        (np.zeros((N, 1)), np.arange(N).astype("m8[D]"), {"kind": "continuous"}, r"y holds timedelta64\[D\]"),
        (
            np.zeros((N, 1)),
            np.array(["a", "b", "a", None] * (N // 4), dtype=object),
            {},
            "y is missing in 10 of 40 rows",
        ),
        (np.zeros((N, 1)), np.arange(N - 1) % 2, {}, "shape"),
        (np.zeros((N, 1)), np.zeros(N, dtype=int), {}, "1 classes"),
        (np.zeros((N, 1)), np.arange(N), {}, "40 classes"),
        (np.zeros((N, 1)), np.full(N, np.nan), {}, "missing"),
        (np.zeros((N, 1)), np.arange(N) % 3, {"classes": ["a", "b"]}, "2 classes"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"names": ["a", "b"]}, "2 names"),
        (np.zeros((N, 2)), np.arange(N) % 2, {"names": ["a", "a"]}, "twice"),
        (np.zeros((N, 2)), np.arange(N) % 2, {"acquirable": [0, 2]}, "acquirable must hold a truth value for each"),
        (np.zeros((N, 2)), np.arange(N) % 2, {"acquirable": ["x3"]}, "acquirable names 'x3', which is no feature"),
        (
            np.zeros((N, 2)),
            np.arange(N) % 2,
            {"levels": {"x2": ["a"]}},
            "levels are given for 'x2', which is no feature",
        ),
        (np.zeros((N, 2)), np.arange(N) % 2 + 0.4, {"classes": ["a", "b"]}, "y must hold codes from 0 to 1"),
        (np.zeros((N, 2)), np.full(N, np.nan), {"classes": ["a", "b"]}, "y must hold codes from 0 to 1"),
        (np.zeros((N, 2)), ["a", "b"] * (N // 2), {"classes": ["a", "b"]}, "y must hold codes from 0 to 1"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"acquirable": [True, False]}, "acquirable"),
        (np.full((N, 1), 0.5), np.arange(N) % 2, {"categorical": [True]}, "codes"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"kind": "ordinal"}, "kind"),
    ],
)
def test_arrays_that_cannot_be_a_cohort_are_refused(x, y, options, words):
    with pytest.raises(InputError, match=words):
        Cohort.from_arrays(x, y, **options)


def test_features_can_be_named_instead_of_flagged():
    x, y = np.zeros((N, 3)), np.arange(N) % 2
    by_name = Cohort.from_arrays(x, y, acquirable=["x2", "x0"], categorical=["x1"])
    by_flag = Cohort.from_arrays(x, y, acquirable=[True, False, True], categorical=[0, 1, 0])
    assert by_name.schema == by_flag.schema and by_name.acquirable.tolist() == [True, False, True]
    assert Cohort.from_arrays(x, y, acquirable=[]).acquirable.tolist() == [False] * 3


@pytest.mark.parametrize(
    ("unit", "plus", "words"),
    [
        (1.0, 1e8, "'{}'.* are rounded to 32 bits"),
        (1e-50, 1e-50, "'{}'.* become 0 in 32 bits"),
        (1e-2, 1e5, "'{}'.* varies little around large numbers"),
    ],
)
def test_numbers_that_32_bits_change_are_announced(unit, plus, words):
    numbers = np.linspace(0.1, 3.1, N) * unit + plus
    of_feature = Cohort.from_arrays(numbers[:, None], np.arange(N) % 2)
    of_outcome = Cohort.from_arrays(np.zeros((N, 1)), numbers)
    for cohort, name in ((of_feature, "x0"), (of_outcome, "outcome")):
        (warning,) = cohort.warnings
        assert re.search(words.format(name), warning)
    frame = pd.DataFrame({"x0": numbers, "x1": np.arange(N) % 2, "outcome": numbers[::-1]})
    assert (
        sum(
            bool(re.search(words.format("(x0|outcome)"), note)) for note in Cohort.from_frame(frame, "outcome").warnings
        )
        == 2
    )
