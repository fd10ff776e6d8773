"""The database's file by itself holds all that was stored: after the store is closed, after a sweep, after a clean stop."""

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from app.host.services import Services
from app.settings import SECRET, AppSettings
from app.store import Store
from tests.prerequisites import REPOSITORY
from tests.store.harness import OWNER, append_many, begin

PATIENCE = 300  # seconds; a busy machine is slow


def events_in(file: Path, folder: Path) -> int:
    """Of a copy of the file without those beside it."""
    copy = folder / "copy.sqlite3"
    shutil.copy(file, copy)
    with closing(Store(f"sqlite:///{copy}", migrate=True)) as store:
        return store.verify().events


@pytest.fixture
def file(tmp_path: Path, migrated_sqlite: Path) -> Path:
    return Path(shutil.copy(migrated_sqlite, tmp_path / "store.sqlite3"))


def test_it_is_whole_after_closing_while_others_have_it_open(file: Path, tmp_path: Path) -> None:
    with closing(Store(f"sqlite:///{file}")) as other:
        store = Store(f"sqlite:///{file}")
        append_many(store, begin(store), 3)
        assert other.verify().events == 3
        store.close()
        assert events_in(file, tmp_path) == 3


def test_a_sweep_makes_it_whole_and_waits_for_no_reader(file: Path, tmp_path: Path) -> None:
    with closing(Store(f"sqlite:///{file}")) as store, closing(Store(f"sqlite:///{file}")) as reader:
        step_through = begin(store)
        append_many(store, step_through, 3)
        store.make_file_whole()
        assert events_in(file, tmp_path) == 3
        with reader.database.reading() as session:
            session.connection().exec_driver_sql("SELECT count(*) FROM events").scalar_one()
            append_many(store, step_through, 1)
            before = time.monotonic()
            store.make_file_whole()
            append_many(store, step_through, 1)
            assert time.monotonic() - before < 10, "it waited for the reader"
        store.make_file_whole()
        assert Path(f"{file}-wal").stat().st_size == 0


def test_it_is_whole_after_a_clean_stop_of_the_real_server(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    command = [sys.executable, "-m", "app", "--port", "0", "--no-browser", "--data-dir", str(data)]
    with log.open("w") as output:
        server = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=output)
    try:
        until = time.monotonic() + PATIENCE
        while not re.search(r"http://\S+:\d+", log.read_text()):
            assert time.monotonic() < until and server.poll() is None, log.read_text()
            time.sleep(0.1)
        with closing(Store(f"sqlite:///{data / 'l2m.sqlite3'}")) as store:
            append_many(store, begin(store), 3)
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)
            assert events_in(data / "l2m.sqlite3", tmp_path) == 3
    finally:
        server.kill()
        server.wait()


def test_a_new_store_in_a_used_data_folder_is_a_loud_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}")
    with caplog.at_level(logging.ERROR, "l2m.app"):
        first = Services(settings)
        first.store.close()
        assert first.loss == "" and caplog.text == ""
        os.utime(tmp_path / SECRET, (time.time() - 3600,) * 2)
        again = Services(settings)
        again.store.close()
        assert again.loss == ""
        (tmp_path / "l2m.sqlite3").write_bytes(b"")
        lost = Services(settings)
        lost.store.close()
    assert "has been in use before" in lost.loss and lost.loss in caplog.text


def test_the_closing_of_a_store_that_is_gone_makes_no_file(file: Path) -> None:
    store = Store(f"sqlite:///{file}")
    begin(store, OWNER)
    for path in file.parent.glob("store.sqlite3*"):
        path.unlink()
    store.close()
    assert not file.exists()
