"""A table becomes a cohort: what was stated holds, the rest is inferred, and nothing changes without a word."""

import dataclasses
import io
import time
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.cohort import Cohort, UnseenLevelWarning
from l2m_core.errors import CohortError, FeatureError, InputError, SchemaError
from l2m_core.schema import Feature, Outcome, Schema
from tests.core.generated import tables, unfaithful_cells, written

N = 40
FRAME = pd.DataFrame(
    {
        "age": [40 + i % 30 for i in range(N)],
        "sex": ["F", "M"] * (N // 2),
        "ward": ["icu", "step-down", "normal", "icu"] * (N // 4),
        "lactate": [np.nan if i % 5 == 0 else i / 10 for i in range(N)],
        "ph": [7 + (i % 9) / 20 for i in range(N)],
        "died": [i % 4 == 0 for i in range(N)],
    }
)


@pytest.fixture
def cohort() -> Cohort:
    schema = {
        "features": [
            {"name": "lactate", "group": "gas", "minimum": 0, "maximum": 30, "unit": "mmol/L"},
            {"name": "ph", "group": "gas"},
        ]
    }
    return Cohort.from_frame(FRAME, "died", ["age", "sex"], {"lactate": 12.0}, schema, name="icu")


def loaded(columns: dict, **options) -> Cohort:
    return Cohort.from_csv(pd.DataFrame(columns).to_csv(index=False).encode(), **{"outcome": "y", **options})


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


def test_a_cohort_cannot_be_changed(cohort):
    with pytest.raises(dataclasses.FrozenInstanceError):
        cohort.name = "other"
    for array in (cohort.x, cohort.y, cohort.r, cohort.costs, cohort.groups, cohort.acquirable, cohort.categorical):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_arrays_of_the_caller_stay_writable_and_apart():
    x, y = np.zeros((N, 2), dtype=np.float32), np.arange(N) % 2
    cohort = Cohort.from_arrays(x, y)
    x[0, 0] = 5
    y[0] = 1
    assert cohort.x[0, 0] == 0 and cohort.y[0] == 0


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
    cohort = loaded({"id": [f"P{i}" for i in range(N)], "one": [1] * N, "none": [None] * N, "f": [0.5, 2.0] * (N // 2),
                     "y": [0, 1] * (N // 2)})  # fmt: skip
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
    stamps = [1_600_000_000 + 3 * i for i in range(N)]
    cohort = loaded({"stamp": stamps, "f": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)})
    assert any("'stamp'" in warning and "rounded" in warning for warning in cohort.warnings)


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


@settings(max_examples=60)
@given(tables())
def test_no_cell_of_any_table_changes_its_meaning_without_a_word(table):
    check_faithful(*table)


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_no_cell_of_thousands_of_tables_changes_its_meaning_without_a_word(figure):
    settings(max_examples=5000)(given(tables())(lambda table: check_faithful(*table)))()
    figure("uploads: 5,000 generated tables", "read cell for cell, or refused in words", "5,000 of 5,000", True)


def check_faithful(names, rows):
    try:
        cohort = Cohort.from_csv(written(names, rows), "y", delimiter=",")
    except InputError as refusal:
        assert str(refusal)
        return
    assert unfaithful_cells(cohort, names, rows) == []
    assert set(cohort.names) | {f.name for f in cohort.schema.features if not f.used} == set(names[:-1])
    again = Cohort.from_csv(written(names, rows), schema=cohort.schema.to_yaml(), delimiter=",")
    assert again.content_hash == cohort.content_hash
    assert Cohort.from_frame(cohort.frame(), schema=cohort.schema).content_hash == cohort.content_hash


@settings(max_examples=40)
@given(tables(), st.data())
def test_any_damage_to_a_file_is_read_or_refused(table, data):
    check_damage(*table, data)


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_thousands_of_damages_are_read_or_refused(figure):
    settings(max_examples=5000)(given(tables(), st.data())(lambda table, data: check_damage(*table, data)))()
    figure("uploads: 5,000 generated damages to a file", "read or refused, never a stack trace", "5,000 of 5,000", True)


def check_damage(names, rows, data):
    content = bytearray(written(names, rows))
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        Cohort.from_csv(bytes(content), "y").encode({})
    except InputError as refusal:
        assert str(refusal)


# Arrays


def test_arrays_are_taken_as_they_are():
    x = np.column_stack([np.ones(N), np.arange(N) % 3, np.where(np.arange(N) % 2, np.nan, 1.5)])
    cohort = Cohort.from_arrays(
        x, np.arange(N) % 3, names=["same", "code", "lab"], categorical=[False, True, False],
        acquirable=[False, True, True], costs=[1, 2, 3], groups=[None, "p", "p"], classes=["low", "mid", "high"],
    )  # fmt: skip
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
        (np.zeros((N, 1)), np.arange(N - 1) % 2, {}, "shape"),
        (np.zeros((N, 1)), np.zeros(N, dtype=int), {}, "1 classes"),
        (np.zeros((N, 1)), np.arange(N), {}, "40 classes"),
        (np.zeros((N, 1)), np.full(N, np.nan), {}, "missing"),
        (np.zeros((N, 1)), np.arange(N) % 3, {"classes": ["a", "b"]}, "2 classes"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"names": ["a", "b"]}, "2 names"),
        (np.zeros((N, 2)), np.arange(N) % 2, {"names": ["a", "a"]}, "twice"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"acquirable": [True, False]}, "acquirable"),
        (np.full((N, 1), 0.5), np.arange(N) % 2, {"categorical": [True]}, "codes"),
        (np.zeros((N, 1)), np.arange(N) % 2, {"kind": "ordinal"}, "kind"),
    ],
)
def test_arrays_that_cannot_be_a_cohort_are_refused(x, y, options, words):
    with pytest.raises(InputError, match=words):
        Cohort.from_arrays(x, y, **options)


# Queries


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


# Settings


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outcome": "dead"}, CohortError, "Did you mean"),
        ({"outcome": None}, CohortError, "State the outcome"),
        ({"outcome": 3}, CohortError, "name of a column"),
        ({"decimal": ";"}, CohortError, "decimal"),
        ({"censored": "half"}, CohortError, "censored"),
        ({"missing": "-999"}, CohortError, "list"),
        ({"costs": [1]}, CohortError, "costs"),
        ({"costs": {"ph": "dear"}}, SchemaError, "cost"),
        ({"schema": "nowhere.yaml"}, SchemaError, "cannot be opened"),
        ({"schema": 3}, SchemaError, "int is no schema"),
        ({"schema": {"outcome": "age"}}, SchemaError, "'age'"),
        ({"schema": Schema((Feature("gone"),), Outcome("died"))}, SchemaError, "'gone'"),
    ],
)
def test_wrong_settings_are_refused(options, error, words):
    with pytest.raises(error, match=words):
        Cohort.from_frame(FRAME, **{"outcome": "died", **options})


