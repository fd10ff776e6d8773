"""The ranking of the tests that are not known yet, and which of them is selected."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.ui import charts, labels
from app.ui.headings import heading
from app.ui.step_through import actions, belief
from app.ui.step_through.step_answers import StepAnswers
from l2m_core.acquire.support import is_thin
from l2m_core.step_through.candidates import Candidate

RANKING = "step-ranking"
FIND, ALL = "step-find", "step-all-tests"
FOLDED = 12  # tests that are shown at first, the best ones
RANKING_COLUMNS = {
    "test": charts.RankingColumn("test"),
    "status": charts.RankingColumn("status"),
    "move": charts.RankingColumn("typical change", "By how much its result would move the prediction, up or down"),
    "gain": charts.RankingColumn("gain (nats)", "Expected drop in log loss", "%.3g", labels.gain),
    "rows": charts.RankingColumn("cohort rows", "Earlier patients in whom it was measured; ⚠ too few for advice", "%d"),
    "near": charts.RankingColumn("near", "… among the patients most like this one", "%d"),
    "support": charts.RankingColumn("support"),
    "cost": charts.RankingColumn("cost", format="%g"),
    "per cost": charts.RankingColumn("nats per cost", format="%.2g", write=labels.ratio),
    "result in": charts.RankingColumn("result in"),
    "first": charts.RankingColumn("comes first", "In how many cohorts with other patients drawn it comes first"),
}


def candidates(answers: StepAnswers) -> list[Candidate]:
    """The tests that are not known yet, best first; those that are unavailable, declined or pending among them."""
    return [test for test in answers.view.tests if test.status != "known"]


def chosen_candidate(answers: StepAnswers) -> str | None:
    """The suggestion until another test is chosen; None when nothing is left."""
    options = [candidate.feature for candidate in candidates(answers)]
    if not options:
        return None
    chosen, suggestion = st.session_state.get(actions.CHOSEN), answers.view.step.suggested
    return str(chosen if chosen in options else suggestion if suggestion in options else options[0])


def show(answers: StepAnswers) -> None:
    tests = candidates(answers)
    heading("All tests")
    if not tests:
        st.caption("All results are known.")
        return
    rows = list(range(len(tests)))
    if len(tests) > FOLDED:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            wanted = st.text_input(
                "Find a test",
                key=FIND,
                placeholder=f"Find one of {len(tests)} tests",
                icon=":material/search:",
                label_visibility="collapsed",
                max_chars=100,
                width=300,
                persist_state="page",
            )
            is_whole = st.toggle(f"Show all {len(tests)}", key=ALL, persist_state="page")
        rows = _found(tests, wanted or "", is_whole)
        if not rows:
            st.caption(f"No test's name holds “{labels.markdown(wanted)}”.")
            return
    charts.draw(_ranking(answers, tests, rows), RANKING, of=answers.record.id)


def _found(tests: list[Candidate], wanted: str, is_whole: bool) -> list[int]:
    """Positions of the tests whose name holds every word; without words the best ones, unless all are wanted."""
    words = wanted.casefold().split()
    if not words:
        return list(range(len(tests)))[: None if is_whole else FOLDED]
    return [i for i, test in enumerate(tests) if all(word in test.feature.casefold() for word in words)]


def _ranking(answers: StepAnswers, tests: list[Candidate], rows: list[int]) -> charts.Chart:
    """A table of the candidates. A click on a row is handled as one in the map of gains (belief.py)."""
    features = answers.cohort.schema.acquirable
    names = [test.feature for test in tests]
    chosen = chosen_candidate(answers)
    return charts.ranking(
        RANKING_COLUMNS,
        ranking_columns(answers),
        [features.index(name) for name in names],
        names.index(chosen) if chosen else None,
        "Every test that is not known, best first, with what it would change, its cost and its support",
        belief.GAINS,
        rows,
    )


def ranking_columns(answers: StepAnswers) -> dict[str, list[Any]]:
    """Key of RANKING_COLUMNS → values; columns that say nothing, or the same as another one, are left out."""
    tests = candidates(answers)
    suggestion = answers.view.step.suggested
    columns: dict[str, list[Any]] = {
        "test": [f"{labels.plain(test.feature)}{' ★' if test.feature == suggestion else ''}" for test in tests],
        "status": ["" if test.status == "open" else test.status for test in tests],
        "move": [answers.view.moves.get(test.feature, "") for test in tests],
        "gain": [test.gain for test in tests],
        "rows": [test.support for test in tests],
        "near": [test.support_near for test in tests],
        "support": ["⚠ few" if is_thin(test.support, test.support_near) else "" for test in tests],
    }
    if any(cost != 1 for cost in answers.cohort.costs[answers.cohort.acquirable]):
        columns["cost"] = [test.cost for test in tests]
        columns["per cost"] = [test.gain_per_cost for test in tests]
    columns["result in"] = ["" if test.turnaround is None else labels.minutes(test.turnaround) for test in tests]
    columns["first"] = _times_first(answers, tests)
    return {key: values for key, values in columns.items() if key == "test" or any(value != "" for value in values)}


def _times_first(answers: StepAnswers, tests: list[Candidate]) -> list[str]:
    """The column is there before its numbers are, so that nothing moves when they come."""
    uncertainty = answers.uncertainty
    if uncertainty is None:
        return [""] * len(tests) if answers.resampling == "impossible" else ["…"] * len(tests)
    count = uncertainty.count
    return [f"{round(uncertainty.stability.get(test.feature, 0.0) * count)} of {count}" for test in tests]
