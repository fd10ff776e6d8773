"""A missing program skips a test on a contributor's machine and fails it in CI."""

import pytest

from tests import prerequisites


def test_a_missing_program_skips_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(prerequisites, "find_chromium", lambda: None)
    with pytest.raises(pytest.skip.Exception, match="apt-get install chromium"):
        prerequisites.chromium()


def test_a_missing_program_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(prerequisites, "find_postgres", lambda: None)
    with pytest.raises(pytest.fail.Exception, match="apt-get install postgresql"):
        prerequisites.postgres()


@pytest.mark.browser
def test_the_browser_is_a_program(chromium) -> None:
    assert chromium.is_file()


@pytest.mark.postgres
def test_the_database_programs_are_complete(postgres_programs) -> None:
    assert {"initdb", "pg_ctl", "postgres"} <= {file.name for file in postgres_programs.iterdir()}
