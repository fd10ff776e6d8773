"""The rules of one step-through: how tests are ranked, and when stopping is advised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from app.ui import labels, notices, state
from app.ui.step_through import actions
from app.ui.step_through.step_answers import StepAnswers
from app.ui.step_through.stored_events import POLICIES, Rules
from l2m_core.acquire.stopping import OF_RARE, POINT, Stopping, points_in_words

MODELS_OWN = ""  # in the select box: whatever the model orders tests by
AT_FIRST = (
    f"At first {points_in_words(POINT)}, or {OF_RARE:.0%} of how often a rare outcome is, where that is less. "
    "Of an outcome that is a number, a point is 1% of its spread in the cohort"
)


@dataclass(frozen=True)
class Limit:
    """A number of `Stopping` as people enter and read it."""

    name: str
    """Of the field."""
    question: str
    says: str
    """In the log; {} stands for the number."""
    allowed: Mapping[str, Any]
    """Range, step and format of the number input."""
    in_percent: bool = False
    """Kept as a share."""
    write: Callable[[float], str] = labels.entered_text
    """The number, for the log."""
    write_of_number: Callable[[float], str] | None = None
    """The same where the outcome is a number, if that is told in other terms."""

    def key(self, form: str) -> str:
        return f"{form}-{self.name}"

    def shown(self, stopping: Stopping) -> float | None:
        kept = getattr(stopping, self.name)
        if kept is None or not self.in_percent:
            return kept
        return float(f"{100 * kept:.12g}")  # 29, not 28.999999999999996

    def read(self, entered: float | None) -> Any:
        """As the field keeps it."""
        return entered / 100 if self.in_percent and entered is not None else entered

    def words(self, stopping: Stopping, outcome_kind: str) -> str:
        """Empty where it does not apply."""
        shown = self.shown(stopping)
        write = (outcome_kind == "continuous" and self.write_of_number) or self.write
        return "" if shown is None else self.says.format(write(shown))


def _number(step: float, lowest: float = 0.0, highest: float | None = None) -> dict[str, Any]:
    return {"min_value": lowest, "max_value": highest, "format": "%g", "step": step}


LIMITS = (
    Limit(
        "least_points",
        "no test is expected to move this by (points)",
        "no test is expected to move this by {}",
        _number(0.5) | {"help": AT_FIRST},
        write=points_in_words,
        write_of_number="{:g}% of the outcome's spread".format,  # a number has no points
    ),
    Limit(
        "threshold",
        "no test is likely to cross (% of a yes/no outcome)",
        "no test is likely to cross {}%",
        _number(1.0, 0.1, 99.9),
        in_percent=True,
    ),
    Limit("budget", "tests done reach", "tests done reach {}", {"min_value": 0, "step": 1}),
    Limit("cost_budget", "cost reaches", "cost reaches {}", _number(1.0)),
    Limit("least_gain", "the best gain is below (nats)", "the best gain is below {} nats", _number(0.005)),
    Limit(
        "confidence",
        "an outcome is this likely (%)",
        "an outcome is {}% likely",
        _number(1.0, 50.0, 100.0),
        in_percent=True,
    ),
)
"""When stopping may be advised, in the order of the two columns of the form, row by row."""


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
    columns = st.columns(2)
    for number, limit in enumerate(LIMITS):
        with columns[number % 2]:
            # Empty stands for no limit.
            st.number_input(
                limit.question, value=limit.shown(stopping), key=limit.key(key), placeholder="no limit", **limit.allowed
            )


def in_words(settings: Rules, outcome_kind: str) -> str:
    """The rules as the log shows them."""
    when = [words for limit in LIMITS if (words := limit.words(settings.stopping, outcome_kind))]
    rank = labels.POLICIES[settings.policy] if settings.policy else "the model's default"
    return f"rank by {rank} · advise stopping {'when ' + ' or '.join(when) if when else 'never'}"


def entered_rules(key: str) -> Rules:
    """The rules as entered; ConfigError for a number outside its range."""
    stopping = Stopping(**{limit.name: limit.read(st.session_state.get(limit.key(key))) for limit in LIMITS})
    policy = st.session_state.get(f"{key}-policy")
    return Rules(stopping, policy if policy in POLICIES else None)


def _save(step_id: str, expected_length: int, key: str) -> None:
    with notices.refusals():
        actions.save_settings(step_id, expected_length, entered_rules(key))
    state.acted("rules")
