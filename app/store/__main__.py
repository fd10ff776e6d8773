"""Look after the store: `python -m app.store migrate | verify | heads | backup`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.settings import AppSettings
from l2m_core.errors import L2MError

from . import schema
from .database import Database
from .store import Store
from .verification import Verification


def main(arguments: list[str] | None = None) -> int:
    choice = _parser().parse_args(arguments)
    try:
        url = choice.database or AppSettings.from_environment().prepare().database_url
        return int(choice.run(url, choice))
    except L2MError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.store", description="Look after the store.")
    parser.add_argument("--database", metavar="URL", help="instead of L2M_DATABASE_URL")
    commands = parser.add_subparsers(required=True, metavar="command")
    migrate = commands.add_parser("migrate", help="bring the database to the present schema, keeping its data")
    migrate.set_defaults(run=_migrate)
    verify = commands.add_parser("verify", help="recompute all hash chains and name the first broken link of each")
    verify.add_argument("--heads", type=Path, metavar="FILE", help="heads exported earlier, to notice what was cut off")
    verify.set_defaults(run=_verify)
    heads = commands.add_parser("heads", help="print the heads of all chains, to be kept away from the database")
    heads.set_defaults(run=_heads)
    backup = commands.add_parser("backup", help="copy the whole database into one new file, while it is in use")
    backup.add_argument("file", type=Path)
    backup.set_defaults(run=_backup)
    return parser


def _migrate(url: str, choice: argparse.Namespace) -> int:
    database = Database(url)
    schema.migrate(database)
    database.close()
    print(f"The database is at revision {schema.newest_revision()}.")
    return 0


def _verify(url: str, choice: argparse.Namespace) -> int:
    heads = _read(choice.heads) if choice.heads else None
    found = Store(url).verify(heads)
    for verdict in found.broken:
        name = "the audit trail" if verdict.chain == "audit" else f"step-through {verdict.chain}"
        print(f"BROKEN {name}: {verdict.reason} (first broken link: {verdict.broken_at}).")
    print(_summary(found))
    return 0 if found.intact else 1


def _summary(found: Verification) -> str:
    counts = f"{found.step_throughs} step-throughs, {found.events} events, {found.acts} administrative acts"
    return f"{counts}: " + ("all chains are whole." if found.intact else f"{len(found.broken)} broken.")


def _heads(url: str, choice: argparse.Namespace) -> int:
    print(Store(url).export_heads(), end="")
    return 0


def _backup(url: str, choice: argparse.Namespace) -> int:
    Store(url).back_up(choice.file)
    print(f"Backed up to {choice.file}.")
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        raise L2MError(f"The file of heads {path} cannot be read. Check its name and rights.") from None


if __name__ == "__main__":
    sys.exit(main())
