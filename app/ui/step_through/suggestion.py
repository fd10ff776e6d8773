"""Right: the suggestion, every other test, what a result would do, and what can be done now."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from app.streamlit_contact.placeholders import place
from app.ui import charts, inputs, labels, notices, posterior_words
from app.ui.headings import heading
from app.ui.step_through import actions, belief, wording
from app.ui.step_through.step_answers import StepAnswers, Uncertainty
from l2m_core.diagnostics import SUPPORT_FLOOR
from l2m_core.step_through.patient import FEWEST_NEAR, NEAR_SHARE, Test

SELECT = "step-test"
RANKING = "step-ranking"
RANKING_COLUMNS = {
    "test": charts.RankingColumn("test"),
    "gain": charts.RankingColumn("gain (nats)", "Expected drop in log loss", "%.3g", labels.gain),
    "support": charts.RankingColumn("support", "'thin': too few cohort rows for advice, overall or near this patient"),
    "cost": charts.RankingColumn("cost", format="%g"),
    "per cost": charts.RankingColumn("nats per cost", format="%.2g", write=labels.ratio),
    "result in": charts.RankingColumn("result in"),
    "rows": charts.RankingColumn("cohort rows", "Rows in which it was measured", "%d"),
    "near": charts.RankingColumn("near", "… among the rows nearest to this patient", "%d"),
    "first": charts.RankingColumn("comes first", "In how many resampled cohorts it comes first"),
    "status": charts.RankingColumn("status"),
}
REASON = "step-reason"
LEVELS_SHOWN = 6


def show(answers: StepAnswers) -> None:
    suggestion = answers.view.step.suggested
    chosen = _chosen(answers, suggestion)
    if chosen is not None and not answers.patient.state.stopped:
        # What takes a while comes before the first word: meanwhile the browser draws what it has.
        answers.patient.look_into(chosen)
    heading("What to measure next")
    if answers.patient.state.stopped:
        notices.show("info", "This step-through is stopped. Reopen it to go on.")
        notices.show_waiting(actions.NEXT)
        _last_row(answers)
        return
    if answers.advice:
        notices.show("info", f"Stopping is advised. {answers.advice}")
    if chosen is None:
        notices.show_waiting(actions.NEXT)
        st.write("No test is left to measure.")
        _last_row(answers)
        return
    _choose(answers, suggestion, chosen)
    _facts(answers, chosen)
    if np.isfinite(answers.patient.best_gain) and answers.patient.best_gain < labels.SMALL_GAIN:
        st.markdown(":small[No open test is expected to tell much by itself: each gain is below 0.001 nats.]")
    _record(answers, chosen, suggestion)
    notices.show_waiting(actions.NEXT)
    with st.container(gap="xsmall"):
        _marks(answers, chosen)
        _last_row(answers)
    _preview(answers, chosen)
    st.markdown(f":small[{_why(answers)}]")


# -- choosing -------------------------------------------------------------------------------------------------------


def _chosen(answers: StepAnswers, suggestion: str | None) -> str | None:
    """The suggestion until another test is turned to; None when nothing is left."""
    options = _options(answers)
    if not options:
        return None
    chosen = st.session_state.get(actions.CHOSEN)
    return str(chosen if chosen in options else suggestion if suggestion in options else options[0])


def _options(answers: StepAnswers) -> list[str]:
    return [test.feature for test in _to_be_had(answers)]


def _to_be_had(answers: StepAnswers) -> list[Test]:
    """All but what is known, best first."""
    return [test for test in answers.view.tests if test.status != "known"]


def _choose(answers: StepAnswers, suggestion: str | None, chosen: str) -> None:
    """A select box with the whole ranking."""
    tests = {test.feature: test for test in _to_be_had(answers)}
    options = list(tests)

    def describe(name: str) -> str:
        test = tests[name]
        what = "suggested" if name == suggestion else test.status if test.status != "open" else ""
        gain = f"{labels.gain(test.gain)} nats" if np.isfinite(test.gain) else ""
        return " · ".join(part for part in (labels.plain(name), gain, what) if part)

    # The box belongs to one state of the record: after each event it starts at the new suggestion.
    key = f"{SELECT}-{answers.record.id}-{answers.record.length}-{chosen!r}"
    place(SELECT, key).selectbox(
        "Test",
        options,
        index=options.index(chosen),
        format_func=describe,
        key=key,
        on_change=_turn_to,
        args=(key,),
        label_visibility="collapsed",
    )


def _turn_to(key: str) -> None:
    actions.choose(st.session_state[key])


# -- what is known of the test --------------------------------------------------------------------------------------


def support_badge(support: int, near: int, rows: int) -> str:
    """How much of the cohort a statement about this test rests on, with a warning where it is thin."""
    nearest = max(FEWEST_NEAR, int(NEAR_SHARE * rows))
    text = f"measured in {support:,} of {rows:,} rows, {near:,} of the {nearest:,} nearest"
    if is_thin(support, near):
        return f":orange-badge[:material/warning: thin support: {text}]"
    return f":gray-badge[{text}]"


def is_thin(support: int, near: int) -> bool:
    return support < SUPPORT_FLOOR or near < FEWEST_NEAR


def _facts(answers: StepAnswers, name: str) -> None:
    test = next(test for test in answers.view.tests if test.feature == name)
    feature = answers.patient.memory.cohort.feature(name)
    gain = f"**{labels.markdown(labels.gain(test.gain))}** nats" if np.isfinite(test.gain) else ""
    parts = [gain, f"cost **{feature.cost:g}**"]
    if np.isfinite(test.gain_per_cost):
        parts.append(f"{labels.ratio(test.gain_per_cost)} nats per cost")
    if feature.turnaround is not None:
        parts.append(f"result in {labels.minutes(feature.turnaround)}")
    if feature.group:
        parts.append(f"panel {labels.markdown(feature.group)}")
    badges = [support_badge(test.support, test.support_near, len(answers.patient.memory.cohort))]
    if feature.cost > (left := _cost_left(answers)):
        badges.append(f":orange-badge[:material/warning: beyond the cost budget ({left:g} left)]")
    uncertainty = answers.uncertainty
    if uncertainty is not None:
        badges.append(f":gray-badge[{stability_text(uncertainty, name)}]")
    st.markdown(f":small[{' · '.join(part for part in parts if part)}]  \n{' '.join(badges)}")


def stability_text(uncertainty: Uncertainty, name: str) -> str:
    times = round(uncertainty.stability.get(name, 0.0) * uncertainty.count)
    return f"first in {times} of {uncertainty.count} resampled cohorts"


def _cost_left(answers: StepAnswers) -> float:
    budget = answers.record.settings.stopping.cost_budget
    return float("inf") if budget is None else max(0.0, budget - answers.patient.spent)


def _why(answers: StepAnswers) -> str:
    """Which known values the answer rests on most."""
    drivers = answers.patient.driving
    if not drivers:
        return "Nothing is known yet, so the ranking is that of the whole cohort."
    probability = answers.patient.memory.cohort.kind != "continuous"
    parts = []
    for driver in drivers[:3]:
        amount = points(driver.change) if probability else f"{driver.change:.2g} SD"
        parts.append(f"{labels.markdown(labels.short(driver.feature, 24))} ({amount})")
    return f"The answer rests most on {', '.join(parts)}: by so much it would move without them."


def points(change: float) -> str:
    count = round(100 * change)
    return "less than 1 point" if count == 0 else f"{count} point{'s' if count != 1 else ''}"


def _preview(answers: StepAnswers, name: str) -> None:
    """What a low, typical or high result would do, before ordering it."""
    cohort = answers.patient.memory.cohort
    table = answers.view.preview(name).head(LEVELS_SHOWN)
    feature = cohort.feature(name)
    if feature.kind == "number":
        short = [text.split(" (")[0] for text in table.result]
        results = [
            f"{word} {labels.with_unit(value, feature.unit)}" for word, value in zip(short, table.value, strict=True)
        ]
    else:
        results = [str(result) for result in table.result]
    outcome = cohort.schema.outcome
    if cohort.kind == "continuous":
        axis = labels.with_unit(f"mean {labels.plain(outcome.name)}", f"({outcome.unit})" if outcome.unit else "")
        values, now = table["mean"].tolist(), float(answers.patient.posterior.mean[0])  # type: ignore[union-attr, index]
        chart = charts.preview(results, values, now, axis, False, table["std"].tolist())
    else:
        posterior = answers.view.step.posterior
        shown = outcome.classes[1] if cohort.kind == "binary" else max(posterior, key=lambda key: posterior[key])
        axis = posterior_words.positive(outcome) if cohort.kind == "binary" else f"probability of {labels.plain(shown)}"
        chart = charts.preview(results, table[f"p({shown})"].tolist(), posterior[shown], axis, True)
    st.markdown(":small[**If the result were …**]")
    charts.draw(chart, "step-preview")


# -- actions --------------------------------------------------------------------------------------------------------


def _record(answers: StepAnswers, chosen: str, suggestion: str | None) -> None:
    record = answers.record
    cohort = answers.patient.memory.cohort
    names = wording.panel(cohort, chosen, answers.view.statuses)
    fields = {name: f"value-{record.id}-{cohort.names.index(name)}" for name in names}
    limits = {name: f"limit-{key}" for name, key in fields.items() if cohort.feature(name).kind == "number"}
    with place("record", fields), st.form("record", border=False):
        for name in names:
            feature = cohort.feature(name)
            entry, side = st.columns([1.25, 1], vertical_alignment="bottom", gap="small")
            with entry:
                inputs.ask(feature, cohort, fields[name])
            with side:
                if name in limits:
                    inputs.ask_limit(limits[name], feature if len(names) > 1 else None)
        if suggestion is not None and chosen != suggestion:
            st.text_input(f"Why not {labels.markdown(labels.short(suggestion))}? (optional)", key=REASON, max_chars=300)
        st.form_submit_button(
            "Record" if len(names) == 1 else "Record the panel",
            key="record-submit",
            type="primary",
            width="stretch",
            icon=":material/check:",
            help="Enter",
            on_click=actions.record,
            args=(record.id, record.length, fields, limits, REASON),
        )


def _marks(answers: StepAnswers, chosen: str) -> None:
    record = answers.record
    names = wording.panel(answers.patient.memory.cohort, chosen, answers.view.statuses)
    with st.container(horizontal=True, gap="xsmall", key="marks"):
        for kind, label, icon, words in (
            ("unavailable", "Not available", ":material/block:", "cannot be had; it is not suggested again"),
            ("declined", "Declined", ":material/do_not_disturb_on:", "was declined; it is not suggested again"),
            ("pending", "Pending", ":material/schedule:", "is ordered; it is not suggested until the result is there"),
        ):
            st.button(
                label,
                key=f"mark-{kind}",
                icon=icon,
                help=f"This test {words}",
                on_click=actions.mark,
                args=(record.id, record.length, kind, names, REASON),
            )


def _last_row(answers: StepAnswers) -> None:
    record, patient = answers.record, answers.patient
    with st.container(horizontal=True, gap="xsmall", key="last-row"):
        st.button(
            "Undo",
            key="undo",
            icon=":material/undo:",
            disabled=len(answers.views) < 2,
            help="Takes back the last step; it stays in the log",
            on_click=actions.undo,
            args=(record.id, record.length),
        )
        if patient.state.stopped:
            st.button(
                "Reopen",
                key="reopen",
                icon=":material/play_arrow:",
                type="primary",
                on_click=actions.reopen,
                args=(record.id, record.length),
            )
        else:
            st.button(
                "Stop",
                key="stop",
                icon=":material/stop_circle:",
                help="End here; it can be reopened",
                on_click=actions.stop,
                args=(record.id, record.length, REASON),
            )
        chosen = st.session_state.get(actions.CHOSEN)
        if chosen not in (None, answers.view.step.suggested) and not patient.state.stopped:
            st.button(
                "Back to the suggestion",
                key="to-suggestion",
                icon=":material/star:",
                on_click=actions.choose,
                args=(None,),
            )


# -- the whole ranking ----------------------------------------------------------------------------------------------


def show_ranking(answers: StepAnswers) -> None:
    heading("All tests")
    if not _options(answers):
        st.caption("Everything is known.")
        return
    charts.draw(_ranking(answers), RANKING)


def _ranking(answers: StepAnswers) -> charts.Chart:
    """Every test that is not known. A click in it goes the way of one in the heat map (belief.py)."""
    columns = ranking_columns(answers)
    features = answers.patient.memory.cohort.schema.acquirable
    names = _options(answers)
    chosen = _chosen(answers, answers.view.step.suggested)
    return charts.ranking(
        RANKING_COLUMNS,
        columns,
        [features.index(name) for name in names],
        names.index(chosen) if chosen else None,
        "Every test that is not known, best first, with gain, cost and support",
        belief.GAINS,
    )


def ranking_columns(answers: StepAnswers) -> dict[str, list[Any]]:
    """By the keys of RANKING_COLUMNS; what no test has is left out."""
    tests = _to_be_had(answers)
    suggestion = answers.view.step.suggested
    columns: dict[str, list[Any]] = {
        "test": [f"{labels.plain(test.feature)}{' ★' if test.feature == suggestion else ''}" for test in tests],
        "gain": [test.gain for test in tests],
        "support": ["⚠ thin" if is_thin(test.support, test.support_near) else "ok" for test in tests],
        "cost": [test.cost for test in tests],
        "per cost": [test.gain_per_cost for test in tests],
        "result in": [labels.minutes(test.turnaround) for test in tests],
        "rows": [test.support for test in tests],
        "near": [test.support_near for test in tests],
    }
    uncertainty = answers.uncertainty
    if uncertainty is not None:
        count = uncertainty.count
        columns["first"] = [
            f"{round(uncertainty.stability.get(test.feature, 0.0) * count)} of {count}" for test in tests
        ]
    columns["status"] = [test.status if test.status != "open" else "" for test in tests]
    return {key: values for key, values in columns.items() if key == "test" or any(value != "" for value in values)}
