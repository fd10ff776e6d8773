"""Look after the store: `python -m app.store migrate | verify | heads | backup`."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from app.settings import SECRET, AppSettings
from l2m_core.cli import program
from l2m_core.errors import L2MError

from . import schema
from .backup import back_up
from .database import Database, parse_url
from .faults import shown
from .signed_heads import KnownHeads, SignedHeads, read_heads
from .store import Store
from .verification import Verification


def main(arguments: list[str] | None = None) -> int:
    choice = build_parser().parse_args(arguments)
    try:
        settings = AppSettings.from_environment()
        return int(choice.run(choice.database or settings.database_url, choice))
    except L2MError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:  # a full disk behind the output
        print(
            f"The output cannot be written ({error.strerror or error}), so what stands there is not whole.",
            file=sys.stderr,
        )
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program("app.store"), description="Look after the store.")
    parser.add_argument("--database", metavar="URL", help="instead of L2M_DATABASE_URL")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    migrate = commands.add_parser("migrate", help="bring the database to the present schema, keeping its data")
    migrate.set_defaults(run=_migrate)
    verify = commands.add_parser(
        "verify", help="recompute all hash chains, check what lies beside them, and name every fault"
    )
    verify.add_argument(
        "--heads",
        type=Path,
        metavar="FILE",
        help="heads exported earlier, or a file of signed heads; without --database, the installation's own is used",
    )
    verify.add_argument(
        "--key", type=Path, metavar="FILE", help="the key of signed heads, instead of the installation's"
    )
    verify.set_defaults(run=_verify)
    heads = commands.add_parser("heads", help="print the heads of all chains, to be kept away from the database")
    heads.add_argument(
        "--sign",
        action="store_true",
        help="add them, signed, to the installation's file: after a check, where some lack",
    )
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
    known = _known_heads(choice)
    with closing(Store(url)) as store:
        found = store.verify(known)
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
    for note in found.notes:
        print(f"NOTE {note}.")
    print(_anchored(found, known))
    return 0 if found.intact and not lost else 1


def _summary(found: Verification) -> str:
    deleted = f" ({found.deleted} of them deleted)" if found.deleted else ""
    counts = f"{found.step_throughs} step-throughs{deleted}, {found.events} events, {found.acts} administrative acts"
    if found.intact:
        return f"{counts}: all chains are whole."
    return f"{counts}: {len(found.broken)} broken, {len(found.faults)} other faults."


def _anchored(found: Verification, known: KnownHeads | None) -> str:
    if known is None:
        return "No heads were given, so a chain that was cut off at its end, or written anew, is not noticed."
    since = f", the first one signed at {known.since}" if known.since else ""
    return (
        f"{found.anchored} chains were held against heads kept elsewhere{since}, of {found.step_throughs + 1}, "
        "the audit trail among them."
    )


def _known_heads(choice: argparse.Namespace) -> KnownHeads | None:
    """Those of the file that is named; else the installation's own, unless another database is named."""
    settings = AppSettings.from_environment()
    if choice.heads is not None:
        text = _read(choice.heads)
        if '"signature"' not in text:
            return read_heads(text)
        settings = replace(settings, chosen_heads_file=choice.heads)
    elif choice.database or not (settings.heads_file.exists() or settings.heads_key.exists()):
        return None
    if choice.key is not None:
        settings = replace(settings, chosen_heads_key=choice.key)
    return SignedHeads.of(settings, create_key=False).read()


def _was_used(url: str, choice: argparse.Namespace) -> bool:
    """Whether an installation's secret lies beside the database, or in the data folder that the settings name."""
    secrets = [] if choice.database else [AppSettings.from_environment().secret_file]
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        secrets.append(Path(str(parsed.database)).with_name(SECRET))
    return any(secret.exists() for secret in secrets)


def _heads(url: str, choice: argparse.Namespace) -> int:
    with closing(Store(url)) as store:
        if choice.sign:
            signed = SignedHeads.of(AppSettings.from_environment().prepare())
            signed.append(store.heads())
            print(f"Signed all heads in {signed.file}.")
            return 0
        print(store.export_heads(), end="", flush=True)
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
