"""A cohort that is being made from an uploaded file, and what the person has stated about it so far."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from app.host import services
from app.ui import labels, notices, schema_table, state
from l2m_core.cohort import Cohort
from l2m_core.diagnostics import SENTINEL
from l2m_core.errors import CohortError, L2MError
from l2m_core.schema import Schema
from l2m_core.tables.table import Table

DRAFT = "l2m.draft"
UPLOAD = "cohort-upload"
SCHEMA_UPLOAD = "cohort-draft-schema"
SECTION = "draft"
MOST_WARNINGS = 12
DECIMALS = {"told from the cells": None, "point: 1.5": ".", "comma: 1,5": ","}
USUAL_OUTCOMES = ("outcome", "target", "label", "class", "y", "diagnosis", "died", "death", "mortality", "event")


def begin() -> None:
    """Callback of the uploader: a new file becomes the draft; removing it discards the draft."""
    discard()
    upload = st.session_state[UPLOAD]
    if upload is None:
        return
    data = upload.getvalue()
    key = [state.owner(), hashlib.sha256(data).hexdigest()]
    name = labels.plain(upload.name).split(".")[0] or "cohort"
    try:
        table = services.get().table(name, data, tuple(key))
    except L2MError as refusal:
        state.notify("error", f"{labels.plain(upload.name)}: {refusal}", SECTION)
        return
    st.session_state[DRAFT] = {
        "key": key,
        "name": name[:120],
        "outcome": guess_outcome(table),
        "positive": None,
        "kind": None,
        "censored": "refuse",
        "missing": "",
        "decimal": None,
        "stated": None,
        "round": 0,
    }


def discard() -> None:
    draft = st.session_state.pop(DRAFT, None)
    if draft is not None:
        services.get().forget_table(tuple(draft["key"]))


def guess_outcome(table: Table) -> str:
    usual = [name for name in table.names if name.casefold().strip() in USUAL_OUTCOMES]
    return usual[-1] if usual else table.names[-1]


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
    with st.container(border=True, key="draft"):
        st.subheader(f"New cohort from {labels.markdown(draft['name'])}", anchor=False)
        st.caption(f"{table.rows:,} rows, {len(table.names)} columns. Nothing is stored until you save.")
        cohort, refusal = _build(table, draft)
        _ask_for_outcome(table, draft, cohort)
        if refusal is not None:
            notices.show("error", refusal)
        _ask_for_schema(table, draft, cohort)
        if cohort is not None:
            _tell(cohort)
        with st.container(horizontal=True):
            st.button("Save cohort", key="draft-save", type="primary", icon=":material/save:", on_click=_save)
            st.button("Discard", key="draft-discard", on_click=discard)


def _ask_for_outcome(table: Table, draft: dict[str, Any], cohort: Cohort | None) -> None:
    columns = st.columns([2, 2, 1.4, 1.6])
    columns[0].text_input("Name of the cohort", value=draft["name"], max_chars=120, key="draft-name")
    columns[1].selectbox(
        "Outcome: the column to predict",
        table.names,
        key="draft-outcome",
        index=table.names.index(draft["outcome"]),
        on_change=_restate,
    )
    kinds = ("detect from the values", "binary", "multiclass", "continuous")
    columns[2].selectbox("Kind of outcome", kinds, key="draft-kind", on_change=_restate)
    if cohort is not None and cohort.kind == "binary":
        columns[3].selectbox(
            "Class that counts as positive", cohort.classes[::-1], key="draft-positive", on_change=_restate
        )
    texts, limits, signs = st.columns([3.4, 1.8, 1.8])
    texts.text_input(
        "Other codes for not measured",
        key="draft-missing",
        max_chars=200,
        on_change=_restate,
        placeholder="such as -999, not done",
        help="Separated by commas; empty cells, NA and the like are recognised anyway",
    )
    limits.selectbox(
        "Cells such as <5",
        ("refuse", "limit"),
        key="draft-censored",
        on_change=_restate,
        help="Detection limits: refuse and list them, or use the limit itself",
    )
    signs.selectbox(
        "Decimal sign",
        tuple(DECIMALS),
        key="draft-decimal",
        on_change=_restate,
        help="Needed where a column holds cells such as 1.234 or 1,234 alone: with a decimal comma, 1.234 is "
        "a number of thousands",
    )


def _tell(cohort: Cohort) -> None:
    """Shows what was inferred, and what should be stated before saving."""
    for finding in services.get().diagnostics(cohort).findings:
        if finding.code == SENTINEL:
            notices.show("warning", finding.sentence)
    for warning in cohort.warnings[:MOST_WARNINGS]:
        st.caption(f":material/info: {labels.markdown(warning)}")


def _restate() -> None:
    """Callback of the outcome's fields; roles and units stated so far are kept."""
    draft = st.session_state[DRAFT]
    kind = st.session_state.get("draft-kind")
    outcome = st.session_state["draft-outcome"]
    same = outcome == draft["outcome"]
    st.session_state[DRAFT] = {
        **draft,
        "outcome": outcome,
        "kind": kind if kind in ("binary", "multiclass", "continuous") else None,
        "positive": st.session_state.get("draft-positive") if same else None,
        "censored": st.session_state.get("draft-censored", draft["censored"]),
        "missing": st.session_state.get("draft-missing", draft["missing"]),
        "decimal": DECIMALS.get(st.session_state.get("draft-decimal", "")),
        "stated": draft["stated"] if same else None,
        "round": draft["round"] + (not same),
    }
    if not same:
        st.session_state.pop("draft-positive", None)


