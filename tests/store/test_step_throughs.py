"""Events: appended once, in order, readable by their owner only, and there again after a restart."""

import json
from contextlib import closing

import pytest
from sqlalchemy import delete, event, select, update

from app.store import Conflict, NewEvent, NotFound, Store, StoreInputError
from app.store.tables import EventRow, StepThroughRow
from tests.store.harness import OWNER, STRANGER, add_cohort, append_many, begin, new_uuid
from tests.store.tampering import remove_triggers


def test_events_come_back_as_they_went_in(store: Store) -> None:
    step_through = begin(store)
    payload = {"feature": "naïve \u0000 \ud800 💉", "value": 0.1, "nested": [1, None, True, {"b": -0.0, "a": 1e-300}]}
    sent = store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 0, "observe", payload)
    (read,) = store.step_throughs.events(OWNER, step_through.id)
    assert read == sent
    assert read.payload == payload
    assert (read.sequence, read.previous_hash) == (0, step_through.head_hash)


def test_appending_moves_the_head(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 3)
    now, events = store.step_throughs.read(OWNER, step_through.id)
    assert now.length == 3
    assert now.head_hash == events[-1].hash
    assert now.version > step_through.version
    assert now.updated_at == events[-1].recorded_at


def test_a_double_submit_stores_one_event(store: Store) -> None:
    step_through = begin(store)
    event_id = new_uuid()
    first = store.step_throughs.append_event(OWNER, step_through.id, event_id, 0, "observe", {"value": 1})
    again = store.step_throughs.append_event(OWNER, step_through.id, event_id.upper(), 0, "observe", {"value": 1})
    assert again == first
    assert store.step_throughs.get(OWNER, step_through.id).length == 1


def test_a_double_submit_is_answered_even_after_later_events(store: Store) -> None:
    step_through = begin(store)
    event_id = new_uuid()
    first = store.step_throughs.append_event(OWNER, step_through.id, event_id, 0, "observe", {"value": 1})
    append_many(store, step_through, 2)
    assert store.step_throughs.append_event(OWNER, step_through.id, event_id, 0, "observe", {"value": 1}) == first


def test_an_event_id_cannot_be_used_for_something_else(store: Store) -> None:
    step_through = begin(store)
    event_id = new_uuid()
    store.step_throughs.append_event(OWNER, step_through.id, event_id, 0, "observe", {"value": 1})
    with pytest.raises(Conflict):
        store.step_throughs.append_event(OWNER, step_through.id, event_id, 1, "observe", {"value": 2})
    assert store.step_throughs.get(OWNER, step_through.id).length == 1


@pytest.mark.parametrize("expected_length", [0, 1, 3])
def test_a_stale_or_invented_length_is_a_conflict(store: Store, expected_length: int) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    with pytest.raises(Conflict, match="another tab") as caught:
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), expected_length, "observe", {})
    assert caught.value.current_length == 2
    assert store.step_throughs.get(OWNER, step_through.id).length == 2


def test_the_status_changes_with_the_event_or_not_at_all(store: Store) -> None:
    step_through = begin(store)
    with pytest.raises(Conflict):
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 5, "stop", {}, status="finished")
    assert store.step_throughs.get(OWNER, step_through.id).status == "running"
    store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 0, "stop", {}, status="finished")
    assert store.step_throughs.get(OWNER, step_through.id).status == "finished"
    with pytest.raises(ValueError, match="status"):
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 1, "undo", {}, status="lost")  # type: ignore[arg-type]
    assert store.step_throughs.get(OWNER, step_through.id).length == 1


def test_a_trace_is_imported_whole_and_can_be_continued(store: Store) -> None:
    original = begin(store)
    append_many(store, original, 4)
    exported = json.loads(
        json.dumps([(e.event_id, e.kind, e.payload) for e in store.step_throughs.events(OWNER, original.id)])
    )
    events = [NewEvent(*event) for event in exported]
    copy = store.step_throughs.create(OWNER, original.cohort_id, "model-1", title="imported", events=events)
    assert [(e.event_id, e.kind, e.payload) for e in store.step_throughs.events(OWNER, copy.id)] == [
        tuple(event) for event in exported
    ]
    append_many(store, copy, 1)
    assert store.step_throughs.verify(OWNER, copy.id).intact
    assert store.step_throughs.verify(OWNER, original.id).intact


