"""Step-throughs are deleted from the list and from their own page, and nothing of them stays in memory."""

import pytest

from app.host.services import Conditioned, Services
from app.store import NotFound, StepThrough, StoredCohort
from app.ui.traces import exchange, loading
from tests.app.conftest import check, open_app, press, texts
from tests.app.recorded import eventful, keep, memory_of
from tests.app.stepping import begin, enter, step_id
from tests.app.test_traces_page import open_trace, titles, turn


@pytest.fixture
def kept(shared_services: Services, owner: str, ward: StoredCohort) -> StepThrough:
    return keep(shared_services, owner, ward, eventful(memory_of(shared_services, owner, ward)))


@pytest.fixture
def others(shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough) -> list[StepThrough]:
    patient = memory_of(shared_services, owner, ward).start({"age": 40.0})
    return [keep(shared_services, owner, ward, patient, title=f"Night {number}") for number in (1, 2, 3)]


def test_one_is_deleted_on_its_own_page_after_the_page_said_what_that_means(
    shared_services: Services, owner: str, kept: StepThrough
) -> None:
    app = open_trace(kept)
    assert "erased for good" in texts(app) and "Files that were exported" in texts(app)
    app = press(app, "trace-delete")
    assert "1 step-through deleted" in texts(app) and titles(app) == [] and "trace" not in app.query_params
    assert shared_services.store.step_throughs.deleted(owner, kept.id) is not None
    assert "You deleted this step-through on" in texts(open_trace(kept))


def test_those_that_are_marked_are_deleted_together(owner: str, kept: StepThrough, others: list[StepThrough]) -> None:
    app = open_app("traces")
    assert not [button for button in app.button if button.key == "traces-delete"], "nothing is marked"
    for step_through in (kept, others[1]):
        app.checkbox(key=f"mark-{step_through.id}").check()
    app = check(app.run())
    assert "- Bed 4\n- Night 2" in texts(app) or "- Night 2\n- Bed 4" in texts(app)
    app = press(app, "traces-delete")
    assert "2 step-throughs deleted" in texts(app) and titles(app) == ["Night 3", "Night 1"]
    app = press(press(app, "traces-mark-all"), "traces-delete")
    assert "No step-through is recorded yet" in texts(app)


def test_what_was_deleted_in_another_tab_meanwhile_is_said(
    shared_services: Services, owner: str, kept: StepThrough, others: list[StepThrough]
) -> None:
    app = press(open_app("traces"), "traces-mark-all")
    page = open_trace(kept)
    shared_services.delete_step_throughs(owner, [kept.id])
    app = press(app, "traces-delete")
    assert "3 step-throughs deleted" in texts(app) and "1 step-through had been deleted already" in texts(app)
    assert "had been deleted already" in texts(press(page, "trace-delete"))


def test_a_step_that_is_recorded_in_another_tab_is_refused_in_words(
    shared_services: Services, owner: str, ward: StoredCohort
) -> None:
    app = begin(ward)
    shared_services.delete_step_throughs(owner, [step_id(app)])
    app = enter_without_turning(app)
    assert "You deleted this step-through on" in texts(app) and "Begin a new one" in texts(app)
    assert "step" not in app.query_params


def enter_without_turning(app):
    field = next(field for field in app.number_input if field.key.startswith("value-"))
    field.set_value(3.0)
    return press(app, "record-submit")


def test_one_that_was_chosen_to_compare_with_is_gone_in_words(
    shared_services: Services, owner: str, kept: StepThrough, others: list[StepThrough]
) -> None:
    app = turn(open_trace(kept), "Compare")
    app.selectbox(key=f"compare-{kept.id}").set_value(others[0].id)
    app = check(app.run())
    shared_services.delete_step_throughs(owner, [others[0].id])
    app = check(app.run())
    assert "Night 1" not in texts(app) and "Bed 4" in texts(app)


def test_anothers_step_through_is_not_deleted(
    shared_services: Services, owner: str, kept: StepThrough, someone_else: str
) -> None:
    with pytest.raises(NotFound, match="no such step-through of yours"):
        shared_services.delete_step_throughs(someone_else, [kept.id])
    assert titles(open_app("traces")) == ["Bed 4"]


def hashes_in(conditioned: Conditioned) -> set[str]:
    """Of the events whose views are kept."""
    return {key[0] for key in conditioned.views.keys()}


def test_nothing_of_it_stays_in_memory(shared_services: Services, owner: str, ward: StoredCohort) -> None:
    app = begin(ward)
    app = enter(app, "lactate", 2.7183)
    name = step_id(app)
    hashes = {event.hash for event in shared_services.store.step_throughs.events(owner, name)}
    conditioned = shared_services.conditioned(owner, ward, shared_services.model(owner))
    assert hashes & hashes_in(conditioned)
    assert len(conditioned.memory.batcher)
    shared_services.delete_step_throughs(owner, [name])
    assert not hashes & hashes_in(conditioned)
    assert not len(conditioned.memory.batcher)


def test_another_process_forgets_it_at_its_next_sweep(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough, restart
) -> None:
    other = restart()
    loading.load(owner, kept.id)
    conditioned = other.conditioned(owner, ward, other.model(owner))
    hashes = {event.hash for event in other.store.step_throughs.events(owner, kept.id)}
    assert hashes & hashes_in(conditioned)
    shared_services.delete_step_throughs(owner, [kept.id])
    other.forget_deleted()
    assert not hashes & hashes_in(conditioned)


def test_a_file_of_one_that_was_deleted_can_be_imported_and_says_so(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough
) -> None:
    incoming = exchange.read_file(exchange.to_json(loading.load(owner, kept.id)).encode())
    shared_services.delete_step_throughs(owner, [kept.id])
    first = exchange.import_trace(owner, incoming)
    assert "You deleted the step-through that this file was exported from on" in first.sentence
    assert first.step_through.id != kept.id
    assert "already have" in exchange.import_trace(owner, incoming).sentence
    shared_services.delete_step_throughs(owner, [first.step_through.id])
    again = exchange.import_trace(owner, incoming)
    assert again.step_through.id not in (kept.id, first.step_through.id)
    assert shared_services.store.verify().intact


def test_a_colleagues_copy_stays_and_tells_nothing_of_the_deletion(
    shared_services: Services, owner: str, ward: StoredCohort, kept: StepThrough, someone_else: str
) -> None:
    incoming = exchange.read_file(exchange.to_json(loading.load(owner, kept.id)).encode())
    shared_services.store.cohorts.share(owner, ward.id)
    try:
        copy = exchange.import_trace(someone_else, incoming).step_through
        shared_services.delete_step_throughs(owner, [kept.id])
        assert len(loading.load(someone_else, copy.id).events) == 7
        assert "deleted" not in exchange.import_trace(someone_else, incoming).sentence
    finally:
        shared_services.store.cohorts.share(owner, ward.id, shared=False)
