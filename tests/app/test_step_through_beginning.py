"""How a step-through begins: what may be known, what is refused, what is said meanwhile."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host import services
from app.host.services import Services
from app.store import StoredCohort
from app.ui import state
from app.ui.step_through import conditioning
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from tests.app.conftest import Restart, check, open_app, press, small_cohort, small_frame, texts
from tests.app.stepping import begin, recorded, step_id


@pytest.fixture
def app(shared_services: Services, owner: str, ward: StoredCohort) -> AppTest:
    return begin(ward)


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


def test_times_in_labels_are_told_to_be_utc(owner: str, ward: StoredCohort, shared_services: Services) -> None:
    press(open_app("step_through", cohort=ward.id), "start-submit")
    (kept,) = shared_services.store.step_throughs.list(owner)
    assert re.fullmatch(r"Patient \d\d \w+ \d\d:\d\d UTC", kept.title)
    listed = open_app("step_through", cohort=ward.id).button(key=f"go-on-{kept.id}").label
    assert re.search(r"· \d\d \w+ \d\d:\d\d UTC$", listed)


def test_a_step_through_of_a_deleted_cohort_is_not_offered_to_be_continued(
    owner: str, ward: StoredCohort, shared_services: Services
) -> None:
    press(open_app("step_through", cohort=ward.id), "start-submit")
    assert "Continue a step-through" in texts(open_app("step_through", cohort=ward.id))
    shared_services.store.cohorts.delete(owner, ward.id)
    assert "Continue a step-through" not in texts(open_app("step_through"))


def test_a_value_out_of_range_is_refused_in_words_and_what_was_typed_stays(owner: str, ward, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    key = f"start-{ward.id}-0"
    app.number_input(key=key).set_value(710.0)
    app = press(app, "start-submit")
    assert "'age' = 710 is outside the allowed range: 0 to 120 years" in texts(app)
    assert app.number_input(key=key).value == 710.0 and shared_services.store.step_throughs.list(owner) == ()


def test_an_example_patient_can_be_filled_in(owner: str, ward: StoredCohort, shared_services) -> None:
    app = press(open_app("step_through", cohort=ward.id), "start-example")
    assert app.number_input(key=f"start-{ward.id}-0").value == np.quantile(
        small_cohort().x[:, 0], 0.5, method="nearest"
    )
    assert app.selectbox(key=f"start-{ward.id}-1").value in ("f", "m")


def test_a_wild_value_is_asked_about_and_a_second_press_keeps_it(owner: str, ward, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    app.number_input(key=f"start-{ward.id}-0").set_value(119.0)
    app = press(app, "start-submit")
    assert "above every value in the cohort" in texts(app) and "Press Begin again" in texts(app)
    assert not shared_services.store.step_throughs.list(owner)
    app = press(app, "start-submit")
    assert dict(recorded(owner, app).events[0].values) == {"age": 119.0}


def test_another_wild_value_is_asked_about_again(owner: str, ward, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    for value in (118.0, 119.0):
        app.number_input(key=f"start-{ward.id}-0").set_value(value)
        app = press(app, "start-submit")
        assert f"age = {value:g} years is above every value" in texts(app)
    assert not shared_services.store.step_throughs.list(owner)


def test_a_double_click_does_not_answer_the_question(
    owner: str, ward, shared_services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "ECHO_SECONDS", 60.0)
    app = open_app("step_through", cohort=ward.id)
    app.number_input(key=f"start-{ward.id}-0").set_value(119.0)
    press(press(app, "start-submit"), "start-submit")
    assert not shared_services.store.step_throughs.list(owner)


def test_a_field_tells_its_usual_range_and_has_a_step_of_its_precision(ward, shared_services) -> None:
    age = open_app("step_through", cohort=ward.id).number_input(key=f"start-{ward.id}-0")
    assert age.step == 1.0 and age.label == "age (years)" and re.fullmatch(r"usually \d+ to \d+", age.placeholder)


def test_begin_pressed_before_the_example_shows_begins_with_it(
    owner: str, ward: StoredCohort, shared_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "ECHO_SECONDS", 60.0)
    app = press(open_app("step_through", cohort=ward.id), "start-example")
    app.number_input(key=f"start-{ward.id}-0").set_value(71.0)
    app.selectbox(key=f"start-{ward.id}-1").set_value(None)  # as the browser has it still
    app = press(app, "start-submit")
    values = dict(recorded(owner, app).events[0].values)
    assert values["age"] == 71.0 and values["sex"] in ("f", "m")


def test_an_example_that_was_looked_at_may_be_emptied(owner: str, ward: StoredCohort, shared_services) -> None:
    app = press(open_app("step_through", cohort=ward.id), "start-example")
    app.selectbox(key=f"start-{ward.id}-1").set_value(None)
    app = press(app, "start-submit")
    assert list(dict(recorded(owner, app).events[0].values)) == ["age"]


def test_results_that_are_there_already_can_be_given(owner: str, ward: StoredCohort, shared_services) -> None:
    app = open_app("step_through", cohort=ward.id)
    app = check(app.multiselect(key=f"start-also-{ward.id}").set_value(["lactate"]).run())
    app.number_input(key=f"start-{ward.id}-2").set_value(2.5)
    app = press(app, "start-submit")
    assert dict(recorded(owner, app).events[0].values) == {"lactate": 2.5}


@pytest.fixture
def slow_reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A model that stops half way through every cohort until the event is set."""
    go_on, really_read = threading.Event(), services.condition

    def read(model, cohort, tell):
        tell(0.5)
        assert go_on.wait(60)
        return really_read(model, cohort, tell)

    monkeypatch.setattr(services, "condition", read)
    yield go_on
    go_on.set()


