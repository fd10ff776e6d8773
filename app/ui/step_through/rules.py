"""The rules of one step-through: how tests are ranked, and when stopping is advised."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.ui import labels, notices, state
from app.ui.step_through import actions
from app.ui.step_through.step_answers import StepAnswers
from app.ui.step_through.stored_events import POLICIES, Rules
from l2m_core.acquire.stopping import OF_RARE, POINT, Stopping, least_points_for, points_in_words
from l2m_core.answering.release import Release
from l2m_core.cohort import Cohort

MODELS_OWN = ""  # in the select box: whatever the model orders tests by


def at_first(cohort: Cohort, release: Release) -> Rules:
    """Of a new step-through: stopping is advised as soon as nothing is expected to move the belief by what counts as a move. They
    are kept with it as a number. A model that does not foresee results cannot say how far they would move the belief."""
    return Rules(Stopping(least_points=least_points_for(cohort))) if release.inference.gains == "answers" else Rules()


def show(answers: StepAnswers) -> None:
    """A popover in the head of the page."""
    key = f"rules-{answers.record.id}-{answers.record.length}"
    # The key changes when rules are saved, which closes the popover.
    with st.popover(
        "Rules", key=f"popover-{key}", icon=":material/tune:", help="How tests are ranked, and when stopping is advised"
    ):
        with st.form(f"form-{key}", border=False):
            ask_rules(answers.record.settings, key, answers.patient.memory.release.inference.policy)
            st.form_submit_button(
                "Save",
                key="rules-save",
                type="primary",
                on_click=_save,
                args=(answers.record.id, answers.record.length, key),
            )


def ask_rules(settings: Rules, key: str, models_own: str | None = None) -> None:
    """models_own: the policy of the model, where it is chosen already."""
    stopping, policies = settings.stopping, (MODELS_OWN, *POLICIES)
    words = {**labels.POLICIES, MODELS_OWN: "the model's default"}
    if models_own is not None:
        words[MODELS_OWN] += f": {words.get(models_own, models_own)}"
    st.selectbox(
        "Rank by",
        policies,
        index=policies.index(settings.policy or MODELS_OWN),
        key=f"{key}-policy",
        format_func=words.__getitem__,
    )
    st.caption(
        "Advise stopping when … (leave empty for never). Costs and stopping rules are our addition; the study had none."
    )
    share = None if stopping.confidence is None else 100 * stopping.confidence
    acts_from = None if stopping.threshold is None else 100 * stopping.threshold
    left, right = st.columns(2)
    with left:
        _ask_limit(
            "no test is expected to move this by (points)",
            stopping.least_points,
            f"{key}-points",
            min_value=0.0,
            format="%g",
            step=0.5,
            help=f"At first {points_in_words(POINT)}, or {OF_RARE:.0%} of how often a rare outcome is, where that is less. "
            "Of an outcome that is a number, a point is 1% of its spread in the cohort",
        )
        _ask_limit("tests done reach", stopping.budget, f"{key}-budget", min_value=0, step=1)
        _ask_limit(
            "the best gain is below (nats)", stopping.least_gain, f"{key}-gain", min_value=0.0, format="%g", step=0.005
        )
    with right:
        _ask_limit(
            "no test is likely to cross (% of a yes/no outcome)",
            acts_from,
            f"{key}-threshold",
            min_value=0.1,
            max_value=99.9,
            format="%g",
            step=1.0,
        )
        _ask_limit("cost reaches", stopping.cost_budget, f"{key}-cost", min_value=0.0, format="%g", step=1.0)
        _ask_limit(
            "an outcome is this likely (%)",
            share,
            f"{key}-confidence",
            min_value=50.0,
            max_value=100.0,
            format="%g",
            step=1.0,
        )


def _ask_limit(label: str, value: float | None, key: str, **limits: Any) -> None:
    """Empty stands for no limit."""
    st.number_input(label, value=value, key=key, placeholder="no limit", **limits)


def in_words(settings: Rules, outcome_kind: str) -> str:
    """The rules as the log shows them."""
    stopping = settings.stopping
    least = None if stopping.least_points is None else points_in_words(stopping.least_points)
    if least is not None and outcome_kind == "continuous":  # a number has no points
        least = f"{stopping.least_points:g}% of the outcome's spread"
    limits = {
        "no test is expected to move this by {}": least,
        "no test is likely to cross {:g}%": None if stopping.threshold is None else 100 * stopping.threshold,
        "tests done reach {:g}": stopping.budget,
        "cost reaches {:g}": stopping.cost_budget,
        "the best gain is below {:g} nats": stopping.least_gain,
        "an outcome is {:g}% likely": None if stopping.confidence is None else 100 * stopping.confidence,
    }
    when = [words.format(limit) for words, limit in limits.items() if limit is not None]
    rank = labels.POLICIES[settings.policy] if settings.policy else "the model's default"
    return f"rank by {rank} · advise stopping {'when ' + ' or '.join(when) if when else 'never'}"


def entered_rules(key: str) -> Rules:
    """The rules as entered; ConfigError for a number outside its range."""
    parts = ("policy", "points", "threshold", "budget", "gain", "cost", "confidence")
    entered = {part: st.session_state.get(f"{key}-{part}") for part in parts}
    confidence, threshold = entered["confidence"], entered["threshold"]
    stopping = Stopping(
        budget=None if entered["budget"] is None else int(entered["budget"]),
        cost_budget=entered["cost"],
        least_gain=entered["gain"],
        confidence=None if confidence is None else confidence / 100,
        least_points=entered["points"],
        threshold=None if threshold is None else threshold / 100,
    )
    return Rules(stopping, entered["policy"] if entered["policy"] in POLICIES else None)


def _save(step_id: str, expected_length: int, key: str) -> None:
    with notices.refusals():
        actions.save_settings(step_id, expected_length, entered_rules(key))
    state.acted("rules")
