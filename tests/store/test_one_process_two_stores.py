"""A second store on one SQLite file in the same process, as after a reload, leaves the first one's journal alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from app.store import Store

OWNER = "browser-" + "b" * 32
COUNT = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select count(*) from jobs').fetchone()[0])"


def jobs_seen_by_another_process(path: Path) -> int:
    return int(
        subprocess.run([sys.executable, "-c", COUNT, str(path)], capture_output=True, text=True, check=True).stdout
    )


def test_what_the_first_store_writes_is_seen_by_processes_that_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "l2m.sqlite3"
    first = Store(f"sqlite:///{path}", migrate=True)
    first.jobs.add(OWNER, "evidence", {})
    second = Store(f"sqlite:///{path}", migrate=True)
    assert jobs_seen_by_another_process(path) == 1  # it comes, and closes what it thinks is the last connection
    first.jobs.add(OWNER, "evidence", {})
    assert jobs_seen_by_another_process(path) == 2
    assert len(second.jobs.list(OWNER)) == 2
    first.close()
    second.close()
