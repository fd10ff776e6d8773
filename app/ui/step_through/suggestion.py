"""The verdict, the suggested test, what its results would change, and the buttons."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

import numpy as np
import pandas as pd
import streamlit as st

from app.streamlit_contact.placeholders import placeholder
from app.ui import charts, inputs, labels, notices, posterior_words, wording
from app.ui.headings import heading
from app.ui.step_through import actions, finish
from app.ui.step_through.ranking import candidates, chosen_candidate
from app.ui.step_through.step_answers import StepAnswers, Uncertainty
from l2m_core.acquire.support import count_near
from l2m_core.cohort import Cohort
from l2m_core.step_through.candidates import Candidate
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.verdict import change_without, move_in_words, reasons
from l2m_core.step_through.words import average_in_words, number, percent

SELECT = "step-test"
REASON = "step-reason"
LEVELS_SHOWN = 8


def prefetch(answers: StepAnswers) -> None:
    """Asks the model at once for all that the page will show: the suggested test, and the one that is chosen instead."""
    if not answers.patient.state.stopped:
        for name in {chosen_candidate(answers), answers.view.step.suggested} - {None}:
            answers.patient.prefetch(str(name))


def show_verdict(answers: StepAnswers) -> None:
    """What to do now, in a line."""
    verdict = answers.verdict
    sentence = labels.plain(verdict.sentence).replace("–", f"{labels.JOINER}–{labels.JOINER}")  # no range is broken
    st.html(f'<p class="l2m-verdict {verdict.action}">{escape(sentence)}</p>')


def show(answers: StepAnswers) -> None:
    if answers.patient.state.stopped:
        finish.show(answers)
        notices.show_waiting(actions.NEXT)
        _undo_and_stop(answers)
        return
    suggestion = answers.view.step.suggested
    chosen = chosen_candidate(answers)
    heading("What to measure next")
    if chosen is None:
        notices.show_waiting(actions.NEXT)
        st.write("No tests are left.")
        _undo_and_stop(answers)
        return
    _choose(answers, suggestion, chosen)
    with st.container(key="step-reasons"):
        st.markdown(f":small[{_reasons(answers, chosen)}]")
    _record(answers, chosen, suggestion)
    notices.show_waiting(actions.NEXT)
    with st.container(gap="xsmall"):
        _status_buttons(answers, chosen)
        _undo_and_stop(answers)
    _preview(answers, chosen)
    st.markdown(f":small[{_candidate_facts(answers, chosen)}]")
    st.markdown(f":small[{_drivers(answers)}]")


# -- choosing -------------------------------------------------------------------------------------------------------


def _choose(answers: StepAnswers, suggestion: str | None, chosen: str) -> None:
    """A select box with the whole ranking."""
    tests = {test.feature: test for test in candidates(answers)}
    options = list(tests)

    def describe(name: str) -> str:
        test = tests[name]
        what = "suggested" if name == suggestion else test.status if test.status != "open" else ""
        return " · ".join(part for part in (labels.plain(name), answers.view.moves.get(name, ""), what) if part)

    # The key changes with each event, so that the box starts at the new suggestion.
    key = f"{SELECT}-{answers.record.id}-{answers.record.length}-{chosen!r}"
    st.session_state[SELECT] = key
    placeholder(SELECT, key).selectbox(
        "Test",
        options,
        index=options.index(chosen),
        format_func=describe,
        key=key,
        on_change=turn_to,
        args=(key,),
        label_visibility="collapsed",
    )


def turn_to(key: str) -> None:
    """A box of an earlier step says nothing any more. Streamlit calls for it once more where a band came while it was
    replaced."""
    if st.session_state.get(SELECT) == key and key in st.session_state:
        actions.choose(st.session_state[key])


# -- what is known of the test --------------------------------------------------------------------------------------


def _reasons(answers: StepAnswers, name: str) -> str:
    """As markdown: what speaks for the test, and what against it."""
    found = reasons(answers.patient, name, answers.record.settings.stopping)
    parts = ((":material/add_circle: For", found.speaks_for), (":material/do_not_disturb_on: Against", found.against))
    return "  \n".join(f"**{word}:** {labels.markdown('; '.join(said))}." for word, said in parts if said)


def _candidate_facts(answers: StepAnswers, name: str) -> str:
    """As markdown, on one line: what is not said by its reasons."""
    test = next(test for test in answers.view.tests if test.feature == name)
    feature = answers.cohort.feature(name)
    parts = [f"gain **{labels.markdown(labels.gain(test.gain))}** nats" if np.isfinite(test.gain) else ""]
    parts.append(labels.markdown(_estimate_missed(answers, test)))
    if any(cost != 1 for cost in answers.cohort.costs):
        parts.append(f"cost **{labels.entered_text(feature.cost)}**")
    if feature.turnaround is not None:
        parts.append(f"result in {labels.minutes(feature.turnaround)}")
    if feature.group:
        parts.append(f"panel {labels.markdown(feature.group)}")
    parts.append(
        f"measured in {test.support_near:,} of the {count_near(len(answers.cohort)):,} patients most like this"
    )
    if answers.resampling != "impossible":
        parts.append(stability_text(answers.uncertainty, name))
    return " · ".join(part for part in parts if part)


def _estimate_missed(answers: StepAnswers, test: Candidate) -> str:
    """What the preview makes of the test, where the ranking, which only estimates most tests, says otherwise; else ''."""
    outlook = answers.patient.outlook(test.feature) if test.status == "open" else None
    # Of a panel the ranking has the gain of all its tests together, and the preview shows one.
    if outlook is None or test.group or not np.isfinite(test.gain):
        return ""
    shown = labels.gain(outlook.gain)
    if shown == labels.gain(test.gain):
        return ""
    return f"an estimate: the results above make it {shown} nats, {move_in_words(answers.patient, outlook)}"


def stability_text(uncertainty: Uncertainty | None, name: str) -> str:
    """There from the beginning, so that nothing moves when it is known."""
    if uncertainty is None:
        return "comes first in … of the draws of other patients"
    times = round(uncertainty.stability.get(name, 0.0) * uncertainty.count)
    return f"comes first in {times} of {uncertainty.count} draws of other patients"


def _drivers(answers: StepAnswers) -> str:
    """A sentence: the known values that the prediction depends on most."""
    drivers = answers.patient.driving
    if not drivers:
        return "Nothing is known yet, so this is the ranking for the cohort as a whole."
    parts = []
    for driver in drivers[:3]:
        amount = labels.markdown(change_without(answers.patient, driver))
        parts.append(f"{labels.markdown(labels.short(driver.feature, 24))} ({amount})")
    return f"The prediction depends most on {', '.join(parts)}; in brackets, its change without that value."


def _preview(answers: StepAnswers, name: str) -> None:
    """The prediction after a low, typical or high result, before the test is ordered."""
    cohort = answers.cohort
    whole = answers.view.preview(name)
    table, feature = whole.head(LEVELS_SHOWN), cohort.feature(name)
    levels = _levels_not_tried(answers.patient, name, len(whole))
    results = _results(cohort, name, table, levels)
    outcome = answers.outcome
    said: Callable[[float], str] = percent
    if cohort.kind == "continuous":
        axis = f"mean {labels.name_with_unit(outcome.name, outcome.unit)}"
        values, now = table["mean"].tolist(), float(answers.patient.posterior.mean[0])  # type: ignore[union-attr, index]
        chart = charts.preview(results, values, now, axis, False, table["std"].tolist())
        column, said = "mean", number
    else:
        posterior = answers.posterior
        shown = posterior_words.leading(outcome, posterior)
        axis = posterior_words.positive(outcome) if cohort.kind == "binary" else f"probability of {labels.plain(shown)}"
        column, now = f"p({shown})", posterior[shown]
        chart = charts.preview(results, table[column].tolist(), now, axis, True)
    # The unit stands here once: beside each result it would leave no room for the number on a phone.
    unit = f" ({labels.markdown(labels.plain(feature.unit))})" if feature.kind == "number" and feature.unit else ""
    st.markdown(f":small[**If the result were …{unit}**]")
    charts.draw(chart, "step-preview", of=answers.record.id)
    if len(whole) > len(table):
        st.caption(f"The first {len(table)} of {len(whole)} levels.")
    if levels is not None:
        st.caption(
            f"{len(whole)} of {len(levels)} levels are tried; each stands for those beside it in the list as well."
        )
    outlook = answers.patient.outlook(name)
    if outlook is not None and not outlook.is_balanced:
        expected = float(outlook.chances @ whole[column])
        if said(expected) != said(now):
            st.caption(average_in_words(said(expected), said(now)))


def _results(cohort: Cohort, name: str, table: pd.DataFrame, levels: pd.Series | None) -> list[str]:
    """What the results of a preview are called: of numbers in words and digits, of all with how likely each is. levels: of a
    category of which few are tried, how likely each is by itself."""
    results, chances = [str(result) for result in table.result], table.get("chance")
    if cohort.feature(name).kind == "number":
        results = [
            f"{text.split(' (')[0]} {inputs.in_precision(cohort, name, float(value))}"
            for text, value in zip(results, table.value, strict=True)
        ]
    if levels is not None:
        chances = levels[list(table.value)]
    if chances is None:
        return results
    return [f"{result} · {percent(chance)}" for result, chance in zip(results, chances, strict=True)]


def _levels_not_tried(patient: Patient, name: str, tried: int) -> pd.Series | None:
    """How likely each level of a category is, where fewer are tried; else None.

    The chance of one that is tried counts its neighbours too: it is the weight of a group.
    """
    if patient.memory.cohort.feature(name).kind == "number" or not patient.foresees(name):
        return None
    levels = patient.expect(name)
    return levels if len(levels) > max(tried, LEVELS_SHOWN) else None


# -- actions --------------------------------------------------------------------------------------------------------


def _record(answers: StepAnswers, chosen: str, suggestion: str | None) -> None:
    record = answers.record
    cohort = answers.cohort
    names = wording.panel(cohort, chosen, answers.view.statuses)
    fields = {name: f"value-{record.id}-{cohort.names.index(name)}" for name in names}
    limits = {name: f"limit-{key}" for name, key in fields.items() if cohort.feature(name).kind == "number"}
    with placeholder("record", fields), st.form("record", border=False):
        for name in names:
            feature = cohort.feature(name)
            entry, side = st.columns([1.25, 1], vertical_alignment="bottom", gap="small")
            with entry:
                inputs.ask(feature, cohort, fields[name], expected=_expected(answers.patient, name))
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


def _expected(patient: Patient, name: str) -> str:
    """'expected 1.8–4.2': four of five such patients; '' where the model does not foresee it."""
    if not patient.foresees(name) or patient.memory.cohort.feature(name).kind != "number":
        return ""
    ends = [inputs.in_precision(patient.memory.cohort, name, end) for end in patient.expect(name, (0.1, 0.9))]
    return f"expected {ends[0] if ends[0] == ends[1] else labels.span(*ends)}"


def _status_buttons(answers: StepAnswers, chosen: str) -> None:
    record = answers.record
    names = wording.panel(answers.cohort, chosen, answers.view.statuses)
    with st.container(horizontal=True, gap="xsmall", key="marks"):
        for kind, label, icon, words in (
            ("unavailable", "Not available", ":material/block:", "is not available; it will not be suggested again"),
            ("declined", "Declined", ":material/do_not_disturb_on:", "was declined; it will not be suggested again"),
            (
                "pending",
                "Pending",
                ":material/schedule:",
                "has been ordered; it will not be suggested while you wait for its result",
            ),
        ):
            st.button(
                label,
                key=f"mark-{kind}",
                icon=icon,
                help=f"This test {words}",
                on_click=actions.mark,
                args=(record.id, record.length, kind, names, REASON),
            )


def _undo_and_stop(answers: StepAnswers) -> None:
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
                help="End here; you can reopen it later",
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
