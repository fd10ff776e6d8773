"""Bring a database to the schema this program was written for, or say that it is not there."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection

from .database import Database, lock_name
from .errors import MigrationNeeded


def migrate(database: Database, revision: str = "head") -> bool:
    """All steps in one transaction: afterwards the database is at `revision`, or as it was. Others wait meanwhile.
    Returns whether it held nothing before."""
    with database.connection() as connection:
        lock_name(connection, "migrations")
        try:
            is_new = not MigrationContext.configure(connection).get_current_heads()
            command.upgrade(_config(connection), revision)
            return is_new
        except CommandError:
            pass
    raise MigrationNeeded(
        "This database was made by a newer version of the program, or is not one of its own. "
        "Install the newer version, or set L2M_DATABASE_URL to another database."
    )


def check_up_to_date(database: Database) -> None:
    with database.reading() as session:
        current = current_revision(session.connection())
    if current != newest_revision():
        raise MigrationNeeded(
            "The database's schema is not the one this program was written for. "
            "Back it up, then run `python -m app.store migrate`."
        )


def check_models_match(database: Database) -> None:
    """Fails if the tables in the code and those the migrations make differ."""
    with database.connection() as connection:
        command.check(_config(connection))


def current_revision(connection: Connection) -> str | None:
    heads = MigrationContext.configure(connection).get_current_heads()
    return heads[0] if len(heads) == 1 else None


@cache
def newest_revision() -> str | None:
    return ScriptDirectory.from_config(_config()).get_current_head()


def revisions() -> list[str]:
    """All revisions ever released, oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
