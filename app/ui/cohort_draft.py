"""The form in which an uploaded file is looked over, described and saved as a cohort."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import streamlit as st

from app.host import services
from app.ui import cohort_words, column_editor, grouped_findings, labels, notices, schema_table, state, uploaded_file
from app.ui.draft_cohort import (
    Draft,
    completed,
    completed_cohort,
    edited,
    editors_of,
    feature_names,
    guess_roles,
    look_at,
    perhaps_missing,
    read_cohort,
    with_missing,
)
from app.ui.uploaded_file import DRAFT, SECTION
from l2m_core.cohort import Cohort
from l2m_core.diagnostics import SENTINEL, Diagnostics
from l2m_core.errors import CohortError
from l2m_core.schema import Overrides
from l2m_core.tables.first_look import FirstLook
from l2m_core.tables.how_to_state import ON_THE_PAGE
from l2m_core.tables.panels import recorded_together
from l2m_core.tables.reading_notes import KINDS, reading_report
from l2m_core.tables.role_guesses import RoleGuess
from l2m_core.tables.schema_inference import check_columns
from l2m_core.tables.table import Table

SCHEMA_UPLOAD = "cohort-draft-schema"
# Kinds of notes on the reading that are not told: the first two say nothing new. Which columns are not used is decided
# here, by guesses and by a person, and told from that.
NOT_TOLD = ("number", "level", "unused")
NOT_USED = "and is not used."  # ends a warning that tells the same
MOST_PANELS = 6
MOST_ASKED = 6  # texts that may mean "not measured"
CENSORED = {"refuse": "refuse them", "limit": "read as the limit"}
UNITS = {"refuse": "refuse them", "drop": "take the number"}
DECIMALS = {"told from the cells": None, "point: 1.5": ".", "comma: 1,5": ","}


def is_open() -> bool:
    """Whether a file is being looked over; otherwise what waits to be said about it is shown by `show`."""
    draft = st.session_state.get(DRAFT)
    return draft is not None and services.get().known_table(tuple(draft["key"])) is not None


def show() -> None:
    """Shows the draft, to be checked and saved."""
    draft = st.session_state.get(DRAFT)
    notices.show_waiting(SECTION)
    if draft is None:
        return
    table = services.get().known_table(tuple(draft["key"]))
    if table is None:
        notices.show("info", "The uploaded file is no longer in memory. Choose it again.")
        return
    with st.container(key="draft"):
        st.subheader(f"New cohort from {labels.markdown(draft['name'])}", anchor=False)
        st.caption(f"{table.rows:,} rows, {len(table.names)} columns. Nothing is stored until you save.")
        uploaded_file.ask_for_sheet(draft)
        uploaded_file.ask_for_rows(draft)
        with notices.shown_refusals():
            _show(table, draft)


def _show(table: Table, draft: Draft) -> None:
    look = look_at(table, draft)
    settings = edited(table, draft)
    cohort, refusal = read_cohort(table, draft, look, settings)
    diagnostics = None if cohort is None else services.get().diagnostics(cohort)
    guesses = guess_roles(look, diagnostics)
    decided = {name: said["role"] for name, said in settings.items() if said.get("role")}
    settled = completed(look, guesses, settings)
    roles = {name: said["role"] for name, said in settled.items()}
    _ask_for_outcome(table, draft, cohort, refusal)
    if refusal is not None:
        notices.show("error", refusal)
    _ask_about_missing(perhaps_missing(look, settled))
    if cohort is not None and diagnostics is not None:
        seem_codes = [name for name, column in look.items() if column.seems_codes]
        _sum_up(cohort, diagnostics, roles, guesses, decided, seem_codes)
    with st.container(horizontal=True):
        st.button("Save cohort", key="draft-save", type="primary", icon=":material/save:", on_click=_save)
        st.button("Discard", key="draft-discard", on_click=uploaded_file.discard)
    if cohort is not None:
        _tell(cohort, cohort_words.unused(roles, guesses))
    _ask_for_columns(table, draft, look, settled, guesses, cohort)


# -- the outcome, and how cells are read ----------------------------------------------------------------------------


def _ask_for_outcome(table: Table, draft: Draft, cohort: Cohort | None, refusal: str | None) -> None:
    columns = st.columns([2, 2, 1.6])
    columns[0].text_input("Name of the cohort", value=draft["name"], max_chars=120, key="draft-name")
    st.session_state.setdefault("draft-outcome", draft["outcome"])
    columns[1].selectbox("Outcome: the column to predict", table.names, key="draft-outcome", on_change=_restate)
    if cohort is not None and cohort.kind == "binary":
        columns[2].selectbox(
            "Class that counts as positive", cohort.classes[::-1], key="draft-positive", on_change=_restate
        )
    elif cohort is not None and cohort.kind == "continuous":
        with columns[2]:
            ask_for_unit("draft-outcome-unit", draft["of_outcome"].get("unit", ""), _restate)
    with st.expander("Reading options", expanded=refusal is not None, type="compact"):
        _ask_how_to_read()


def ask_for_unit(key: str, unit: str, on_change: Callable[[], None] | None = None) -> None:
    """Of an outcome that is a number."""
    st.session_state.setdefault(key, unit)
    st.text_input("Unit of the outcome", key=key, max_chars=60, placeholder="such as mg/dL", on_change=on_change)


def _ask_how_to_read() -> None:
    kinds, texts, signs = st.columns([1.6, 2.4, 1.8])
    kinds.selectbox(
        "Kind of outcome",
        ("detect from the values", "binary", "multiclass", "continuous"),
        key="draft-kind",
        on_change=_restate,
    )
    texts.text_input(
        ON_THE_PAGE["missing"],
        key="draft-missing",
        max_chars=200,
        on_change=_restate,
        placeholder="such as -999, not done",
        help="Separated by commas; empty cells, NA and the like are recognised anyway",
    )
    limits, units, _ = st.columns([1.6, 2.4, 1.8])
    limits.selectbox(
        ON_THE_PAGE["censored"],
        tuple(CENSORED),
        key="draft-censored",
        on_change=_restate,
        format_func=CENSORED.__getitem__,
        help="A detection limit is no number. Refuse the file and say where they stand, or read <5 as 5",
    )
    units.selectbox(
        ON_THE_PAGE["units"],
        tuple(UNITS),
        key="draft-units",
        on_change=_restate,
        format_func=UNITS.__getitem__,
        help="Refuse the file and say where they stand, or take the numbers, where a column has one and the same unit: it "
        "becomes the column's",
    )
    signs.selectbox(
        ON_THE_PAGE["decimal"],
        tuple(DECIMALS),
        key="draft-decimal",
        on_change=_restate,
        help="Needed where a column holds cells such as 1.234 or 1,234 alone: with a decimal comma, 1.234 is "
        "a number of thousands",
    )


def _restate() -> None:
    """Callback of the outcome's fields; what was stated of the columns is kept."""
    draft, outcome = st.session_state.get(DRAFT), st.session_state.get("draft-outcome")
    if draft is None or outcome is None:  # late, see `state`
        return
    kind = st.session_state.get("draft-kind")
    same = outcome == draft["outcome"]
    table = services.get().known_table(tuple(draft["key"]))
    if not same and table is not None:
        draft = {**draft, "features": edited(table, draft), "of_outcome": {}, "round": draft["round"] + 1}
        for key in ("draft-positive", "draft-outcome-unit"):
            st.session_state.pop(key, None)
    unit = st.session_state.get("draft-outcome-unit")
    st.session_state[DRAFT] = {
        **draft,
        "outcome": outcome,
        "of_outcome": draft["of_outcome"] if unit is None else {**draft["of_outcome"], "unit": unit.strip()},
        "kind": kind if kind in ("binary", "multiclass", "continuous") else None,
        "positive": st.session_state.get("draft-positive") if same else None,
        "censored": st.session_state.get("draft-censored", draft["censored"]),
        "units": st.session_state.get("draft-units", draft["units"]),
        "missing": st.session_state.get("draft-missing", draft["missing"]),
        "decimal": DECIMALS.get(st.session_state.get("draft-decimal", "")),
    }


