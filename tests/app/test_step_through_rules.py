"""The rules of one step-through: kept with it, told in words, and followed by the advice and the ranking."""

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.store import StoredCohort
from app.ui.step_through import rules, step_answers
from app.ui.step_through.stored_events import Rules
from l2m_core.acquire.stopping import Stopping
from tests.app.conftest import check, open_app
from tests.app.stepping import begin, enter, kinds, recorded, set_rule, step_id, verdict_line


@pytest.fixture
def app(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    return begin(ward)


def test_rules_are_kept_with_the_step_through_and_give_the_reason_to_stop(owner: str, app: AppTest) -> None:
    app = set_rule(app, "budget", 1)
    assert recorded(owner, app).settings.stopping.budget == 1 and kinds(owner, app) == ["start"]
    app = enter(app, "lactate", 2.2)
    assert "Stop: the budget of 1 test is used." in verdict_line(app)
    app = open_app("step_through", step=step_id(app))
    assert "Stop: the budget" in verdict_line(app)


@pytest.mark.parametrize(
    ("rule", "limit", "asks_first", "reason"),
    [
        ("cost_budget", 12.0, True, "The cost budget of 12 is used (12 spent)."),
        ("least_gain", 5.0, False, "nats, less than the threshold of 5."),
        ("confidence", 50.0, False, "at least the 50% asked for."),
    ],
)
def test_each_rule_advises_stopping_and_never_forbids_to_go_on(
    owner: str, app: AppTest, rule: str, limit: float, asks_first: bool, reason: str
) -> None:
    app = set_rule(app, rule, limit)
    assert ("Stop: " in verdict_line(app)) is not asks_first
    app = enter(app, "lactate", 2.2)
    page = verdict_line(app)
    assert "Stop: " in page and reason[1:] in page
    assert kinds(owner, enter(app, "scan", "clear")) == ["start", "observe", "observe"]


def test_below_its_limit_no_rule_advises_anything(app: AppTest) -> None:
    for rule, limit in (("cost_budget", 1000.0), ("least_gain", 0.0), ("confidence", 100.0), ("budget", 2)):
        app = set_rule(app, rule, limit)
    assert "Stop: " not in verdict_line(enter(app, "lactate", 2.2))


def test_a_change_of_the_rules_is_a_line_of_the_log_and_counted_as_an_event(owner: str, app: AppTest) -> None:
    app = enter(set_rule(set_rule(app, "budget", 3), "policy", "gain per cost"), "lactate", 2.2)
    stored = recorded(owner, app)
    assert stored.length == len(stored.events) + 3 == 5
    assert "Log (5 events)" in [log.label for log in app.get("expander")]
    app.session_state["step-log"] = True
    lines = [caption.value.replace("\u2060", "") for caption in check(app.run()).caption if " UTC · " in caption.value]
    assert [line.split(" UTC · ")[1].split(" · ")[0] for line in lines] == [
        "Recorded",
        "Rules",
        "Rules",
        "Rules",
        "Began",
    ]
    moved = "no test is expected to move this by 1 point"
    assert lines[1].endswith(f"rank by expected gain per cost · advise stopping when {moved} or tests done reach 3")
    assert lines[2].endswith(f"rank by the model's default · advise stopping when {moved} or tests done reach 3")
    assert lines[3].endswith(f"rank by the model's default · advise stopping when {moved}"), (
        "as every step-through begins"
    )
    assert [line.split(" ")[0] for line in (lines[0], lines[4])] == ["1", "0"], "steps keep their numbers"


@pytest.mark.parametrize(
    ("stopping", "words"),
    [
        (Stopping(), "advise stopping never"),
        (
            Stopping(budget=2, cost_budget=12.5, least_gain=0.01, confidence=0.95),
            "advise stopping when tests done reach 2 or cost reaches 12.5 or the best gain is below 0.01 nats or an outcome is "
            "95% likely",
        ),
    ],
)
def test_rules_are_put_into_words(stopping: Stopping, words: str) -> None:
    assert rules.in_words(Rules(stopping), "binary") == f"rank by the model's default · {words}"


def test_a_share_is_shown_in_its_field_as_it_was_entered() -> None:
    limit = next(limit for limit in rules.LIMITS if limit.name == "threshold")
    assert limit.shown(Stopping(threshold=limit.read(29.0))) == 29.0


def test_the_rule_about_points_is_told_of_a_number_by_its_spread() -> None:
    said = rules.in_words(Rules(Stopping(least_points=1.0)), "continuous")
    assert said.endswith("advise stopping when no test is expected to move this by 1% of the outcome's spread")


def test_ranking_by_cost_changes_the_order_as_stated(owner: str, app: AppTest) -> None:
    app = set_rule(app, "policy", "gain per cost")
    ranking = step_answers.load(owner, step_id(app)).patient.ranking
    gains = ranking.gain_per_cost.to_numpy()
    assert (np.diff(gains) <= 1e-9).all()
