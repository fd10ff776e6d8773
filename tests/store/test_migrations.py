"""From nothing and from every released schema, with data, to the newest: nothing lost, no hash changed."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.store import MigrationNeeded, Store, schema
from app.store.database import Database
from tests.store import releases
from tests.store.harness import OWNER, append_many, begin

REVISIONS = schema.revisions()


def test_an_empty_database_is_made_ready(empty_url: str) -> None:
    store = Store(empty_url, migrate=True)
    append_many(store, begin(store), 2)
    assert store.verify().intact
    assert store.is_ready()
    store.close()


def test_migrating_again_changes_nothing(empty_url: str) -> None:
    for _ in range(2):
        Store(empty_url, migrate=True).close()
    Store(empty_url).close()


def test_the_tables_in_the_code_are_those_that_the_migrations_make(empty_url: str) -> None:
    database = Database(empty_url)
    schema.migrate(database)
    schema.check_models_match(database)
    database.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_released_database_keeps_its_data(empty_url: str, revision: str) -> None:
    database = Database(empty_url)
    schema.migrate(database, revision)
    rows = releases.fill(database, revision)
    schema.migrate(database)
    database.close()
    store = Store(empty_url)
    found = store.verify()
    assert (found.broken, found.events, found.acts) == ((), len(rows["events"]), len(rows["audit"]))
    hashes = {row["hash"] for row in rows["events"]}
    step_throughs = store.step_throughs.list(OWNER)
    assert len(step_throughs) == sum(row.get("deleted_at") is None for row in rows["step_throughs"])
    assert {event.hash for one in step_throughs for event in store.step_throughs.events(OWNER, one.id)} == hashes
    for one in step_throughs:
        assert len(store.cohorts.frame(OWNER, one.cohort_id)) == 6
        append_many(store, one, 1)
    assert len(store.jobs.list(OWNER)) == len(rows["jobs"])
    assert len(store.models.list(OWNER)) == len(rows["models"])
    assert store.evidence.list(OWNER, "a" * 64)[0].results == {"auroc": 0.75}
    for statement in ("UPDATE events SET kind = 'x'", "DELETE FROM audit"):
        with pytest.raises(DBAPIError, match="append-only"), store.database.engine.begin() as connection:
            connection.execute(text(statement))
    store.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_released_migration_still_makes_what_it_made(revision: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    database = Database(f"sqlite:///{tmp_path / 'store.sqlite3'}")
    schema.migrate(database, revision)
    assert releases.schema_of(database) == releases.schema_file(revision).read_text()
    database.close()


def test_a_database_that_was_never_migrated_is_refused(empty_url: str) -> None:
    with pytest.raises(MigrationNeeded, match="python -m app.store migrate"):
        Store(empty_url)


def test_a_database_of_a_newer_program_is_left_alone(url: str) -> None:
    database = Database(url)
    with database.connection() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    with pytest.raises(MigrationNeeded, match="newer"):
        Store(url, migrate=True)
    with pytest.raises(MigrationNeeded):
        Store(url)


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty_url: str) -> None:
    """The last table exists already under another shape, so making it fails after all the others were made."""
    database = Database(empty_url)
    with database.connection() as connection:
        connection.execute(text("CREATE TABLE models (anything TEXT)"))
    with pytest.raises(Exception, match="refused"):
        schema.migrate(database)
    with database.connection() as connection:
        connection.execute(text("DROP TABLE models"))
    schema.migrate(database)
    schema.check_models_match(database)
    database.close()
