"""Two step-throughs side by side: how the prediction moved, the order of the tests, and their cost."""

from __future__ import annotations

import streamlit as st

from app.host import services
from app.store import StepThrough
from app.ui import charts, labels, notices, posterior_words, wording
from app.ui.step_through import conditioning
from app.ui.traces import loading
from app.ui.traces.loading import LoadedTrace
from app.ui.traces.report import regret_text, suggested_in_words
from l2m_core.schema import Outcome
from l2m_core.step_through.events import effective

ACROSS = {"tests": "Tests done", "cost": "Cost"}


def show(owner: str, loaded: LoadedTrace) -> None:
    others = [s for s in services.get().store.step_throughs.list(owner) if s.id != loaded.record.id]
    if not others:
        st.write("There is no other step-through yet to compare with.")
        return
    others.sort(key=lambda other: other.cohort_hash != loaded.record.step_through.cohort_hash)
    by_id = {other.id: other for other in others}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = st.selectbox(
            "Compare with",
            list(by_id),
            key=f"compare-{loaded.record.id}",
            format_func=lambda identifier: _name(by_id[identifier], loaded),
        )
        across = st.segmented_control(
            "Against",
            list(ACROSS),
            default="tests",
            required=True,
            key="compare-across",
            format_func=ACROSS.__getitem__,
        )
    with notices.shown_refusals():
        other = loading.load(owner, str(chosen), conditioning.condition)
        _pair(loaded, other, str(across))


def _name(other: StepThrough, loaded: LoadedTrace) -> str:
    elsewhere = "" if other.cohort_hash == loaded.record.step_through.cohort_hash else " · another cohort"
    return f"{labels.plain(other.title or 'without label')} · {other.updated_at:%d %b %Y %H:%M} UTC{elsewhere}"


def _pair(one: LoadedTrace, two: LoadedTrace, across: str) -> None:
    names = _names(one, two)
    keys = [_key(one), _key(two)]
    for loaded in (one, two):
        if loaded.absent:
            notices.show("warning", f"{loaded.label}: {loaded.absent} What was recorded at the time is shown.")
    if _same_question(one, two) and all(keys):
        keys[1] = keys[0]  # the same class of both
    paths = [_path(loaded, name, key, across) for loaded, name, key in zip((one, two), names, keys, strict=True)]
    outcome = one.schema.outcome
    if all(paths) and _same_question(one, two):
        _chart([path for path in paths if path], outcome, keys[0], across, "compare-both")
    else:
        why = "One prediction was not recorded" if _same_question(one, two) else "The two predict different outcomes"
        notices.show("info", f"{why}, so each has its own chart.")
        for column, loaded, path, key in zip(st.columns(2, gap="large"), (one, two), paths, keys, strict=True):
            with column:
                if path:
                    _chart([path], loaded.schema.outcome, key, across, f"compare-{loaded.record.id}-chart")
                else:
                    st.caption("The prediction was not recorded.")
    if one.record.step_through.model_fingerprint != two.record.step_through.model_fingerprint:
        notices.show("info", "They were made with different models, so their numbers differ for that reason too.")
    for column, loaded, name in zip(st.columns(2, gap="large"), (one, two), names, strict=True):
        with column:
            _order(loaded, name)


def _names(one: LoadedTrace, two: LoadedTrace) -> tuple[str, str]:
    if one.label != two.label:
        return one.label, two.label
    return f"{one.label} (1)", f"{two.label} (2)"


def _key(loaded: LoadedTrace) -> str:
    final = loaded.trace.steps[-1].posterior
    return posterior_words.leading(loaded.schema.outcome, final) if final else ""


def _same_question(one: LoadedTrace, two: LoadedTrace) -> bool:
    a, b = one.schema.outcome, two.schema.outcome
    return (a.name, a.kind, a.classes, a.unit) == (b.name, b.kind, b.classes, b.unit)


def _path(loaded: LoadedTrace, name: str, key: str, across: str) -> charts.Path | None:
    steps = loaded.counting
    if not all(key in step.posterior for step in steps):
        return None
    tests, positions = 0, []
    for step in steps:
        tests += step.event.kind == "observe"
        positions.append(float(tests) if across == "tests" else step.spent)
    return charts.Path(
        labels.plain(name),
        positions,
        [step.posterior[key] for step in steps],
        [wording.learned(step.event) for step in steps],
    )


def _chart(paths: list[charts.Path], outcome: Outcome, key: str, across: str, chart_key: str) -> None:
    words = "tests done" if across == "tests" else "cost"
    charts.draw(
        charts.two_histories(paths, words, posterior_words.name_of(outcome, key), outcome.kind != "continuous"),
        chart_key,
    )


def _order(loaded: LoadedTrace, name: str) -> None:
    outcome = loaded.schema.outcome
    final = loaded.trace.steps[-1]
    steps = loaded.counting
    tests = sum(step.event.kind == "observe" for step in steps)
    done = f"{labels.counted(tests, 'test')}{wording.against_advice(loaded.tests_against_advice)}"
    st.subheader(labels.markdown(labels.short(name, 40)), anchor=False)
    st.markdown(
        f":small[{labels.markdown(loaded.record.cohort.name)}, version {loaded.record.cohort.version}]  \n"
        f"**{labels.markdown(posterior_words.short(outcome, final.posterior))}** after "
        f"{done}, cost **{labels.entered_text(final.spent)}**{_total_regret(loaded)}"
    )
    against = {loaded.events[number].id for number in loaded.against_advice}
    rows = {"": [], "Done": [], "Suggested": [], "Cost": [], "Answer": []}  # type: dict[str, list[str]]
    for number, step in enumerate(steps):
        rows[""].append(str(number))
        rows["Done"].append(labels.markdown(labels.short(wording.learned(step.event), 40)))
        suggested, is_against = step.event.suggested, step.event.id in against
        is_followed = suggested is not None and suggested in step.event.about and not is_against
        words = suggested_in_words(suggested and labels.short(suggested, 24), is_against)
        rows["Suggested"].append("✓" if is_followed else labels.markdown(words))
        rows["Cost"].append(labels.entered_text(step.spent))
        rows["Answer"].append(labels.markdown(posterior_words.short(outcome, step.posterior)))
    st.table(rows, border="horizontal", hide_index=True, alt=f"Order of tests of {labels.plain(name)}")


def _total_regret(loaded: LoadedTrace) -> str:
    """Sum over the events that count, where the regret could be computed."""
    kept = {event.id for event in effective(loaded.events)}
    pairs = zip(loaded.trace.steps, loaded.trace.regrets, strict=True)
    found = [regret for step, regret in pairs if step.event.id in kept and regret is not None]
    return f", regret **{labels.markdown(regret_text(sum(found)))}** nats" if found else ""