def test_an_import_with_one_bad_event_stores_nothing(store: Store) -> None:
    cohort = add_cohort(store)
    event_id = new_uuid()
    twice = [NewEvent(event_id, "observe", {}), NewEvent(event_id, "observe", {})]
    with pytest.raises(Conflict):
        store.step_throughs.create(OWNER, cohort.id, "model-1", events=twice)
    assert store.step_throughs.list(OWNER) == ()
    assert store.verify().intact


def test_a_double_click_on_begin_makes_one_step_through(store: Store) -> None:
    cohort, chosen = add_cohort(store), new_uuid()
    first = store.step_throughs.create(OWNER, cohort.id, "model-1", step_through_id=chosen)
    assert store.step_throughs.create(OWNER, cohort.id, "model-1", step_through_id=chosen) == first
    assert len(store.step_throughs.list(OWNER)) == 1
    with pytest.raises(Conflict):
        store.step_throughs.create(OWNER, cohort.id, "model-2", step_through_id=chosen)


def test_another_owner_sees_and_changes_nothing(store: Store) -> None:
    step_through = begin(store, title="bed 4")
    append_many(store, step_through, 1)
    theirs = store.step_throughs
    assert theirs.list(STRANGER) == ()
    for attempt in (
        lambda: theirs.get(STRANGER, step_through.id),
        lambda: theirs.read(STRANGER, step_through.id),
        lambda: theirs.verify(STRANGER, step_through.id),
        lambda: theirs.update(STRANGER, step_through.id, step_through.version, title="mine"),
        lambda: theirs.append_event(STRANGER, step_through.id, new_uuid(), 1, "observe", {}),
        lambda: theirs.create(STRANGER, step_through.cohort_id, "model-1"),
    ):
        with pytest.raises(NotFound) as of_another:
            attempt()
        assert step_through.id not in str(of_another.value)
    assert store.step_throughs.get(OWNER, step_through.id).length == 1


def test_what_is_anothers_reads_like_what_does_not_exist(store: Store) -> None:
    step_through = begin(store)
    with pytest.raises(NotFound) as of_another:
        store.step_throughs.get(STRANGER, step_through.id)
    with pytest.raises(NotFound) as of_nobody:
        store.step_throughs.get(STRANGER, new_uuid())
    assert str(of_another.value) == str(of_nobody.value)


def test_listing_searches_titles_literally_and_puts_the_latest_first(store: Store) -> None:
    older, newer = begin(store, title="50% bed_A"), begin(store, title="500 bedXa")
    assert [found.id for found in store.step_throughs.list(OWNER)] == [newer.id, older.id]
    append_many(store, older, 1)
    assert [found.id for found in store.step_throughs.list(OWNER)] == [older.id, newer.id]
    assert [found.id for found in store.step_throughs.list(OWNER, search="0% BED_a")] == [older.id]
    assert store.step_throughs.list(OWNER, status="finished") == ()
    assert len(store.step_throughs.list(OWNER, limit=1)) == 1


def test_listing_may_be_of_some_cohorts_only(store: Store) -> None:
    one, other = add_cohort(store, content="a"), add_cohort(store, content="b")
    wanted = [store.step_throughs.create(OWNER, one.id, "model").id for _ in range(2)]
    for _ in range(3):  # later ones of another cohort take none of the places
        store.step_throughs.create(OWNER, other.id, "model")
    assert {found.id for found in store.step_throughs.list(OWNER, limit=2, cohorts={one.id})} == set(wanted)
    assert store.step_throughs.list(OWNER, cohorts=()) == ()


def test_of_each_cohort_and_model_the_latest_step_through_is_known(store: Store) -> None:
    cohorts = [add_cohort(store, content=character) for character in "abc"]
    first = [store.step_throughs.create(OWNER, cohort.id, "model") for cohort in cohorts]
    also = store.step_throughs.create(OWNER, cohorts[0].id, "another model")
    theirs = store.step_throughs.create(STRANGER, add_cohort(store, STRANGER, content="b").id, "model")
    append_many(store, first[0], 1)  # the latest activity
    latest = store.step_throughs.latest_of_each_cohort(10)
    assert [found.id for found in latest] == [first[0].id, theirs.id, also.id, first[2].id]
    assert store.step_throughs.latest_of_each_cohort(2) == latest[:2]


def test_renaming_from_an_old_view_is_a_conflict(store: Store) -> None:
    step_through = begin(store, title="bed 4")
    renamed = store.step_throughs.update(OWNER, step_through.id, step_through.version, title="bed 5")
    with pytest.raises(Conflict):
        store.step_throughs.update(OWNER, step_through.id, step_through.version, title="bed 6")
    assert store.step_throughs.get(OWNER, step_through.id) == renamed


