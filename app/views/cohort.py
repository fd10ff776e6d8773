"""Cohort: open a bundled table of earlier patients or upload one, check it, describe it, keep it."""

from __future__ import annotations

import streamlit as st

from app.examples import EXAMPLES
from app.host import services
from app.store import NotFound, StoredCohort
from app.ui import charts, cohort_draft, downloads, labels, notices, ownership, schema_table, state
from app.ui.metrics import metric
from l2m_core.cohort import Cohort
from l2m_core.errors import L2MError
from l2m_core.schema import Overrides
from l2m_core.tables.restoring import newer_readings

STEP_PAGE = "views/step_through.py"
ERASED = "Its data and the evidence drawn from them are erased. Step-throughs stay, but cannot be continued."


def show() -> None:
    owner = state.owner()
    stored = services.get().store.cohorts.list(owner)
    draft = st.session_state.get(cohort_draft.DRAFT)
    if not stored:
        st.title("Learning to Measure", anchor=False)
        st.markdown(
            "A patient is in front of you, some things are known, many tests could be ordered. Open a **cohort**, a table "
            "of earlier patients with an outcome, and step through a patient: what to believe now, which test is "
            "expected to tell most, and when to stop."
        )
        notices.research_banner()
        notices.show_waiting()
        _ways_to_open(owner, stored)
        cohort_draft.show()
        return
    left, right = st.columns([3, 1.25], vertical_alignment="bottom")
    with left:
        chosen = _choose(owner, stored)
    with right.popover("Add a cohort", icon=":material/add:", width="stretch"):
        _ways_to_open(owner, stored, narrow=True)
    notices.show_waiting()
    cohort_draft.show()
    if draft is None:
        with notices.shown_refusals():
            _show_cohort(owner, chosen)


# -- opening --------------------------------------------------------------------------------------------------------


def _ways_to_open(owner: str, stored: tuple[StoredCohort, ...], narrow: bool = False) -> None:
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
        "Or your own: CSV, gzipped CSV or Parquet, up to 50 MB",
        key=cohort_draft.UPLOAD,
        type=["csv", "gz", "tsv", "txt", "parquet"],
        on_change=cohort_draft.begin,
        help="One row for each earlier patient, one column for each feature, one for the outcome. Missing values are fine. "
        "Leave out names and record numbers.",
    )


def _open_example(number: int) -> None:
    with notices.refusals():
        owner = state.owner()
        example = EXAMPLES[number]
        known = [c for c in services.get().store.cohorts.list(owner) if c.name == example.name and c.owner == owner]
        saved = known[0] if known else services.get().add_cohort(owner, example.make())
        cohort_draft.discard()
        state.open_id(state.COHORT, saved.id)


def _choose(owner: str, stored: tuple[StoredCohort, ...]) -> StoredCohort:
    by_id = {cohort.id: cohort for cohort in stored}
    opened = state.opened(state.COHORT)
    if opened not in by_id:
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
    state.open_id(state.COHORT, st.session_state["cohort-chosen"])


# -- one cohort -----------------------------------------------------------------------------------------------------


def _show_cohort(owner: str, stored: StoredCohort) -> None:
    cohort = services.get().cohort(owner, stored)
    _summary(cohort)
    for note in newer_readings(cohort):
        st.caption(f":material/info: {labels.markdown(note)}")
    with st.container(horizontal=True):
        st.button(
            "Start a step-through",
            key="start-step-through",
            type="primary",
            icon=":material/footprint:",
            on_click=_start,
            args=(stored.id,),
        )
    check, schema, manage = st.tabs(["Check before use", "Schema", "Manage"], key="cohort-tabs", on_change="rerun")
    if check.open:
        with check:
            _check(owner, cohort)
    if schema.open:
        with schema:
            _schema(owner, stored, cohort)
    if manage.open:
        with manage:
            _manage(owner, stored)


def _start(cohort_id: str) -> None:
    state.open_id(state.COHORT, cohort_id)
    state.open_id(state.STEP_THROUGH, None)
    st.switch_page(STEP_PAGE)


