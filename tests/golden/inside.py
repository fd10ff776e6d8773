"""All that the golden tests take from inside the project, in one place.

The other files of tests/golden know only what this one names, the top-level names of `l2m_core`, and commands. Whoever
moves a module changes the imports here, and nothing else: what the golden files hold stays as it is.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import l2m_core as l2m
from app.examples import EXAMPLES
from app.host import services
from app.host.identity import Signer, browser_owner, user_owner
from app.host.services import Services
from app.jobs.evidence_job import kept_under
from app.settings import AppSettings
from app.store import NewEvent, StepThrough, Store, StoredCohort
from app.store.__main__ import main as store_command
from app.ui.step_through import step_answers, stored_events
from app.ui.step_through.stored_events import POLICIES, SETTINGS, Rules, new_event
from app.ui.traces import checks, exchange, exports, loading
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import RangeWarning
from l2m_core.evidence import Evidence, EvidenceSettings, gather
from l2m_core.memory import CohortMemory
from l2m_core.step_through.trace import summarise
from train.__main__ import main as train_command

__all__ = [
    "GOLDEN_MODEL",
    "POLICIES",
    "CohortMemory",
    "Predictive",
    "Services",
    "Signer",
    "StepThrough",
    "StoredCohort",
    "bring",
    "browser_owner",
    "check",
    "condition",
    "csv_of",
    "evidence_of",
    "evidence_settings",
    "example",
    "file_of",
    "gather_evidence",
    "go_on",
    "load",
    "memory_of",
    "open_services",
    "open_store",
    "rules",
    "save_rules",
    "start",
    "store_command",
    "train_command",
    "user_owner",
]

GOLDEN_MODEL = "general-1"  # the release that was shipped when the golden files were made

QUICK = EvidenceSettings(folds=2, budget=2, most_rows=12, draws=100, conventional=False, council=False)


# -- the core -------------------------------------------------------------------------------------------------------


def example(name: str) -> l2m.Cohort:
    """A cohort that comes with the app."""
    (found,) = (one for one in EXAMPLES if one.name == name)
    return found.make()


def condition(model: l2m.L2M, cohort: l2m.Cohort) -> CohortMemory:
    """Without the warnings about the trained range: they stay in the memory's notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        return model.condition(cohort)


# -- the app --------------------------------------------------------------------------------------------------------


@contextmanager
def open_services(folder: Path) -> Iterator[Services]:
    """The app's services on a data folder, in place of the process's own until the block ends."""
    made, before = Services(AppSettings(folder, f"sqlite:///{folder / 'l2m.sqlite3'}")), services._services
    services._services = made
    try:
        yield made
    finally:
        services._services = before
        made.shut_down()
        made.store.close()


def open_store(path: Path) -> Store:
    """A database file, brought to the present schema."""
    return Store(f"sqlite:///{path}", migrate=True)


def memory_of(app: Services, owner: str, cohort: StoredCohort, model: str = GOLDEN_MODEL) -> CohortMemory:
    return app.conditioned(owner, cohort, app.model(owner, model)).memory


def start(
    app: Services, owner: str, cohort: StoredCohort, title: str, values: dict[str, Any],
    model: str = GOLDEN_MODEL, rules: Rules | None = None,
) -> StepThrough:  # fmt: skip
    """Begins a step-through as the page does: its first event, and the rules where they were set."""
    memory = memory_of(app, owner, cohort, model)
    patient = memory.start(values)
    events = [new_event(patient.events[0], summarise(patient))]
    if rules is not None:
        events.append(NewEvent(str(uuid.uuid4()), SETTINGS, rules.to_payload()))
    return app.store.step_throughs.create(owner, cohort.id, memory.model.fingerprint, title, events=events)


def go_on(app: Services, owner: str, step_through: str, act: Callable[[l2m.Patient], l2m.Patient]) -> l2m.Patient:
    """Does one thing in a stored step-through, as the page's buttons do: replayed, done, stored."""
    known = stored_events.read(owner, step_through)
    memory = step_answers.condition(owner, known).memory
    after = act(l2m.Patient.replay(memory, known.events, policy=known.settings.policy))
    event = new_event(after.events[-1], summarise(after))
    app.store.step_throughs.append_event(
        owner, step_through, event.event_id, known.length, event.kind, event.payload,
        status="finished" if after.state.stopped else "running",
    )  # fmt: skip
    return after


def save_rules(app: Services, owner: str, step_through: str, rules: Rules) -> None:
    length = stored_events.read(owner, step_through).length
    app.store.step_throughs.append_event(
        owner, step_through, l2m.Event("stop").id, length, SETTINGS, rules.to_payload()
    )


def rules(policy: str | None = None, **stopping: Any) -> Rules:
    return Rules(l2m.Stopping(**stopping), policy)


def load(owner: str, step_through: str) -> loading.LoadedTrace:
    """A recorded step-through, whole, as the traces page shows it."""
    return loading.load(owner, step_through)


def check(owner: str, loaded: loading.LoadedTrace) -> dict[str, str]:
    """What the page's button Verify finds: thing looked at → result."""
    return {found.what: found.result for found in checks.verify(owner, loaded)}


def file_of(loaded: loading.LoadedTrace) -> str:
    """The complete JSON file of a step-through."""
    return exchange.to_json(loaded)


def csv_of(loaded: loading.LoadedTrace) -> str:
    return exports.to_csv(loaded)


def bring(owner: str, data: bytes) -> StepThrough:
    """Imports a JSON file: checked, replayed, stored."""
    return exchange.import_trace(owner, exchange.read_file(data)).step_through


# -- evidence -------------------------------------------------------------------------------------------------------


def gather_evidence(model: l2m.L2M, cohort: l2m.Cohort) -> tuple[dict[str, Any], dict[str, Any]]:
    """Quickly: the settings that it is stored under, and the results as they are stored."""
    return kept_under(cohort, QUICK), gather(model, cohort, QUICK).to_data()


def evidence_settings() -> dict[str, Any]:
    return asdict(QUICK)


def evidence_of(results: dict[str, Any]) -> Evidence | None:
    """Stored results, read again."""
    return Evidence.from_data(results)
