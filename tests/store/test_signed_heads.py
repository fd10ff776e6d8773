"""Heads that are signed when a step-through is finished: a database that somebody wrote anew no longer fits them."""

import json
import os
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from app.settings import AppSettings
from app.store import SignedHeads, StepThrough, Store, StoreError, StoreInputError, chain, times
from app.store.__main__ import main
from app.store.step_throughs import chain_origin
from app.store.verification import verify_records
from l2m_core.errors import ConfigError
from tests.figures import Keep
from tests.store.harness import OWNER, append_many, begin, new_uuid
from tests.store.tampering import cut_the_tail, tampered, without_triggers


@pytest.fixture
def settings(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> AppSettings:
    """An installation whose heads lie elsewhere, away from its data folder."""
    monkeypatch.setenv("L2M_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("L2M_DATABASE_URL", url)
    monkeypatch.setenv("L2M_HEADS_FILE", str(tmp_path / "elsewhere" / "heads.jsonl"))
    return AppSettings.from_environment().prepare()


@pytest.fixture
def store(settings: AppSettings) -> Iterator[Store]:
    with closing(Store(settings.database_url, signed=SignedHeads.of(settings))) as opened:
        yield opened


def finish(store: Store, events: int = 3) -> StepThrough:
    step_through = begin(store)
    append_many(store, step_through, events - 1)
    store.step_throughs.append_event(OWNER, step_through.id, new_uuid(), events - 1, "stop", {}, status="finished")
    return store.step_throughs.get(OWNER, step_through.id)


def write_anew(store: Store, step_through: StepThrough) -> None:
    """For good, with the triggers back in their place."""
    with store.database.engine.begin() as connection, without_triggers(connection):
        rewrite(connection, step_through)


def rewrite(connection: Connection, step_through: StepThrough, changed: int = 0) -> None:
    """As an administrator can who knows this program: another value, and every hash after it computed anew."""
    read = text("SELECT * FROM events WHERE step_through_id = :id ORDER BY sequence")
    change = "payload = :payload, previous_hash = :previous, hash = :hash"
    head = chain_origin(step_through.id, step_through.cohort_hash, step_through.model_fingerprint)
    for row in connection.execute(read, {"id": step_through.id}).all():
        payload = chain.canonical_json({"feature": "lactate", "value": 9.9}) if row.sequence == changed else row.payload
        link = (step_through.id, row.sequence, row.event_id, row.kind, row.recorded_at, payload, head)
        values = {"payload": payload, "previous": head, "hash": chain.link_hash(*link), "event": row.event_id}
        connection.execute(text(f"UPDATE events SET {change} WHERE event_id = :event"), values)
        head = values["hash"]
    connection.execute(
        text("UPDATE step_throughs SET head_hash = :head WHERE id = :id"), {"head": head, "id": step_through.id}
    )


def verify(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    capsys.readouterr()
    assert main(["verify", *arguments]) == status
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return said.out + said.err


# -- what they give away ----------------------------------------------------------------------------------------------


def test_a_step_through_that_was_written_anew_is_seen(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = finish(store), finish(store)
    said = verify(capsys, 0)
    assert "3 chains were held against heads kept elsewhere, the first one signed at 20" in said and "of 3," in said
    write_anew(store, second)
    assert store.verify().intact, "all hashes fit each other again"
    said = verify(capsys, 1)
    assert f"BROKEN step-through {second.id}: link 2 is not the one known from elsewhere" in said
    assert first.id not in said


def unseen_rewritings(store: Store, settings: AppSettings, attempts: int) -> tuple[int, int]:
    """Writes step-throughs anew, or cuts their ends off, one at a time: how many nobody sees with heads, and without."""
    finished = [finish(store, events) for events in (3, 6, 12)]
    known, draw, unseen, without = SignedHeads.of(settings).read(), random.Random(5), 0, 0
    for _ in range(attempts):
        chosen = draw.choice(finished)
        with tampered(store) as connection:
            if draw.random() < 0.5:
                rewrite(connection, chosen, draw.randrange(chosen.length))
            else:
                cut_the_tail(connection, chosen.id, chosen.length, draw)
            without += verify_records(Session(connection)).intact
            found = verify_records(Session(connection), known)
            unseen += [verdict.chain for verdict in found.broken] != [chosen.id]
    assert store.verify(known).intact
    return unseen, without


def test_rewritten_and_cut_chains_are_seen_by_their_heads(store: Store, settings: AppSettings) -> None:
    assert unseen_rewritings(store, settings, 12) == (0, 12)


@pytest.mark.reliability
def test_a_hundred_rewritten_and_cut_chains_are_seen(store: Store, settings: AppSettings, figure: Keep) -> None:
    unseen, without = unseen_rewritings(store, settings, 100)
    check = f"step-throughs written anew with all their hashes, or cut ({store.database.url.get_backend_name()})"
    measured = f"{100 - unseen} of 100 seen by signed heads; {100 - without} without"
    figure(check, "all seen, and the chain named", measured, unseen == 0)
    assert unseen == 0


def test_acts_that_were_cut_off_are_seen(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    step_through = finish(store)
    store.step_throughs.update(OWNER, step_through.id, step_through.version, title="bed 5", status="finished")
    newest = "DELETE FROM audit WHERE kind = 'step-through renamed'"
    with store.database.engine.begin() as connection, without_triggers(connection):
        connection.execute(text(newest))
        connection.execute(text("UPDATE step_throughs SET title = ''"))
    assert store.verify().intact
    assert "BROKEN the audit trail: link 2 is missing: 1 cut off" in verify(capsys, 1)


def test_each_finish_is_one_line_and_what_goes_on_still_fits(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    step_through = finish(store)
    append = store.step_throughs.append_event
    append(OWNER, step_through.id, new_uuid(), 3, "reopen", {}, status="running")
    append(OWNER, step_through.id, new_uuid(), 4, "stop", {}, status="finished")
    begin(store)
    lines = [json.loads(line) for line in settings.heads_file.read_text().splitlines()]
    assert [line["heads"].get(step_through.id, [None])[0] for line in lines] == [None, 3, 5]
    assert "2 chains were held" in verify(capsys, 0)
    assert settings.heads_file.stat().st_mode & 0o077 == 0 and settings.heads_key.stat().st_mode & 0o077 == 0


def test_an_import_that_is_finished_already_is_signed(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    version = store.step_throughs.get(OWNER, step_through.id).version
    store.step_throughs.update(OWNER, step_through.id, version, status="finished")
    assert "2 chains were held" in verify(capsys, 0)


def test_what_was_there_before_is_signed_at_the_first_start(
    settings: AppSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Store(settings.database_url)) as before:
        step_through = finish(before)
    with closing(Store(settings.database_url, signed=SignedHeads.of(settings))) as store:
        assert "2 chains were held" in verify(capsys, 0)
        write_anew(store, step_through)
    assert "BROKEN" in verify(capsys, 1)


# -- the file itself --------------------------------------------------------------------------------------------------


def changed(lines: list[str]) -> list[str]:
    return [*lines[:1], lines[1].replace('"at":"20', '"at":"19'), *lines[2:]]


def signed_by_another(lines: list[str]) -> list[str]:
    said = json.loads(lines[1])
    said["signature"] = "0" * 64
    return [lines[0], chain.canonical_json(said), *lines[2:]]


DAMAGED = {
    "a line changed": (changed, "line 3 of the signed heads does not follow"),
    "a line signed by another": (signed_by_another, "line 3 of the signed heads does not follow"),
    "a line taken out": (lambda lines: [lines[0], *lines[2:]], "line 2 of the signed heads does not follow"),
    "lines changed over": (lambda lines: [lines[0], lines[2], lines[1]], "line 2 of the signed heads does not follow"),
    "the first line gone": (lambda lines: lines[1:], "line 1 of the signed heads does not follow"),
    "the end cut off": (lambda lines: lines[:2], "is finished, but no signed head of it is there"),
    "the last line changed": (
        lambda lines: [*lines[:2], lines[2].replace('"at"', '"as"')],
        "line 3 of the signed heads is malformed, altered",
    ),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_changed_file_is_named_and_the_rest_still_checked(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    finish(store), finish(store)
    damage, words = DAMAGED[how]
    lines = settings.heads_file.read_text().splitlines()
    settings.heads_file.write_text("\n".join(damage(lines)) + "\n")
    said = verify(capsys, 1)
    assert words in said and "2 step-throughs, 6 events" in said


@pytest.mark.parametrize("content", ["", "\n", "{}", "[]", "nonsense", '{"signature": 1}', "\x00", "{" * 100_000])
def test_an_empty_or_malformed_file_is_refused_loudly(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    finish(store)
    settings.heads_file.write_text(content)
    assert "holds no line that is signed with this key" in verify(capsys, 2)
    assert "heads" in verify(capsys, 2, "--heads", str(settings.heads_file))
    with pytest.raises(StoreInputError):
        SignedHeads.of(settings).read()


def test_a_file_that_is_gone_is_named_and_never_quietly_begun_again(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(store)
    settings.heads_file.unlink()
    assert "cannot be read (No such file or directory)" in verify(capsys, 2)
    os.utime(settings.heads_key, (1, 1))  # not of this start
    with closing(Store(settings.database_url, signed=SignedHeads.of(settings))):
        assert "the file of signed heads was begun again at 20" in verify(capsys, 0)


def test_a_line_that_broke_off_is_gone_on_after(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(store)
    whole = settings.heads_file.read_bytes()
    settings.heads_file.write_bytes(whole[:-40])
    assert "line 2 of the signed heads is malformed" in verify(capsys, 1)
    finish(store)
    said = verify(capsys, 1)
    assert "NOTE line 2 of the signed heads broke off" in said and "no signed head of it" in said
    assert main(["heads", "--sign"]) == 0
    assert "3 chains were held" in verify(capsys, 0)


def test_many_writers_make_one_chain_of_lines(settings: AppSettings) -> None:
    head = {"audit": chain.Head(1, "a" * 64)}
    signed = SignedHeads.of(settings)
    writers = [threading.Thread(target=lambda: [signed.append(head) for _ in range(10)]) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = signed.read()
    assert len(found.heads["audit"]) == 40 and found.faults == found.notes == ()


def test_a_long_line_is_found_again(settings: AppSettings) -> None:
    signed = SignedHeads.of(settings)
    signed.append({new_uuid(): chain.Head(1, "a" * 64) for _ in range(1000)})
    signed.append({"audit": chain.Head(1, "a" * 64)})
    assert signed.read().faults == () and len(signed.read().heads) == 1001


# -- where it cannot be written ---------------------------------------------------------------------------------------


def test_a_finish_is_kept_where_its_head_cannot_be_signed_yet(
    store: Store, settings: AppSettings, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    away = settings.heads_file.with_name("away")
    settings.heads_file.rename(away)
    settings.heads_file.mkdir()
    assert finish(store).status == "finished"
    assert "1 heads of chains are not signed yet" in caplog.text
    settings.heads_file.rmdir()
    away.rename(settings.heads_file)
    assert "no signed head of it is there" in verify(capsys, 1)
    store.sign_what_waits()
    verify(capsys, 0)


def test_a_place_that_cannot_be_written_is_named_at_the_start(tmp_path: Path, settings: AppSettings) -> None:
    (tmp_path / "elsewhere").write_text("a file")
    with pytest.raises(StoreError, match="signed heads .* cannot be written"):
        Store(settings.database_url, signed=SignedHeads.of(settings))


def test_nothing_is_added_to_a_file_of_others(store: Store, settings: AppSettings) -> None:
    settings.heads_file.write_text("somebody else's\n")
    with pytest.raises(StoreError, match="no line that is signed with this key"):
        SignedHeads.of(settings).append({"audit": chain.Head(1, "a" * 64)})
    assert settings.heads_file.read_text() == "somebody else's\n"


# -- the key ----------------------------------------------------------------------------------------------------------


def test_a_key_of_ones_own_signs_and_another_does_not_fit(
    tmp_path: Path, settings: AppSettings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, other = tmp_path / "mine.key", tmp_path / "other.key"
    mine.write_bytes(b"m" * 40)
    other.write_bytes(b"o" * 40)
    monkeypatch.setenv("L2M_HEADS_KEY_FILE", str(mine))
    chosen = AppSettings.from_environment()
    with closing(Store(settings.database_url, signed=SignedHeads.of(chosen))) as store:
        finish(store)
    assert not (settings.data_dir / "heads.key").exists()
    verify(capsys, 0)
    elsewhere = ("--heads", str(chosen.heads_file), "--key")
    assert main(["--database", settings.database_url, "verify", *elsewhere, str(mine)]) == 0
    assert main(["--database", settings.database_url, "verify", *elsewhere, str(other)]) == 2
    assert "the key is another one" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"short"])
def test_a_key_that_is_named_must_be_a_key(
    tmp_path: Path, settings: AppSettings, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    path = tmp_path / "named.key"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("L2M_HEADS_KEY_FILE", str(path))
    with pytest.raises(ConfigError, match=r"named\.key, which signs"):
        SignedHeads.of(AppSettings.from_environment())
    assert path.exists() == (content is not None), "no other one takes its place"


def test_the_key_is_not_printed(settings: AppSettings) -> None:
    signed = SignedHeads.of(settings)
    assert repr(signed.key)[2:-1] not in repr(signed) and signed.key.hex() not in repr(signed)


# -- time -------------------------------------------------------------------------------------------------------------


def test_time_that_runs_backwards_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step_through = begin(store)
    append_many(store, step_through, 2)
    earlier = datetime.now(times.UTC) - timedelta(hours=1)
    with monkeypatch.context() as clock:
        clock.setattr(times, "now", lambda: earlier)
        append_many(store, step_through, 1)
    append_many(store, step_through, 1)
    words = f"time ran backwards in step-through {step_through.id}: link 2 is dated before the link before it"
    assert store.verify().notes == (words,)
    assert f"NOTE {words}." in verify(capsys, 0), "a clock that was put right is no fault"
