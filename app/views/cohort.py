"""Cohort: open a bundled table of earlier patients or upload one, check it, describe it, keep it."""

from __future__ import annotations

from contextlib import suppress

import streamlit as st

from app.examples import EXAMPLES
from app.host import services
from app.store import NotFound, StoredCohort
from app.ui import (
    charts,
    cohort_draft,
    grouped_findings,
    labels,
    notices,
    ownership,
    posterior_words,
    schema_editor,
    state,
    uploaded_file,
)
from app.ui.metrics import boxes, metric
from app.ui.step_through import conditioning
from l2m_core.answering.trained_range import WITHIN
from l2m_core.cohort import Cohort
from l2m_core.errors import L2MError
from l2m_core.tables.restoring import newer_readings

NOT_HERE = "The cohort of this address is not here: it was deleted, or is not shared with you. Another one is shown."
ERASED = (
    "Its data and the evidence drawn from them are erased. Step-throughs stay, but cannot be continued. The names of columns, "
    "levels and classes stay as long as there are step-throughs, which are read by them."
)


def show() -> None:
    owner = state.owner()
    stored = services.get().store.cohorts.list(owner)
    if cohort_draft.is_open():  # nothing else, so that the form and what is said about it are in view
        cohort_draft.show()
        return
    if not stored:
        st.title("Learning to Measure", anchor=False)
        st.markdown(
            "A patient is in front of you, some things are known, many tests could be ordered. Open a **cohort**, a table "
            "of earlier patients with an outcome, and step through a patient: what to believe now, which test is "
            "expected to tell most, and when to stop."
        )
        notices.research_banner()
        notices.show_waiting()
        _ways_to_open(stored)
        cohort_draft.show()
        return
    left, right = st.columns([3, 1.25], vertical_alignment="bottom")
    with left:
        chosen = _choose(owner, stored)
    # Its key changes with the cohort that is open, which closes it: it does not lie over what was opened from it.
    with right.popover("Add a cohort", icon=":material/add:", width="stretch", key=f"add-cohort-{chosen.id}"):
        _ways_to_open(stored, narrow=True)
    notices.show_waiting()
    cohort_draft.show()
    with notices.shown_refusals():
        _show_cohort(owner, chosen)


# -- opening --------------------------------------------------------------------------------------------------------


def _ways_to_open(stored: tuple[StoredCohort, ...], narrow: bool = False) -> None:
    boxes = [st.container() for _ in EXAMPLES] if narrow else st.columns(len(EXAMPLES))
    for box, (number, example) in zip(boxes, enumerate(EXAMPLES), strict=True):
        with box.container(border=True, height="stretch" if not narrow else "content"):
            st.markdown(f"**{labels.markdown(example.title)}**")
            if not narrow:
                st.caption(labels.markdown(example.description))
                st.space("stretch")
            st.button(
                "Open",
                key=f"open-example-{number}",
                icon=":material/folder_open:",
                width="stretch",
                type="primary" if number == 0 and not stored else "secondary",
                on_click=_open_example,
                args=(number,),
            )
    st.file_uploader(
        "Or your own: Excel, CSV, gzipped CSV or Parquet, up to 50 MB",
        key=uploaded_file.UPLOAD,
        type=["csv", "xlsx", "xlsm", "gz", "tsv", "txt", "parquet"],
        on_change=uploaded_file.begin,
        help="One row for each earlier patient, one column for each feature, one for the outcome. Missing values are fine. "
        "Leave out names and record numbers.",
    )
    notices.show_waiting(uploaded_file.REFUSED)  # here, since what "Add a cohort" opens lies over the page


def _open_example(number: int) -> None:
    with notices.refusals():
        owner = state.owner()
        example = EXAMPLES[number]
        known = [c for c in services.get().store.cohorts.list(owner) if c.name == example.name and c.owner == owner]
        saved = known[0] if known else services.get().add_cohort(owner, example.make())
        uploaded_file.discard()
        state.open_id(state.COHORT, saved.id)


def _choose(owner: str, stored: tuple[StoredCohort, ...]) -> StoredCohort:
    by_id = {cohort.id: cohort for cohort in stored}
    opened = state.opened(state.COHORT)
    if opened not in by_id:
        if opened is not None:
            state.notify("info", NOT_HERE)
        opened = stored[0].id
        state.open_id(state.COHORT, opened)
    st.session_state["cohort-chosen"] = opened  # whoever opened it: here, by saving it, or by an address

    def name(identifier: str) -> str:
        cohort = by_id[identifier]
        shared = ", shared" if cohort.owner != owner else ""
        return f"{labels.plain(cohort.name)}, version {cohort.version}{shared}"

    st.selectbox("Cohort", list(by_id), key="cohort-chosen", format_func=name, on_change=_turn_to_chosen)
    return by_id[opened]


def _turn_to_chosen() -> None:
    state.turn_to(state.COHORT, st.session_state.get("cohort-chosen"))


# -- one cohort -----------------------------------------------------------------------------------------------------