def _ask_about_missing(found: Mapping[str, list[str]]) -> None:
    """Texts that may mean "not measured", each with a press that says so."""
    for number, (text, names) in enumerate(list(found.items())[:MOST_ASKED]):
        shown = labels.markdown(labels.short(text, 40))
        columns = ", ".join(labels.markdown(labels.short(name)) for name in names[:MOST_ASKED])
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Does '{shown}' mean not measured? It stands in {columns}.", width="content")
            st.button("Yes, not measured", key=f"draft-missing-{number}", on_click=_take_as_missing, args=(text,))


def _take_as_missing(text: str) -> None:
    st.session_state["draft-missing"] = with_missing(st.session_state.get("draft-missing", ""), text)
    _restate()


# -- what was understood --------------------------------------------------------------------------------------------


def _sum_up(
    cohort: Cohort,
    diagnostics: Diagnostics,
    roles: Mapping[str, str],
    guesses: Mapping[str, RoleGuess],
    decided: Mapping[str, str],
    seem_codes: Sequence[str],
) -> None:
    outcome = cohort.schema.outcome
    st.markdown(f"**{labels.markdown(cohort_words.sentence(roles, outcome, diagnostics))}.**")
    questions = cohort_words.questions(roles, guesses, decided, outcome, diagnostics, seem_codes)
    if questions:
        notices.show("warning", "\n".join(questions))


def _tell(cohort: Cohort, unused: Sequence[str]) -> None:
    """Shows what was read how, and what should be stated before saving. unused: columns that are not used, and why."""
    found = services.get().diagnostics(cohort).findings
    grouped_findings.show(finding for finding in found if finding.code == SENTINEL)
    of_columns = [warning for warning in cohort.warnings if warning.startswith("Column ")]
    _tell_in_lines(warning for warning in cohort.warnings if warning not in of_columns)
    told = [(note.kind, note.text) for note in reading_report(cohort) if note.kind not in NOT_TOLD]
    told = sorted([*told, *(("unused", line) for line in unused)], key=lambda note: [*KINDS].index(note[0]))
    in_detail = [warning for warning in of_columns if not warning.endswith(NOT_USED)]
    if not told and not in_detail:
        return
    with st.expander("What was read how", type="compact"):
        for kind, together in groupby(told, key=lambda note: note[0]):
            st.markdown(f"**{labels.markdown(KINDS[kind])}**")
            for _, text in together:
                st.caption(labels.markdown(text))
        if in_detail:
            st.markdown("**In detail**")
            _tell_in_lines(in_detail)


