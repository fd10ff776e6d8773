"""How long the verification of a large store takes. A figure to read, in the long run only: machines differ."""

import time

import pytest
from sqlalchemy import insert

from app.store import Store, chain
from app.store.links import next_link
from app.store.records import NewEvent
from app.store.step_throughs import chain_origin
from app.store.tables import EventRow, StepThroughRow
from tests.figures import Keep
from tests.store.harness import OWNER, begin, new_uuid

EVENTS, STEP_THROUGHS = 100_000, 100


@pytest.mark.reliability
def test_a_hundred_thousand_events_are_verified(store: Store, figure: Keep) -> None:
    for _ in range(STEP_THROUGHS):
        fill_one(store, EVENTS // STEP_THROUGHS)
    before, before_cpu = time.perf_counter(), time.process_time()
    found = store.verify()
    took, cpu = time.perf_counter() - before, time.process_time() - before_cpu
    figure(
        f"verifying {found.events:,} events ({store.database.url.get_backend_name()})",
        "< 1 s of processor",
        f"{took:.2f} s by the clock, {cpu:.2f} s of processor",
        cpu < 1,
    )
    assert found.intact
    assert found.events == EVENTS


def fill_one(store: Store, number: int) -> None:
    """Many events in one transaction, which the store's own face does not offer."""
    step_through = begin(store)
    head = chain.Head(0, chain_origin(step_through.id, step_through.cohort_hash, step_through.model_fingerprint))
    rows = []
    for sequence in range(number):
        payload = {"feature": "lactate", "value": sequence + 0.5, "gains": [0.125, 0.25, 0.0625] * 5}
        link = next_link(EventRow, step_through.id, head, NewEvent(new_uuid(), "observe", payload))
        rows.append({name: getattr(link, name) for name in chain.Link._fields} | {"step_through_id": step_through.id})
        head = chain.Head(sequence + 1, link.hash)
    with store.database.writing() as session:
        session.execute(insert(EventRow), rows)
        row = session.get_one(StepThroughRow, step_through.id)
        row.length, row.head_hash = head.length, head.hash
    assert store.step_throughs.get(OWNER, step_through.id).length == number
