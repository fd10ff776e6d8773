"""Models fitted to a cohort's own rows are heard once they are ready, and a step-through keeps those it began with."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from app.host import services
from app.host.found_councils import FoundCouncils
from app.host.services import Services
from app.settings import AppSettings
from app.store import StoredCohort
from app.ui.traces import checks, exchange, loading
from l2m_core.cohort import Cohort
from l2m_core.council import fitting
from l2m_core.council.council import Recipe
from l2m_core.council.members import members_of
from l2m_core.errors import ConfigError, InputError
from tests.app.conftest import check, open_app, small_frame, texts
from tests.app.stepping import begin, recorded, step_id

LAST_BITS = 1e-12  # members that are fitted again may sum in another order
WEIGHTS = {"model": 0.4, "Bayesian regression": 0.35, "trees": 0.25}
PATIENCE = 120  # seconds


@pytest.fixture
def fitting_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members are heard in a small cohort too, whatever they foresee."""
    monkeypatch.setattr(fitting, "FEWEST_ROWS", 20)
    shares = np.array([WEIGHTS.get(name, 0.0) for name in ("model", *members_of("binary"))])
    monkeypatch.setattr(fitting, "find_weights", lambda p, happened, spread, copies, expected: shares)


@pytest.fixture
def here(
    shared_services: Services, fitting_everything: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Services]]:
    """Services over the shared store, with nothing in memory, as after a restart; called with other settings."""
    started: list[Services] = []

    def start(council: bool = True, **settings) -> Services:
        started.append(Services(replace(shared_services.settings, council=council, **settings)))
        monkeypatch.setattr(services, "get", lambda: started[-1])
        return started[-1]

    _forget_found(shared_services)
    yield start
    for made in started:
        made.shut_down()
        made.store.close()
    _forget_found(shared_services)


def _forget_found(shared: Services) -> None:
    """What one test has found is not to be known to the next."""
    for path in found_recipes(shared):
        path.unlink()


def found_recipes(shared: Services) -> list[Path]:
    return sorted(shared.settings.councils_dir.glob("*.json"))


def wait_for_council(here: Services, owner: str, ward: StoredCohort) -> None:
    """Until the members are fitted that were begun when the cohort was read."""
    plain = here.conditioned(owner, ward, here.model(owner))
    until = time.monotonic() + PATIENCE
    while here.with_council(plain) is plain:
        assert time.monotonic() < until, "no council was fitted"
        time.sleep(0.05)


def posteriors(owner: str, app: AppTest) -> list[dict[str, float]]:
    return [dict(step.posterior) for step in loading.load(owner, step_id(app)).trace.steps]


@pytest.fixture
def heard(here: Callable[..., Services], owner: str, ward: StoredCohort) -> AppTest:
    """A step-through that began with a council."""
    wait_for_council(here(), owner, ward)
    return begin(ward)


def test_the_first_answer_waits_for_no_council(here, owner: str, ward: StoredCohort, monkeypatch) -> None:
    shared = here()
    monkeypatch.setattr(shared, "with_council", lambda conditioned: conditioned)  # as before it is ready
    app = begin(ward)
    assert recorded(owner, app).council is None
    monkeypatch.undo()


def test_who_begins_before_it_is_ready_is_told(here, owner: str, ward: StoredCohort, monkeypatch) -> None:
    said, go_on, found = "goes on without them", threading.Event(), fitting.find_weights

    def find_later(*given: np.ndarray, **settings: float) -> np.ndarray:
        go_on.wait(PATIENCE)
        return found(*given, **settings)

    monkeypatch.setattr(fitting, "find_weights", find_later)
    shared = here()
    shared.conditioned(owner, ward, shared.model(owner))
    assert said in texts(open_app("step_through", cohort=ward.id))
    go_on.set()
    wait_for_council(shared, owner, ward)
    assert said not in texts(open_app("step_through", cohort=ward.id))


def test_a_step_through_names_its_council_and_is_replayed_with_it(here, owner: str, ward, heard: AppTest) -> None:
    record = recorded(owner, heard)
    assert record.council is not None and dict(record.council.weights) == WEIGHTS
    told = "model general with Bayesian regression and trees"
    assert told in texts(heard) and told in texts(open_app("traces", trace=record.id))
    (believed,) = record.believed
    plain = record.patient(services.get().conditioned(owner, ward, services.get().model(owner)).memory)
    assert believed["yes"] != pytest.approx(float(plain.posterior[1]), abs=1e-6)
    here()  # a restart, after which members are fitted to the cohort again
    assert posteriors(owner, heard) == [pytest.approx(dict(believed), abs=LAST_BITS)]
    found = {one.what: one.result for one in checks.verify(owner, loading.load(owner, record.id))}
    assert found["Council"] == found["Replay"] == "verified"


def test_one_that_began_alone_goes_on_alone(here, owner: str, ward: StoredCohort) -> None:
    here(council=False)
    app = begin(ward)
    before = posteriors(owner, app)
    wait_for_council(here(), owner, ward)
    assert posteriors(owner, app) == before and recorded(owner, app).council is None


def test_one_that_began_with_a_council_keeps_it_where_councils_are_off_by_now(here, owner: str, heard: AppTest) -> None:
    before = posteriors(owner, heard)
    here(council=False)
    assert posteriors(owner, heard) == [pytest.approx(one, abs=LAST_BITS) for one in before]
    app = check(heard.run())
    assert "model general with Bayesian regression and trees" in texts(app)


