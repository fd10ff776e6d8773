"""Centre column: the prediction now, how it moved, and the expected gains at each step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from app.ui import charts, labels, posterior_words, wording
from app.ui.belief_curve import belief_curve
from app.ui.headings import heading
from app.ui.posterior_words import HIGH, LOW, MEDIAN
from app.ui.step_through import actions
from app.ui.step_through.step_answers import StepAnswers, Uncertainty
from l2m_core.answering.predictive import Predictive

MOST_LINES = 4  # lines in the history of a multi-class outcome
WAIT = 1.5  # seconds between looks at whether the band is ready
GAINS = "step-gains"  # what clicks on the heat map go by


def show(answers: StepAnswers, with_gains: bool = True) -> None:
    """Shows the prediction and how it moved; with_gains: also the map of expected gains."""
    uncertainties = answers.uncertainties()
    # Made before either is drawn, so that the browser gets both at once.
    curve, gains = history(answers, uncertainties), gain_map(answers) if with_gains else None
    heading("What to believe")
    answer = st.container()
    charts.draw(curve, "step-history")
    if gains is not None:
        heading("Expected gain, step by step")
        charts.draw(gains, "step-gains")
        features = answers.cohort.schema.acquirable
        charts.listen(GAINS, lambda: _turn_to_picked(features))
        st.caption(f"{charts.LEGEND}. Click a test to select it.")
    with answer:
        kind = answers.cohort.kind
        {"binary": _binary, "multiclass": _multiclass, "continuous": _continuous}[kind](answers, uncertainties[-1])
        _await_band(answers, uncertainties)


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
        charts.draw(charts.icon_array(now[name], words), "step-icons", table=False)
    sentence = f"**{labels.of_100(now[name])}** patients like this have it"
    if uncertainty:
        low, high = uncertainty.band[name]
        sentence += f"; {round(100 * low)} to {round(100 * high)} under {uncertainty.count} resampled cohorts"
    st.markdown(f":small[{sentence}.]")


def _multiclass(answers: StepAnswers, uncertainty: Uncertainty | None) -> None:
    outcome, now, before = answers.outcome, answers.posterior, answers.posterior_before
    name = posterior_words.leading(outcome, now)
    change = posterior_words.change(outcome, now, before, name)
    sentence = f"Likeliest: **{labels.markdown(name)}**, {labels.of_100(now[name])} patients like this"
    st.markdown(f"{sentence}{f' ({change} since the last step)' if change else ''}.")
    charts.draw(charts.class_bars(now, before, uncertainty.band if uncertainty else None), "step-classes")


def _continuous(answers: StepAnswers, uncertainty: Uncertainty | None) -> None:
    outcome, now, before = answers.outcome, answers.posterior, answers.posterior_before
    change = posterior_words.change(outcome, now, before, MEDIAN)
    middle, low, high = (labels.with_unit(labels.number(now[key]), outcome.unit) for key in (MEDIAN, LOW, HIGH))
    sentence = f"Median **{labels.markdown(middle)}**{f' ({change} since the last step)' if change else ''}; 90 of 100 "
    sentence += f"patients like this between {labels.markdown(low)} and {labels.markdown(high)}."
    if uncertainty:
        ends = [labels.markdown(labels.number(end)) for end in uncertainty.band["mean"]]
        sentence += f" The mean moves from {ends[0]} to {ends[1]} under {uncertainty.count} resampled cohorts."
    st.markdown(f":small[{sentence}]")
    charts.draw(_density(answers), "step-density")


def _density(answers: StepAnswers) -> charts.Chart:
    cohort = answers.cohort
    low, high = float(cohort.y.min()), float(cohort.y.max())
    margin = 0.15 * (high - low)
    grid = np.linspace(low - margin, high + margin, 121)
    posterior = answers.patient.posterior
    assert isinstance(posterior, Predictive)
    before = answers.before.patient.posterior.pdf(grid)[0].tolist() if answers.before else None  # type: ignore[union-attr]
    now, outcome = answers.posterior, answers.outcome
    return charts.density(
        grid.tolist(),
        posterior.pdf(grid)[0].tolist(),
        before,
        (now[LOW], now[HIGH]),
        now[MEDIAN],
        labels.plain(outcome.name),
        outcome.unit,
    )


def _await_band(answers: StepAnswers, uncertainties: list[Uncertainty | None]) -> None:
    """The band is computed in the background, so that no step waits for it; the page is drawn again when it is."""
    if answers.resampling == "impossible":
        st.caption("No uncertainty band: the cohort is too large to be read several times.")
        return
    if all(uncertainties):
        return
    st.fragment(_look_for_band, run_every=WAIT)(answers, [])


def _look_for_band(answers: StepAnswers, looks: list[bool]) -> None:
    """Runs every WAIT seconds. looks: one entry for each earlier run.

    The first run starts no computation, so that steps which people pass by quickly cost nothing.
    """
    if looks:
        answers.begin_uncertainties()
    looks.append(True)
    if all(answers.uncertainties()):
        st.rerun()
    st.caption(":material/hourglass_top: The uncertainty band is being computed …")


# -- charts ---------------------------------------------------------------------------------------------------------


def history(answers: StepAnswers, uncertainties: list[Uncertainty | None]) -> charts.Chart:
    curve = belief_curve(
        answers.outcome,
        [view.last_event for view in answers.views],
        [view.step.posterior for view in answers.views],
        MOST_LINES,
        [uncertainty.band if uncertainty else None for uncertainty in uncertainties],
        answers.numbers,
    )
    return charts.history(curve)


def gain_map(answers: StepAnswers) -> charts.Chart:
    cohort = answers.cohort
    columns = [
        charts.Column(wording.learned(view.last_event), view.step.gains, view.statuses, view.step.suggested)
        for view in answers.views
    ]
    return charts.gain_map(cohort.schema.acquirable, columns, GAINS, answers.numbers)
