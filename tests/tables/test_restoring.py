"""A stored cohort stays what it was, however files are read by now, and says where its file would be read otherwise."""

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.schema import Feature, Outcome, Overrides, Schema
from l2m_core.tables.first_look import first_look
from l2m_core.tables.restoring import newer_readings

N = 24
# As a version stored it that read '-' as not recorded, 250.10 as 250.1, 1.100 as 1.1 and 10³ as 103.
FRAME = pd.DataFrame(
    {
        "a": [float(40 + 7 * i % 31) for i in range(N)],
        "culture": ["+", "++", None, None] * (N // 4),
        "code": [250.1, 250.1, 401.0, 402.0] * (N // 4),
        "cells": [950.0, 1.1, 12.5] * (N // 3),
        "power": [103.0, 104.0, 105.0] * (N // 3),
        "ward": ["Icu", "icu", "home", "x"] * (N // 4),
        "site": ["007", "012"] * (N // 2),
        "died": [("0", "1", "Yes", "No", "no")[i % 5] for i in range(N)],
    }
)
SCHEMA = Schema.from_yaml("""
outcome: {name: died, kind: multiclass, classes: ['0', '1', 'No', 'no', 'Yes']}
features:
- {name: a, kind: number}
- {name: culture, kind: binary, levels: [+, ++]}
- {name: code, kind: category, levels: ['250.1', '401', '402']}
- {name: cells, kind: number}
- {name: power, kind: number}
- {name: ward, kind: category, levels: [home, Icu, icu, x]}
- {name: site, kind: binary, levels: ['007', '012']}
""")
HASH = "61615990fb6d98d9e7de28f94915920a56c993ffbd99d61224d32b11cc4ee0de"  # that version's


def test_a_cohort_of_an_earlier_version_opens_as_it_was_stored():
    cohort = Cohort.restored(FRAME, SCHEMA, HASH, "ward")
    assert cohort.content_hash == HASH and cohort.schema == SCHEMA and cohort.name == "ward"
    assert cohort.frame().fillna("").to_dict("list") == FRAME.fillna("").to_dict("list")


def test_it_is_offered_today_s_reading():
    warnings = Cohort.restored(FRAME, SCHEMA, HASH).warnings
    offered = [warning for warning in warnings if "upload its file again" in warning]
    assert len(offered) == 2
    assert "'culture'" in offered[0] and "'-'" in offered[0] and "'code'" in offered[1] and "250.10" in offered[1]
    assert any("'died' mixes" in warning for warning in warnings)


def test_a_cohort_that_today_s_reading_stored_is_offered_none(tmp_path):
    frame = FRAME.assign(culture=["positive", None] * (N // 2), code=["250.1", "250.10", "401"] * (N // 3))
    schema = {"outcome": {"kind": "multiclass"}, "features": [{"name": "code", "kind": "category"}]}
    cohort = Cohort.from_frame(frame, outcome="died", schema=schema)
    cohort.frame().to_parquet(tmp_path / "kept.parquet")
    restored = Cohort.restored(pd.read_parquet(tmp_path / "kept.parquet"), cohort.schema, cohort.content_hash)
    assert not [warning for warning in restored.warnings if "upload its file again" in warning]
    assert list(newer_readings(restored)) == []


def test_what_was_stated_of_its_file_holds_for_what_is_read_later(tmp_path):
    frame = pd.DataFrame({"age": [f"{40 + 7 * i % 31} y" for i in range(N)], "grade": ["1", "2", "-9"] * (N // 3)})
    file = frame.assign(died=["no", "yes"] * (N // 2)).to_csv(index=False).encode()
    cohort = Cohort.from_csv(file, "died", missing=["-9"], units="drop")
    cohort.frame().to_parquet(tmp_path / "kept.parquet")
    restored = Cohort.restored(pd.read_parquet(tmp_path / "kept.parquet"), cohort.schema, cohort.content_hash)
    assert restored.rules == cohort.rules and restored.frame().equals(cohort.frame())
    assert np.array_equal(restored.encode({"age": "41 y", "grade": -9}), [[41.0, np.nan]], equal_nan=True)


def test_a_column_that_was_ignored_is_read_when_it_is_taken_up():
    """A date, or numbers some of which are limits, must not become fifty levels without a word."""
    columns = {"age": [f"{40 + 7 * i % 31}" for i in range(N)], "seen": [f"{1 + i:02}.03.2021" for i in range(N)]}
    columns["crp"] = [f"{i},5" if i % 4 else "<5" for i in range(N)]
    file = pd.DataFrame({**columns, "died": ["no", "yes"] * (N // 2)}).to_csv(index=False, sep=";").encode()
    ignored = {"features": [{"name": name, "role": "ignored"} for name in ("seen", "crp")]}
    cohort = Cohort.from_csv(file, "died", schema=ignored)
    restored = Cohort.restored(cohort.frame(), cohort.schema, cohort.content_hash)
    look = first_look(restored.source, Overrides.from_data({"outcome": {"name": "died"}}), restored.rules)
    assert "is a date or a time" in look["seen"].summary.problem
    assert "is a detection limit" in look["crp"].summary.problem


def test_a_stored_cohort_keeps_the_decimal_commas_that_its_cells_told():
    """Its table holds numbers. Of a patient who is brought later, 1.100 would be 1.1 and not 1100."""
    columns = {"age": [f"{40 + 7 * i % 31}" for i in range(N)], "wbc": [f"{1000 + 7 * i % 31}" for i in range(N)]}
    columns["crp"] = [f"{i},5" for i in range(N)]
    file = pd.DataFrame({**columns, "died": ["no", "yes"] * (N // 2)}).to_csv(index=False, sep=";").encode()
    cohort = Cohort.from_csv(file, "died")
    again = Cohort.restored(cohort.frame(), cohort.schema, cohort.content_hash)
    changed = again.under(
        Overrides.from_data({"outcome": {"name": "died"}, "features": [{"name": "age", "role": "ignored"}]})
    )
    for kept in (
        cohort,
        again,
        again.rows(slice(0, 9)),
        changed,
        Cohort.restored(again.frame(), cohort.schema, cohort.content_hash),
    ):
        assert kept.encode({"wbc": "1.100", "crp": "1.100,5"})[0, -2:].tolist() == [1100, 1100.5]
    points = Cohort.from_csv(file.replace(b",5", b".5"), "died")
    # A point is what a reader expects anyway: a comma is still read where it can be one thing only.
    assert Cohort.restored(points.frame(), points.schema, points.content_hash).encode({"crp": "1,5"})[0, 2] == 1.5


@pytest.mark.parametrize(
    "cells", [["+", "-"], ["-", "x"], ["1.100", "950"], ["5.3\u00b9", "NA"], ["none", "2020-01-01"], ["<5", "7 "]]
)
def test_texts_of_a_stored_cohort_are_its_levels_whatever_they_would_mean_in_a_file(cells):
    ward = Feature("ward", kind="category", levels=tuple(sorted(cells)))
    schema = Schema((Feature("age"), ward), Outcome("died", "binary", ("no", "yes")))
    frame = pd.DataFrame(
        {"age": np.arange(N) % 7 + 0.5, "ward": cells * (N // 2), "died": ["no", "no", "yes"] * (N // 3)}
    )
    codes = [ward.levels.index(cell) for cell in frame["ward"]]
    stored = Cohort(schema, np.column_stack([frame["age"], codes]), (frame["died"] == "yes").to_numpy())
    restored = Cohort.restored(frame, schema, stored.content_hash)
    assert restored.content_hash == stored.content_hash
    assert restored.frame()["ward"].tolist() == frame["ward"].tolist()


def test_a_table_that_was_stored_as_it_came_is_read_as_it_was():
    frame = pd.DataFrame({"age": [f"{i % 7}.5" for i in range(N)], "died": ["no", "no", "yes"] * (N // 3)})
    stored = Cohort.from_frame(frame, "died")
    assert np.array_equal(Cohort.restored(frame, stored.schema, stored.content_hash).x, stored.x)


def test_a_cohort_that_reads_differently_is_never_opened_as_the_same():
    with pytest.raises(CohortError, match="reads differently from when it was stored.*Upload its table again"):
        Cohort.restored(FRAME.assign(a=1.0 + FRAME["a"]), SCHEMA, HASH)
