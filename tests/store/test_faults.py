"""What lies beside the chains: each thing that somebody changed around the program is named, and the rest still checked."""

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.store import Store
from app.store.__main__ import main
from app.store.verification import verify_records
from tests.figures import Keep
from tests.store.harness import OWNER, append_many, begin
from tests.store.tampering import tampered, without_triggers

TAMPERED = {
    "DELETE FROM cohort_data": "its data are missing",
    "UPDATE cohort_data SET parquet = CAST('' AS BLOB)": "its data were altered",
    "UPDATE cohort_data SET parquet = CAST('zero' AS BLOB)": "its data were altered",
    "UPDATE cohorts SET size = 4": "its data were altered",
    "UPDATE cohorts SET schema_yaml = 'features: []'": "its schema is not the one",
    "UPDATE cohorts SET owner = 'somebody else'": "its owner is not the one",
    "UPDATE cohorts SET name = 'another'": "its name is not the one",
    "UPDATE cohorts SET content_hash = 'f'": "its content hash is not the one",
    "UPDATE cohorts SET shared = TRUE": "its shared is not the one",
    "UPDATE cohorts SET deleted_at = created_at": "whether it was deleted",
    "UPDATE step_throughs SET owner = 'somebody else'": "its owner is not the one",
    "UPDATE step_throughs SET title = 'CANARY'": "its title is not the one",
    "UPDATE step_throughs SET created_at = 'yesterday'": "is malformed (created_at)",
    "UPDATE step_throughs SET updated_at = '2025-01-31'": "is malformed (updated_at)",
    "UPDATE cohorts SET created_at = ''": "is malformed (created_at)",
    "UPDATE jobs SET config = 'none'": "is malformed (config)",
    "UPDATE models SET owner = 'somebody else'": "no act tells of it",
}
SQLITE_ONLY = {  # PostgreSQL refuses these by itself
    "UPDATE step_throughs SET title = CAST(x'ff43414e415259' AS TEXT)": "is malformed (title)",
    "UPDATE step_throughs SET length = 'three'": "its own row cannot be read",
    "UPDATE step_throughs SET model_fingerprint = x'00'": "its own row cannot be read",
    "UPDATE events SET kind = x'00' WHERE sequence = 1": "link 1 was altered",
    "UPDATE events SET payload = CAST(x'ff' AS TEXT) WHERE sequence = 1": "link 1 was altered",
}


def fill(store: Store) -> None:
    append_many(store, begin(store), 3)
    store.jobs.add(OWNER, "evidence", {"folds": 5})
    store.models.register(OWNER, "mine", "print-1", "models/mine")


def tamper(store: Store, statement: str) -> None:
    with store.database.engine.begin() as connection, without_triggers(connection):
        connection.execute(text(statement))


def said_by_verify(url: str, capsys: pytest.CaptureFixture[str], status: int = 1) -> str:
    capsys.readouterr()
    assert main(["--database", url, "verify"]) == status
    said = capsys.readouterr()
    assert said.err == "" and "CANARY" not in said.out
    return said.out


@pytest.mark.parametrize("statement", [*TAMPERED, *SQLITE_ONLY])
def test_a_change_is_named_and_the_rest_still_checked(
    store: Store, url: str, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    fill(store)
    if not store.database.is_sqlite and (statement in SQLITE_ONLY or "AS BLOB" in statement):
        statement = "DELETE FROM cohort_data"
    assert store.verify().intact
    tamper(store, statement)
    said = said_by_verify(url, capsys)
    assert {**TAMPERED, **SQLITE_ONLY}[statement] in said
    assert "1 step-throughs" in said and "3 administrative acts" in said


def test_data_replaced_together_with_their_hash_are_named(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)
    other = store.cohorts.add(OWNER, "other", b"another table", "features: []", "b" * 64)
    chosen = f"(SELECT {{}} FROM cohort_data WHERE cohort_id = '{other.id}')"
    columns = ", ".join(f"{name} = {chosen.format(name)}" for name in ("sha256", "parquet"))
    tamper(store, f"UPDATE cohort_data SET {columns}")
    tamper(store, f"UPDATE cohorts SET size = {other.size}")
    assert said_by_verify(url, capsys).count("its data were replaced") == 1


def test_a_trigger_that_is_gone_or_does_nothing_is_named(
    store: Store, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(store)
    with store.database.engine.begin() as connection:
        if store.database.is_sqlite:
            name = "events_no_update"
            connection.execute(text(f"DROP TRIGGER {name}"))
            connection.execute(text(f"CREATE TRIGGER {name} BEFORE UPDATE ON events WHEN 0 BEGIN SELECT 1; END"))
        else:
            name = "events_no_change"
            connection.execute(text(f"ALTER TABLE events DISABLE TRIGGER {name}"))
    said = said_by_verify(url, capsys)
    assert f"the trigger {name}" in said and said.count("FAULT") == 1


def test_a_damaged_index_is_named(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    fill(store)
    if not store.database.is_sqlite:
        return
    with store.database.engine.begin() as connection:
        connection.execute(text("PRAGMA writable_schema = ON"))
        other = "CREATE INDEX ix_jobs_state ON jobs (kind)"
        connection.execute(text("UPDATE sqlite_master SET sql = :sql WHERE name = 'ix_jobs_state'"), {"sql": other})
    store.close()
    assert "the database file is damaged" in said_by_verify(url, capsys)


def test_what_the_program_itself_changes_is_no_fault(store: Store) -> None:
    fill(store)
    (step_through,) = store.step_throughs.list(OWNER)
    store.step_throughs.update(OWNER, step_through.id, step_through.version, title="bed 5")
    cohort = store.cohorts.share(OWNER, step_through.cohort_id)
    store.cohorts.share(OWNER, cohort.id, shared=False)
    store.models.register(OWNER, "mine", "print-1", "models/mine", shared=True)
    assert store.verify().intact
    store.cohorts.share(OWNER, cohort.id)
    store.cohorts.delete(OWNER, cohort.id)
    store.models.forget(OWNER, "print-1")
    assert store.verify() == store.verify()
    assert store.verify().faults == () and store.verify().intact


@pytest.mark.reliability
def test_each_change_beside_the_chains_is_named(store: Store, figure: Keep) -> None:
    fill(store)
    is_sqlite, named = store.database.is_sqlite, 0
    tried = {**TAMPERED, **(SQLITE_ONLY if is_sqlite else {})}
    tried = {statement: words for statement, words in tried.items() if is_sqlite or "BLOB" not in statement}
    for statement, words in tried.items():
        with tampered(store) as connection:
            connection.execute(text(statement))
            found = verify_records(Session(connection))
            said = [*found.faults, *(verdict.reason for verdict in found.broken)]
            named += any(words in sentence for sentence in said)
    assert store.verify().intact
    check = f"data, schema, owner, title or times changed beside the chains ({store.database.url.get_backend_name()})"
    figure(check, "each named, no stack trace", f"{named} of {len(tried)} named", named == len(tried))
    assert named == len(tried)
