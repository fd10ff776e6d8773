"""`python -m app.store …` as an administrator runs it."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from app.settings import SECRET
from app.store import Store
from app.store.__main__ import main
from tests.prerequisites import REPOSITORY
from tests.store.harness import OWNER, PostgresServer, append_many, begin, new_uuid
from tests.store.tampering import remove_triggers, without_triggers


def test_migrate_makes_a_new_database(empty_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--database", empty_url, "migrate"]) == 0
    assert "revision" in capsys.readouterr().out
    assert main(["--database", empty_url, "verify"]) == 0


def test_verify_names_the_first_broken_link(store: Store, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    step_through = begin(store)
    append_many(store, step_through, 4)
    assert main(["--database", url, "verify"]) == 0
    assert "4 events" in capsys.readouterr().out
    with store.database.engine.begin() as connection:
        remove_triggers(connection)
        connection.execute(text("UPDATE events SET payload = '{}' WHERE sequence = 2"))
    assert main(["--database", url, "verify"]) == 1
    said = capsys.readouterr().out
    assert f"BROKEN step-through {step_through.id}: link 2 was altered" in said
    assert "1 broken" in said


def test_exported_heads_give_away_a_cut_tail(
    store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step_through = begin(store)
    append_many(store, step_through, 4)
    assert main(["--database", url, "heads"]) == 0
    heads = tmp_path / "heads.json"
    heads.write_text(capsys.readouterr().out)
    assert json.loads(heads.read_text())[step_through.id]["length"] == 4
    kept = store.step_throughs.events(OWNER, step_through.id)[1].hash
    with store.database.engine.begin() as connection, without_triggers(connection):
        connection.execute(text("DELETE FROM events WHERE sequence >= 2"))
        connection.execute(text("UPDATE step_throughs SET length = 2, head_hash = :kept"), {"kept": kept})
    assert main(["--database", url, "verify"]) == 0
    assert main(["--database", url, "verify", "--heads", str(heads)]) == 1
    assert "link 2 is missing: 2 cut off at the end" in capsys.readouterr().out


def test_a_backup_is_a_whole_database(tmp_path: Path, migrated_sqlite: Path) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    store = Store(f"sqlite:///{path}")
    step_through = begin(store)
    append_many(store, step_through, 3)
    copy = tmp_path / "copy.sqlite3"
    assert main(["--database", f"sqlite:///{path}", "backup", str(copy)]) == 0
    append_many(store, step_through, 1)
    restored = Store(f"sqlite:///{copy}")
    assert len(restored.step_throughs.events(OWNER, step_through.id)) == 3
    assert len(restored.cohorts.frame(OWNER, step_through.cohort_id)) == 6
    assert restored.verify().intact
    assert copy.stat().st_mode & 0o077 == 0, "only its owner may read it"
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.postgres
def test_a_postgresql_backup_can_be_restored(
    postgres_server: PostgresServer, migrated_postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{postgres_server.programs}:{os.environ['PATH']}")
    url = postgres_server.create(f"store_{new_uuid()[:8]}", migrated_postgres)
    store = Store(url)
    step_through = begin(store)
    append_many(store, step_through, 3)
    archive = tmp_path / "store.dump"
    assert main(["--database", url, "backup", str(archive)]) == 0
    name = f"restored_{new_uuid()[:8]}"
    restored_url = postgres_server.create(name)
    restore = ["pg_restore", "--host", str(postgres_server.folder), "--username", "postgres", "--dbname", name]
    subprocess.run([*restore, str(archive)], check=True)
    restored = Store(restored_url)
    assert restored.step_throughs.read(OWNER, step_through.id) == store.step_throughs.read(OWNER, step_through.id)
    assert restored.verify().intact
    store.close()
    restored.close()


def test_a_backup_never_replaces_a_file(
    store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"
    there.write_text("precious")
    assert main(["--database", url, "backup", str(there)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert there.read_text() == "precious"
    assert main(["--database", url, "backup", str(tmp_path / "no" / "folder")]) == 2


def test_failures_are_one_sentence_without_a_password(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["--database", "mysql://me:s3cret@host/x", "verify"]) == 2
    assert main(["--database", f"sqlite:///{tmp_path}/new.sqlite3", "verify"]) == 2
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
    assert "python -m app.store migrate" in said.err
    assert "Traceback" not in said.err


def test_an_unreachable_server_is_named_without_a_password(capsys: pytest.CaptureFixture[str], free_port: int) -> None:
    assert main(["--database", f"postgresql://me:s3cret@127.0.0.1:{free_port}/x", "verify"]) == 2
    said = capsys.readouterr()
    assert "s3cret" not in said.out + said.err
    assert "cannot be reached" in said.err


# -- backing up what is not in order --------------------------------------------------------------------------------


def test_a_database_of_any_revision_is_backed_up(tmp_path: Path, migrated_sqlite: Path) -> None:
    path, copy = tmp_path / "store.sqlite3", tmp_path / "copy.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    with closing(Store(f"sqlite:///{path}")) as store:
        append_many(store, begin(store), 2)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '0000'")
    assert main(["--database", f"sqlite:///{path}", "backup", str(copy)]) == 0
    with closing(sqlite3.connect(path)) as database, closing(sqlite3.connect(copy)) as copied:
        assert list(copied.iterdump()) == list(database.iterdump())


@pytest.mark.parametrize("command", ["verify", "heads", "backup"])
def test_a_mistyped_path_is_named_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    arguments = [command, *([str(tmp_path / "copy")] if command == "backup" else [])]
    missing = tmp_path / "nowhere" / "l2m.sqlite3"
    assert main(["--database", f"sqlite:///{missing}", *arguments]) == 2
    monkeypatch.setenv("L2M_DATA_DIR", str(missing.parent))
    monkeypatch.delenv("L2M_DATABASE_URL", raising=False)
    assert main(arguments) == 2
    assert capsys.readouterr().err.count(f"There is no database file {missing}") == 2
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_not_backed_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.sqlite3"
    path.write_text("not a database, by far" * 100)
    assert main(["--database", f"sqlite:///{path}", "backup", str(tmp_path / "copy")]) == 2
    assert "damaged" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [path]


def where_files_end_at(size: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, whose limit on the size of files stands for the disk's end."""
    script = (
        "import resource, sys; from app.store.__main__ import main; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_a_disk_that_fills_up_ends_a_backup_in_words(tmp_path: Path, migrated_sqlite: Path) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    ended = where_files_end_at(40_000, "--database", f"sqlite:///{path}", "backup", str(tmp_path / "copy"))
    assert ended.returncode == 2, ended.stderr
    assert "cannot be written" in ended.stderr and "Traceback" not in ended.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_a_database_whose_disk_is_full_is_said_to_be_so(tmp_path: Path, migrated_sqlite: Path) -> None:
    """Not even the file beside it, by which its readers agree, can be made."""
    path = tmp_path / "store.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    ended = where_files_end_at(20_000, "--database", f"sqlite:///{path}", "migrate")
    assert ended.returncode == 2 and "The disk of the database is full" in ended.stderr, ended.stderr


# -- what verify is given -------------------------------------------------------------------------------------------


def test_an_empty_file_of_heads_is_refused(
    store: Store, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = tmp_path / "heads.json"
    heads.write_text("{}")
    assert main(["--database", url, "verify", "--heads", str(heads)]) == 2
    assert "holds no heads" in capsys.readouterr().err
    begin(store)
    heads.write_text(store.export_heads())
    assert main(["--database", url, "verify", "--heads", str(heads)]) == 0
    assert "2 chains were held against heads" in capsys.readouterr().out


def test_an_empty_store_beside_a_secret_is_a_warning(
    tmp_path: Path, migrated_sqlite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    assert main(["--database", f"sqlite:///{path}", "verify"]) == 0
    (tmp_path / SECRET).write_bytes(bytes(32))
    assert main(["--database", f"sqlite:///{path}", "verify"]) == 1
    assert "WARNING The store is empty" in capsys.readouterr().out
    with closing(Store(f"sqlite:///{path}")) as store:
        begin(store)
    assert main(["--database", f"sqlite:///{path}", "verify"]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full, which plays a full disk.")
def test_heads_that_a_full_disk_cuts_off_are_said_to_be_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'l2m.sqlite3'}"
    assert main(["--database", url, "migrate"]) == 0
    command = [sys.executable, "-P", "-m", "app.store", "--database", url, "heads"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2 and "No space left" in done.stderr and "Traceback" not in done.stderr
