"""Logs are bounded, and fit to be shown."""

from __future__ import annotations

from pathlib import Path

from app.jobs import folders


def write(folder: Path, text: str) -> None:
    (folder / folders.LOG).write_text(text)


def test_no_log_is_an_empty_tail(tmp_path: Path) -> None:
    assert folders.tail(tmp_path) == ""


def test_a_progress_bar_is_shown_by_its_last_state(tmp_path: Path) -> None:
    write(tmp_path, "start\n 1%\r 2%\r\x1b[A 3%\nend\n")
    assert folders.tail(tmp_path) == "start\n 3%\nend"


def test_a_bar_that_still_moves_is_shown_too(tmp_path: Path) -> None:
    write(tmp_path, "start\n 1%\r 2%\r")
    assert folders.tail(tmp_path) == "start\n 2%"


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    write(tmp_path, "".join(f"line {number}\n" for number in range(10_000)))
    shown = folders.tail(tmp_path, 5).split("\n")
    assert shown == [f"line {number}" for number in range(9995, 10_000)]


def test_a_stack_is_left_out_with_the_words_of_its_error(tmp_path: Path) -> None:
    write(
        tmp_path,
        'before\nTraceback (most recent call last):\n  File "x.py", line 1, in f\n    g()\n'
        "ValueError: Mrs Smith, 71\nafter\n",
    )
    shown = folders.tail(tmp_path)
    assert shown == "before\nThe program stopped (ValueError); details are in the job's log file.\nafter"


def test_what_a_trainer_refused_is_found(tmp_path: Path) -> None:
    write(tmp_path, "1%\rerror: loop.lr is 0; it must be above 0.\n")
    assert folders.last_words(tmp_path) == "loop.lr is 0; it must be above 0."
    write(tmp_path, "usage: x\npython -m train evaluate: error: argument --tasks: invalid int value: 'a'\n")
    assert folders.last_words(tmp_path) == "argument --tasks: invalid int value: 'a'"
    write(tmp_path, "all well\n")
    assert folders.last_words(tmp_path) == ""


def test_a_log_that_grew_too_large_keeps_its_end_and_can_be_appended_to(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(folders, "LARGEST_LOG", 1000)
    with (tmp_path / folders.LOG).open("a") as writer:
        writer.write("".join(f"line {number}\n" for number in range(300)))
        writer.flush()
        folders.trim(tmp_path)
        writer.write("more\n")
    text = (tmp_path / folders.LOG).read_text()
    assert len(text) < 700 and text.startswith("(earlier lines were dropped)\n") and text.endswith("line 299\nmore\n")
