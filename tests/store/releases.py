"""Databases of released revisions: made, kept as files in `released/`, and built again for the tests.

When a migration is released, `python -m tests.store.releases` writes two files for its revision: the schema it makes
on SQLite, and rows as the program of that day wrote them. They never change afterwards.
"""

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from sqlalchemy import LargeBinary, MetaData, Table, select, text

from app.store import Store, schema
from app.store.database import Database
from tests.store.harness import OWNER, STRANGER, add_cohort, append_many, begin

FOLDER = Path(__file__).parent / "released"
ORDER = ("cohorts", "cohort_data", "step_throughs", "events", "audit", "evidence", "jobs", "models")


def schema_file(revision: str) -> Path:
    return FOLDER / f"{revision}.schema.sql"


def rows_file(revision: str) -> Path:
    return FOLDER / f"{revision}.rows.json"


def schema_of(database: Database) -> str:
    """Every table, index and trigger of a SQLite database."""
    query = text("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name")
    with database.reading() as session:
        return "".join(f"{statement};\n" for statement in session.execute(query).scalars())


def fill(database: Database, revision: str) -> dict[str, list[dict[str, Any]]]:
    """Put a revision's rows into a database of that revision; returns them."""
    content = json.loads(rows_file(revision).read_text())
    with database.connection() as connection:
        for name in ORDER:
            table = Table(name, MetaData(), autoload_with=connection)
            for row in content.get(name, []):
                connection.execute(table.insert().values(**_with_bytes(table, row, base64.b64decode)))
    return content


def _with_bytes(table: Table, row: dict[str, Any], convert: Any) -> dict[str, Any]:
    return {
        name: convert(value) if isinstance(table.columns[name].type, LargeBinary) else value
        for name, value in row.items()
    }


def write(revision: str) -> None:
    if rows_file(revision).exists():
        sys.exit(f"Revision {revision} is released already: its files stay as they are.")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/store.sqlite3"
        store = Store(url, migrate=True)
        _use(store)
        store.close()
        database = Database(url)
        schema_file(revision).write_text(schema_of(database))
        rows_file(revision).write_text(json.dumps(_rows(database), indent=1) + "\n")
        database.close()


def _use(store: Store) -> None:
    """A little of everything."""
    step_through = begin(store, title="bed 4")
    append_many(store, step_through, 5)
    shared = add_cohort(store, STRANGER, content="b", shared=True)
    append_many(store, store.step_throughs.create(OWNER, shared.id, "model-2"), 2)
    gone = store.step_throughs.create(OWNER, shared.id, "model-2", title="bed 5")
    append_many(store, gone, 2)
    store.step_throughs.delete(OWNER, [gone.id])
    store.cohorts.delete(STRANGER, add_cohort(store, STRANGER, content="c").id)
    store.evidence.put(OWNER, "a" * 64, "model-1", {"folds": 5}, {"auroc": 0.75})
    store.models.register(OWNER, "mine", "print-1", "models/mine", card="# Mine")
    job = store.jobs.add(OWNER, "evidence", {"folds": 5})
    running = store.jobs.claim(job.id)
    assert running is not None and running.claim is not None
    store.jobs.finish(job.id, running.claim, "done", result={"auroc": 0.75})
    store.jobs.add(OWNER, "train", {"steps": 10})


def _rows(database: Database) -> dict[str, list[dict[str, Any]]]:
    content = {}
    with database.connection() as connection:
        for name in ORDER:
            table = Table(name, MetaData(), autoload_with=connection)
            rows = connection.execute(select(table).order_by(*table.primary_key.columns)).mappings()
            content[name] = [_with_bytes(table, dict(row), _to_base64) for row in rows]
    return content


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


if __name__ == "__main__":
    newest = schema.newest_revision()
    assert newest is not None
    write(newest)
