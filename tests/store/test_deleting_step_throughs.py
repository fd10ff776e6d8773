"""A step-through that is deleted: its values are gone from the database and its journal, and nothing is hidden by it."""

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.store import Conflict, NotFound, SignedHeads, StepThrough, Store, chain
from app.store.__main__ import main
from app.store.signed_heads import read_heads
from app.store.verification import verify_records
from tests.store.harness import OWNER, STRANGER, append_many, begin, new_uuid
from tests.store.tampering import tampered, without_triggers
from tests.store.test_signed_heads import settings, write_anew  # noqa: F401

CANARY = "CANARY-7351"


@pytest.fixture
def kept(store: Store) -> StepThrough:
    """Three events, the last of which ends it."""
    step_through = begin(store, title=f"{CANARY} title")
    append_many(store, step_through, 2)
    payload = {"reason": f"{CANARY} reason"}
    store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 2, "stop", payload, status="finished")
    return store.step_throughs.get(OWNER, step_through.id)


def bytes_on_disk(store: Store) -> bytes:
    path = Path(str(store.database.url.database))
    files = [path, path.with_name(f"{path.name}-wal")]
    return b"".join(file.read_bytes() for file in files if file.exists())


def test_its_values_are_gone_from_the_file_and_its_journal(store: Store, kept: StepThrough) -> None:
    if not store.database.is_sqlite:
        pytest.skip("PostgreSQL frees its pages when it vacuums")
    assert CANARY.encode() in bytes_on_disk(store)
    store.step_throughs.delete(OWNER, [kept.id])
    assert CANARY.encode() not in bytes_on_disk(store)


def test_it_is_gone_for_its_owner_and_all_else_stays(store: Store, kept: StepThrough) -> None:
    other = begin(store, title="bed 5")
    append_many(store, other, 2)
    store.step_throughs.read_on(OWNER, kept.id)  # in memory, too
    (gone,) = store.step_throughs.delete(OWNER, [kept.id])
    assert (gone.id, len(gone.link_hashes), gone.link_hashes[-1]) == (kept.id, 3, kept.head_hash)
    assert [one.title for one in store.step_throughs.list(OWNER)] == ["bed 5"]
    assert kept.id not in {one.id for one in store.step_throughs.latest_of_each_cohort(9)}
    for ask in (
        lambda: store.step_throughs.read(OWNER, kept.id),
        lambda: store.step_throughs.read_on(OWNER, kept.id),
        lambda: store.step_throughs.verify(OWNER, kept.id),
        lambda: store.step_throughs.update(OWNER, kept.id, kept.version, title="again"),
        lambda: append_many(store, kept, 1),
        lambda: store.step_throughs.append_event(OWNER, kept.id, new_uuid(), 3, "observe", {}),
    ):
        with pytest.raises(NotFound, match="You deleted this step-through on .* Begin a new one"):
            ask()
    assert store.step_throughs.deleted(OWNER, kept.id) == gone
    assert store.step_throughs.deleted(OWNER, other.id) is None
    assert store.step_throughs.deleted(STRANGER, kept.id) is None
    with pytest.raises(Conflict, match="was deleted"):
        store.step_throughs.create(OWNER, other.cohort_id, "model-1", step_through_id=kept.id)


def test_the_audit_trail_tells_who_deleted_what_and_when(store: Store, kept: StepThrough) -> None:
    (gone,) = store.step_throughs.delete(OWNER, [kept.id])
    act = store.audit.list(OWNER)[0]
    assert (act.kind, act.subject, act.owner) == ("step-through deleted", kept.id, OWNER)
    assert (act.details["length"], act.details["head"], act.details["broken"]) == (3, kept.head_hash, "")
    assert abs((act.recorded_at - gone.deleted_at).total_seconds()) < 5
    found = store.verify()
    assert found.intact and (found.step_throughs, found.deleted, found.events) == (1, 1, 0)


def test_several_are_deleted_at_once_or_none(store: Store, kept: StepThrough) -> None:
    second, theirs = begin(store), begin(store, STRANGER)
    append_many(store, theirs, 2)
    with pytest.raises(NotFound, match="no such step-through of yours"):
        store.step_throughs.delete(OWNER, [kept.id, second.id, theirs.id])
    assert len(store.step_throughs.list(OWNER)) == 2
    with pytest.raises(NotFound):
        store.step_throughs.delete(OWNER, ["no id at all"])
    assert {one.id for one in store.step_throughs.delete(OWNER, [kept.id, second.id, kept.id])} == {kept.id, second.id}
    assert len(store.step_throughs.read(STRANGER, theirs.id)[1]) == 2
    assert store.verify().intact


def test_what_was_deleted_already_is_passed(store: Store, kept: StepThrough) -> None:
    second = begin(store)
    store.step_throughs.delete(OWNER, [kept.id])
    acts = len(store.audit.list(OWNER))
    assert store.step_throughs.delete(OWNER, [kept.id]) == ()
    assert len(store.audit.list(OWNER)) == acts
    assert [one.id for one in store.step_throughs.delete(OWNER, [kept.id, second.id])] == [second.id]


