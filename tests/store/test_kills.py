"""kill -9 at any moment: what was acknowledged is there afterwards, whole and in order."""

import random
import time

import pytest

from app.store import Store
from tests.figures import Keep
from tests.store.harness import OWNER, PostgresServer, append_many, begin, new_uuid
from tests.store.writers import kill, received, start, write_until_killed


def kill_writers(store: Store, url: str, kills: int) -> int:
    """Kill writer after writer; returns how many events they had acknowledged. Fails if one of them is missing."""
    step_through = begin(store)
    draw, acknowledged = random.Random(11), []
    for number in range(kills):
        process, pipe = start(write_until_killed, url, step_through.id)
        if number % 5:  # every fifth is killed while it starts
            assert pipe.poll(300), "the writer never wrote"
        time.sleep(draw.uniform(0, 0.08))
        kill(process)
        acknowledged += received(pipe)
    # A killed writer's last transaction may still be held by the server; the next one waits for it.
    length = store.step_throughs.get(OWNER, step_through.id).length
    store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), length, "observe", {"text": ""})
    events = store.step_throughs.events(OWNER, step_through.id)
    stored = {(event.sequence, event.event_id, len(event.payload["text"])) for event in events}
    missing = [event for event in acknowledged if event not in stored]
    assert missing == []
    assert len(acknowledged) <= len(events) - 1 <= len(acknowledged) + kills
    assert store.verify().intact
    return len(acknowledged)


def test_no_acknowledged_event_is_lost_when_writers_are_killed(store: Store, url: str) -> None:
    assert kill_writers(store, url, kills=20) >= 16


@pytest.mark.reliability
def test_no_acknowledged_event_is_lost_in_two_hundred_kills(store: Store, url: str, figure: Keep) -> None:
    acknowledged = kill_writers(store, url, kills=200)
    check = f"kill -9 of a writer at 200 random moments ({store.database.url.get_backend_name()})"
    figure(check, "0 acknowledged events lost", f"0 of {acknowledged:,} lost", True)


@pytest.mark.postgres
def test_a_crash_of_the_database_server_loses_nothing_and_is_survived(
    postgres_server: PostgresServer, migrated_postgres: str
) -> None:
    store = Store(postgres_server.create(f"store_{new_uuid()[:8]}", migrated_postgres))
    step_through = begin(store)
    append_many(store, step_through, 5)
    before = store.step_throughs.read(OWNER, step_through.id)
    postgres_server.stop("immediate")
    postgres_server.start()
    assert store.step_throughs.read(OWNER, step_through.id) == before
    append_many(store, step_through, 1)
    assert store.verify().intact
    store.close()