def test_frames_that_cannot_be_a_cohort_are_refused():
    for frame, words in (
        (FRAME.iloc[:9], "at least 10"),
        (FRAME.iloc[:0], "empty"),
        (FRAME.assign(seen=pd.Timestamp("2020-01-01")), "'seen' holds dates"),
        (FRAME.assign(z=1j), "complex"),
        (FRAME.assign(many=[[1]] * N), "'many' holds a list"),
        (FRAME.assign(lab=np.where(np.arange(N) == 7, np.inf, 1.0)), "'lab', row 7"),
        (pd.concat([FRAME, FRAME], axis=1), "Several columns are called 'died'"),
        (pd.DataFrame(np.zeros((N, 600))).assign(died=FRAME["died"]), "601 columns"),
        ({"a": [1]}, "not a DataFrame"),
    ):
        with pytest.raises(CohortError, match=words):
            Cohort.from_frame(frame, "died")


def test_python_values_in_a_frame_mean_what_they_mean_in_a_csv():
    mixed = [1, 2.0, "3", None, np.nan, Decimal("4.5"), pd.NA, " 6 "] * 5
    cohort = Cohort.from_frame(FRAME.assign(mixed=pd.Series(mixed, dtype=object)), "died")
    expected = np.array([1, 2, 3, np.nan, np.nan, 4.5, np.nan, 6] * 5, dtype=np.float32)
    assert np.array_equal(cohort.x[:, cohort.names.index("mixed")], expected, equal_nan=True)


def test_nullable_and_categorical_columns_are_read():
    cohort = Cohort.from_frame(
        FRAME.assign(
            count=pd.array([*range(N - 1), None], dtype="Int64"),
            flag=pd.array([True, False, None, True] * 10, dtype="boolean"),
            band=pd.Categorical(["b", "a", "c", None] * 10),
        ),
        "died",
    )
    assert [cohort.feature(name).kind for name in ("count", "flag", "band")] == ["number", "binary", "category"]
    assert (~cohort.r[:, -3:]).sum(axis=0).tolist() == [1, 10, 10]


# Real cohorts


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


def test_reading_is_quick():
    rng = np.random.default_rng(0)
    columns = {f"lab{i}": rng.normal(size=8000).round(3) for i in range(40)}
    data = pd.DataFrame({**columns, "y": rng.integers(0, 2, 8000)}).to_csv(index=False).encode()
    seconds = []
    for _ in range(3):
        started = time.process_time()
        Cohort.from_csv(data, "y")
        seconds.append(time.process_time() - started)
    assert min(seconds) < 2
