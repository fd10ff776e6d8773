"""Evidence: can I trust it on my cohort? Measured on the cohort itself, before use."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.catalogue import DEFAULT_MODEL
from app.host import services
from app.jobs.evidence_job import grouping
from app.store import StoredCohort, StoredEvidence
from app.ui import labels, notices, state
from app.ui.evidence import figures, gathering
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.evidence import Evidence


def show() -> None:
    owner = state.owner()
    cohorts = {cohort.id: cohort for cohort in services.get().store.cohorts.list(owner)}
    if not cohorts:
        st.title("Evidence", anchor=False)
        st.write("Evidence needs a cohort: a table of earlier patients whose outcome is known.")
        st.page_link("views/cohort.py", label="Open a cohort", icon=":material/table_chart:")
        return
    stored, model = _choose(owner, cohorts)
    notices.show_waiting(gathering.SECTION)
    with notices.shown_refusals():
        _show_cohort(owner, stored, model)


def _show_cohort(owner: str, stored: StoredCohort, model: str) -> None:
    cohort = services.get().shown_cohort(owner, stored)
    fingerprint = services.get().model(owner, model).fingerprint
    known = [
        (kept, evidence)
        for kept in services.get().store.evidence.list(owner, stored.content_hash, fingerprint)
        if _is_of(cohort, kept) and (evidence := Evidence.from_data(kept.results)) is not None
    ]
    if not known:
        st.markdown(
            "**Can I trust it on my cohort?** The patients are split into folds. Each is stepped through by a model that "
            "has read only the other folds: in the model's order, in random order, and in the best fixed order. The "
            "result says how good the predictions are here, and whether the order helps."
        )
    gathering.show(owner, stored, cohort, model, again=bool(known))
    if known:
        kept, evidence = _pick(known)
        figures.show(stored, kept, evidence)


def _is_of(cohort: Cohort, kept: StoredEvidence) -> bool:
    """Whether rows were grouped into patients as in this cohort's own table; see `kept_under`."""
    column = kept.settings.get("patients")
    try:
        return not column or kept.settings.get("grouping") == grouping(cohort, column)
    except CohortError:  # its table has no such column
        return False


def _choose(owner: str, cohorts: dict[str, StoredCohort]) -> tuple[StoredCohort, str]:
    title, left, right = st.columns([1, 1.6, 1], vertical_alignment="bottom")
    title.title("Evidence", anchor=False)
    opened = state.opened(state.COHORT)
    identifiers = list(cohorts)
    index = identifiers.index(opened) if opened in cohorts else 0
    chosen = left.selectbox(
        "Cohort",
        identifiers,
        index=index,
        key="evidence-cohort",
        on_change=_turn_to,
        format_func=lambda i: f"{labels.plain(cohorts[i].name)}, version {cohorts[i].version}",
    )
    names = list(services.get().model_names(owner))
    model = right.selectbox(
        "Model",
        names,
        key="evidence-model",
        format_func=labels.plain,
        index=names.index(DEFAULT_MODEL) if DEFAULT_MODEL in names else 0,
    )
    return cohorts[str(chosen)], str(model)


def _turn_to() -> None:
    state.turn_to(state.COHORT, st.session_state.get("evidence-cohort"))


def _pick(known: list[tuple[StoredEvidence, Evidence]]) -> tuple[StoredEvidence, Evidence]:
    """The newest, unless another one is selected."""
    if len(known) == 1:
        return known[0]
    number = st.selectbox("Gathered", range(len(known)), key="evidence-shown", format_func=lambda i: _name(known[i][0]))
    return known[int(number)]


def _name(kept: StoredEvidence) -> str:
    settings: dict[str, Any] = kept.settings
    patients = f", patients by {labels.plain(settings['patients'])}" if settings.get("patients") else ""
    alone = "" if settings.get("conventional", True) else ", without conventional models"
    ranked = labels.POLICIES.get(settings["policy"], settings["policy"])
    return (
        f"{kept.created_at:%d %b %Y, %H:%M} UTC: {settings['folds']} folds, up to {settings['budget']} tests, at most "
        f"{settings['most_rows']:,} rows, by {ranked}, seed {settings['seed']}{patients}{alone}"
    )


show()
