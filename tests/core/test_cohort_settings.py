"""Settings and frames that cannot make a cohort are refused in words; what a frame may hold is read as it is meant."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, SchemaError
from l2m_core.schema import Feature, Outcome, Schema
from tests.core.ward import FRAME, N


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"outcome": "dead"}, CohortError, "Did you mean"),
        ({"outcome": None}, CohortError, "State the outcome"),
        ({"outcome": 3}, CohortError, "name of a column.*outcome='3'"),
        ({"decimal": ";"}, CohortError, "decimal"),
        ({"censored": "half"}, CohortError, "censored"),
        ({"missing": "-999"}, CohortError, "list"),
        ({"costs": [1]}, CohortError, "costs"),
        ({"costs": {"ph": "dear"}}, SchemaError, "cost"),
        ({"schema": "nowhere.yaml"}, SchemaError, "cannot be opened"),
        ({"schema": 3}, SchemaError, "The schema is an int"),
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
        ({"a": [1]}, "The table is a dict; it must be a DataFrame"),
        (FRAME.assign(band=[object()] * N), "'band' holds an object"),
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


def test_numbers_that_pandas_holds_as_categories_are_levels_and_not_sizes():
    codes = np.array([1, 2, 10, 2] * (N // 4))
    frame = FRAME.assign(site=pd.Categorical(codes), dose=pd.Categorical(codes / 2))
    cohort = Cohort.from_frame(frame, "died")
    assert [(cohort.feature(name).kind, cohort.feature(name).levels) for name in ("site", "dose")] == [
        ("category", ("1", "2", "10")),
        ("category", ("0.5", "1", "5")),
    ]
    known = cohort.encode(pd.DataFrame({"site": [10, 1.0], "dose": [0.5, None]}))
    assert np.array_equal(known[:, -2:], [[2, 0], [0, np.nan]], equal_nan=True)
    by_site = Cohort.from_frame(frame, "site")
    assert (by_site.kind, by_site.classes) == ("multiclass", ("1", "2", "10"))
    stated = Cohort.from_frame(frame, "died", schema={"features": [{"name": "site", "kind": "number"}]})
    assert stated.x[:4, stated.names.index("site")].tolist() == [1, 2, 10, 2]


def test_intervals_of_pd_cut_are_levels_in_their_order():
    bins = pd.cut(pd.Series([3.0, 7.0, 50.0, 200.0] * (N // 4)), [-100, 5, 10, 100, 1000])
    frame = FRAME.assign(cut=bins, plain=bins.astype("interval[float64, right]"), single=bins.astype(object))
    frame["plain"] = frame["plain"].where(frame.index != 3)
    cohort = Cohort.from_frame(frame, "died")
    levels = ("(-100, 5]", "(5, 10]", "(10, 100]", "(100, 1000]")
    assert cohort.feature("cut").levels == levels and set(cohort.feature("single").levels) == set(levels)
    assert cohort.feature("plain").levels == ("(-100.0, 5.0]", "(5.0, 10.0]", "(10.0, 100.0]", "(100.0, 1000.0]")
    assert np.isnan(cohort.x[3, cohort.names.index("plain")])
    assert np.array_equal(cohort.encode(frame), cohort.x, equal_nan=True)
    assert Cohort.from_frame(frame, "cut").classes == levels


def test_an_ordered_categorical_keeps_its_order_in_levels_and_classes():
    def ordered(texts, categories):
        return pd.Categorical(texts * (N // len(texts)), categories, ordered=True)

    frame = FRAME.assign(
        grade=ordered(["high", "low", None, "middle"], ["low", "middle", "high", "never seen"]),
        size=ordered(["large", "small"], ["small", "large"]),
        smoker=ordered(["no", "yes"], ["yes", "no"]),
    )
    cohort = Cohort.from_frame(frame, "died")
    assert cohort.feature("grade").levels == ("low", "middle", "high")
    assert cohort.feature("size").levels == ("small", "large")
    assert cohort.feature("smoker").levels == ("no", "yes"), "words that say no come first whatever the order"
    assert Cohort.from_frame(frame, "grade").classes == ("low", "middle", "high")
    by_size = Cohort.from_frame(frame, "size")
    assert by_size.classes == ("small", "large") and not any("positive class" in text for text in by_size.warnings)