def _summary(cohort: Cohort) -> None:
    diagnostics = services.get().diagnostics(cohort)
    outcome = cohort.schema.outcome
    measurable, recorded = len(cohort.schema.acquirable), float(cohort.r.mean())
    if diagnostics.outcome_range:
        low, middle, high = diagnostics.outcome_range
        value, detail = labels.number(middle), f"median; from {labels.number(low)} to {labels.number(high)}"
    elif cohort.kind == "binary":
        share = diagnostics.prevalence[cohort.classes[1]]
        value, detail = labels.percent(share), f"{labels.of_100(share)} patients: {labels.plain(cohort.classes[1])}"
    else:
        value, detail = f"{cohort.n_classes} classes", ", ".join(labels.plain(name) for name in cohort.classes)
    with st.grid(4, gap="small"):
        metric("Rows", f"{len(cohort):,}")
        known = len(cohort.names) - measurable
        metric("Features", f"{len(cohort.names)}", f"{measurable} to measure, {known} known at the start")
        metric(labels.markdown(outcome.name), value, labels.markdown(labels.short(detail, 60)))
        metric("Recorded", labels.percent(recorded), f"{labels.percent(1 - recorded)} of the cells are empty")


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
                notices.show(
                    "success", "Rows, features and classes are within the range that the model was trained on."
                )
        shown = [finding for finding in diagnostics.findings if finding.severity != "info"]
        for finding in shown[:8]:
            notices.show("error" if finding.severity == "critical" else "warning", finding.sentence)
        if not shown:
            notices.show("success", "No warnings: support, leaks, copies and missingness were checked.")
        rest = [*shown[8:], *(f for f in diagnostics.findings if f.severity == "info")]
        if rest:
            with st.expander(f"{len(rest)} more notes"):
                for finding in rest[:100]:
                    st.caption(labels.markdown(finding.sentence))
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


# -- schema ---------------------------------------------------------------------------------------------------------


def _schema(owner: str, stored: StoredCohort, cohort: Cohort) -> None:
    st.caption("You set costs, turnaround, units and ranges. Saving makes a new version of the cohort.")
    notices.show_waiting("schema")
    schema_table.edit(schema_table.table_of(cohort.schema), _editor(stored))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Save as a new version",
            key="schema-save",
            type="primary",
            icon=":material/save:",
            on_click=_save_schema,
            args=(stored.id,),
        )
        downloads.button(
            "Schema as YAML",
            cohort.schema.to_yaml,
            downloads.file_name(stored.name, "schema", ending="yaml"),
            "application/yaml",
            "schema-download",
        )
        st.file_uploader(
            "Load the schema from a YAML file",
            type=["yaml", "yml"],
            key="schema-upload",
            max_upload_size=5,
            on_change=_take_schema,
            args=(stored.id,),
        )


def _editor(stored: StoredCohort) -> str:
    return f"schema-editor-{stored.id}"


def _save_schema(cohort_id: str) -> None:
    if state.is_echo("save schema"):
        return
    with notices.refusals("schema"):
        owner = state.owner()
        stored = services.get().store.cohorts.get(owner, cohort_id)
        schema = services.get().cohort(owner, stored).schema
        edited = schema_table.edited(schema_table.table_of(schema), _editor(stored))
        settings = schema_table.stated(edited, schema.outcome, schema)
        _store_version(owner, stored, Overrides.from_data(settings))


def _take_schema(cohort_id: str) -> None:
    upload = st.session_state["schema-upload"]
    if upload is None:
        return
    with notices.refusals("schema"):
        owner = state.owner()
        stored = services.get().store.cohorts.get(owner, cohort_id)
        _store_version(owner, stored, Overrides.from_yaml(cohort_draft.read_text(upload.getvalue())))


def _store_version(owner: str, stored: StoredCohort, overrides: Overrides) -> None:
    frame = services.get().cohort(owner, stored).frame()
    saved = services.get().add_cohort(owner, Cohort.from_frame(frame, schema=overrides, name=stored.name))
    state.acted("save schema")
    same = saved.content_hash == stored.content_hash
    state.notify(
        "info" if same else "success",
        "Nothing was changed."
        if same
        else f"'{saved.name}' is stored as version {saved.version}; earlier versions stay.",
    )
    state.open_id(state.COHORT, saved.id)


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
