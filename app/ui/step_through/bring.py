"""Patients who are pasted or uploaded instead of typed, and the list of them to work through.

The list lasts as long as the page's session: what was begun is in the store, and the file can be read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import streamlit as st

from app.host import services
from app.store import StoredCohort
from app.ui import inputs, labels, notices, state, wording
from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients import MEGABYTES, BroughtPatients, PatientRecord, read_patients

SECTION = "bring"
BROUGHT = "bring-patients"
TEXT = "bring-text"
FILE = "bring-file"
CHOSEN = "bring-chosen"
LONGEST_PASTE = 200_000  # characters; more comes as a file
MOST_TOLD = 20  # things that were not used
DOUBTFUL = ("value", "unit", "doubt")  # what a person may have meant to be used
FORMS = {"table": "a table", "results": "a list of results", "JSON": "JSON", "FHIR": "a FHIR Bundle"}

Begin = Callable[[str, PatientRecord], bool]


@dataclass(frozen=True)
class Brought:
    """Patients read for one cohort, and the positions of those with whom a step-through has begun."""

    cohort_id: str
    incoming: BroughtPatients
    begun: frozenset[int] = frozenset()

    @property
    def next(self) -> int:
        """The first who has not begun; the last one where all have."""
        left = (at for at in range(len(self.incoming.patients)) if at not in self.begun)
        return next(left, len(self.incoming.patients) - 1)


def show(stored: StoredCohort, cohort: Cohort, begin: Begin) -> None:
    """begin: called with the cohort's id and a patient; begins their step-through, and says whether it did."""
    brought = _brought(stored)
    with st.expander(
        "Paste or upload a patient", type="compact", icon=":material/content_paste:", expanded=brought is not None
    ):
        notices.show_waiting(SECTION)
        if brought is None:
            _ask(stored, cohort)
        else:
            _list(brought, cohort, begin)


def _brought(stored: StoredCohort) -> Brought | None:
    brought = st.session_state.get(BROUGHT)
    return brought if isinstance(brought, Brought) and brought.cohort_id == stored.id else None


def _ask(stored: StoredCohort, cohort: Cohort) -> None:
    st.caption(
        "A line of column names and a line for each patient; a list of results with their tests and units; JSON; or a FHIR "
        "Bundle whose Observations have LOINC codes. Columns are matched by name, results by name or code and by unit; "
        "nothing is guessed. Leave out names and record numbers."
    )
    st.text_area(
        "Paste here",
        key=TEXT,
        height=110,
        max_chars=LONGEST_PASTE,
        placeholder=labels.plain(",".join(cohort.names[:4])) + ", …",
    )
    st.file_uploader(
        "Or choose a file", type=["csv", "xlsx", "xlsm", "tsv", "txt", "json"], key=FILE, max_upload_size=MEGABYTES
    )
    st.button("Read", key="bring-read", icon=":material/input:", on_click=_read, args=(stored.id,))


def _read(cohort_id: str) -> None:
    with notices.refusals(SECTION):
        file, text = st.session_state.get(FILE), str(st.session_state.get(TEXT) or "")
        if file is not None and text.strip():
            raise InputError("There is a pasted text and a file. Keep one of them.")
        here, owner = services.get(), state.owner()
        cohort = here.shown_cohort(owner, here.store.cohorts.get(owner, cohort_id))
        incoming = read_patients(text if file is None else file.getvalue(), cohort)
        st.session_state[BROUGHT] = Brought(cohort_id, incoming)
        st.session_state.pop(CHOSEN, None)


def _list(brought: Brought, cohort: Cohort, begin: Begin) -> None:
    patients = brought.incoming.patients
    begun = f", {len(brought.begun)} begun" if brought.begun else ""
    st.caption(f"{labels.counted(len(patients), 'patient')} read from {FORMS[brought.incoming.form]}{begun}.")
    _tell(brought.incoming.notes)
    at = 0
    if len(patients) > 1:
        at = st.selectbox(
            "Patient",
            range(len(patients)),
            index=brought.next,
            key=CHOSEN,
            format_func=lambda number: _name(brought, number),
        )
    record = patients[at]
    _known(record, cohort)
    _tell((*record.notes, *_unusual(record, cohort)), "warning")
    doubtful = any(left.kind in DOUBTFUL for left in record.unused)
    severity = "warning" if doubtful else "info"
    _tell(map(str, record.unused), severity, f"Not used ({len(record.unused)})")
    with st.container(horizontal=True):
        st.button(
            "Begin with this patient",
            key="bring-begin",
            type="primary",
            icon=":material/footprint:",
            on_click=_begin,
            args=(at, begin),
        )
        st.button("Bring others", key="bring-clear", icon=":material/close:", on_click=_clear)


def _name(brought: Brought, at: int) -> str:
    record = brought.incoming.patients[at]
    done = "✓ " if at in brought.begun else ""
    return f"{done}{record.label} · {labels.counted(len(record.values), 'value')}"


def _known(record: PatientRecord, cohort: Cohort) -> None:
    if not record.values:
        st.markdown("Nothing is known of this patient.")
        return
    told = (
        f"{labels.markdown(name)} {wording.value_with_flag(cohort, name, value, record.limits.get(name))}"
        for name, value in record.values.items()
    )
    st.markdown(" · ".join(told))


def _unusual(record: PatientRecord, cohort: Cohort) -> tuple[str, ...]:
    """Numbers outside everything in the cohort, such as an age of 720 or a value in another unit."""
    exact = {name: value for name, value in record.values.items() if name not in record.limits}
    found = (inputs.unlike_the_cohort(cohort, cohort.feature(name), value) for name, value in exact.items())
    return tuple(sentence for sentence in found if sentence)


def _tell(sentences: Iterable[str], severity: str = "info", title: str = "") -> None:
    said = list(sentences)
    if len(said) > MOST_TOLD:
        said = [*said[:MOST_TOLD], f"And {len(said) - MOST_TOLD} more."]
    if said:
        notices.show(severity, "\n".join([*([title] if title else []), *said]))


def _begin(at: int, begin: Begin) -> None:
    brought = st.session_state.get(BROUGHT)
    if isinstance(brought, Brought) and begin(brought.cohort_id, brought.incoming.patients[at]):
        st.session_state[BROUGHT] = replace(brought, begun=brought.begun | {at})
        st.session_state.pop(CHOSEN, None)  # who comes next is shown


def _clear() -> None:
    for key in (BROUGHT, CHOSEN, TEXT):
        st.session_state.pop(key, None)
