"""The ranking of the tests that are not known yet, and which of them is selected."""

from __future__ import annotations

from typing import Any

import streamlit as st

from app.ui import charts, labels
from app.ui.headings import heading
from app.ui.step_through import actions, belief
from app.ui.step_through.step_answers import StepAnswers
from l2m_core.acquire.support import is_thin
from l2m_core.step_through.patient import Candidate

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
    heading("All tests")
    if not candidates(answers):
        st.caption("All results are known.")
        return
    charts.draw(_ranking(answers), RANKING)


def _ranking(answers: StepAnswers) -> charts.Chart:
    """A table of the candidates. A click on a row is handled as one in the map of gains (belief.py)."""
    columns = ranking_columns(answers)
    features = answers.cohort.schema.acquirable
    names = [candidate.feature for candidate in candidates(answers)]
    chosen = chosen_candidate(answers)
    return charts.ranking(
        RANKING_COLUMNS,
        columns,
        [features.index(name) for name in names],
        names.index(chosen) if chosen else None,
        "Every test that is not known, best first, with gain, cost and support",
        belief.GAINS,
    )


def ranking_columns(answers: StepAnswers) -> dict[str, list[Any]]:
    """Key of RANKING_COLUMNS → values; columns that are empty for all tests are left out."""
    tests = candidates(answers)
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
