"""What is stated of columns: nothing is lost on the way through the editors and back."""

import pandas as pd
import pytest
import streamlit as st

from app.ui import schema_table
from app.ui.column_editor import Editors
from app.ui.schema_editor import settings_of
from l2m_core.cohort import Cohort
from l2m_core.schema import Overrides
from tests.app.conftest import small_cohort, small_frame

EDITORS = Editors("rows", "grid")


def rebuilt(changes: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> Cohort:
    """The ward's cohort after these changes in the editors. changes: key of an editor → what its browser sends."""
    monkeypatch.setattr(st, "session_state", changes)
    cohort = small_cohort()
    settings = settings_of(cohort.schema)
    edited = EDITORS.edited(list(settings), settings)
    outcome = {"name": "died", "classes": list(cohort.classes)}
    overrides = Overrides.from_data({"outcome": outcome, "features": schema_table.stated(edited)})
    return Cohort.from_frame(small_frame(), schema=overrides, name="ward")


def place(name: str) -> int:
    return small_cohort().schema.names.index(name)


def test_an_untouched_schema_is_the_same_cohort(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rebuilt({}, monkeypatch).content_hash == small_cohort().content_hash


def test_changes_in_rows_and_grid_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    in_rows = {"edits": {str(place("sodium")): {"role": "ignored"}, str(place("lactate")): {"unit": "mg/dL"}}}
    in_grid = {"edited_rows": {place("lactate"): {"maximum": None, "cost": 99.0}, place("potassium"): {"group": None}}}
    schema = rebuilt({"rows": in_rows, "grid": in_grid}, monkeypatch).schema
    assert "sodium" not in schema.used and schema.feature("potassium").group is None
    lactate = schema.feature("lactate")
    assert (lactate.unit, lactate.maximum, lactate.cost) == ("mg/dL", None, 99.0)


def test_the_levels_of_a_category_stay_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert rebuilt({}, monkeypatch).schema.feature("scan").levels == ("clear", "dense", "doubtful")


def test_another_kind_takes_levels_and_limits_away(monkeypatch: pytest.MonkeyPatch) -> None:
    lactate = rebuilt({"rows": {"edits": {str(place("lactate")): {"kind": "category"}}}}, monkeypatch).schema.feature(
        "lactate"
    )
    assert lactate.kind == "category" and lactate.levels and lactate.maximum is None


@pytest.mark.parametrize(
    "sent",
    [
        None,
        {},
        {"edits": "none"},
        {"edits": {"999": {"role": "ignored"}}},
        {"edits": {"0": ["ignored"]}},
        {"edits": {"0": {"name": "renamed", "cost": 7}}},
    ],
)
def test_what_no_page_of_ours_would_send_changes_nothing(sent: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rebuilt({"rows": sent}, monkeypatch).content_hash == small_cohort().content_hash


def test_edits_of_names_and_unknown_cells_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = {2: {"cost": 99.0}, "3": {"role": "ignored", "name": "renamed", "colour": "red"}}
    monkeypatch.setattr(st, "session_state", {"grid": {"edited_rows": cells}})
    assert schema_table.edits("grid") == {2: {"cost": 99.0}, 3: {"role": "ignored"}}


def test_a_grid_shows_what_was_stated_and_the_defaults() -> None:
    table = schema_table.table_of(("age", "lactate"), {"lactate": {"role": "ignored", "cost": 3.0}})
    assert table.role.tolist() == ["acquirable", "ignored"] and table.cost.tolist() == [1.0, 3.0]


@pytest.mark.parametrize(("longest", "least"), [("", 80), ("white cells and CRP", 160), ("x" * 400, 280)])
def test_the_panel_of_a_test_is_read_whole(longest: str, least: int) -> None:
    width = schema_table.width_of(pd.Series(["", longest, "salts"]))
    assert least <= width <= 280