def bars(app: AppTest) -> list[str]:
    return [element.proto.text for element in app.get("progress")]


def test_a_cohort_is_read_as_soon_as_it_is_shown_and_the_page_says_how_far_it_is(
    ward: StoredCohort, restart: Restart, owner: str, slow_reading: threading.Event
) -> None:
    here = restart()
    for page in ("cohort", "step_through"):
        (said,) = bars(open_app(page, cohort=ward.id))
        assert re.fullmatch(r"The model reads the cohort, 80 rows: (0|50)% done", said)
    slow_reading.set()
    here.conditioned(owner, ward, here.model(owner))
    assert not bars(open_app("step_through", cohort=ward.id))


def test_a_cohort_that_waits_for_another_one_to_be_read_says_so(
    ward: StoredCohort, restart: Restart, owner: str, slow_reading: threading.Event
) -> None:
    here = restart()
    open_app("cohort", cohort=ward.id)
    while here.reading(ward, here.model(owner)) != 0.5:
        time.sleep(0.01)
    other = here.add_cohort(owner, replace(small_cohort().rows(slice(60)), name="smaller ward"))
    (said,) = bars(open_app("step_through", cohort=other.id))
    assert said == "The model reads another cohort first, then this one, 60 rows"
    slow_reading.set()
    here.conditioned(owner, other, here.model(owner))
    assert not bars(open_app("step_through", cohort=other.id))


def test_who_begins_before_the_cohort_is_read_waits_with_words_and_begins_then(
    ward: StoredCohort, restart: Restart, owner: str, slow_reading: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    words = conditioning.progress_words

    def say(*facts) -> str:
        said.append(words(*facts))
        if "50%" in said[-1]:
            slow_reading.set()
        return said[-1]

    monkeypatch.setattr(conditioning, "progress_words", say)
    restart()
    app = begin(ward)
    assert "The model reads the cohort, 80 rows: 50% done" in said
    assert [event.kind for event in recorded(owner, app).events] == ["start"]
    said.clear()
    begin(ward)
    assert not said, "it has been read"
    for page, what in (("step_through", "step"), ("traces", "trace")):
        restart()
        open_app(page, **{what: step_id(app)})
        assert said, f"{page}: what was begun is opened again after the memory was let go"
        said.clear()


def test_what_ends_the_waiting_run_loses_nothing_of_the_request(
    ward: StoredCohort, restart: Restart, owner: str, slow_reading: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        """As another press ends a run."""

    def end(*facts) -> None:
        raise Ended

    restart()
    with monkeypatch.context() as interrupted:
        interrupted.setattr(conditioning, "wait_until_read", end)
        app = open_app("step_through", cohort=ward.id)
        app.text_input(key="start-title").set_value("Bed 9")
        app.button(key="start-submit").click().run()
    slow_reading.set()
    app = check(app.run())
    assert [event.kind for event in recorded(owner, app).events] == ["start"] and "Bed 9" in texts(app)


def test_a_cohort_that_cannot_be_read_is_refused_when_one_begins(
    ward: StoredCohort, restart: Restart, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(model, cohort, tell):
        raise CohortError("It has too many classes.")

    monkeypatch.setattr(services, "condition", refuse)
    restart()
    app = open_app("step_through", cohort=ward.id)
    assert "too many classes" not in texts(app)
    assert "too many classes" in texts(press(app, "start-submit"))


def test_a_refusal_while_beginning_on_an_unread_cohort_is_said_once(
    ward: StoredCohort, restart: Restart, owner
) -> None:
    restart()
    app = open_app("step_through", cohort=ward.id)
    app.number_input(key=f"start-{ward.id}-0").set_value(710.0)
    app = press(app, "start-submit")
    assert texts(app).count("is outside the allowed range") == 1
    assert "is outside the allowed range" not in texts(check(app.run()))


def test_what_a_test_is_expected_to_give_below_zero_keeps_its_signs(owner: str, shared_services: Services) -> None:
    frame = small_frame()[["age", "lactate", "died"]].assign(excess=lambda frame: frame.pop("lactate").fillna(2) - 40)
    app = begin(shared_services.add_cohort(owner, Cohort.from_frame(frame, "died", ["age"], name="gases")))
    (field,) = (field for field in app.number_input if field.label == "excess")
    assert re.fullmatch(r"expected -\d[\d.]* – -\d[\d.]*", field.placeholder)