def _show_cohort(owner: str, stored: StoredCohort) -> None:
    cohort = services.get().shown_cohort(owner, stored)
    _summary(cohort)
    for note in newer_readings(cohort):
        st.caption(f":material/info: {labels.markdown(note)}")
    # A link, which the browser follows by itself. A button asks the server for another page, and Streamlit turns back to this
    # one where this one's own look for how far the model is arrives just then.
    with st.container(key="start-step-through"):
        st.page_link(
            "views/step_through.py",
            label="Start a step-through",
            icon=":material/footprint:",
            query_params={state.COHORT: stored.id, state.STEP_THROUGH: state.NEW},
        )
    with suppress(L2MError):  # of a model that is not here the check below tells
        conditioning.show_reading(owner, stored, services.get().model(owner))
    check, schema, manage = st.tabs(["Check before use", "Schema", "Manage"], key="cohort-tabs", on_change="rerun")
    if check.open:
        with check:
            _check(owner, cohort)
    if schema.open:
        with schema:
            schema_editor.show(stored, cohort)
    if manage.open:
        with manage:
            _manage(owner, stored)


def _summary(cohort: Cohort) -> None:
    diagnostics = services.get().diagnostics(cohort)
    outcome = cohort.schema.outcome
    measurable, recorded = len(cohort.schema.acquirable), float(cohort.r.mean())
    if diagnostics.outcome_range:
        low, middle, high = diagnostics.outcome_range
        value, detail = labels.number(middle), f"median; from {labels.number(low)} to {labels.number(high)}"
    elif cohort.kind == "binary":
        share = diagnostics.prevalence[cohort.classes[1]]
        # The outcome's name stands above: only a class that says more is named.
        of_class = "" if cohort.classes[1].casefold() in posterior_words.AFFIRMATIVE else f": {cohort.classes[1]}"
        value, detail = labels.percent(share), f"{labels.of_100(share)} patients{labels.plain(of_class)}"
    else:
        value, detail = f"{cohort.n_classes} classes", ", ".join(labels.plain(name) for name in cohort.classes)
    with boxes():
        metric("Rows", f"{len(cohort):,}")
        known = len(cohort.names) - measurable
        metric("Features", f"{len(cohort.names)}", f"{measurable} to measure, {known} known at the start")
        metric(labels.markdown(outcome.name), value, labels.markdown(labels.short(detail, 60)))
        metric("Recorded", labels.percent(recorded), "of all cells")


def _check(owner: str, cohort: Cohort) -> None:
    diagnostics = services.get().diagnostics(cohort)
    left, right = st.columns([1, 1], gap="large")
    with left:
        st.subheader("What to know before use", anchor=False)
        with notices.shown_refusals():
            outside = services.get().model(owner).check(cohort)
            for sentence in outside:
                notices.show("warning", sentence)
            if not outside:
                notices.show("success", WITHIN)
        grouped_findings.show(finding for finding in diagnostics.findings if finding.severity != "info")
        if all(finding.severity == "info" for finding in diagnostics.findings):
            notices.show("success", "Support, leaks, copies and missingness were checked: they give no warning.")
        rest = [finding for finding in diagnostics.findings if finding.severity == "info"]
        if rest:
            with st.expander(labels.counted(len(rest), "more note")):
                for group in grouped_findings.grouped(rest):
                    st.caption(labels.markdown(grouped_findings.headline(group)))
    with right:
        st.subheader("What is recorded", anchor=False)
        charts.draw(charts.recorded_map(cohort.r, cohort.names), "recorded-map")
    with st.expander("Each feature in numbers"):
        table = diagnostics.features.reset_index().drop(columns=["p_value"])
        shares = [column for column in table.columns if column.startswith(("share", "explained"))]
        st.dataframe(
            table,
            hide_index=True,
            key="feature-table",
            alt="How often each feature was recorded, overall and by class",
            column_config={column: st.column_config.NumberColumn(format="percent") for column in shares},
        )


# -- managing -------------------------------------------------------------------------------------------------------


def _manage(owner: str, stored: StoredCohort) -> None:
    st.caption(
        f"Stored {stored.created_at:%d %b %Y, %H:%M} UTC · {stored.size / 1000:,.0f} kB · content hash "
        f"`{stored.content_hash[:16]}…`"
    )
    if stored.owner != owner:
        notices.show("info", "This cohort was shared with you. Only its owner can change or delete it.")
        return
    ownership.show("cohort", stored.id, stored.shared, ERASED, _share, _delete)


def _share(cohort_id: str, shared: bool) -> None:
    with notices.refusals():
        services.get().store.cohorts.share(state.owner(), cohort_id, shared)


def _delete(cohort_id: str) -> None:
    try:
        services.get().delete_cohort(state.owner(), cohort_id)
        state.notify("success", "The cohort and its data are deleted.")
    except NotFound:
        state.notify("info", "The cohort was deleted already.")
    except L2MError as refusal:
        state.notify("error", str(refusal))
    state.open_id(state.COHORT, None)


show()