def test_events_of_one_that_is_there_still_cannot_be_removed(store: Store, kept: StepThrough) -> None:
    other = begin(store)
    append_many(store, other, 2)
    store.step_throughs.delete(OWNER, [kept.id])
    for statement in ("DELETE FROM events", "UPDATE events SET payload = '{}'"):
        with pytest.raises(DBAPIError, match="append-only"), store.database.engine.begin() as connection:
            connection.execute(text(statement))
    assert store.verify().intact


# -- nothing is hidden by it ------------------------------------------------------------------------------------------


def found_after(store: Store, statement: str, heads: str | None = None, **values: str) -> str:
    """What a verification says after this change of the database."""
    with tampered(store) as connection:
        connection.execute(text(statement), values)
        found = verify_records(Session(connection), read_heads(heads) if heads else None)
    return "\n".join([*(verdict.reason for verdict in found.broken), *found.faults])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("title = 'again'", "its title is not the one that the acts tell"),
        ("deleted_at = NULL", "link 0 is missing: 3 cut off at the end"),
        ("deleted_at = NULL, length = 0", "whether it was deleted is not what the acts tell"),
        ("link_hashes = NULL", "link 0 is missing"),
        ("head_hash = 'other'", "link 2 is not the one known from elsewhere"),
        ("length = 2", "its length is not the one that the acts tell"),
        ("owner = 'owner-two'", "its owner is not the one that the acts tell"),
    ],
)
def test_a_changed_tombstone_is_found(store: Store, kept: StepThrough, change: str, said: str) -> None:
    store.step_throughs.delete(OWNER, [kept.id])
    assert said in found_after(store, f"UPDATE step_throughs SET {change} WHERE id = :id", id=kept.id)


def test_a_tombstone_that_was_taken_away_is_found(store: Store, kept: StepThrough) -> None:
    store.step_throughs.delete(OWNER, [kept.id])
    assert "the step-through itself was removed" in found_after(store, "DELETE FROM step_throughs")


def test_one_that_was_made_to_look_deleted_is_found(store: Store, kept: StepThrough) -> None:
    hashes = "\n".join(event.hash for event in store.step_throughs.events(OWNER, kept.id))
    with store.database.engine.begin() as connection, without_triggers(connection):
        connection.execute(text("DELETE FROM events"))
        change = "UPDATE step_throughs SET deleted_at = :at, link_hashes = :hashes, title = '' WHERE id = :id"
        connection.execute(text(change), {"at": "2026-01-01T00:00:00.000000Z", "hashes": hashes, "id": kept.id})
    said = "\n".join(store.verify().faults)
    assert "whether it was deleted is not what the acts tell" in said


def test_a_chain_that_was_broken_stays_known_as_broken(store: Store, kept: StepThrough) -> None:
    with store.database.engine.begin() as connection, without_triggers(connection):
        connection.execute(text("UPDATE events SET payload = '{}' WHERE sequence = 1"))
    store.step_throughs.delete(OWNER, [kept.id])
    assert store.step_throughs.list(OWNER) == ()
    assert f"step-through {kept.id}: its chain was not whole when it was deleted (link 1 was altered)" in "\n".join(
        store.verify().faults
    )


def test_one_that_was_written_anew_before_it_was_deleted_does_not_fit_earlier_heads(
    store: Store, kept: StepThrough
) -> None:
    heads = store.export_heads()
    write_anew(store, kept)
    store.step_throughs.delete(OWNER, [kept.id])
    assert store.verify().intact, "all hashes fit each other again"
    (verdict,) = store.verify(heads).broken
    assert (verdict.chain, verdict.reason) == (kept.id, "link 2 is not the one known from elsewhere")


def test_a_head_from_the_middle_is_still_held_against_it(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    heads = store.export_heads()
    append_many(store, step_through, 3)
    store.step_throughs.delete(OWNER, [step_through.id])
    found = store.verify(heads)
    assert found.intact and found.anchored == 2
    other = heads.replace(read_heads(heads).heads[step_through.id][0].hash, "0" * 64)
    assert [verdict.chain for verdict in store.verify(other).broken] == [step_through.id]


def test_its_head_is_signed_when_it_is_deleted(settings, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    signed = SignedHeads.of(settings)
    with closing(Store(settings.database_url, signed=signed)) as store:
        running = begin(store)
        append_many(store, running, 2)
        head = store.step_throughs.get(OWNER, running.id).head_hash
        store.step_throughs.delete(OWNER, [running.id])
    assert signed.read().heads[running.id] == (chain.Head(2, head),)
    assert main(["verify"]) == 0
    assert "1 step-throughs (1 of them deleted), 0 events" in capsys.readouterr().out


def test_one_that_was_deleted_and_never_signed_is_named(settings) -> None:  # noqa: F811
    signed = SignedHeads.of(settings)
    with closing(Store(settings.database_url)) as unsigned:
        step_through = begin(unsigned)
        signed.append({"audit": unsigned.heads()["audit"]})
        unsigned.step_throughs.delete(OWNER, [step_through.id])
        faults = unsigned.verify(signed.read()).faults
    assert [fault for fault in faults if "is deleted, but no signed head of it is there" in fault]