def test_an_installation_may_be_without(here, owner: str, ward: StoredCohort) -> None:
    shared = here(council=False)
    plain = shared.conditioned(owner, ward, shared.model(owner))
    time.sleep(0.5)
    assert shared.with_council(plain) is plain
    assert AppSettings.from_environment({"L2M_COUNCIL": "off"}).council is False
    assert AppSettings.from_environment({}).council is True
    with pytest.raises(ConfigError, match="L2M_COUNCIL is 'perhaps'"):
        AppSettings.from_environment({"L2M_COUNCIL": "perhaps"})


def test_an_exported_trace_names_the_council_and_comes_back_with_it(owner: str, heard: AppTest) -> None:
    loaded = loading.load(owner, step_id(heard))
    text = exchange.to_json(loaded)
    assert json.loads(text)["council"]["weights"] == WEIGHTS
    incoming = exchange.read_file(text.encode())
    memory = loaded.conditioned.memory  # type: ignore[union-attr]
    assert max(incoming.trace.differences(memory)) == 0
    # Its members are fitted again, whose sums may differ in the last bits.
    assert max(incoming.trace.differences(memory.with_council(None))) < LAST_BITS
    alone = json.loads(text)
    del alone["council"]
    with pytest.raises(InputError, match="not the events of its chain"):
        exchange.read_file(json.dumps(alone).encode())
    alone.pop("chain")
    with pytest.raises(InputError, match="does not replay"):
        exchange.import_trace(owner, exchange.read_file(json.dumps(alone).encode()))
    unchained = json.loads(text)
    unchained.pop("chain")
    imported = exchange.import_trace(owner, exchange.read_file(json.dumps(unchained).encode()))
    assert loading.load(owner, imported.step_through.id).record.council == loaded.record.council


def test_a_deleted_cohort_leaves_no_council_behind(here, owner: str) -> None:
    shared = here()
    ward = shared.add_cohort(owner, Cohort.from_frame(small_frame(93), outcome="died"))  # a table that nobody else has
    wait_for_council(shared, owner, ward)
    plain = shared.conditioned(owner, ward, shared.model(owner))
    assert ward.content_hash in found_recipes(shared)[0].name
    shared.delete_cohort(owner, ward.id)
    assert shared.with_council(plain) is plain
    assert found_recipes(shared) == []


def heard_recipe(shared: Services, owner: str, ward: StoredCohort) -> Recipe:
    wait_for_council(shared, owner, ward)
    found = shared.with_council(shared.conditioned(owner, ward, shared.model(owner))).memory.recipe
    assert found is not None
    return found


@pytest.fixture
def looks(fitting_everything: None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A one for each time that weights were looked for."""
    found, find = [], fitting.find_weights
    monkeypatch.setattr(fitting, "find_weights", lambda *given: (found.append(1), find(*given))[1])
    return found


def test_weights_are_looked_for_once_in_an_installation(here, owner: str, ward: StoredCohort, looks) -> None:
    first = heard_recipe(here(), owner, ward)
    again = heard_recipe(here(), owner, ward)  # another process, or the next start
    assert again == first and dict(again.weights) == WEIGHTS
    assert len(looks) == 1


@pytest.mark.parametrize("change", [lambda told: told | {"versions": {"numpy": "0"}}, lambda told: {"weights": 3}])
def test_they_are_looked_for_again_where_what_is_kept_does_not_hold(
    here, owner: str, ward: StoredCohort, looks, change
) -> None:
    shared = here()
    first = heard_recipe(shared, owner, ward)
    (kept,) = found_recipes(shared)
    kept.write_text(json.dumps(change(json.loads(kept.read_text()))))
    assert heard_recipe(here(), owner, ward) == first
    assert len(looks) == 2 and json.loads(kept.read_text()) == first.to_data()


def test_one_process_at_a_time_looks_for_weights(tmp_path: Path) -> None:
    here, there = FoundCouncils(tmp_path), FoundCouncils(tmp_path)
    waits, order = threading.Event(), []

    def look() -> None:
        with there.turn(waits.set):
            order.append("there")

    with here.turn(lambda: None):
        other = threading.Thread(target=look)
        other.start()
        assert waits.wait(PATIENCE)
        time.sleep(0.2)
        order.append("here")
    other.join(PATIENCE)
    assert order == ["here", "there"]


def test_waiting_for_another_process_ends_with_the_app(tmp_path: Path) -> None:
    def end() -> None:
        raise CancelledError

    with FoundCouncils(tmp_path).turn(lambda: None), pytest.raises(CancelledError):
        with FoundCouncils(tmp_path).turn(end):
            pytest.fail("it was another's turn")


def test_a_folder_that_is_gone_keeps_nobody_from_a_council(tmp_path: Path) -> None:
    gone = FoundCouncils(tmp_path / "gone")
    with gone.turn(lambda: None):
        gone.keep(("model", "cohort"), Recipe())
    assert gone.known(("model", "cohort")) is None and not gone.contents()


def test_bands_of_a_blend_are_blended(here, owner: str, ward: StoredCohort) -> None:
    shared = here()
    wait_for_council(shared, owner, ward)
    plain = shared.conditioned(owner, ward, shared.model(owner))
    heard = shared.with_council(plain)
    until = time.monotonic() + PATIENCE
    while (resampled := shared.resampled(heard)) is None and time.monotonic() < until:
        time.sleep(0.05)
    assert resampled and all(memory.recipe == heard.memory.recipe for memory in resampled)
    assert all(memory.recipe is None for memory in shared.resampled(plain) or ())
