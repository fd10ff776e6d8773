"""The schema of a stored cohort, to be looked at and changed. Saving makes a new version; earlier ones stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from app.host import services
from app.store import StoredCohort
from app.ui import column_editor, downloads, notices, schema_table, state
from app.ui.cohort_draft import ask_for_unit, read_text
from app.ui.column_editor import Editors
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.schema import Outcome, Overrides, Schema
from l2m_core.tables.first_look import FirstLook, first_look
from l2m_core.tables.role_guesses import RoleGuess

SECTION = "schema"
POSITIVE, UNIT = "schema-positive", "schema-unit"
# Behind a refusal, which counts rows and names options as for a file that is being uploaded.
OF_STORED = (
    "Rows are counted from 0 in the stored table. How cells are read is stated when a file is uploaded; "
    "to state it otherwise, upload the file again."
)
OWN = "a cohort of your own; the one that is shared with you stays as it is"


def show(stored: StoredCohort, cohort: Cohort) -> None:
    mine = stored.owner == state.owner()
    st.caption(f"Saving makes {'a new version of the cohort; earlier ones stay' if mine else OWN}.")
    notices.show_waiting(SECTION)
    _ask_for_outcome(stored, cohort)
    settings = settings_of(cohort.schema)
    look, editors = look_at(stored, cohort), _editors(stored)
    names = [name for name in settings if name in look]
    in_rows = column_editor.show(
        names, look, editors.edited(names, settings), _as_saved(look, cohort.schema), editors.rows
    )
    with st.expander("Costs, turnaround, panels and ranges", expanded=not in_rows):
        schema_table.edit(schema_table.table_of(names, settings), editors.grid, not in_rows)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Save as a new version",
            key="schema-save",
            type="primary",
            icon=":material/save:",
            on_click=_save,
            args=(stored.id,),
        )
        downloads.button(
            "Schema as YAML",
            cohort.schema.to_yaml,
            downloads.file_name(stored.name, "schema", ending="yaml"),
            "application/yaml",
            "schema-download",
            ("schema exported", stored.id),
        )
        st.file_uploader(
            "Load the schema from a YAML file",
            type=["yaml", "yml"],
            key="schema-upload",
            max_upload_size=5,
            on_change=_take_yaml,
            args=(stored.id,),
        )


def settings_of(schema: Schema) -> dict[str, dict[str, Any]]:
    """What a schema states of each feature. The kind of an ignored one was never found out."""
    settings = {}
    for feature in schema.features:
        said = {column: getattr(feature, column) for column in schema_table.COLUMNS[1:]}
        if feature.levels:
            said["levels"] = list(feature.levels)
        elif not feature.used:
            del said["kind"]
        settings[feature.name] = said
    return settings


def _ask_for_outcome(stored: StoredCohort, cohort: Cohort) -> None:
    if cohort.kind == "continuous":
        ask_for_unit(f"{UNIT}-{stored.id}", cohort.schema.outcome.unit)
    if cohort.kind == "binary":
        st.selectbox(
            "Class that counts as positive",
            cohort.classes[::-1],
            key=f"{POSITIVE}-{stored.id}",
            help="The class whose probability is shown",
        )


def look_at(stored: StoredCohort, cohort: Cohort) -> FirstLook:
    """What the columns of a stored cohort's table hold, the unused ones too."""
    kinds = [
        {"name": name, **{key: said[key] for key in ("kind", "levels") if key in said}}
        for name, said in settings_of(cohort.schema).items()
    ]
    stated = Overrides.from_data({"outcome": {"name": cohort.schema.outcome.name}, "features": kinds})
    table = cohort.source
    if table is None:
        return {}
    return services.get().first_look((stored.id,), lambda: first_look(table, stated, cohort.rules))


def _as_saved(look: FirstLook, schema: Schema) -> dict[str, RoleGuess]:
    saved = {}
    for feature in schema.features:
        if feature.name in look:
            guess = look[feature.name].guess
            saved[feature.name] = RoleGuess(
                feature.role, guess.reason if guess.role == feature.role else "as it was saved"
            )
    return saved


def _editors(stored: StoredCohort) -> Editors:
    return Editors(f"schema-rows-{stored.id}", f"schema-editor-{stored.id}")


def _save(cohort_id: str) -> None:
    if state.is_echo("save schema"):
        return
    with notices.refusals(SECTION):
        owner = state.owner()
        stored = services.get().store.cohorts.get(owner, cohort_id)
        cohort = services.get().shown_cohort(owner, stored)
        look, before = look_at(stored, cohort), settings_of(cohort.schema)
        after = {**before, **_editors(stored).edited([name for name in before if name in look], before)}
        for name, said in after.items():
            if said["role"] != "ignored" and before[name]["role"] == "ignored" and name in look:
                said.setdefault("kind", look[name].summary.kind)  # or it would be left out again
        unit = st.session_state.get(f"{UNIT}-{stored.id}", cohort.schema.outcome.unit)
        positive = st.session_state.get(f"{POSITIVE}-{stored.id}")
        outcome = _outcome(replace(cohort.schema.outcome, unit=unit.strip()), positive)
        _store_version(owner, stored, Overrides.from_data({"outcome": outcome, "features": schema_table.stated(after)}))


def _outcome(outcome: Outcome, positive: str | None) -> dict[str, Any]:
    classes = list(outcome.classes)
    if outcome.kind == "binary" and positive in classes:
        classes.sort(key=lambda text: text == positive)
    settings = {"name": outcome.name, "kind": outcome.kind, "unit": outcome.unit, "description": outcome.description}
    return {**{key: value for key, value in settings.items() if value}, **({"classes": classes} if classes else {})}


def _take_yaml(cohort_id: str) -> None:
    upload = st.session_state.get("schema-upload")
    if upload is None:
        return
    with notices.refusals(SECTION):
        owner = state.owner()
        stored = services.get().store.cohorts.get(owner, cohort_id)
        _store_version(owner, stored, Overrides.from_yaml(read_text(upload.getvalue())))


def _store_version(owner: str, stored: StoredCohort, overrides: Overrides) -> None:
    try:
        changed = services.get().shown_cohort(owner, stored).under(overrides)
    except CohortError as error:
        raise CohortError(f"{error} {OF_STORED}") from error
    state.acted("save schema")
    if changed.content_hash == stored.content_hash:  # nor is a colleague's cohort copied for that
        state.notify("info", "Nothing was changed.")
        return
    before = {known.id for known in services.get().store.cohorts.list(owner)}
    saved = services.get().add_cohort(owner, changed)
    if saved.id in before:
        state.notify("info", f"This is version {saved.version} of '{saved.name}', which was stored before.")
    elif stored.owner == owner:
        state.notify("success", f"'{saved.name}' is stored as version {saved.version}; earlier versions stay.")
    else:
        state.notify("success", f"'{saved.name}', version {saved.version}, is stored as {OWN}.")
    state.open_id(state.COHORT, saved.id)
