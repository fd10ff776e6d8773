"""The page of measured reliability: each check owns its line, and leaves those of others as they are."""

from pathlib import Path

import pytest

from tests import figures
from tests.figures import Figure, Keep


def made(check: str, measured: str = "1 s", met: bool = True) -> Figure:
    return Figure(check, "< 2 s", measured, met, "here")


def lines(page: Path) -> list[str]:
    return page.read_text("utf-8").removeprefix(figures.HEAD).splitlines()


def test_checks_that_run_one_after_the_other_each_write_their_own_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for check in ("b", "a", "c"):
        figures.write([made(check)], page)
    before = lines(page)
    assert [line.split(" | ")[0] for line in before] == ["| a", "| b", "| c"]
    figures.write([made("b", "9 s", met=False)], page)
    assert lines(page) == [before[0], "| b | < 2 s | 9 s | **no** | here |", before[2]]
    assert [path.name for path in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize("check", ["a|b", "two  blanks", "a\nline end", " outer "])
def test_a_check_of_any_name_has_one_line(tmp_path: Path, check: str) -> None:
    page = tmp_path / "page.md"
    for measured in ("5 s", "7 s"):
        figures.write([made(check, measured)], page)
    assert len(lines(page)) == 1 and "| 7 s |" in lines(page)[0]


def test_the_page_as_it_is_keeps_every_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_bytes(figures.PAGE.read_bytes())
    before = set(lines(page))
    figures.write([made("a check that nobody has run")], page)
    assert set(lines(page)) - before == {made("a check that nobody has run").line()}
    assert before <= set(lines(page))


def test_nothing_is_written_unless_it_is_asked_for(figure: Keep, request: pytest.FixtureRequest, monkeypatch) -> None:
    monkeypatch.setattr(request.config.option, "write_figures", False)
    written: list[list[Figure]] = []
    monkeypatch.setattr(figures, "write", written.append)
    figure("nothing", "nothing", "nothing", True)
    assert written == []