def _tell_in_lines(warnings: Iterable[str]) -> None:
    """One line for all that differ only in their columns."""
    for group in grouped_findings.similar(warnings):
        st.caption(f":material/info: {labels.markdown(grouped_findings.in_one_line(group))}")


# -- the columns ----------------------------------------------------------------------------------------------------


def _ask_for_columns(
    table: Table,
    draft: Draft,
    look: FirstLook,
    settings: column_editor.Settings,
    guesses: Mapping[str, RoleGuess],
    cohort: Cohort | None,
) -> None:
    editors, names = editors_of(draft), feature_names(table, draft)
    st.markdown("**What is each column?** Known from the start, a test that can be measured, or not to be used.")
    in_rows = column_editor.show(names, look, settings, guesses, editors.rows)
    with st.expander("Costs, turnaround, panels and ranges (optional)", expanded=not in_rows):
        if cohort is not None:
            _suggest_panels(cohort, settings)
        st.caption(
            "You set these; the program never guesses a cost. Features with the same panel are measured together."
        )
        # What the grid starts from has none of its own changes, or each would begin it anew.
        before = draft["features"] if in_rows else completed(look, guesses, draft["features"])
        schema_table.edit(schema_table.table_of(names, before), editors.grid, not in_rows)
        notices.show_waiting(SCHEMA_UPLOAD)  # where people look, far below the page's top
        st.file_uploader(
            "Or load the schema from a YAML file",
            type=["yaml", "yml"],
            key=SCHEMA_UPLOAD,
            on_change=_take_yaml,
            max_upload_size=5,
        )


def _suggest_panels(cohort: Cohort, settings: column_editor.Settings) -> None:
    names = [
        name for name in cohort.names if settings[name]["role"] == "acquirable" and not settings[name].get("group")
    ]
    r = cohort.r[:, [cohort.names.index(name) for name in names]]
    for number, members in enumerate(recorded_together(names, r)[:MOST_PANELS]):
        shown = ", ".join(labels.short(name) for name in members[:8]) + (" …" if len(members) > 8 else "")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Always recorded together: {labels.markdown(shown)}")
            st.button("Make a panel", key=f"draft-panel-{number}", on_click=_make_panel, args=(members,))


def _make_panel(members: tuple[str, ...]) -> None:
    draft = st.session_state.get(DRAFT)
    table = None if draft is None else services.get().known_table(tuple(draft["key"]))
    if draft is None or table is None:
        return
    features = edited(table, draft)
    for name in members:
        features[name] = {**features.get(name, {}), "group": labels.bare(labels.short(" ".join(members), 60))}
    st.session_state[DRAFT] = {**draft, "features": features, "round": draft["round"] + 1}


def _take_yaml() -> None:
    draft, upload = st.session_state.get(DRAFT), st.session_state.get(SCHEMA_UPLOAD)
    if draft is None or upload is None:
        return
    with notices.refusals(SCHEMA_UPLOAD):
        stated = Overrides.from_yaml(read_text(upload.getvalue()))
        outcome = stated.outcome.get("name", draft["outcome"])
        table = services.get().known_table(tuple(draft["key"]))
        if table is not None:
            check_columns(table, replace(stated, outcome={**stated.outcome, "name": outcome}))
        st.session_state[DRAFT] = {
            **draft,
            "outcome": outcome,
            "of_outcome": {key: value for key, value in stated.outcome.items() if key != "name"},
            "features": {name: dict(settings) for name, settings in stated.features.items()},
            "round": draft["round"] + 1,
        }
        st.session_state["draft-outcome"] = outcome
        st.session_state.pop("draft-outcome-unit", None)  # the file's counts
        count = labels.counted(len(stated.features), "column")
        state.notify("success", f"The schema was loaded: the outcome '{outcome}' and {count}.", SCHEMA_UPLOAD)


def read_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CohortError("The YAML file is not UTF-8 text. Save it as UTF-8.") from None


def _save() -> None:
    draft = st.session_state.get(DRAFT)
    table = None if draft is None else services.get().known_table(tuple(draft["key"]))
    if draft is None or table is None or state.is_echo("save cohort"):
        return
    with notices.refusals(SECTION):
        cohort = completed_cohort(table, draft)
        if cohort is None:  # the page says why
            return
        name = st.session_state.get("draft-name", "").strip() or draft["name"]
        saved = services.get().add_cohort(state.owner(), replace(cohort, name=name))
        state.acted("save cohort")
        state.open_id(state.COHORT, saved.id)
        state.notify("success", f"'{saved.name}' is stored as version {saved.version}.")
        uploaded_file.discard()
