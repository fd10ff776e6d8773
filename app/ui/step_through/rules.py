"""How to rank and when to advise stopping: the settings of one step-through."""

from __future__ import annotations

import streamlit as st

from app.ui import labels, notices, state
from app.ui.step_through import actions
from app.ui.step_through.step_answers import StepAnswers
from app.ui.step_through.stored_events import POLICIES, Settings
from l2m_core.acquire.stopping import Stopping

MODELS_OWN = ""  # in the select box: whatever the model orders tests by


def show(answers: StepAnswers) -> None:
    """A popover in the head of the page."""
    key = f"rules-{answers.record.id}-{answers.record.length}"
    # Another key is another popover: saved, it no longer lies over what it says.
    with st.popover(
        "Rules", key=f"popover-{key}", icon=":material/tune:", help="How tests are ranked, and when stopping is advised"
    ):
        with st.form(f"form-{key}", border=False):
            ask_rules(answers.record.settings, key, answers.patient.memory.model.release.inference.policy)
            st.form_submit_button(
                "Save",
                key="rules-save",
                type="primary",
                on_click=_save,
                args=(answers.record.id, answers.record.length, key),
            )


def ask_rules(settings: Settings, key: str, models_own: str | None = None) -> None:
    """models_own: the policy of the model, where it is chosen already."""
    stopping, policies = settings.stopping, (MODELS_OWN, *POLICIES)
    words = {**labels.POLICIES, MODELS_OWN: "what the model ranks by"}
    if models_own is not None:
        words[MODELS_OWN] += f": {words.get(models_own, models_own)}"
    st.selectbox(
        "Rank by",
        policies,
        index=policies.index(settings.policy or MODELS_OWN),
        key=f"{key}-policy",
        format_func=words.__getitem__,
    )
    st.caption("Advise stopping when … (empty: never). Costs and stopping rules are ours; the study had none.")
    left, right = st.columns(2)
    with left:
        st.number_input(
            "tests done reach", value=stopping.budget, min_value=0, step=1, key=f"{key}-budget", placeholder="no limit"
        )
        st.number_input(
            "the best gain is below (nats)",
            value=stopping.least_gain,
            min_value=0.0,
            format="%g",
            step=0.005,
            key=f"{key}-gain",
            placeholder="no limit",
        )
    with right:
        st.number_input(
            "cost reaches",
            value=stopping.cost_budget,
            min_value=0.0,
            format="%g",
            step=1.0,
            key=f"{key}-cost",
            placeholder="no limit",
        )
        st.number_input(
            "an outcome is this likely (%)",
            min_value=50.0,
            max_value=100.0,
            format="%g",
            step=1.0,
            value=None if stopping.confidence is None else 100 * stopping.confidence,
            key=f"{key}-confidence",
            placeholder="no limit",
        )


def in_words(settings: Settings) -> str:
    """As the log says what was set."""
    stopping = settings.stopping
    limits = {
        "tests done reach {:g}": stopping.budget,
        "cost reaches {:g}": stopping.cost_budget,
        "the best gain is below {:g} nats": stopping.least_gain,
        "an outcome is {:g}% likely": None if stopping.confidence is None else 100 * stopping.confidence,
    }
    when = [words.format(limit) for words, limit in limits.items() if limit is not None]
    rank = labels.POLICIES[settings.policy] if settings.policy else "what the model ranks by"
    return f"rank by {rank} · advise stopping {'when ' + ' or '.join(when) if when else 'never'}"


def entered_rules(key: str) -> Settings:
    """As entered; ConfigError where a number makes no sense."""
    entered = {
        part: st.session_state.get(f"{key}-{part}") for part in ("policy", "budget", "gain", "cost", "confidence")
    }
    confidence = entered["confidence"]
    stopping = Stopping(
        budget=None if entered["budget"] is None else int(entered["budget"]),
        cost_budget=entered["cost"],
        least_gain=entered["gain"],
        confidence=None if confidence is None else confidence / 100,
    )
    return Settings(stopping, entered["policy"] if entered["policy"] in POLICIES else None)


def _save(step_id: str, expected_length: int, key: str) -> None:
    with notices.refusals():
        actions.save_settings(step_id, expected_length, entered_rules(key))
    state.acted("rules")
