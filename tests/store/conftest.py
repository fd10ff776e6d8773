"""The same tests on SQLite and on PostgreSQL: each gets a fresh, migrated database of its own."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.store import Store, schema
from app.store.database import Database
from tests.store.harness import PostgresServer, new_uuid

BACKENDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def postgres_server(postgres_programs: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(postgres_programs)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store.sqlite3"
    _migrate(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> str:
    _migrate(postgres_server.create("template_store"))
    return "template_store"


def _migrate(url: str) -> None:
    database = Database(url)
    schema.migrate(database)
    database.close()


@pytest.fixture(params=BACKENDS)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with nothing in it, not even tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.sqlite3'}"
        return
    server = request.getfixturevalue("postgres_server")
    name = f"empty_{new_uuid()[:8]}"
    yield server.create(name)
    server.drop(name)


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with the present schema and no data."""
    if request.param == "sqlite":
        path = tmp_path / "store.sqlite3"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), path)
        yield f"sqlite:///{path}"
        return
    server, template = request.getfixturevalue("postgres_server"), request.getfixturevalue("migrated_postgres")
    name = f"store_{new_uuid()[:8]}"
    yield server.create(name, template)
    server.drop(name)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()
