"""The list of an owner's step-throughs, latest first: filtered by words, cohort, state and date, in pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import streamlit as st

from app.host import services
from app.store import StepThrough, StoredCohort
from app.ui import labels, notices, posterior_words, state
from app.ui.step_through.stored_events import Record, record_of
from app.ui.traces import deleting, replay
from app.ui.traces.loading import spent_after
from l2m_core.errors import L2MError
from l2m_core.schema import Schema
from l2m_core.step_through.events import fold

MOST = 5000  # step-throughs that are searched
ON_A_PAGE = 12
STATES = {"running": "Running", "finished": "Stopped"}
WIDTHS = (0.25, 2.2, 1.9, 1.2, 0.8, 1.8, 0.8)
CANNOT_GO_ON = "Its cohort was deleted: it can be looked at, not continued."
HEADS = ("", "Label", "Cohort", "Last event (UTC)", "Tests, cost", "Last prediction", "")
SEARCH, COHORT, STATE, DATES, PAGE = (
    "traces-search",
    "traces-cohort",
    "traces-state",
    "traces-dates",
    "traces-page",
)


@dataclass(frozen=True)
class Filter:
    """Empty settings admit everything."""

    words: str = ""
    cohort: str | None = None
    status: str | None = None
    first: date | None = None
    last: date | None = None

    def admits(self, step_through: StepThrough, cohort: StoredCohort) -> bool:
        text = f"{step_through.title} {cohort.name}".casefold()
        day = step_through.updated_at.date()
        return (
            all(word in text for word in self.words.casefold().split())
            and self.cohort in (None, cohort.name)
            and self.status in (None, step_through.status)
            and (self.first is None or day >= self.first)
            and (self.last is None or day <= self.last)
        )

    @property
    def is_set(self) -> bool:
        return self != Filter()


@dataclass(frozen=True)
class ListedRecord:
    """A step-through in the list. outcome, answer: name and value of the last prediction."""

    tests: int
    spent: float
    outcome: str
    answer: str


def show(owner: str) -> None:
    step_throughs, cohorts = _all(owner)
    if not step_throughs:
        st.write("No step-through is recorded yet. Begin one, or import a trace.")
        st.page_link("views/step_through.py", label="Begin a step-through", icon=":material/footprint:")
        return
    chosen = _ask({cohorts[s.cohort_id].name for s in step_throughs})
    found = [s for s in step_throughs if chosen.admits(s, cohorts[s.cohort_id])]
    pages = max(1, -(-len(found) // ON_A_PAGE))
    page = min(int(st.session_state.get(PAGE) or 1), pages)
    shown = found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE]
    _say_how_many(len(found), len(step_throughs), chosen)
    if not shown:
        return
    with st.container(border=True, gap="xsmall", key="trace-list"):
        with st.container(key="trace-heads"):
            for column, head in zip(st.columns(WIDTHS, vertical_alignment="bottom"), HEADS, strict=True):
                column.caption(head)
        for step_through in shown:
            _row(owner, step_through, cohorts[step_through.cohort_id])
    deleting.offer_many([(s.id, s.title) for s in shown])
    if pages > 1:
        if int(st.session_state.get(PAGE) or 1) > pages:
            st.session_state[PAGE] = pages
        st.pagination(pages, key=PAGE)
    st.caption(
        "Events can only be added, so nothing can be rewritten. A step-through is kept until you delete it, as a whole."
    )


def _all(owner: str) -> tuple[tuple[StepThrough, ...], dict[str, StoredCohort]]:
    store = services.get().store
    step_throughs = store.step_throughs.list(owner, limit=MOST)
    cohorts = {cohort.id: cohort for cohort in store.cohorts.list(owner)}
    for missing in {s.cohort_id for s in step_throughs} - set(cohorts):
        cohorts[missing] = store.cohorts.get(owner, missing)
    return step_throughs, cohorts


def _ask(names: set[str]) -> Filter:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Search",
            key=SEARCH,
            placeholder="Label or cohort",
            icon=":material/search:",
            max_chars=200,
            on_change=_to_first_page,
            persist_state="page",
        )
        st.selectbox(
            "Cohort",
            sorted(names),
            index=None,
            key=COHORT,
            placeholder="All cohorts",
            format_func=labels.plain,
            on_change=_to_first_page,
            width=220,
        )
        st.date_input(
            "Last event", value=[], key=DATES, on_change=_to_first_page, width=230, help="One day or a range, in UTC"
        )
        st.segmented_control("State", list(STATES), key=STATE, format_func=STATES.__getitem__, on_change=_to_first_page)
    return entered()


def entered() -> Filter:
    chosen: Any = st.session_state.get(DATES) or ()
    days = tuple(chosen) if isinstance(chosen, Sequence) else (chosen,)
    first = days[0] if days else None
    return Filter(
        str(st.session_state.get(SEARCH) or ""),
        st.session_state.get(COHORT),
        st.session_state.get(STATE),
        first,
        days[1] if len(days) > 1 else first,
    )


def _to_first_page() -> None:
    st.session_state[PAGE] = 1


def _say_how_many(found: int, count: int, chosen: Filter) -> None:
    all_of_them = labels.counted(count, "step-through")
    if not chosen.is_set:
        st.caption(f"{all_of_them}, latest first.{' The oldest are not searched.' if count == MOST else ''}")
    elif found:
        st.caption(f"{found:,} of {all_of_them}, latest first.")
    else:
        st.caption(f"None of {all_of_them} matches. Clear a filter to see more.")


def _row(owner: str, step_through: StepThrough, cohort: StoredCohort) -> None:
    mark, name, where, when, tests, answer, tools = st.columns(WIDTHS, vertical_alignment="center")
    title = step_through.title or "without label"
    with mark:
        deleting.offer_mark(step_through.id, title)
    with name:
        st.button(
            labels.markdown(labels.short(title, 80)),
            key=f"open-{step_through.id}",
            type="tertiary",
            help=f"Open {labels.markdown(title)}",
            on_click=open_trace,
            args=(step_through.id,),
        )
    gone = ", deleted" if cohort.deleted_at else ""
    with where:
        st.markdown(f":small[{labels.markdown(labels.short(cohort.name, 30))}, version {cohort.version}{gone}]")
    with when:
        stopped = " :material/check_circle: stopped" if step_through.status == "finished" else ""
        st.markdown(f":small[{step_through.updated_at:%d %b %Y %H:%M}{stopped}]")
    line = line_of(owner, step_through, cohort)
    with tests:
        spent = f"{labels.counted(line.tests, 'test')} · cost {labels.entered_text(line.spent)}" if line else "—"
        st.markdown(f":small[{spent}]")
    with answer:
        text = (
            f"**{labels.markdown(line.answer)}** :small[{labels.markdown(labels.short(line.outcome, 26))}]"
            if line
            else "—"
        )
        st.markdown(text)
    with tools:
        st.button(
            ":small[Continue]",
            key=f"continue-{step_through.id}",
            type="tertiary",
            help=CANNOT_GO_ON if gone else f"Continue {labels.markdown(title)} on the step-through page",
            disabled=bool(gone),
            on_click=continue_with,
            args=(step_through.id,),
        )


def line_of(owner: str, step_through: StepThrough, cohort: StoredCohort) -> ListedRecord | None:
    """Made from the record alone, without the model. None where the record cannot be read."""
    try:
        record = record_of(step_through, cohort, services.get().store.step_throughs.events(owner, step_through.id))
        schema = Schema.from_yaml(cohort.schema_yaml)
        return summarise_record(record, schema)
    except L2MError as refusal:
        notices.show("warning", f"{step_through.title}: {refusal}")
        return None


def summarise_record(record: Record, schema: Schema) -> ListedRecord:
    believed = record.believed[-1] if record.believed else None
    outcome = schema.outcome
    name = posterior_words.positive(outcome) if outcome.kind == "binary" else labels.plain(outcome.name)
    return ListedRecord(
        len(fold(record.events).acquired),
        spent_after(record.events, schema),
        f"mean {name}" if outcome.kind == "continuous" else name,
        posterior_words.short(outcome, believed),
    )


# -- opening ------------------------------------------------------------------------------------------------


def open_trace(step_through_id: str | None) -> None:
    st.session_state.pop(replay.POSITION, None)  # it opens at its end
    state.open_from_list(state.TRACE, step_through_id)


def continue_with(step_through_id: str) -> None:
    state.open_id(state.STEP_THROUGH, step_through_id)
    st.switch_page("views/step_through.py")
