"""The step-through page: every action is stored first, shown next, and never twice."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.settings import Settings
from app.store import StoredCohort
from app.ui import services, state
from app.ui.services import Services
from app.ui.steps import moment, reading, record
from l2m_core.cohort import Cohort
from l2m_core.session import Patient
from l2m_core.trace import Trace
from tests.app.conftest import check, open_app, press, small_cohort, small_frame, texts

NAMES = ("age", "sex", "lactate", "sodium", "potassium", "scan")


def begin(ward: StoredCohort, **values) -> AppTest:
    """A step-through that has begun, at its first step."""
    app = open_app("step_through", cohort=ward.id)
    for name, value in (values or {"age": 71.0}).items():
        key = f"start-{ward.id}-{NAMES.index(name)}"
        (app.number_input(key=key) if name == "age" else app.selectbox(key=key)).set_value(value)
    app.text_input(key="start-title").set_value("Bed 4")
    return press(app, "start-submit")


def step_id(app: AppTest) -> str:
    return str(app.query_params["step"])


def turn_to(app: AppTest, name: str) -> AppTest:
    box = next(box for box in app.selectbox if box.key and box.key.startswith("step-test"))
    return app if box.value == name else check(box.set_value(name).run())


def enter(app: AppTest, name: str, value) -> AppTest:
    """Turn to a test, type its result, press Record."""
    app = turn_to(app, name)
    key = f"value-{step_id(app)}-{NAMES.index(name)}"
    (app.selectbox(key=key) if name == "scan" else app.number_input(key=key)).set_value(value)
    return press(app, "record-submit")


def recorded(owner: str, app: AppTest) -> record.Record:
    return record.read(owner, step_id(app))


def kinds(owner: str, app: AppTest) -> list[str]:
    return [event.kind for event in recorded(owner, app).events]


@pytest.fixture
def app(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    return begin(ward)


# -- beginning ------------------------------------------------------------------------------------------------------


def test_without_a_cohort_the_way_to_one_is_shown(shared_services: Services, owner: str) -> None:
    assert "needs a cohort" in texts(open_app("step_through"))


def test_beginning_stores_what_is_known_and_shows_where_one_stands(owner: str, app: AppTest) -> None:
    (event,) = recorded(owner, app).events
    assert event.kind == "start" and dict(event.values) == {"age": 71.0}
    page = texts(app)
    assert "Bed 4" in page and "0 tests · cost 0" in page and "research use only" in page
    assert "71 years" in page and "of 100" in page
    assert app.metric[0].label == "died" and app.metric[0].value.endswith("%")


def test_everything_may_be_empty(owner: str, ward: StoredCohort, shared_services) -> None:
    app = press(open_app("step_through", cohort=ward.id), "start-submit")
    assert dict(recorded(owner, app).events[0].values) == {}
    assert "Nothing yet" in texts(app)


def test_a_value_out_of_range_is_refused_in_words_and_what_was_typed_stays(owner: str, ward, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    key = f"start-{ward.id}-0"
    app.number_input(key=key).set_value(710.0)
    app = press(app, "start-submit")
    assert "'age' = 710 is outside the allowed range: 0 to 120 years" in texts(app)
    assert app.number_input(key=key).value == 710.0 and shared_services.store.step_throughs.list(owner) == ()


def test_an_example_patient_can_be_filled_in(owner: str, ward: StoredCohort, shared_services) -> None:
    app = press(open_app("step_through", cohort=ward.id), "start-example")
    assert app.number_input(key=f"start-{ward.id}-0").value == np.quantile(small_cohort().x[:, 0], 0.5, method="nearest")
    assert app.selectbox(key=f"start-{ward.id}-1").value in ("f", "m")


def test_results_that_are_there_already_can_be_given(owner: str, ward: StoredCohort, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    app = check(app.multiselect(key=f"start-also-{ward.id}").set_value(["lactate"]).run())
    app.number_input(key=f"start-{ward.id}-2").set_value(2.5)
    app = press(app, "start-submit")
    assert dict(recorded(owner, app).events[0].values) == {"lactate": 2.5}


def test_while_the_cohort_is_read_for_the_first_time_the_page_says_so(
    ward: StoredCohort, shared_services: Services, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(reading.st, "spinner", lambda text: said.append(text) or nullcontext())
    shared_services._memories.clear()
    app = begin(ward)
    assert said == ["Reading the cohort's 80 rows …"]
    begin(ward)
    assert len(said) == 1, "it has been read"
    shared_services._memories.clear()
    open_app("step_through", step=step_id(app))
    assert len(said) == 2, "what was begun is opened again after the memory was let go"


def test_a_refusal_while_beginning_on_an_unread_cohort_is_said_once(ward: StoredCohort, shared_services, owner) -> None:
    shared_services._memories.clear()
    app = open_app("step_through", cohort=ward.id)
    app.number_input(key=f"start-{ward.id}-0").set_value(710.0)
    app = press(app, "start-submit")
    assert texts(app).count("is outside the allowed range") == 1
    assert "is outside the allowed range" not in texts(check(app.run()))


# -- steps ----------------------------------------------------------------------------------------------------------


def test_a_result_is_stored_and_moves_the_answer(owner: str, app: AppTest) -> None:
    before = app.metric[0].value
    app = enter(app, "lactate", 3.6)
    event = recorded(owner, app).events[-1]
    assert event.kind == "observe" and dict(event.values) == {"lactate": 3.6}
    page = texts(app)
    assert "3.6 mmol/L" in page and "▲ high" in page and "1 test · cost 12" in page
    view = moment.load(owner, step_id(app)).view
    assert app.metric[0].value == f"{view.step.posterior['yes']:.0%}" and len(before) > 0


def test_the_numbers_on_the_page_are_those_of_the_core(owner: str, app: AppTest, shared_services: Services) -> None:
    app = enter(app, "lactate", 3.6)
    stored = recorded(owner, app)
    memory = shared_services.model(owner).condition(shared_services.cohort(owner, stored.cohort))
    patient = memory.start({"age": 71.0}).observe("lactate", 3.6)
    view = moment.load(owner, step_id(app)).view
    assert np.allclose(view.step.posterior["yes"], patient.posterior[1], atol=1e-6)
    preview = view.preview("sodium")
    after = patient.observe("sodium", float(preview.value[1])).posterior[1]
    assert np.isclose(preview["p(yes)"][1], after, atol=1e-6), "the preview is not what entering the value gives"


def test_another_test_than_the_suggested_one_is_recorded_with_the_reason(owner: str, app: AppTest) -> None:
    suggested = moment.load(owner, step_id(app)).view.step.suggested
    other = "scan" if suggested != "scan" else "lactate"
    app = turn_to(app, other)
    app.text_input(key="step-reason").set_value("machine is free")
    app = enter(app, other, "dense" if other == "scan" else 2.0)
    event = recorded(owner, app).events[-1]
    assert (event.suggested, event.reason) == (suggested, "machine is free") and event.about == (other,)


def test_the_way_back_to_the_suggestion_is_there_only_when_one_has_left_it(owner: str, app: AppTest) -> None:
    suggested = moment.load(owner, step_id(app)).view.step.suggested
    app = turn_to(app, "scan" if suggested != "scan" else "lactate")
    assert [b for b in app.button if b.key == "to-suggestion"]
    app = turn_to(app, suggested)
    assert not [b for b in app.button if b.key == "to-suggestion"]


def test_a_panel_is_one_step_and_paid_once(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    for name, value in (("sodium", 138.0), ("potassium", 4.4)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    event = recorded(owner, app).events[-1]
    assert dict(event.values) == {"sodium": 138.0, "potassium": 4.4}
    assert "1 test · cost 5" in texts(app)


def test_a_detection_limit_is_kept_as_one(owner: str, app: AppTest) -> None:
    app = turn_to(app, "lactate")
    assert [option.replace("\\", "") for option in app.get("segmented_control")[0].options] == ["=", "<", ">"]
    app.get("segmented_control")[0].set_value("below")
    app = enter(app, "lactate", 0.5)
    event = recorded(owner, app).events[-1]
    assert dict(event.limits) == {"lactate": "below"} and "<0.5 mmol/L" in texts(app)


def test_one_member_of_a_panel_may_lie_beyond_its_limit_of_detection(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    choices = app.get("segmented_control")
    assert [choice.label for choice in choices] == ["Result of sodium", "Result of potassium"]
    choices[1].set_value("above")
    for name, value in (("sodium", 138.0), ("potassium", 9.0)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    event = recorded(owner, app).events[-1]
    assert dict(event.values) == {"sodium": 138.0, "potassium": 9.0} and dict(event.limits) == {"potassium": "above"}
    assert ">9 mmol/L" in texts(app) and "138 mmol/L" in texts(app), "a limit is no unusual value to ask about"


def test_beside_a_limit_the_other_values_of_a_panel_are_still_looked_at(owner: str, app: AppTest) -> None:
    app = turn_to(app, "sodium")
    app.get("segmented_control")[1].set_value("below")
    for name, value in (("sodium", 1380.0), ("potassium", 1.0)):
        app.number_input(key=f"value-{step_id(app)}-{NAMES.index(name)}").set_value(value)
    app = press(app, "record-submit")
    assert "sodium = 1380 mmol/L is above everything" in texts(app) and "potassium = 1 " not in texts(app)
    assert kinds(owner, app) == ["start"]


def test_nothing_entered_is_said_and_nothing_stored(owner: str, app: AppTest) -> None:
    app = press(turn_to(app, "lactate"), "record-submit")
    assert "Enter a result first" in texts(app) and kinds(owner, app) == ["start"]


def test_a_value_unlike_all_of_the_cohort_is_asked_about_once(owner: str, app: AppTest) -> None:
    app = enter(app, "lactate", 38.0)
    assert "above everything in the cohort" in texts(app) and kinds(owner, app) == ["start"]
    key = f"value-{step_id(app)}-2"
    assert app.number_input(key=key).value == 38.0
    app = press(app, "record-submit")
    assert kinds(owner, app) == ["start", "observe"]


def test_a_value_that_is_impossible_is_refused(owner: str, app: AppTest) -> None:
    app = press(enter(app, "lactate", 380.0), "record-submit")
    assert "outside the allowed range: 0 to 40 mmol/L" in texts(app) and kinds(owner, app) == ["start"]


@pytest.mark.parametrize("kind", ["unavailable", "declined", "pending"])
def test_what_cannot_be_had_is_not_suggested_again(owner: str, app: AppTest, kind: str) -> None:
    app = press(turn_to(app, "lactate"), f"mark-{kind}")
    assert kinds(owner, app) == ["start", kind] and f"lactate: {kind}" in texts(app)
    assert moment.load(owner, step_id(app)).view.step.suggested != "lactate"
    app = press(app, "status-2")
    app.number_input(key=f"value-{step_id(app)}-2").set_value(1.9)
    app = press(app, "record-submit")
    assert dict(recorded(owner, app).events[-1].values) == {"lactate": 1.9} and f"lactate: {kind}" not in texts(app)


def test_undo_takes_back_the_last_step_and_keeps_it_in_the_log(owner: str, app: AppTest) -> None:
    before = app.metric[0].value
    app = press(enter(app, "lactate", 3.6), "undo")
    assert kinds(owner, app) == ["start", "observe", "undo"] and app.metric[0].value == before
    app.session_state["step-log"] = True
    page = texts(check(app.run()))
    assert "Recorded · lactate 3.6 mmol/L" in page and "Undid the step before" in page
    assert app.button(key="undo").disabled


def test_a_correction_is_a_new_event_and_the_old_value_stays_visible(owner: str, app: AppTest) -> None:
    app = press(app, "edit-0")
    field = next(number for number in app.number_input if number.key and number.key.startswith("correct-"))
    assert field.value == 71.0
    field.set_value(17.0)
    app = press(app, "correct-save")
    assert kinds(owner, app) == ["start", "correct"] and "17 years" in texts(app)
    app.session_state["step-log"] = True
    assert "Began · age 71 years" in texts(check(app.run()))
    app = press(press(app, "edit-0"), "correct-take-back")
    assert "age" not in moment.load(owner, step_id(app)).patient.known


def test_stopping_ends_and_reopening_goes_on(owner: str, app: AppTest, shared_services: Services) -> None:
    app = press(app, "stop")
    assert shared_services.store.step_throughs.get(owner, step_id(app)).status == "finished"
    assert "stopped" in texts(app) and not [b for b in app.button if b.key == "record-submit"]
    app = press(app, "reopen")
    assert shared_services.store.step_throughs.get(owner, step_id(app)).status == "running"
    assert app.button(key="record-submit")


def test_rules_are_kept_with_the_step_through_and_give_the_reason_to_stop(owner: str, app: AppTest) -> None:
    budget = next(number for number in app.number_input if number.key and number.key.endswith("-budget"))
    budget.set_value(1)
    app = press(app, "rules-save")
    assert recorded(owner, app).settings.stopping.budget == 1 and kinds(owner, app) == ["start"]
    app = enter(app, "lactate", 2.2)
    assert "Stopping is advised. The budget of 1 tests is used" in texts(app)
    app = open_app("step_through", step=step_id(app))
    assert "Stopping is advised" in texts(app)


@pytest.mark.parametrize(
    ("rule", "limit", "asks_first", "reason"),
    [
        ("cost", 12.0, True, "The cost budget of 12 is used (12 spent)."),
        ("gain", 5.0, False, "nats, less than the threshold of 5."),
        ("confidence", 50.0, False, "at least the 50% asked for."),
    ],
)
def test_each_rule_advises_stopping_and_never_forbids_to_go_on(
    owner: str, app: AppTest, rule: str, limit: float, asks_first: bool, reason: str
) -> None:
    field = next(number for number in app.number_input if number.key and number.key.endswith(f"-{rule}"))
    field.set_value(limit)
    app = press(app, "rules-save")
    assert ("Stopping is advised" in texts(app)) is not asks_first
    app = enter(app, "lactate", 2.2)
    page = texts(app)
    assert "Stopping is advised" in page and reason in page
    assert kinds(owner, enter(app, "scan", "clear")) == ["start", "observe", "observe"]


def test_below_its_limit_no_rule_advises_anything(app: AppTest) -> None:
    for rule, limit in (("cost", 13.0), ("gain", 0.0), ("confidence", 100.0), ("budget", 2)):
        next(n for n in app.number_input if n.key and n.key.endswith(f"-{rule}")).set_value(limit)
    assert "Stopping is advised" not in texts(enter(press(app, "rules-save"), "lactate", 2.2))


def test_ranking_by_cost_changes_the_order_as_stated(owner: str, app: AppTest) -> None:
    policy = next(box for box in app.selectbox if box.key and box.key.endswith("-policy"))
    policy.set_value("gain per cost")
    app = press(app, "rules-save")
    ranking = moment.load(owner, step_id(app)).view.ranking
    gains = ranking.gain_per_cost.to_numpy()
    assert (np.diff(gains) <= 1e-9).all()


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
    assert "went on elsewhere" in texts(app) and kinds(owner, app) == ["start", "observe", "observe"]
    app = turn_to(app, "lactate")
    assert app.number_input(key=key).value == 2.2
    assert kinds(owner, press(app, "record-submit")) == ["start", "observe", "observe", "observe"]


def test_what_another_owner_stepped_through_does_not_open(owner: str, app: AppTest, monkeypatch) -> None:
    theirs = step_id(app)
    monkeypatch.setattr(state, "browser_of_cookie", lambda: "f" * 32)
    visitor = open_app("step_through", step=theirs)
    assert "no such step-through of yours" in texts(visitor) and "71" not in texts(visitor)
    assert "step" not in visitor.query_params


@pytest.mark.parametrize("text", ["x", "' or 1=1 --", "../../etc/passwd", "0" * 36, "{}"])
def test_an_address_that_was_made_up_is_ignored(owner: str, ward: StoredCohort, shared_services, text: str) -> None:
    assert "New step-through" in texts(open_app("step_through", step=text))


def test_a_reload_and_a_restart_return_to_the_same_state(owner: str, app: AppTest, shared_services: Services) -> None:
    app = enter(app, "lactate", 3.6)
    page, metric = texts(app), app.metric[0].value
    reloaded = open_app("step_through", step=step_id(app))
    assert reloaded.metric[0].value == metric and "3.6 mmol/L" in texts(reloaded)
    settings = Settings(shared_services.settings.data_dir, shared_services.settings.database_url)
    services._services = Services(settings)
    try:
        restarted = open_app("step_through", step=step_id(app))
        assert restarted.metric[0].value == metric and "1 test · cost 12" in texts(restarted)
    finally:
        services._services.background.shutdown()
        services._services.store.close()
        services._services = shared_services
    assert page


def test_a_model_that_is_gone_leaves_the_record_and_offers_to_begin_again(
    owner: str, app: AppTest, monkeypatch: pytest.MonkeyPatch, shared_services: Services
) -> None:
    app = enter(app, "lactate", 3.6)
    first = step_id(app)
    monkeypatch.setattr(shared_services, "model_of", lambda owner, fingerprint: None)
    app = open_app("step_through", step=first)
    assert "not installed any more" in texts(app)
    monkeypatch.undo()
    monkeypatch.setattr(state, "browser_of_cookie", lambda: owner.removeprefix("browser-"))
    app = press(app, "again")
    assert step_id(app) != first and dict(recorded(owner, app).events[0].values) == {"age": 71.0, "lactate": 3.6}


def test_a_deleted_cohort_is_said_and_the_record_stays(owner: str, app: AppTest, ward, shared_services: Services) -> None:
    shared_services.store.cohorts.delete(owner, ward.id)
    app = open_app("step_through", step=step_id(app))
    assert "were deleted" in texts(app) and "needs a cohort" in texts(app)
    assert shared_services.store.step_throughs.list(owner), "the record is gone"


def test_what_was_believed_is_in_the_record_and_so_are_the_rules_of_the_time(owner: str, app: AppTest) -> None:
    before = recorded(owner, app).believed[0]
    budget = next(number for number in app.number_input if number.key and number.key.endswith("-budget"))
    budget.set_value(3)
    app = enter(press(app, "rules-save"), "lactate", 3.6)
    stored = recorded(owner, app)
    assert stored.believed == (before, moment.load(owner, step_id(app)).view.step.posterior)
    assert [rules.stopping.budget for rules in stored.rules] == [3, 3] and stored.until(1).events == stored.events[:1]
    assert stored.believed[1] == Patient.replay(
        moment.load(owner, step_id(app)).conditioned.memory, stored.events
    ).trace.steps[-1].posterior  # fmt: skip


# -- export ---------------------------------------------------------------------------------------------------------


def test_the_trace_of_a_stored_step_through_replays(owner: str, app: AppTest) -> None:
    app = press(enter(enter(app, "lactate", 3.6), "sodium", 131.0), "undo")
    present = moment.load(owner, step_id(app))
    text = present.patient.trace.to_json()
    replayed = Trace.from_json(text).replay(present.conditioned.memory)
    assert isinstance(replayed, Patient) and replayed.events == present.record.events
    assert len(present.patient.trace.to_csv().splitlines()) == 1 + len(present.record.events)


# -- other outcomes, other names ------------------------------------------------------------------------------------


def outcome_cohort(kind: str) -> Cohort:
    frame = small_frame().drop(columns="died")
    draw = np.random.default_rng(5)
    base = frame.lactate.fillna(2).to_numpy()
    frame["stay"] = (3 + 2 * base + draw.normal(0, 1, len(frame))).round(1)
    if kind == "multiclass":
        frame["stay"] = np.digitize(frame["stay"], [5, 8]).astype(str)
        frame["stay"] = frame["stay"].map({"0": "short", "1": "medium", "2": "long"})
    schema = {"features": [{"name": "age", "role": "baseline"}]}
    return Cohort.from_frame(frame, outcome="stay", schema=schema, name=kind)


@pytest.mark.parametrize("kind", ["multiclass", "continuous"])
def test_other_outcomes_step_through_as_well(owner: str, shared_services: Services, kind: str) -> None:
    stored = shared_services.add_cohort(owner, outcome_cohort(kind))
    app = press(open_app("step_through", cohort=stored.id), "start-submit")
    app = turn_to(app, "lactate")
    app.number_input(key=f"value-{step_id(app)}-2").set_value(3.3)
    app = press(app, "record-submit")
    assert kinds(owner, app) == ["start", "observe"]
    assert ("Likeliest" if kind == "multiclass" else "Median") in texts(app)


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