def _ask_for_schema(table: Table, draft: dict[str, Any], cohort: Cohort | None) -> None:
    st.caption(
        "Say what each column is. Set **role** to *baseline* for what is known from the start, to *ignored* for what "
        "must not be used. All other columns can be measured."
    )
    schema_table.edit(_rows(table, draft, cohort), _editor(draft))
    st.file_uploader(
        "Or load the schema from a YAML file",
        type=["yaml", "yml"],
        key=SCHEMA_UPLOAD,
        on_change=_take_yaml,
        max_upload_size=5,
    )


def _rows(table: Table, draft: dict[str, Any], cohort: Cohort | None) -> pd.DataFrame:
    """The rows the editor starts from: as inferred, else as stated, else the bare names."""
    names = tuple(name for name in table.names if name != draft["outcome"])
    if cohort is None and draft["stated"]:
        return schema_table.table_of_settings(names, draft["stated"]["features"])
    return schema_table.table_of(cohort.schema if cohort else None, names)


def _editor(draft: dict[str, Any]) -> str:
    return f"draft-editor-{draft['key'][1][:12]}-{draft['round']}"


def _take_yaml() -> None:
    upload = st.session_state[SCHEMA_UPLOAD]
    draft = st.session_state[DRAFT]
    if upload is None:
        return
    with notices.refusals(SECTION):
        schema = Schema.from_yaml(read_text(upload.getvalue()))
        settings = schema_table.stated(schema_table.table_of(schema), schema.outcome, schema)
        st.session_state[DRAFT] = {
            **draft,
            "outcome": schema.outcome.name,
            "stated": settings,
            "round": draft["round"] + 1,
        }
        st.session_state["draft-outcome"] = schema.outcome.name


def read_text(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CohortError("The YAML file is not UTF-8 text. Save it as UTF-8.") from None


def _build(table: Table, draft: dict[str, Any]) -> tuple[Cohort | None, str | None]:
    """The cohort as stated so far, or why it cannot be made. Cohorts are cached by what they are made from."""
    settings = draft["stated"] or {"outcome": {}, "features": []}
    outcome = {**settings["outcome"], "name": draft["outcome"]}
    if draft["kind"]:
        outcome = {"name": draft["outcome"], "kind": draft["kind"]}
    plain = {**settings, "outcome": outcome}
    missing = tuple(text.strip() for text in draft["missing"].split(",") if text.strip())
    choices = (draft["positive"], draft["censored"], missing, draft["decimal"])
    key = (*draft["key"], json.dumps(plain, sort_keys=True), *choices)

    def make() -> Cohort:
        return Cohort.from_table(
            table, schema=plain, positive=choices[0], censored=choices[1], missing=missing, decimal=choices[3]
        )

    try:
        return services.get().built(key, make), None
    except L2MError as refusal:
        if draft["positive"] is not None and "positive is" in str(refusal):
            return _build(table, {**draft, "positive": None})
        return None, str(refusal)


def _save() -> None:
    draft = st.session_state.get(DRAFT)
    table = None if draft is None else services.get().known_table(tuple(draft["key"]))
    if draft is None or table is None or state.is_echo("save cohort"):
        return
    current, _ = _build(table, draft)
    edited = schema_table.edited(_rows(table, draft, current), _editor(draft))
    outcome = current.schema.outcome if current else {"name": draft["outcome"]}
    settings = schema_table.stated(edited, outcome, current.schema if current else None)
    # What was entered is kept, whether or not it can be saved: the next editor starts from it.
    st.session_state[DRAFT] = {**draft, "stated": settings, "round": draft["round"] + 1}
    cohort, refusal = _build(table, st.session_state[DRAFT])
    if cohort is None:
        return
    if current is None:  # it was refused so far, so nobody has seen what it is read as
        state.notify("info", "The file can be read now. Check the columns, then save.", SECTION)
        return
    with notices.refusals(SECTION):
        name = st.session_state.get("draft-name", "").strip() or draft["name"]
        saved = services.get().add_cohort(state.owner(), replace(cohort, name=name))
        state.acted("save cohort")
        state.open_id(state.COHORT, saved.id)
        state.notify("success", f"'{saved.name}' is stored as version {saved.version}.")
        for warning in cohort.warnings[:MOST_WARNINGS]:
            state.notify("info", warning)
        discard()
