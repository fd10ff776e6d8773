"""How a step-through begins: what may be known, what is refused, what is said meanwhile."""

from contextlib import nullcontext

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.store import StoredCohort
from app.ui import state
from app.ui.step_through import conditioning
from tests.app.conftest import Restart, check, open_app, press, small_cohort, texts
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


def test_while_the_cohort_is_read_for_the_first_time_the_page_says_so(
    ward: StoredCohort, restart: Restart, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(conditioning.st, "spinner", lambda text: said.append(text) or nullcontext())
    restart()
    app = begin(ward)
    assert said == ["Reading the cohort's 80 rows …"]
    begin(ward)
    assert len(said) == 1, "it has been read"
    restart()
    open_app("step_through", step=step_id(app))
    assert len(said) == 2, "what was begun is opened again after the memory was let go"
    restart()
    open_app("traces", trace=step_id(app))
    assert len(said) == 3, "its trace replays it"


def test_a_refusal_while_beginning_on_an_unread_cohort_is_said_once(
    ward: StoredCohort, restart: Restart, owner
) -> None:
    restart()
    app = open_app("step_through", cohort=ward.id)
    app.number_input(key=f"start-{ward.id}-0").set_value(710.0)
    app = press(app, "start-submit")
    assert texts(app).count("is outside the allowed range") == 1
    assert "is outside the allowed range" not in texts(check(app.run()))
