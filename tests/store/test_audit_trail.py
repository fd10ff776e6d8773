"""Append-only, hash-chained: the database refuses changes, and what is changed around it is found and named."""

import random

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.store import Store, StoreInputError
from app.store.signed_heads import read_heads
from app.store.verification import Verification, verify_records
from tests.figures import Keep
from tests.store.harness import OWNER, STRANGER, add_cohort, append_many, begin, table
from tests.store.tampering import TAMPERINGS, cut_the_tail, tampered


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET payload = '{}'",
        "UPDATE events SET sequence = sequence + 100",
        "DELETE FROM events",
        "DELETE FROM step_throughs",
        "UPDATE audit SET payload = '{}'",
        "DELETE FROM audit",
    ],
)
def test_the_database_itself_refuses_to_change_or_remove(store: Store, statement: str) -> None:
    append_many(store, begin(store), 2)
    with pytest.raises(DBAPIError), store.database.engine.begin() as connection:
        connection.execute(text(statement))
    assert store.verify().intact


@pytest.mark.parametrize("table", ["events", "audit"])
def test_nothing_is_replaced_by_inserting_over_it(store: Store, table: str) -> None:
    append_many(store, begin(store), 2)
    if store.database.is_sqlite:
        over = f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} WHERE sequence = 0"
    else:
        key = "(step_through_id, sequence)" if table == "events" else "(sequence)"
        over = f"INSERT INTO {table} SELECT * FROM {table} ON CONFLICT {key} DO UPDATE SET payload = '{{}}'"
    with pytest.raises(DBAPIError, match="append-only"), store.database.engine.begin() as connection:
        connection.execute(text(over))


@pytest.mark.parametrize("table", ["events", "audit"])
def test_a_table_is_not_emptied_at_once(store: Store, table: str) -> None:
    append_many(store, begin(store), 1)
    statement = f"DELETE FROM {table}" if store.database.is_sqlite else f"TRUNCATE {table} CASCADE"
    with pytest.raises(DBAPIError, match="append-only"), store.database.engine.begin() as connection:
        connection.execute(text(statement))


def count_undetected(store: Store, attempts: int) -> int:
    """Tamper with one of two step-throughs, each time anew, and verify everything."""
    first, second = begin(store), begin(store)
    append_many(store, first, 12)
    append_many(store, second, 3)
    draw, undetected = random.Random(7), 0
    for attempt in range(attempts):
        with tampered(store) as connection:
            TAMPERINGS[attempt % len(TAMPERINGS)](connection, first.id, 12, draw)
            found = verify_records(Session(connection))
            undetected += [verdict.chain for verdict in found.broken] != [first.id]
    assert store.verify().intact
    return undetected


def test_flipped_deleted_and_reordered_events_are_found(store: Store) -> None:
    assert count_undetected(store, 50) == 0


@pytest.mark.reliability
def test_a_thousand_tamperings_are_found(store: Store, figure: Keep) -> None:
    undetected = count_undetected(store, 1000)
    check = f"audit trail: events flipped, deleted, reordered ({store.database.url.get_backend_name()})"
    figure(check, "all found, and the chain named", f"{1000 - undetected} of 1,000 found", undetected == 0)
    assert undetected == 0


def test_the_verdict_names_the_first_broken_link(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 6)
    with tampered(store) as connection:
        connection.execute(text("UPDATE events SET payload = '{}' WHERE sequence IN (2, 4)"))
        (verdict,) = verify_records(Session(connection)).broken
    assert (verdict.chain, verdict.broken_at, verdict.reason) == (step_through.id, 2, "link 2 was altered")


def test_a_cut_tail_shows_in_the_database_unless_the_head_is_cut_too(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 6)
    heads = read_heads(store.export_heads())
    with tampered(store) as connection:
        connection.execute(text("DELETE FROM events WHERE sequence = 5"))
        assert verify_records(Session(connection)).broken[0].broken_at == 5
    for seed in range(5):
        with tampered(store) as connection:
            cut_the_tail(connection, step_through.id, 6, random.Random(seed))
            assert verify_records(Session(connection)).intact
            (verdict,) = verify_records(Session(connection), heads).broken
            assert verdict.chain == step_through.id
            assert "cut off" in verdict.reason


def test_a_removed_step_through_is_missed(store: Store) -> None:
    step_through, other = begin(store), begin(store)
    append_many(store, step_through, 2)
    with tampered(store) as connection:
        connection.execute(text("DELETE FROM events WHERE step_through_id = :id"), {"id": step_through.id})
        connection.execute(text("DELETE FROM step_throughs WHERE id = :id"), {"id": step_through.id})
        (verdict,) = verify_records(Session(connection)).broken
    assert (verdict.chain, verdict.reason) == (step_through.id, "the step-through itself was removed")
    assert store.step_throughs.verify(OWNER, other.id).intact


def test_an_altered_or_cut_audit_trail_is_found(store: Store) -> None:
    begin(store)
    store.cohorts.add(OWNER, "second", table(), "features: []", "b" * 64)
    heads = read_heads(store.export_heads())

    def verify_after(statement: str) -> Verification:
        with tampered(store) as connection:
            connection.execute(text(statement))
            return verify_records(Session(connection), heads)

    altered = verify_after("UPDATE audit SET kind = 'cohort deleted' WHERE sequence = 1").broken
    assert ("audit", 1) in [(verdict.chain, verdict.broken_at) for verdict in altered]
    (cut,) = verify_after("DELETE FROM audit WHERE sequence = 2").broken
    assert (cut.chain, cut.broken_at) == ("audit", 2)


def test_a_chain_that_went_on_still_passes_through_its_exported_head(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    heads = store.export_heads()
    append_many(store, step_through, 2)
    begin(store)
    found = store.verify(heads)
    assert found.intact
    assert (found.step_throughs, found.events) == (2, 4)


@pytest.mark.parametrize("text_of_heads", ["", "[]", '{"a": 1}', '{"a": {"length": "x", "hash": 1}}'])
def test_a_file_that_holds_no_heads_is_refused(store: Store, text_of_heads: str) -> None:
    with pytest.raises(StoreInputError, match="heads"):
        store.verify(text_of_heads)


def test_administrative_acts_are_listed_for_their_owner_only(store: Store) -> None:
    cohort = add_cohort(store)
    store.cohorts.share(OWNER, cohort.id)
    store.step_throughs.create(STRANGER, cohort.id, "model-1")
    store.cohorts.delete(OWNER, cohort.id)
    assert [act.kind for act in store.audit.list(OWNER)] == ["cohort deleted", "cohort shared", "cohort added"]
    assert [act.kind for act in store.audit.list(STRANGER)] == ["step-through created"]
    assert store.audit.list(OWNER, limit=1)[0].subject == cohort.id