def test_renaming_is_no_event(store: Store) -> None:
    first, second = begin(store, title="bed 4"), begin(store, title="bed 5")
    renamed = store.step_throughs.update(OWNER, first.id, first.version, title="bed 6")
    assert renamed.updated_at == first.updated_at
    assert [found.id for found in store.step_throughs.list(OWNER)] == [second.id, first.id]


def test_a_restart_finds_everything_again(url: str) -> None:
    before = Store(url)
    step_through = begin(before, title="bed 4")
    append_many(before, step_through, 5)
    seen = before.step_throughs.read(OWNER, step_through.id)
    before.close()
    after = Store(url)
    assert after.step_throughs.list(OWNER)[0] == seen[0]
    assert after.step_throughs.read(OWNER, step_through.id) == seen
    after.close()


@pytest.mark.parametrize(
    "payload",
    [
        {"value": float("nan")},
        {"value": float("inf")},
        {1: "number as key"},
        {"value": {1, 2}},
        {"value": b"bytes"},
        {"value": 2**70},
        {"text": "x" * 1_000_001},
        ["not a dict"],
    ],
)
def test_a_payload_that_would_not_come_back_equal_is_refused(store: Store, payload: dict) -> None:
    step_through = begin(store)
    with pytest.raises(StoreInputError):
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 0, "observe", payload)
    assert store.step_throughs.get(OWNER, step_through.id).length == 0


@pytest.mark.parametrize("title", ["x" * 201, "nul \x00", "half \ud800"])
def test_a_title_that_a_database_would_refuse_is_refused_by_name(store: Store, title: str) -> None:
    with pytest.raises(StoreInputError, match="title"):
        begin(store, title=title)


def test_ids_must_be_uuids(store: Store) -> None:
    step_through = begin(store)
    with pytest.raises(StoreInputError, match="UUID"):
        store.step_throughs.append_event(OWNER, step_through.id, "../etc", 0, "observe", {})
    with pytest.raises(NotFound):
        store.step_throughs.get(OWNER, "' OR 1=1 --")


def test_what_another_process_appended_is_read(store: Store, url: str) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    first = store.step_throughs.read_on(OWNER, step_through.id)[1]
    with closing(Store(url)) as other:
        other.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 2, "observe", {"value": 3})
        assert store.step_throughs.read_on(OWNER, step_through.id)[1] == other.step_throughs.events(
            OWNER, step_through.id
        )
    assert store.step_throughs.read_on(OWNER, step_through.id)[1][:2] == first


def test_events_that_were_read_before_are_not_read_again(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 3)
    before = store.step_throughs.read_on(OWNER, step_through.id)[1]
    append_many(store, store.step_throughs.get(OWNER, step_through.id), 1)
    fetched: list[int] = []

    def count(row: EventRow, context: object) -> None:
        fetched.append(row.sequence)

    event.listen(EventRow, "load", count)
    try:
        assert store.step_throughs.read_on(OWNER, step_through.id)[1][:3] == before
        assert fetched == [3]
        store.step_throughs.read_on(OWNER, step_through.id)[1]
        assert fetched == [3]
    finally:
        event.remove(EventRow, "load", count)


def test_a_database_put_back_to_an_earlier_state_is_read_as_it_is(store: Store, url: str) -> None:
    """As when a back-up is restored under a running app: another history, as long as the one that was read."""
    step_through = begin(store)
    append_many(store, step_through, 3)
    store.step_throughs.read_on(OWNER, step_through.id)[1]
    with store.database.engine.begin() as connection:
        remove_triggers(connection)
        connection.execute(delete(EventRow).where(EventRow.step_through_id == step_through.id, EventRow.sequence >= 1))
        first = connection.execute(
            select(EventRow.hash).where(EventRow.step_through_id == step_through.id)
        ).scalar_one()
        row = update(StepThroughRow).where(StepThroughRow.id == step_through.id)
        connection.execute(row.values(length=1, head_hash=first))
    assert [e.sequence for e in store.step_throughs.read_on(OWNER, step_through.id)[1]] == [0]
    for number in (1, 2):
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), number, "observe", {"another": number})
    with closing(Store(url)) as other:
        assert store.step_throughs.read_on(OWNER, step_through.id)[1] == other.step_throughs.events(
            OWNER, step_through.id
        )
