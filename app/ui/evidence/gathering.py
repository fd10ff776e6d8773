"""Starts, watches, stops and resumes the job that gathers evidence."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import streamlit as st

from app.host import services
from app.jobs.evidence_job import KIND
from app.store import Job, StoredCohort
from app.ui import labels, notices, state
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.evidence import EvidenceSettings, make_plan
from l2m_core.evidence.duration import expected_seconds, in_words

SECTION = "evidence"
DEFAULTS = EvidenceSettings()


def newest(owner: str, stored: StoredCohort, model: str) -> Job | None:
    """The newest job for this cohort and model."""
    for job in services.get().store.jobs.list(owner, KIND):
        if job.config.get("cohort") == stored.id and job.config.get("model") == model:
            return job
    return None


def show(owner: str, stored: StoredCohort, cohort: Cohort, model: str, again: bool) -> None:
    """Shows the running job, how the last one ended, or the button that starts one."""
    job = newest(owner, stored, model)
    if job is not None and job.active:
        _watch(owner, job.id)
        return
    if job is not None and job.state != "done":
        _explain(job)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Gather again" if again else "Gather evidence",
            key="evidence-start",
            icon=":material/query_stats:",
            type="secondary" if again else "primary",
            on_click=start_gathering,
            args=(stored.id, model),
        )
        with st.popover("Settings", icon=":material/tune:"):
            _ask_settings(cohort, services.get().model(owner, model).release.inference.policy, model)
    _say_how_long(owner, stored, model)


def _say_how_long(owner: str, stored: StoredCohort, model: str) -> None:
    """Before it is started. The trial runs in the background; until it is done, the page goes on without it."""
    pace = services.get().pace(owner, stored, services.get().model(owner, model))
    if pace is None:
        _until_tried(owner, stored, model)
        return
    cohort, settings = services.get().cohort(owner, stored), entered_settings(model)
    seconds = expected_seconds(services.get().model(owner, model), cohort, settings, pace)
    if math.isfinite(seconds):
        st.caption(f"{in_words(seconds)}, by a quick trial on this machine as busy as it is now.")


@st.fragment(run_every="2s")
def _until_tried(owner: str, stored: StoredCohort, model: str) -> None:
    if services.get().pace(owner, stored, services.get().model(owner, model)) is not None:
        st.rerun()
    st.caption("Trying how long it will take.")


def _ask_settings(cohort: Cohort, policy: str, model: str) -> None:
    """policy: the one that ranks tests in a step-through."""
    st.number_input(
        "Folds",
        2,
        20,
        DEFAULTS.folds,
        key="evidence-folds",
        help="The patients are split into this many parts; each part is predicted with the others as context.",
    )
    st.number_input("Tests, at most", 1, 40, DEFAULTS.budget, key="evidence-budget")
    st.number_input(
        "Rows to predict, at most",
        10,
        5000,
        DEFAULTS.most_rows,
        step=50,
        key="evidence-rows",
        help="More rows take longer and make the intervals narrower.",
    )
    st.toggle(
        "Compare with conventional models",
        value=DEFAULTS.conventional,
        key="evidence-conventional",
        help="A regression and boosted trees, tuned by cross-validation on the same rows.",
    )
    names = list(labels.POLICIES)
    st.selectbox(
        "The model ranks tests by",
        names,
        key=f"evidence-policy-{model}",
        format_func=labels.POLICIES.__getitem__,
        index=names.index(policy) if policy in names else 0,
    )
    columns = _columns_of_patients(cohort)
    if columns:
        st.selectbox(
            "Rows of one patient share",
            ["", *columns],
            key="evidence-patients",
            index=1 + columns.index(cohort.patient_column) if cohort.patient_column in columns else 0,
            format_func=lambda name: labels.plain(name) or "each row is a different patient",
            help="A column such as a record number: the rows of one patient stay in the same fold.",
        )
    st.number_input(
        "Seed", 0, 1_000_000, DEFAULTS.seed, key="evidence-seed", help="The same seed gives the same figures."
    )


def _columns_of_patients(cohort: Cohort) -> list[str]:
    """Columns that are neither features nor the outcome, and the one that tells patients apart."""
    if cohort.source is None:
        return []
    used = {*cohort.names, cohort.schema.outcome.name} - {cohort.patient_column}
    return [name for name in cohort.source.names if name not in used]


def entered_settings(model: str) -> EvidenceSettings:
    entered = {
        "folds": "evidence-folds",
        "budget": "evidence-budget",
        "most_rows": "evidence-rows",
        "conventional": "evidence-conventional",
        "policy": f"evidence-policy-{model}",
        "patients": "evidence-patients",
        "seed": "evidence-seed",
    }
    values: dict[str, Any] = {name: st.session_state.get(key) for name, key in entered.items()}
    return replace(DEFAULTS, **{name: value for name, value in values.items() if value is not None})


def start_gathering(cohort_id: str, model_name: str) -> None:
    if state.is_echo("gather"):
        return
    with notices.refusals(SECTION), warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        owner = state.owner()
        stored = services.get().store.cohorts.get(owner, cohort_id)
        cohort = services.get().shown_cohort(owner, stored)
        settings = replace(entered_settings(model_name), council=services.get().settings.council)
        # Checked here too, where the person can correct it.
        services.get().model(owner, model_name).check(cohort)
        make_plan(cohort, settings)
        running = newest(owner, stored, model_name)
        if running is None or not running.active:
            config = {"cohort": stored.id, "model": model_name, "settings": asdict(settings)}
            services.get().runner.submit(owner, KIND, config)
        state.acted("gather")


@st.fragment(run_every="2s")
def _watch(owner: str, job_id: str) -> None:
    runner = services.get().runner
    runner.pump()
    job = runner.store.jobs.get(owner, job_id)
    if not job.active:
        st.rerun()
    with st.container(border=True):
        st.progress(job.progress, text=labels.markdown(_doing(job)))
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Stop",
                key="evidence-stop",
                icon=":material/stop_circle:",
                on_click=_stop,
                args=(job_id,),
                disabled=job.cancel_requested,
            )
            st.caption("It continues when you leave this page, close the browser or restart the app.")


def _doing(job: Job) -> str:
    if job.state == "queued":
        before = services.get().runner.jobs_before(job)
        return "Starting." if before == 0 else f"Waiting for {labels.counted(before, 'other job')} to finish."
    if job.cancel_requested:
        return "Stopping at the next safe point."
    return " ".join(filter(None, [job.message or "Starting.", _time_left(job)]))


def _time_left(job: Job) -> str:
    if job.started_at is None or job.attempts > 1 or job.progress < 0.05:
        return ""
    elapsed = (datetime.now(UTC) - job.started_at).total_seconds()
    left = elapsed * (1 - job.progress) / job.progress
    return f"About {max(1, round(left / 60))} min left." if left > 50 else "Less than a minute left."


def _stop(job_id: str) -> None:
    with notices.refusals(SECTION):
        services.get().runner.stop(state.owner(), job_id)


def _explain(job: Job) -> None:
    severity = {"failed": "error", "crashed": "error"}.get(job.state, "info")
    begin = {"failed": "The evidence could not be gathered: ", "crashed": "The job ended unexpectedly. "}
    notices.show(severity, begin.get(job.state, "") + job.message)
    st.button("Resume", key="evidence-resume", icon=":material/play_arrow:", on_click=_resume, args=(job.id,))


def _resume(job_id: str) -> None:
    if state.is_echo("gather"):
        return
    with notices.refusals(SECTION):
        services.get().runner.resume(state.owner(), job_id)
        state.acted("gather")
