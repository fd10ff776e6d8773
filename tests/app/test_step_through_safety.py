"""What a step-through survives and never does: double presses, other tabs, reloads, hostile names; and its export."""

import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.store import StoredCohort
from app.ui import state
from app.ui.step_through import step_answers
from l2m_core.cohort import Cohort
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import Trace
from tests.app.conftest import Restart, check, open_app, press, small_frame, texts
from tests.app.stepping import begin, enter, kinds, outcome_cohort, recorded, set_rule, step_id, turn_to


@pytest.fixture
def app(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    return begin(ward)


# -- what must not happen -------------------------------------------------------------------------------------------


def test_a_double_press_is_one_event(owner: str, app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    app = enter(enter(app, "lactate", 2.2), "sodium", 139.0)
    monkeypatch.setattr(state, "ECHO_SECONDS", 3600.0)
    app = press(press(app, "undo"), "undo")
    assert kinds(owner, app) == ["start", "observe", "observe", "undo"]


def test_another_tab_is_never_overwritten_and_the_entry_is_kept(owner: str, app: AppTest) -> None:
    other_tab = open_app("step_through", step=step_id(app))
    other_tab = enter(other_tab, "sodium", 139.0)
    app = turn_to(app, "lactate")
    # The other tab went on after this one was drawn.
    other_tab = enter(other_tab, "scan", "clear")
    key = f"value-{step_id(app)}-2"
    app.number_input(key=key).set_value(2.2)
    app = press(app, "record-submit")
    assert "was changed elsewhere" in texts(app) and kinds(owner, app) == ["start", "observe", "observe"]
    assert app.number_input(key=key).value == 2.2
    assert kinds(owner, press(app, "record-submit")) == ["start", "observe", "observe", "observe"]


def test_what_another_tab_recorded_first_is_told_apart_from_what_was_typed(owner: str, app: AppTest) -> None:
    app = turn_to(app, "lactate")
    enter(open_app("step_through", step=step_id(app)), "lactate", 2.9)
    app.number_input(key=f"value-{step_id(app)}-2").set_value(2.2)
    app = press(app, "record-submit")
    assert re.search(r"Typed here and not recorded: lactate 2\.2\b", texts(app))
    assert "Back to the suggestion" not in texts(app), "a test that is known is not the one to measure"
    assert kinds(owner, app) == ["start", "observe"]


def test_an_undo_that_comes_too_late_speaks_of_nothing_typed(owner: str, app: AppTest) -> None:
    app = enter(app, "lactate", 2.2)
    enter(open_app("step_through", step=step_id(app)), "scan", "clear")
    app = press(app, "undo")
    assert "was changed elsewhere" in texts(app) and "yped" not in texts(app)
    assert kinds(owner, app) == ["start", "observe", "observe"]


def test_a_tab_says_when_the_step_through_went_on_in_another_one_and_only_then(owner: str, app: AppTest) -> None:
    app = turn_to(enter(app, "sodium", 139.0), "lactate")
    app = set_rule(app, "budget", 9)
    assert "went on elsewhere" not in texts(app), "all of that was done here"
    enter(open_app("step_through", step=step_id(app)), "scan", "clear")
    app = check(app.run())
    assert "went on elsewhere" in texts(app) and "was not sent" in texts(app)
    assert "went on elsewhere" not in texts(check(app.run()))


def test_what_another_owner_stepped_through_does_not_open(owner: str, app: AppTest, monkeypatch) -> None:
    theirs = step_id(app)
    monkeypatch.setattr(state, "browser_of_cookie", lambda: "f" * 32)
    visitor = open_app("step_through", step=theirs)
    assert "no such step-through of yours" in texts(visitor) and "71" not in texts(visitor)
    assert "step" not in visitor.query_params


@pytest.mark.parametrize("text", ["x", "' or 1=1 --", "../../etc/passwd", "0" * 36, "{}"])
def test_an_address_that_was_made_up_is_ignored(owner: str, ward: StoredCohort, shared_services, text: str) -> None:
    assert "New step-through" in texts(open_app("step_through", step=text))


def test_a_reload_and_a_restart_return_to_the_same_state(owner: str, app: AppTest, restart: Restart) -> None:
    app = enter(app, "lactate", 3.6)
    page, metric = texts(app), app.metric[0].value
    reloaded = open_app("step_through", step=step_id(app))
    assert reloaded.metric[0].value == metric and "3.6 mmol/L" in texts(reloaded)
    restart()
    restarted = open_app("step_through", step=step_id(app))
    assert restarted.metric[0].value == metric and "1 test · cost 12" in texts(restarted)
    assert page


def test_a_model_that_is_gone_leaves_the_record_and_offers_to_begin_again(
    owner: str, app: AppTest, monkeypatch: pytest.MonkeyPatch, shared_services: Services
) -> None:
    app = turn_to(app, "lactate")
    app.get("segmented_control")[0].set_value("below")
    app = enter(app, "lactate", 0.5)
    first = step_id(app)
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    app = open_app("step_through", step=first)
    assert "not installed any more" in texts(app)
    monkeypatch.undo()
    monkeypatch.setattr(state, "browser_of_cookie", lambda: owner.removeprefix("browser-"))
    app = press(app, "again")
    begun = recorded(owner, app).events[0]
    assert step_id(app) != first and dict(begun.values) == {"age": 71.0, "lactate": 0.5}
    assert dict(begun.limits) == {"lactate": "below"}, "a result below a limit stays one"


def test_a_deleted_cohort_is_said_and_the_record_stays(
    owner: str, app: AppTest, ward, shared_services: Services
) -> None:
    shared_services.store.cohorts.delete(owner, ward.id)
    app = open_app("step_through", step=step_id(app))
    assert "were deleted" in texts(app) and "needs a cohort" in texts(app)
    assert shared_services.store.step_throughs.list(owner), "the record is gone"


def test_what_was_believed_is_in_the_record_and_so_are_the_rules_of_the_time(owner: str, app: AppTest) -> None:
    before = recorded(owner, app).believed[0]
    app = enter(set_rule(app, "budget", 3), "lactate", 3.6)
    stored = recorded(owner, app)
    assert stored.believed == (before, step_answers.load(owner, step_id(app)).view.step.posterior)
    assert [rules.stopping.budget for rules in stored.rules] == [3, 3] and stored.until(1).events == stored.events[:1]
    assert (
        stored.believed[1]
        == Patient.replay(step_answers.load(owner, step_id(app)).conditioned.memory, stored.events)
        .trace.steps[-1]
        .posterior
    )


# -- export ---------------------------------------------------------------------------------------------------------


def test_the_trace_of_a_stored_step_through_replays(owner: str, app: AppTest) -> None:
    app = press(enter(enter(app, "lactate", 3.6), "sodium", 131.0), "undo")
    present = step_answers.load(owner, step_id(app))
    text = present.patient.trace.to_json()
    replayed = Trace.from_json(text).replay(present.conditioned.memory)
    assert isinstance(replayed, Patient) and replayed.events == present.record.events
    assert len(present.patient.trace.to_csv().splitlines()) == 1 + len(present.record.events)


# -- other outcomes, other names ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_other_outcomes_step_through_as_well(owner: str, shared_services: Services, kind: str) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort(kind))
    app = press(open_app("step_through", cohort=stored.id), "start-submit")
    app = turn_to(app, "lactate")
    app.number_input(key=f"value-{step_id(app)}-2").set_value(3.3)
    app = press(app, "record-submit")
    assert kinds(owner, app) == ["start", "observe"]
    assert ("Likeliest" if kind == "multiclass" else "Mean") in texts(app)


def test_hostile_names_are_shown_as_they_are_written(owner: str, shared_services: Services) -> None:
    hostile = "![x](http://example.invalid/p.png) $\\frac{1}{2}$ <b>:red[bold]</b>"
    frame = small_frame().rename(columns={"lactate": hostile, "died": f"died {hostile}"})
    cohort = Cohort.from_frame(frame, outcome=f"died {hostile}", name=f"ward {hostile}")
    stored = shared_services.add_cohort(owner, replace(cohort))
    app = open_app(cohort=stored.id)
    assert app.metric[2].label.replace("\\", "").replace("\u2060", "") == f"died {hostile}".replace("\\", "")
    app = press(open_app("step_through", cohort=stored.id), "start-submit")
    for element in [*app.markdown, *app.caption, *app.get("subheader")]:
        assert "![x](http" not in element.value and "<b>" not in element.value.replace("\\<b", "")
