"""An uploaded file becomes a draft of a cohort: which of its sheets is read, and what a row of it is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import partial

import streamlit as st

from app.host import services
from app.ui import labels, notices, state
from app.ui.draft_cohort import Draft
from l2m_core.errors import CohortError, L2MError
from l2m_core.tables.measurements import FIRST, LAST, find_measurements, one_row_each
from l2m_core.tables.reading import sheets_of
from l2m_core.tables.role_guesses import guess_outcome
from l2m_core.tables.table import DEFAULT_LIMITS, check_size

DRAFT = "l2m.draft"
UPLOAD = "cohort-upload"
TAKEN = "l2m.draft.taken"  # which file became the draft
SECTION = "draft"
REFUSED = "upload"  # where the uploader says why a file became no draft
MOST_SHEETS = 20
AS_IN_FILE = "as in the file"
ROWS = {
    FIRST: "a row for each patient, with the first result of each test",
    LAST: "a row for each patient, with the last result of each test",
    AS_IN_FILE: "it is in the file: a row for each measurement",
}
OF_ONE_TABLE = (
    "draft-rows",
    "draft-outcome",
    "draft-positive",
    "draft-outcome-unit",
    "draft-kind",
    "draft-missing",
    "draft-censored",
    "draft-units",
    "draft-decimal",
)


def begin() -> None:
    """Callback of the uploader: a new file becomes the draft; removing it discards the draft."""
    upload = st.session_state.get(UPLOAD)
    if upload is not None and upload.file_id == st.session_state.get(TAKEN):  # late, see `state`
        return
    discard()
    st.session_state[TAKEN] = None if upload is None else upload.file_id
    if upload is None:
        return
    name = labels.bare(upload.name).split(".")[0] or "cohort"
    try:
        keys, refused = _read_sheets(name, upload.getvalue())
        largest = max(keys, key=lambda sheet: _cells(keys[sheet]))
        st.session_state[DRAFT] = _new_draft(name[:120], keys, largest, refused)
    except L2MError as refusal:
        state.notify("error", f"{labels.plain(upload.name)}: {refusal}", REFUSED)


def _read_sheets(name: str, data: bytes) -> tuple[dict[str, list[str]], dict[str, str]]:
    """The key of each table that was read, by its sheet, and why others were not; a file without sheets is one, called ''."""
    hashed = hashlib.sha256(data).hexdigest()
    keys, refused = {}, {}
    for sheet in sheets_of(data)[:MOST_SHEETS] or ("",):
        key = [state.owner(), hashlib.sha256(f"{hashed} {sheet}".encode()).hexdigest() if sheet else hashed]
        try:
            services.get().table(name, data, tuple(key), sheet or None)
            keys[sheet] = key
        except CohortError as refusal:
            refused[sheet] = str(refusal)
    if not keys:
        raise CohortError(next(iter(refused.values())))
    return keys, refused


def _cells(key: list[str]) -> int:
    table = services.get().known_table(tuple(key))
    return 0 if table is None else table.rows * len(table.names)


def _new_draft(
    name: str, keys: Mapping[str, list[str]], sheet: str, refused: Mapping[str, str], rows: str | None = None
) -> Draft:
    """rows: what a row of the cohort is, of ROWS; None: a patient, where the file has a row for each measurement."""
    key, here = keys[sheet], services.get()
    table = here.known_table(tuple(key))
    found = None if table is None else find_measurements(table)
    rows = rows or (FIRST if found else AS_IN_FILE)
    if table is not None and rows != AS_IN_FILE:
        key = [*key, rows]
        table = here.turned_table(tuple(key), partial(one_row_each, table, rows, found))
    if table is not None:
        check_size(table.rows, len(table.names), DEFAULT_LIMITS)
    return {
        "key": key,
        "keys": keys,  # of all sheets
        "refused": refused,  # sheets, and why
        "sheet": sheet,
        "measurements": found,  # what tells that the file has a row for each of them
        "rows": rows,
        "name": name,
        "outcome": None if table is None else guess_outcome(table.names),
        "of_outcome": {},  # further settings of the outcome: its unit, and what a YAML file says
        "positive": None,
        "kind": None,
        "censored": "refuse",
        "units": "refuse",
        "missing": "",
        "decimal": None,
        "features": {},  # column → what was stated of it
        "round": 0,  # of the editors: they begin anew where columns change
    }


def discard() -> None:
    draft = st.session_state.pop(DRAFT, None)
    if draft is not None:
        for key in draft["keys"].values():
            services.get().forget_table(tuple(key))


def ask_for_sheet(draft: Draft) -> None:
    """Of a workbook with several sheets; the largest one that can be read is shown first."""
    sheets = list(draft["keys"])
    if len(sheets) > 1:
        st.selectbox(
            "Sheet of the workbook",
            sheets,
            key="draft-sheet",
            index=sheets.index(draft["sheet"]),
            format_func=labels.plain,
            on_change=_turn_to,
        )
    for sheet, reason in draft["refused"].items():
        name = labels.markdown(labels.short(sheet, 40))
        st.caption(f":material/info: The sheet {name} is not offered: {labels.markdown(reason)}")


def ask_for_rows(draft: Draft) -> None:
    """Of a file with a row for each measurement."""
    if draft["measurements"] is not None:
        st.selectbox(
            f"Each row of the file seems to be one measurement: {labels.plain(str(draft['measurements']))}. Read it as",
            list(ROWS),
            key="draft-rows",
            index=list(ROWS).index(draft["rows"]),
            format_func=ROWS.__getitem__,
            on_change=_turn_to,
            help="A cohort has a row for each patient. First and last are in the order of the file",
        )


def _turn_to() -> None:
    """Callback: what was stated of another table's columns goes, and so do the fields that it was stated in."""
    draft = st.session_state.get(DRAFT)
    if draft is None:  # late, see `state`
        return
    sheet = st.session_state.get("draft-sheet", draft["sheet"])
    rows = st.session_state.get("draft-rows") if sheet == draft["sheet"] else None
    for field in OF_ONE_TABLE:
        st.session_state.pop(field, None)
    with notices.refusals(SECTION):
        st.session_state[DRAFT] = _new_draft(draft["name"], draft["keys"], sheet, draft["refused"], rows)
