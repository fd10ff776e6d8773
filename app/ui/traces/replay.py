"""Replays a step-through step by step: what was done, what was suggested, and the prediction then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from app.ui import charts, labels, notices, posterior_words, wording
from app.ui.step_through import belief
from app.ui.step_through.step_answers import StepAnswers
from app.ui.traces.loading import LoadedTrace
from app.ui.traces.report import regret_text, step_rows, time_text
from l2m_core.step_through.events import Event, fold

POSITION = "replay-position"


def show(loaded: LoadedTrace) -> None:
    at = _choose_step(loaded)
    answers = loaded.at(at)
    if answers is None:
        notices.show("warning", f"{loaded.absent} What was recorded at the time is shown.")
        left, right = st.columns([1, 1.6], gap="large")
        with left:
            _event(loaded, at)
            _known(loaded, at)
        with right:
            _as_recorded(loaded, at)
    else:
        left, centre, right = st.columns([0.95, 1.35, 1.2], gap="medium")
        with left:
            _event(loaded, at)
            _known(loaded, at)
        with centre:
            belief.show(answers)
            belief.show_history(answers)
        with right:
            _gains(answers)
    _all_steps(loaded)


# -- choosing a step -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """Which step is shown. of: the trace and its number of events; moves: how often a button led on."""

    of: tuple[str, int]
    at: int
    moves: int = 0

    @property
    def slider(self) -> str:
        """The slider's key: each move by a button makes a new one.

        A browser says with everything that it sends where its slider stands. What it sends before it has drawn a move (the
        next press, or the look for a band) would set the slider back, and the press would be lost.
        """
        return f"replay-{self.of[0]}-{self.moves}"


def _choose_step(loaded: LoadedTrace) -> int:
    """A slider and two buttons over all events, starting at the last one."""
    count = len(loaded.events)
    if count == 1:
        st.caption("Only the start is recorded so far.")
        return 0
    of = (loaded.record.id, count)
    position = st.session_state[POSITION] = _position(of)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.button(
            "Back",
            key="replay-back",
            icon=":material/skip_previous:",
            shortcut="P",
            disabled=position.at == 0,
            on_click=_move,
            args=(of, -1),
        )
        st.select_slider(
            "Step",
            list(range(count)),
            value=position.at,
            key=position.slider,
            format_func=lambda number: _mark(loaded, number),
        )
        st.button(
            "Next",
            key="replay-next",
            icon=":material/skip_next:",
            shortcut="N",
            disabled=position.at == count - 1,
            on_click=_move,
            args=(of, 1),
        )
    return position.at


def _position(of: tuple[str, int]) -> Position:
    """Where the buttons led, or the slider since then."""
    kept = st.session_state.get(POSITION)
    position = kept if isinstance(kept, Position) and kept.of == of else Position(of, of[1] - 1)
    return replace(position, at=int(st.session_state.get(position.slider, position.at)))


def _move(of: tuple[str, int], by: int) -> None:
    position = _position(of)
    st.session_state[POSITION] = replace(
        position, at=min(max(position.at + by, 0), of[1] - 1), moves=position.moves + 1
    )


def _mark(loaded: LoadedTrace, number: int) -> str:
    return f"{number} {labels.short(wording.learned(loaded.events[number]), 24)}"


# -- what was done --------------------------------------------------------------------------------------------------


def _event(loaded: LoadedTrace, at: int) -> None:
    event = loaded.events[at]
    st.subheader(f"Step {at} of {len(loaded.events) - 1}", anchor=False)
    undone = loaded.undone_by.get(at)
    with st.container(gap="xsmall", key="replay-event"):
        lines = [f":small[{time_text(event.at)} UTC]", f"**{labels.markdown(wording.KIND_WORDS[event.kind])}**"]
        st.markdown("  \n".join([*lines, *_results(loaded, event)]))
        if event.reason:
            st.markdown(f":small[Reason:] “{labels.markdown(event.reason)}”")
        if choice := _choice(loaded, at):
            st.markdown("  \n".join(f":small[{line}]" for line in choice))
        if undone is not None:
            st.markdown(f":small[:material/undo: Undone later, by step {undone}.]")


def _results(loaded: LoadedTrace, event: Event) -> list[str]:
    """One line for each value or feature of the event; values at the start are listed below anyway."""
    if event.kind == "start":
        return [] if event.values else [":small[Nothing was known.]"]
    found = []
    for name, entered in event.values.items():
        limit = event.limits.get(name)
        taken = entered is None
        found.append(f":small[{labels.markdown(name)}: taken back]" if taken else _value(loaded, name, entered, limit))
    return [*found, *(labels.markdown(name) for name in event.features)]


def _value(loaded: LoadedTrace, name: str, entered: Any, limit: str | None) -> str:
    value = wording.value_with_flag(loaded.schema, name, entered, limit)
    return f":small[{labels.markdown(labels.short(name, 30))}] {value}"


def _choice(loaded: LoadedTrace, at: int) -> list[str]:
    """The suggested and the chosen test, and the regret."""
    event = loaded.events[at]
    if event.suggested is None or at == 0:
        return []
    gains = loaded.trace.steps[at - 1].gains
    is_against_advice = at in loaded.against_advice
    first = "The advice was to stop. First among the tests then" if is_against_advice else "Suggested then"
    lines = [f"{first}: **{labels.markdown(event.suggested)}**{_nats(gains.get(event.suggested))}"]
    regret = loaded.trace.regrets[at]
    if event.kind == "observe":
        if event.suggested in event.about and is_against_advice:
            lines.append(":material/alt_route: It was measured although the advice was to stop.")
        elif event.suggested in event.about:
            lines.append(":material/check: The suggestion was followed.")
        else:
            done = ", ".join(f"**{labels.markdown(name)}**{_nats(gains.get(name))}" for name in event.about)
            lines.append(f":material/alt_route: Done instead: {done}")
        if regret is not None:
            lines.append(
                f"Step regret: **{labels.markdown(regret_text(regret))}** nats, the expected gain of the suggested "
                "test minus that of the chosen one"
            )
    return lines


def _nats(gain: float | None) -> str:
    return "" if gain is None else f" ({labels.markdown(labels.gain(gain))} nats)"


def _known(loaded: LoadedTrace, at: int) -> None:
    state = fold(loaded.events[: at + 1])
    st.markdown(f"**Known then** :small[· cost {labels.entered_text(loaded.trace.steps[at].spent)}]")
    if not state.values:
        st.caption("Nothing yet.")
    with st.container(gap=None, key="replay-known"):
        for name, entered in state.values.items():
            st.markdown(_value(loaded, name, entered, state.limits.get(name)))
        for name, status in state.statuses.items():
            st.markdown(f":small[{labels.markdown(labels.short(name, 30))}: {status}]")


# -- the prediction ----------------------------------------------------------------------------------------------


def _gains(answers: StepAnswers) -> None:
    st.subheader("Expected gain, step by step", anchor=False)
    charts.draw(belief.gain_map(answers), "replay-gains", of=answers.record.id)
    undone = " Steps that were undone are left out." if len(answers.views) < len(answers.record.events) else ""
    st.caption(f"{charts.LEGEND}.{undone}")


def _as_recorded(loaded: LoadedTrace, at: int) -> None:
    """Without the model: the posterior that was stored with the event."""
    posterior = loaded.trace.steps[at].posterior
    st.subheader("Prediction at the time", anchor=False)
    st.markdown(labels.markdown(posterior_words.sentence(loaded.schema.outcome, posterior)))
    if posterior and loaded.schema.outcome.kind != "continuous":
        charts.draw(charts.class_bars(posterior), "replay-classes", of=loaded.record.id)


# -- all steps ------------------------------------------------------------------------------------------------------


def _all_steps(loaded: LoadedTrace) -> None:
    table = steps_table(loaded)
    with st.expander(f"All steps ({len(table)})", key="replay-all"):
        st.dataframe(
            table,
            hide_index=True,
            key="replay-table",
            alt="Every event of this step-through, one in each row",
            placeholder="",
            column_config={"regret (nats)": st.column_config.NumberColumn(format="%.3f")},
        )


def steps_table(loaded: LoadedTrace) -> pd.DataFrame:
    rows = step_rows(loaded)
    before: dict[str, list[Any]] = {
        "step": [row.number for row in rows],
        "time (UTC)": [row.time for row in rows],
        "what happened": [row.what for row in rows],
        "suggested": [row.suggested for row in rows],
        "regret (nats)": [row.regret for row in rows],
    }
    after: dict[str, list[Any]] = {
        "cost": [row.spent for row in rows],
        "undone": ["" if row.undone_by is None else f"by step {row.undone_by}" for row in rows],
    }
    believed = labels.as_column(posterior_words.column(loaded.schema.outcome), {*before, *after})
    return pd.DataFrame({**before, believed: [row.answer for row in rows], **after})
