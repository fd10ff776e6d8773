"""Look after the store: `python -m app.store migrate | verify | heads | backup`."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

from app.settings import SECRET, AppSettings
from l2m_core.errors import L2MError

from . import schema
from .backup import back_up
from .database import Database, parse_url
from .faults import shown
from .store import Store
from .verification import Verification


def main(arguments: list[str] | None = None) -> int:
    choice = _parser().parse_args(arguments)
    try:
        settings = AppSettings.from_environment()
        return int(choice.run(choice.database or settings.database_url, choice))
    except L2MError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.store", description="Look after the store.")
    parser.add_argument("--database", metavar="URL", help="instead of L2M_DATABASE_URL")
    commands = parser.add_subparsers(required=True, metavar="command")
    migrate = commands.add_parser("migrate", help="bring the database to the present schema, keeping its data")
    migrate.set_defaults(run=_migrate)
    verify = commands.add_parser(
        "verify", help="recompute all hash chains, check what lies beside them, and name every fault"
    )
    verify.add_argument("--heads", type=Path, metavar="FILE", help="heads exported earlier, to notice what was cut off")
    verify.set_defaults(run=_verify)
    heads = commands.add_parser("heads", help="print the heads of all chains, to be kept away from the database")
    heads.set_defaults(run=_heads)
    backup = commands.add_parser("backup", help="copy the whole database into one new file, while it is in use")
    backup.add_argument("file", type=Path)
    backup.set_defaults(run=_backup)
    return parser


def _migrate(url: str, choice: argparse.Namespace) -> int:
    if not choice.database:
        AppSettings.from_environment().prepare()
    database = Database(url)
    schema.migrate(database)
    database.close()
    print(f"The database is at revision {schema.newest_revision()}.")
    return 0


def _verify(url: str, choice: argparse.Namespace) -> int:
    heads = _read(choice.heads) if choice.heads else None
    with closing(Store(url)) as store:
        found = store.verify(heads)
    for verdict in found.broken:
        name = "the audit trail" if verdict.chain == "audit" else f"step-through {shown(verdict.chain)}"
        print(f"BROKEN {name}: {verdict.reason} (first broken link: {verdict.broken_at}).")
    for fault in found.faults:
        print(f"FAULT {fault}.")
    lost = found.intact and not found.acts and _was_used(url, choice)
    if lost:
        print(
            "WARNING The store is empty, but a secret.key of an installation lies there. If something was recorded, it is "
            "not in this database: perhaps its file was copied without the -wal file beside it. Restore a back-up."
        )
    print(_summary(found))
    print(
        f"{found.anchored} chains were held against heads kept elsewhere."
        if heads
        else "No heads were given, so a chain that was cut off at its end is not noticed."
    )
    return 0 if found.intact and not lost else 1


def _summary(found: Verification) -> str:
    counts = f"{found.step_throughs} step-throughs, {found.events} events, {found.acts} administrative acts"
    if found.intact:
        return f"{counts}: all chains are whole."
    return f"{counts}: {len(found.broken)} broken, {len(found.faults)} other faults."


def _was_used(url: str, choice: argparse.Namespace) -> bool:
    """Whether an installation's secret lies beside the database, or in the data folder that the settings name."""
    places = [] if choice.database else [AppSettings.from_environment().secret_file]
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        places.append(Path(str(parsed.database)).with_name(SECRET))
    return any(place.exists() for place in places)


def _heads(url: str, choice: argparse.Namespace) -> int:
    with closing(Store(url)) as store:
        print(store.export_heads(), end="")
    return 0


def _backup(url: str, choice: argparse.Namespace) -> int:
    """Of a database of any revision: it is the step before a migration."""
    with closing(Database(url, create=False)) as database:
        back_up(database, choice.file)
    print(f"Backed up to {choice.file}.")
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        raise L2MError(f"The file of heads {path} cannot be read. Check its name and rights.") from None


if __name__ == "__main__":
    sys.exit(main())
