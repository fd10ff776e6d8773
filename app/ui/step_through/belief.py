"""The prediction now, how it moved, and the expected gains at each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.ui import charts, labels, posterior_words, state, wording
from app.ui.belief_curve import belief_curve
from app.ui.headings import heading
from app.ui.posterior_words import HIGH, LOW, MEAN
from app.ui.step_through import actions
from app.ui.step_through.step_answers import StepAnswers, Uncertainty
from app.ui.step_through.stored_events import is_current

MOST_LINES = 4  # lines in the history of a multi-class outcome
WAIT = 1.5  # seconds between looks at whether the band is ready
GAINS = "step-gains"  # what clicks on the heat map go by
ALL_GAINS = "step-gains-all"


def show(answers: StepAnswers) -> None:
    """Shows the prediction, with its band where that is known."""
    heading("What to believe")
    uncertainties = answers.uncertainties()
    kind = answers.cohort.kind
    {"binary": _binary, "multiclass": _multiclass, "continuous": _continuous}[kind](answers, uncertainties[-1])
    with st.container(key="step-band"):  # so high as what will stand there, so that nothing moves when it comes
        _band(answers, uncertainties)


def show_history(answers: StepAnswers, numbers: Sequence[int] | None = None) -> None:
    """numbers: of the steps; by default those of their events."""
    charts.draw(history(answers, answers.uncertainties(), numbers), "step-history", of=answers.record.id)
    classes = answers.outcome.classes
    if len(classes) > MOST_LINES:
        st.caption(f"Of {len(classes)} classes the {MOST_LINES} that were likeliest at any step are drawn.")


def show_gains(answers: StepAnswers) -> None:
    """The map of expected gains. Its steps are counted as people took them, without those that were undone."""
    features = answers.cohort.schema.acquirable
    most = len(features) if st.session_state.get(ALL_GAINS) else charts.MOST_ROWS
    heading("Expected gain, step by step")
    charts.draw(gain_map(answers, range(len(answers.views)), most), "step-gains", of=answers.record.id)
    charts.listen(GAINS, lambda: _turn_to_picked(features))
    if len(features) > charts.MOST_ROWS:
        st.toggle(f"Show all {len(features)} tests", key=ALL_GAINS, persist_state="page")
    st.caption(f"{charts.LEGEND}. All steps have one scale. Click a test to select it.")


def _turn_to_picked(features: Sequence[str]) -> None:
    picked = charts.picked(GAINS)
    if picked is not None and picked.isdecimal() and int(picked) < len(features):
        actions.choose(features[int(picked)])


# -- the prediction -----------------------------------------------------------------------------------------------------


def _binary(answers: StepAnswers, uncertainty: Uncertainty | None) -> None:
    outcome, now, before = answers.outcome, answers.posterior, answers.posterior_before
    name = outcome.classes[1]
    words = posterior_words.positive(outcome)
    with st.container(key="step-answer"):
        number, picture = st.columns([1, 1.15], vertical_alignment="center", gap="small")
    with number:
        st.metric(
            labels.markdown(words),
            labels.percent(now[name]),
            delta=posterior_words.change(outcome, now, before, name) or None,
            delta_color="off",
            delta_arrow="off",
            delta_description="since the last step" if before else None,
        )
    with picture:
        icons = charts.icon_array(now[name], words)
        charts.draw(icons, "step-icons", table=False)
    st.markdown(
        f":small[**{labels.of_100(now[name])}** patients like this: {labels.markdown(posterior_words.happened(outcome))}.]"
    )
    charts.offer(icons, "step-icons", answers.record.id)


def _multiclass(answers: StepAnswers, uncertainty: Uncertainty | None) -> None:
    outcome, now, before = answers.outcome, answers.posterior, answers.posterior_before
    name = posterior_words.leading(outcome, now)
    change = posterior_words.change(outcome, now, before, name)
    sentence = f"Likeliest: **{labels.markdown(name)}**, {labels.of_100(now[name])} patients like this"
    st.markdown(f"{sentence}{f' ({change} since the last step)' if change else ''}.")
    bars = charts.class_bars(now, before, uncertainty.band if uncertainty else None)
    charts.draw(bars, "step-classes", of=answers.record.id)


def _continuous(answers: StepAnswers, uncertainty: Uncertainty | None) -> None:
    outcome, now, before = answers.outcome, answers.posterior, answers.posterior_before
    change = posterior_words.change(outcome, now, before, MEAN)
    since = f" ({change} since the last step)" if change else ""
    mean = labels.markdown(posterior_words.number(outcome, now, MEAN))
    spread = labels.markdown(posterior_words.spread(outcome, now))
    st.markdown(f":small[Mean **{mean}**{since}; {spread}.]")
    charts.draw(_density(answers), "step-density", of=answers.record.id)


def _density(answers: StepAnswers) -> charts.Chart:
    """On an axis that hardly moves from step to step: it holds what was likely at the start, a step ago, and now."""
    shown = [view.patient.posterior for view in (answers.views[0], *answers.views[-2:])]
    low, high = (reach(float(p.quantile(level)[0]) for p in shown) for reach, level in ((min, 0.01), (max, 0.99)))  # type: ignore[union-attr]
    y = answers.cohort.y
    edges = charts.ranges(low, high, whole=bool((y == y.round()).all()))
    # The little that lies beyond counts to the ends.
    whole = [-np.inf, *edges[1:-1], np.inf]
    before, now = (posterior.chances(whole)[0].tolist() for posterior in shown[-2:])  # type: ignore[union-attr]
    outcome, believed = answers.outcome, answers.posterior
    return charts.density(
        edges,
        now,
        before if answers.before else None,
        (believed[LOW], believed[HIGH]),
        believed[MEAN],
        labels.plain(outcome.name),
        outcome.unit,
    )


def _band(answers: StepAnswers, uncertainties: list[Uncertainty | None]) -> None:
    """The band is computed in the background, so that no step waits for it; the page is drawn again when it is."""
    if answers.resampling == "impossible":
        st.caption("No uncertainty band: the cohort is too large to be read several times.")
    elif uncertainties[-1] is not None and all(uncertainties):
        said = (band_in_words(answers, uncertainties[-1]), uncertainties[-1].pair)
        st.caption(labels.markdown(" ".join(filter(None, said))))
    else:
        st.fragment(_look_for_band, run_every=WAIT)(answers, [])


def band_in_words(answers: StepAnswers, uncertainty: Uncertainty) -> str:
    """How far the answer would move had the cohort held other patients."""
    key = posterior_words.leading(answers.outcome, answers.posterior)
    drawn = f"had the cohort held other patients ({uncertainty.count} draws)"
    if answers.cohort.kind == "continuous":
        ends = " to ".join(map(labels.predicted, uncertainty.band[MEAN]))
        return f"The mean: {labels.with_unit(ends, answers.outcome.unit)}, {drawn}."
    low, high = (round(100 * end) for end in uncertainty.band[key])
    of_class = f"{key}: " if answers.cohort.kind == "multiclass" else ""
    return f"{of_class}{low} to {high} of 100, {drawn}."


def _look_for_band(answers: StepAnswers, looks: list[bool]) -> None:
    """Runs every WAIT seconds. looks: one entry for each earlier run.

    The first run starts no computation, so that steps which people pass by quickly cost nothing.
    """
    if looks:
        answers.begin_uncertainties()
    looks.append(True)
    if all(answers.uncertainties()):
        if is_current(state.owner(), answers.record):
            st.rerun()
        # The page would turn to another state by itself, and a value that is being typed would be gone.
        st.caption(
            ":material/tab: This step-through went on elsewhere, for example in another tab. What you typed here was not sent."
        )
        if st.button("Show its current state", key="show-current", icon=":material/refresh:"):
            st.rerun()
        return
    st.caption(":material/hourglass_top: The uncertainty band is being computed …")


# -- charts ---------------------------------------------------------------------------------------------------------


def history(
    answers: StepAnswers, uncertainties: list[Uncertainty | None], numbers: Sequence[int] | None = None
) -> charts.Chart:
    """numbers: of the steps; by default those of their events."""
    curve = belief_curve(
        answers.outcome,
        [view.last_event for view in answers.views],
        [view.step.posterior for view in answers.views],
        MOST_LINES,
        [uncertainty.band if uncertainty else None for uncertainty in uncertainties],
        answers.numbers if numbers is None else numbers,
    )
    return charts.history(curve)


def gain_map(answers: StepAnswers, numbers: Sequence[int] | None = None, most: int = charts.MOST_ROWS) -> charts.Chart:
    """numbers: of the steps; by default those of their events. most: tests not known yet that are drawn."""
    columns = [
        charts.Column(wording.learned(view.last_event), view.step.gains, view.statuses, view.step.suggested, view.moves)
        for view in answers.views
    ]
    features = answers.cohort.schema.acquirable
    return charts.gain_map(features, columns, GAINS, answers.numbers if numbers is None else numbers, most)
