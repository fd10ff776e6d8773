"""A schema as an editable table: nothing is lost on the way there and back."""

import pandas as pd
import pytest
import streamlit as st

from app.ui import schema_table
from l2m_core.cohort import Cohort
from l2m_core.schema import Overrides
from tests.app.conftest import small_cohort, small_frame


def rebuilt(table: pd.DataFrame) -> Cohort:
    schema = small_cohort().schema
    settings = schema_table.stated(table, schema.outcome, schema)
    return Cohort.from_frame(small_frame(), schema=Overrides.from_data(settings), name="ward")


def test_an_untouched_table_is_the_same_cohort() -> None:
    cohort = small_cohort()
    assert rebuilt(schema_table.table_of(cohort.schema)).content_hash == cohort.content_hash


def test_edits_are_taken_as_stated_and_empty_cells_are_inferred() -> None:
    table = schema_table.table_of(small_cohort().schema).astype({"maximum": object})
    table.loc[table.name == "sodium", ["role", "group"]] = ["ignored", ""]
    table.loc[table.name == "potassium", "group"] = ""
    table.loc[table.name == "lactate", ["unit", "maximum"]] = ["mg/dL", None]
    schema = rebuilt(table).schema
    assert "sodium" not in schema.used and schema.feature("potassium").group is None
    assert (schema.feature("lactate").unit, schema.feature("lactate").maximum) == ("mg/dL", None)


def test_the_levels_of_a_category_stay_in_their_order() -> None:
    assert rebuilt(schema_table.table_of(small_cohort().schema)).schema.feature("scan").levels == (
        "clear",
        "dense",
        "doubtful",
    )


def test_edits_that_no_page_has_seen_yet_count(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {
        "editor": {"edited_rows": {2: {"cost": 99.0}, "3": {"role": "ignored", "name": "renamed"}, 77: {"cost": 1}}}
    }
    monkeypatch.setattr(st, "session_state", state)
    table = schema_table.edited(schema_table.table_of(small_cohort().schema), "editor")
    assert table.cost[2] == 99.0 and table.role[3] == "ignored" and table.name[3] == "sodium"
    assert len(table) == 6


def test_what_was_stated_is_shown_again_when_no_schema_can_be_made_of_it() -> None:
    said = [{"name": "lactate", "role": "ignored", "cost": 3.0}]
    table = schema_table.table_of_settings(("age", "lactate"), said)
    assert table.role.tolist() == ["acquirable", "ignored"] and table.cost.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(("longest", "least"), [("", 80), ("white cells and CRP", 160), ("x" * 400, 280)])
def test_the_panel_of_a_test_is_read_whole(longest: str, least: int) -> None:
    width = schema_table.width_of(pd.Series(["", longest, "salts"]))
    assert least <= width <= 280
