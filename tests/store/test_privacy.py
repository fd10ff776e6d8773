"""A patient's values reach neither messages nor logs, whatever goes wrong; and a database's errors are plain words."""

import logging
import stat
import traceback
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import text

from app.store import Busy, Store, StoreError
from app.store import database as database_module
from app.store.database import Database
from tests.store.harness import OWNER, SCHEMA, append_many, begin, new_uuid

CANARY = "CANARY-7351"


def everything_said_by(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + repr(error.__context__) + repr(error.__cause__)


def test_no_error_repeats_a_value(store: Store) -> None:
    step_through = begin(store, title=CANARY)
    events = store.step_throughs
    used = new_uuid()
    events.append_event(OWNER, step_through.id, used, 0, "observe", {"value": CANARY})
    attempts: list[Callable[[], object]] = [
        lambda: events.append_event(OWNER, step_through.id, new_uuid(), 1, "observe", {"v": [CANARY, float("nan")]}),
        lambda: events.append_event(OWNER, step_through.id, new_uuid(), 1, "observe", {CANARY: {CANARY.encode()}}),
        lambda: events.append_event(OWNER, step_through.id, new_uuid(), 1, "observe", {"v": CANARY * 100_000}),
        lambda: events.append_event(OWNER, step_through.id, new_uuid(), 9, "observe", {"v": CANARY}),
        lambda: events.append_event(OWNER, step_through.id, used, 1, "observe", {"v": CANARY + "x"}),
        lambda: events.append_event(OWNER, CANARY, new_uuid(), 1, "observe", {}),
        lambda: events.append_event(OWNER, step_through.id, CANARY, 1, "observe", {}),
        lambda: events.update(OWNER, step_through.id, step_through.version, title=CANARY),
        lambda: events.update(OWNER, step_through.id, step_through.version + 1, title=CANARY + "\x00"),
        lambda: store.cohorts.add(OWNER, "x", pd.DataFrame({CANARY: [CANARY, 1.5]}), SCHEMA, "a" * 64),
        lambda: store.cohorts.add(OWNER, CANARY * 100, pd.DataFrame({"a": [1]}), SCHEMA, "a" * 64),
        lambda: store.evidence.put(OWNER, "a" * 64, "model-1", {}, {CANARY: float("inf")}),
    ]
    for attempt in attempts:
        with pytest.raises(StoreError) as caught:
            attempt()
        lines = everything_said_by(caught.value).replace("CANARY)", "").replace("CANARY,", "")  # our own source lines
        assert CANARY not in lines


def test_an_error_of_the_database_keeps_its_parameters_to_itself(store: Store) -> None:
    step_through = begin(store)
    append_many(store, step_through, 1)
    with pytest.raises(StoreError) as caught, store.database.writing() as session:
        session.execute(
            text(
                "INSERT INTO events SELECT step_through_id, sequence, event_id, kind, recorded_at, :canary, "
                "previous_hash, hash FROM events"
            ),
            {"canary": CANARY},
        )
    assert CANARY not in everything_said_by(caught.value)
    assert caught.value.__context__ is None


def test_nothing_is_logged_about_values_even_when_everything_is_logged(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        store = Store(url)
        step_through = begin(store, title=CANARY)
        store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 0, "observe", {"value": CANARY})
        store.step_throughs.read(OWNER, step_through.id)
        store.verify()
        store.close()
    assert CANARY not in caplog.text


def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path, migrated_sqlite: Path) -> None:
    path = tmp_path / "store.sqlite3"
    path.write_bytes(migrated_sqlite.read_bytes())
    store = Store(f"sqlite:///{path}")
    step_through = begin(store)
    append_many(store, step_through, 3)
    store.close()
    full = Store(f"sqlite:///{path}")
    with full.database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk .* is full"):
        full.step_throughs.append_event(OWNER, step_through.id, new_uuid(), 3, "observe", {"value": "x" * 900_000})
    assert full.step_throughs.get(OWNER, step_through.id).length == 3
    full.close()
    again = Store(f"sqlite:///{path}")
    append_many(again, step_through, 1)
    assert again.verify().intact
    again.close()


def test_a_database_that_stays_busy_says_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "SECONDS_TO_WAIT", 1)
    holder, waiter = Store(url), Store(url)
    step_through = begin(holder)
    with holder.database.writing() as session:
        session.execute(text("UPDATE step_throughs SET title = 'held'"))
        with pytest.raises(Busy, match="Try again"):
            append_many(waiter, step_through, 1)
    append_many(waiter, step_through, 1)
    holder.close()
    waiter.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite3"
    path.write_text("not a database, by far" * 100)
    with pytest.raises(StoreError, match="damaged"):
        Store(f"sqlite:///{path}")


def test_only_its_user_reads_the_database(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.sqlite3"
    store = Store(f"sqlite:///{path}", migrate=True)
    begin(store)
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()


def test_the_settings_that_make_it_durable_are_in_force(store: Store, url: str) -> None:
    settings = Database(url)
    with settings.engine.connect() as connection:
        ask = connection.exec_driver_sql
        if settings.is_sqlite:
            found = {name: ask(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous", "foreign_keys")}
            assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        else:
            assert ask("SHOW synchronous_commit").scalar() == "on"
    settings.close()
