"""Exported files of an earlier day: read, replayed, imported, and exported again as they were."""

import csv
import io
import json
from typing import Any

import pytest

import l2m_core as l2m
from tests.golden import agreement, inside, stores

KEPT = agreement.read(stores.FACTS)
NUMBERS = sorted(int(path.stem) for path in stores.TRACES.glob("*.json"))
NEWCOMER = inside.browser_owner(f"{2:032x}")
FORMULA = "=1+1 is not run"


def kept(number: int, ending: str = "json") -> str:
    return (stores.TRACES / f"{number}.{ending}").read_bytes().decode()


def memory_of(app: inside.Services, number: int) -> inside.CohortMemory:
    owner, _, name = stores.step_throughs(app)[number - 1]
    memory = inside.load(owner, name).conditioned.memory
    assert isinstance(memory, inside.CohortMemory)
    return memory


def without_versions(file: str) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(file)
    assert plain.pop("versions")
    # A model is known by its fingerprint; the folder of a release is renamed when another one is shipped.
    assert plain["model"].pop("name") in ("general", inside.GOLDEN_MODEL, "tiny")
    return plain


def as_rankings(plain: dict[str, Any]) -> dict[str, Any]:
    """Gains as rankings: their order counts too."""
    steps = [
        {**step, "gains": {"feature": list(step["gains"]), "score": list(step["gains"].values())}}
        for step in plain["steps"]
    ]
    return {**plain, "steps": steps}


def test_every_kept_step_through_was_exported() -> None:
    assert NUMBERS == list(range(1, 1 + sum(len(owner["step-throughs"]) for owner in KEPT["owners"].values())))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_file_replays_with_the_core_alone(app: inside.Services, number: int) -> None:
    trace = l2m.Trace.from_json(kept(number))
    patient = trace.replay(memory_of(app, number), tolerance=agreement.NEAR)
    assert patient.events == trace.events
    now = [{"event": step.event.to_dict(), "spent": step.spent} for step in patient.trace.steps]
    assert now == [{"event": step.event.to_dict(), "spent": step.spent} for step in trace.steps]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_step_through_is_exported_as_it_was(app: inside.Services, number: int) -> None:
    """Ranking orders, gains, suggestions, costs, label and chain."""
    owner, _, name = stores.step_throughs(app)[number - 1]
    now, then = (
        as_rankings(without_versions(file)) for file in (inside.file_of(inside.load(owner, name)), kept(number))
    )
    assert list(agreement.differences(now, then)) == []
    assert now["chain"] == then["chain"] and list(now) == list(then)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_table_of_a_step_through_is_what_it_was(app: inside.Services, number: int) -> None:
    owner, _, name = stores.step_throughs(app)[number - 1]
    now, then = (rows_of(text) for text in (inside.csv_of(inside.load(owner, name)), kept(number, "csv")))
    now = [row[: len(then[0])] for row in now]  # columns of later releases stand behind
    assert list(agreement.differences(now, then)) == []
    assert kept(number, "csv").startswith("\ufeff") and "\r\n" in kept(number, "csv")


def rows_of(text: str) -> list[list[str | float]]:
    return [[number_or_text(cell) for cell in row] for row in csv.reader(io.StringIO(text, newline=""))]


def number_or_text(cell: str) -> str | float:
    try:
        return float(cell)
    except ValueError:
        return cell


def test_a_kept_table_neutralises_what_a_spreadsheet_would_run() -> None:
    reasons = [cell for number in NUMBERS for row in rows_of(kept(number, "csv")) for cell in row]
    assert "'" + FORMULA in reasons and FORMULA not in reasons


@pytest.mark.parametrize("number", NUMBERS)
def test_a_file_is_imported_by_somebody_else(app: inside.Services, number: int) -> None:
    """Chain, posteriors and label are checked on the way; what is then exported is the same."""
    owner, _, name = stores.step_throughs(app)[number - 1]
    app.add_cohort(NEWCOMER, app.cohort(owner, inside.load(owner, name).record.cohort))
    memory = memory_of(app, number)
    if memory.model.name != "general":
        app.store.models.register(NEWCOMER, memory.model.name, memory.model.fingerprint, stores.TINY)
    brought = inside.bring(NEWCOMER, kept(number).encode())
    plain = json.loads(kept(number))
    assert brought.title == (plain["label"] or "Imported trace")
    events = app.store.step_throughs.events(NEWCOMER, brought.id)
    assert [event.payload for event in events] == [event["payload"] for event in plain["chain"]["events"]]
    assert app.store.step_throughs.verify(NEWCOMER, brought.id).intact
    now, then = as_rankings(json.loads(inside.file_of(inside.load(NEWCOMER, brought.id)))), as_rankings(plain)
    assert list(agreement.differences(now["steps"], then["steps"])) == []


def test_a_file_imported_by_its_own_owner_is_the_step_through_that_is_there(app: inside.Services) -> None:
    owner, number, name = stores.step_throughs(app)[0]
    assert inside.bring(owner, kept(number).encode()).id == name
