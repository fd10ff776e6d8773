"""Centre: what to believe now, how it came about, and what each step promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from app.ui import charts, labels
from app.ui.headings import heading
from app.ui.step_through import actions, wording
from app.ui.step_through.step_answers import Moment, Uncertainty, View
from l2m_core.answering.predictive import Predictive
from l2m_core.schema import Outcome
from l2m_core.step_through.trace import summarise_predictive

SHOWN_CLASSES = 4  # lines in the history of a multi-class outcome
WAIT = 1.5  # seconds between looks at whether the band is ready
GAINS = "step-gains"  # what clicks on the heat map go by
MEDIAN, LOW, HIGH = "50% quantile", "5% quantile", "95% quantile"


def show(moment: Moment, with_gains: bool = True) -> None:
    """The answer and how it moved; with_gains: what each step promised as well, where no other place shows it."""
    uncertainties = moment.uncertainties()
    # Made before either is drawn, so that the browser gets both at once.
    history, gains = _history(moment, uncertainties), gain_map(moment) if with_gains else None
    heading("What to believe")
    answer = st.container()
    charts.draw(history, "step-history")
    if gains is not None:
        heading("Expected gain, step by step")
        charts.draw(gains, "step-gains")
        features = moment.patient.memory.cohort.schema.acquirable
        charts.listen(GAINS, lambda: _turn_to_picked(features))
        st.caption(f"{charts.LEGEND}. Click a test to turn to it.")
    with answer:
        kind = moment.patient.memory.cohort.kind
        {"binary": _binary, "multiclass": _multiclass, "continuous": _continuous}[kind](moment, uncertainties[-1])
        _await_band(moment, uncertainties)


def _turn_to_picked(features: Sequence[str]) -> None:
    place = charts.picked(GAINS)
    if place is not None and place.isdecimal() and int(place) < len(features):
        actions.choose(features[int(place)])


# -- the answer -----------------------------------------------------------------------------------------------------


def _binary(moment: Moment, uncertainty: Uncertainty | None) -> None:
    outcome = moment.patient.memory.cohort.schema.outcome
    now = moment.view.step.posterior
    before = moment.before.step.posterior if moment.before else None
    name = outcome.classes[1]
    words = wording.positive(outcome)
    with st.container(key="step-answer"):
        number, picture = st.columns([1, 1.15], vertical_alignment="center", gap="small")
    with number:
        st.metric(
            labels.markdown(words),
            labels.percent(now[name]),
            delta=wording.change(now, before, name, probability=True) or None,
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


def _multiclass(moment: Moment, uncertainty: Uncertainty | None) -> None:
    now = moment.view.step.posterior
    before = moment.before.step.posterior if moment.before else None
    name = max(now, key=lambda key: now[key])
    change = wording.change(now, before, name, probability=True)
    sentence = f"Likeliest: **{labels.markdown(name)}**, {labels.of_100(now[name])} patients like this"
    st.markdown(f"{sentence}{f' ({change} since the last step)' if change else ''}.")
    charts.draw(charts.class_bars(now, before, uncertainty.band if uncertainty else None), "step-classes")


def _continuous(moment: Moment, uncertainty: Uncertainty | None) -> None:
    outcome = moment.patient.memory.cohort.schema.outcome
    now = moment.view.step.posterior
    before = moment.before.step.posterior if moment.before else None
    change = wording.change(now, before, MEDIAN, probability=False)
    middle, low, high = (labels.with_unit(labels.number(now[key]), outcome.unit) for key in (MEDIAN, LOW, HIGH))
    sentence = f"Median **{labels.markdown(middle)}**{f' ({change} since the last step)' if change else ''}; 90 of 100 "
    sentence += f"patients like this between {labels.markdown(low)} and {labels.markdown(high)}."
    if uncertainty:
        ends = [labels.markdown(labels.number(end)) for end in uncertainty.band["mean"]]
        sentence += f" The mean moves from {ends[0]} to {ends[1]} under {uncertainty.count} resampled cohorts."
    st.markdown(f":small[{sentence}]")
    charts.draw(_density(moment), "step-density")


def _density(moment: Moment) -> charts.Chart:
    cohort = moment.patient.memory.cohort
    low, high = float(cohort.y.min()), float(cohort.y.max())
    margin = 0.15 * (high - low)
    grid = np.linspace(low - margin, high + margin, 121)
    posterior = moment.patient.posterior
    assert isinstance(posterior, Predictive)
    before = moment.before.patient.posterior.pdf(grid)[0].tolist() if moment.before else None  # type: ignore[union-attr]
    numbers = summarise_predictive(posterior)
    outcome = cohort.schema.outcome
    return charts.density(
        grid.tolist(),
        posterior.pdf(grid)[0].tolist(),
        before,
        (numbers[LOW], numbers[HIGH]),
        numbers[MEDIAN],
        labels.plain(outcome.name),
        outcome.unit,
    )


def _await_band(moment: Moment, uncertainties: list[Uncertainty | None]) -> None:
    """The band is computed in the background, so that no step waits for it; the page is drawn again when it is."""
    if moment.resampling == "impossible":
        st.caption("No uncertainty band: the cohort is too large to be read several times.")
        return
    if all(uncertainties):
        return
    st.fragment(_look_for_band, run_every=WAIT)(moment, [])


def _look_for_band(moment: Moment, looks: list[bool]) -> None:
    """looks: one entry for each look before. The first begins nothing: what quick people pass by is not computed."""
    if looks:
        moment.begin_uncertainties()
    looks.append(True)
    if all(moment.uncertainties()):
        st.rerun()
    st.caption(":material/hourglass_top: The uncertainty band is being computed …")


# -- charts ---------------------------------------------------------------------------------------------------------


def _history(moment: Moment, uncertainties: list[Uncertainty | None]) -> charts.Chart:
    cohort = moment.patient.memory.cohort
    outcome = cohort.schema.outcome
    shown = [] if cohort.kind == "continuous" else _shown_classes(moment)
    points = []
    for view, uncertainty in zip(moment.views, uncertainties, strict=True):
        points.append(_point(moment, view, uncertainty, shown))
    numbers = moment.numbers
    if cohort.kind == "continuous":
        axis = labels.with_unit(f"median {labels.plain(outcome.name)}", f"({outcome.unit})" if outcome.unit else "")
        return charts.history(points, axis, probability=False, numbers=numbers)
    if cohort.kind == "binary":
        return charts.history(points, wording.positive(outcome), probability=True, numbers=numbers)
    kinds = [outcome.classes.index(name) for name in shown]
    axis = f"probability of {labels.plain(outcome.name)}"
    return charts.history(points, axis, probability=True, kinds=kinds, numbers=numbers)


def _point(moment: Moment, view: View, uncertainty: Uncertainty | None, shown: Sequence[str]) -> charts.Point:
    posterior = view.step.posterior
    learned = wording.learned(view.last_event)
    kind = moment.patient.memory.cohort.kind
    if kind == "continuous":
        middle, low, high = ({"median": posterior[key]} for key in (MEDIAN, LOW, HIGH))
        return charts.Point(learned, middle, low, high)
    values = {_series(moment, name): posterior[name] for name in shown}
    if uncertainty is None:
        return charts.Point(learned, values)
    lows, highs = ({_series(moment, name): uncertainty.band[name][end] for name in shown} for end in (0, 1))
    return charts.Point(learned, values, lows, highs)


def _shown_classes(moment: Moment) -> list[str]:
    outcome = moment.patient.memory.cohort.schema.outcome
    if outcome.kind == "binary":
        return [outcome.classes[1]]
    return most_believed(outcome, [view.step.posterior for view in moment.views], SHOWN_CLASSES)


def most_believed(outcome: Outcome, posteriors: Sequence[Mapping[str, float]], count: int) -> list[str]:
    """The classes that were likeliest at any step, in the order of the outcome's classes: a class that leads at the end
    may have been nothing before, and one that led before may be nothing now."""
    peaks = {name: max(posterior[name] for posterior in posteriors) for name in outcome.classes}
    kept = sorted(peaks, key=lambda name: -peaks[name])[:count]
    return [name for name in outcome.classes if name in kept]


def _series(moment: Moment, name: str) -> str:
    outcome = moment.patient.memory.cohort.schema.outcome
    return wording.positive(outcome) if outcome.kind == "binary" else labels.plain(name)


def gain_map(moment: Moment) -> charts.Chart:
    cohort = moment.patient.memory.cohort
    columns = [
        charts.Column(wording.learned(view.last_event), view.step.gains, view.statuses, view.step.suggested)
        for view in moment.views
    ]
    return charts.gain_map(cohort.schema.acquirable, columns, GAINS, moment.numbers)
