"""A table becomes a cohort: what was stated holds, the rest is inferred, and nothing changes without a word."""

import copy
import dataclasses
import io
import pickle

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.schema import Feature
from tests.core.ward import FRAME, N, icu_cohort, loaded


@pytest.fixture
def cohort() -> Cohort:
    return icu_cohort()


def test_a_cohort_is_arrays_with_names(cohort):
    assert cohort.names == ("age", "sex", "ward", "lactate", "ph")
    assert [feature.kind for feature in cohort.features] == ["number", "binary", "category", "number", "number"]
    assert (cohort.kind, cohort.classes, cohort.n_classes) == ("binary", ("False", "True"), 2)
    assert (cohort.x.dtype, cohort.r.dtype, cohort.y.dtype) == (np.float32, bool, np.int64)
    assert cohort.x.shape == cohort.r.shape == (N, 5) and len(cohort) == N
    assert np.array_equal(cohort.r, ~np.isnan(cohort.x)) and (~cohort.r[:, 3]).sum() == 8
    assert cohort.acquirable.tolist() == [False, False, True, True, True]
    assert cohort.categorical.tolist() == [False, False, True, False, False]
    assert cohort.costs.tolist() == [1, 1, 1, 12, 12] and cohort.costs.dtype == np.float32
    assert cohort.groups.tolist() == [0, 1, 2, 3, 3] and cohort.groups.dtype == np.int64


def through_pickle(cohort: Cohort) -> Cohort:
    return pickle.loads(pickle.dumps(cohort))


@pytest.mark.parametrize("handed_on", [lambda cohort: cohort, through_pickle, copy.deepcopy])
def test_a_cohort_cannot_be_changed(cohort, handed_on):
    assert cohort.r.any()  # kept, once asked for
    cohort = handed_on(cohort)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cohort.name = "other"
    for array in (cohort.x, cohort.y, cohort.r, cohort.costs, cohort.groups, cohort.acquirable, cohort.categorical):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Kinds


@pytest.mark.parametrize(
    ("cells", "kind", "levels"),
    [
        ([0, 1], "binary", ("0", "1")),
        ([1, 2], "binary", ("1", "2")),
        ([0, 7], "number", ()),
        ([0, 1, 2, 3], "number", ()),
        ([1.5, 2.5], "number", ()),
        (["yes", "no"], "binary", ("no", "yes")),
        (["abnormal", "normal"], "binary", ("normal", "abnormal")),
        (["true", "false"], "binary", ("false", "true")),
        (["b", "a", "c"], "category", ("a", "b", "c")),
        (["[10-20)", "[0-10)", "[20-30)"], "category", ("[0-10)", "[10-20)", "[20-30)")),
        ([">7", ">8", "Norm"], "category", (">7", ">8", "Norm")),
    ],
)
def test_kinds_are_inferred(cells, kind, levels):
    cohort = loaded({"f": (cells * N)[:N], "g": range(5, 5 + 3 * N, 3), "y": [0, 1] * (N // 2)})
    assert (cohort.feature("f").kind, cohort.feature("f").levels) == (kind, levels)


def test_a_schema_makes_levels_of_coded_integers():
    cells = [0, 1, 2, 3] * (N // 4)
    cohort = loaded({"f": cells, "y": [0, 1] * (N // 2)}, schema={"features": [{"name": "f", "kind": "category"}]})
    assert cohort.feature("f").levels == ("0", "1", "2", "3") and cohort.x[:, 0].tolist() == cells


@pytest.mark.parametrize(
    ("cells", "kind", "classes"),
    [
        ([0, 1], "binary", ("0", "1")),
        (["ckd", "notckd"], "binary", ("notckd", "ckd")),
        (["died", "survived"], "binary", ("survived", "died")),
        (["malignant", "benign"], "binary", ("benign", "malignant")),
        (["Yes", "No"], "binary", ("No", "Yes")),
        ([3, 1, 2], "multiclass", ("1", "2", "3")),
        (["b", "a", "c"], "multiclass", ("a", "b", "c")),
        ([0.5, 1.5, 2.5], "continuous", ()),
        (list(range(20)), "continuous", ()),
    ],
)
def test_outcomes_are_inferred(cells, kind, classes):
    cohort = loaded({"f": range(5, 5 + 3 * N, 3), "y": (cells * N)[:N]})
    assert (cohort.kind, cohort.classes, cohort.n_classes) == (kind, classes, len(classes))


def test_the_positive_class_can_be_stated_and_an_uncertain_one_is_announced():
    columns = {"f": range(5, 5 + 3 * N, 3), "y": ["left", "right"] * (N // 2)}
    assert any("positive class" in warning and "'right'" in warning for warning in loaded(columns).warnings)
    stated = loaded(columns, positive="left")
    assert stated.classes == ("right", "left") and not stated.warnings
    assert stated.y[0] == 1


def test_whole_numbers_read_as_classes_are_announced():
    cohort = loaded({"f": range(5, 5 + 3 * N, 3), "y": [1, 2, 3, 4] * (N // 4)})
    assert any("continuous" in warning for warning in cohort.warnings)
    stated = loaded(
        {"f": range(5, 5 + 3 * N, 3), "y": [1, 2, 3, 4] * (N // 4)}, schema="outcome:\n  kind: continuous\n"
    )
    assert stated.kind == "continuous" and stated.y.dtype == np.float32


def test_what_is_left_out_is_said():
    cohort = loaded(
        {
            "id": [f"P{i}" for i in range(N)],
            "one": [1] * N,
            "none": [None] * N,
            "f": [0.5, 2.0] * (N // 2),
            "y": [0, 1] * (N // 2),
        }
    )
    assert cohort.names == ("f",) and cohort.schema.names == ("id", "one", "none", "f")
    said = "\n".join(cohort.warnings)
    assert all(words in said for words in ("'id' looks like an identifier", "'one' holds one and", "'none' is empty"))


def test_a_whole_schema_keeps_every_feature_even_where_a_table_has_no_use_for_it(cohort):
    part = Cohort.from_frame(FRAME[FRAME["sex"] == "F"], schema=cohort.schema)
    assert part.names == cohort.names and part.schema == cohort.schema


def test_levels_beyond_the_fifty_most_frequent_are_other():
    word = [f"w{i % 70:02d}" if i < 140 else f"w{i % 50:02d}" for i in range(400)]
    cohort = loaded({"word": word, "f": [i % 13 for i in range(400)], "y": [i % 2 for i in range(400)]})
    assert cohort.feature("word").levels == tuple(f"w{i:02d}" for i in range(50))
    others = cohort.x[:, 0] == 50
    assert others.sum() == 40 and set(np.array(word)[others]) == {f"w{i}" for i in range(50, 70)}
    assert cohort.decode("word", 50) == "other"


def test_large_numbers_that_32_bits_would_round_are_announced():
    counts = [400_000_001 + 3 * i for i in range(N)]
    cohort = loaded({"count": counts, "f": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)})
    assert any("'count'" in warning and "rounded" in warning for warning in cohort.warnings)


def test_all_problems_are_named_at_once():
    with pytest.raises(CohortError) as refusal:
        loaded({"a": ["<5", *range(N - 1)], "b": ["1e999", *range(N - 1)], "y": [0, 1] * (N // 2)})
    assert "'a', row 2" in str(refusal.value) and "'b', row 2" in str(refusal.value)


# Round trips


def test_a_cohort_comes_back_the_same_from_its_schema_and_its_frame(cohort):
    again = Cohort.from_frame(cohort.frame(), schema=cohort.schema.to_yaml())
    assert again.content_hash == cohort.content_hash and again.schema == cohort.schema
    assert np.array_equal(cohort.encode(cohort.frame()), cohort.x, equal_nan=True)
    buffer = io.BytesIO()
    cohort.frame().to_parquet(buffer)
    assert Cohort.from_parquet(buffer.getvalue(), schema=cohort.schema).content_hash == cohort.content_hash


def test_the_hash_tells_contents_and_not_names(cohort):
    renamed = Cohort.from_frame(FRAME, schema=cohort.schema, name="ward")
    assert renamed.content_hash == cohort.content_hash and len(cohort.content_hash) == 64
    changed = FRAME.assign(ph=FRAME["ph"].where(FRAME.index != 3, 6.9))
    assert Cohort.from_frame(changed, schema=cohort.schema).content_hash != cohort.content_hash
    dearer = dataclasses.replace(
        cohort.schema, features=(*cohort.schema.features[:-1], Feature("ph", cost=2, group="gas"))
    )
    assert Cohort.from_frame(FRAME, schema=dearer).content_hash != cohort.content_hash


def test_rows_give_a_part_under_the_same_schema(cohort):
    for index in (np.array([3, 1, 3]), slice(2, 9), np.arange(N) % 7 == 0):
        part = cohort.rows(index)
        assert part.schema is cohort.schema
        assert np.array_equal(part.x, cohort.x[index], equal_nan=True) and np.array_equal(part.y, cohort.y[index])
        pd.testing.assert_frame_equal(part.frame(), cohort.frame().iloc[index].reset_index(drop=True))


def test_the_frame_holds_ignored_columns_too_and_leaves_out_rows_without_an_outcome():
    frame = FRAME.assign(pid=[f"P{i}" for i in range(N)], died=[None, *FRAME["died"][1:]])
    cohort = Cohort.from_frame(frame, "died")
    assert len(cohort) == N - 1
    assert cohort.frame()["pid"].tolist() == frame["pid"].tolist()[1:] and "pid" not in cohort.names


def test_who_has_several_rows_stays_known_without_the_table():
    frame = pd.DataFrame(
        {"patient_id": [f"P{row // 3}" for row in range(36)], "a": np.arange(36) % 7 / 2, "died": [0, 1, 1] * 12}
    )
    cohort = Cohort.from_frame(frame, outcome="died")
    bare = cohort.without_table()
    assert bare.source is None and bare.content_hash == cohort.content_hash
    assert np.array_equal(bare.patients, cohort.patients) and len(set(bare.patients)) == 12
    part = [0, 1, 5, 30]
    assert len(set(bare.rows(part).patients)) == len(set(cohort.rows(part).patients)) == 3
    with pytest.raises(CohortError, match="no column 'patient_id'"):
        bare.grouped_by("patient_id")
