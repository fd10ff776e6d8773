"""Where the app keeps its data."""

from contextlib import closing
from pathlib import Path

import pytest

from app.host.identity import load_signer
from app.jobs.runner import worker_environment
from app.settings import AppSettings
from app.store import Store
from app.store.database import parse_url
from l2m_core.errors import ConfigError
from tests.store.harness import begin


def test_the_default_is_a_database_in_a_folder_of_the_users_own(tmp_path: Path) -> None:
    settings = AppSettings.from_environment({"XDG_DATA_HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path)})
    assert settings.data_dir.name in ("learning-to-measure",)
    assert settings.database_url == f"sqlite:///{settings.data_dir / 'l2m.sqlite3'}"


def test_folder_and_database_come_from_the_environment(tmp_path: Path) -> None:
    settings = AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "here")})
    assert settings.database_url == f"sqlite:///{tmp_path / 'here' / 'l2m.sqlite3'}"
    other = AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path), "L2M_DATABASE_URL": "postgresql://host/l2m"})
    assert other.database_url == "postgresql://host/l2m"


def test_prepare_makes_private_folders(tmp_path: Path) -> None:
    settings = AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "here")}).prepare()
    for folder in (settings.data_dir, settings.jobs_dir, settings.models_dir):
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o077 == 0


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_data_folder_that_others_could_read_is_narrowed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "here")})
    with closing(Store(settings.prepare().database_url, migrate=True)) as store:
        begin(store)
        load_signer(settings.data_dir)
        (settings.data_dir / "http.token").touch(0o600)
        files = [*settings.data_dir.glob("l2m.sqlite3*"), settings.secret_file]
        assert len(files) == 4, "the database, its log, the log's index and the secret"
        for path in (settings.data_dir, settings.jobs_dir, settings.models_dir, *files):
            path.chmod(0o755)
        with closing(Store(settings.prepare().database_url)):
            load_signer(settings.data_dir)
            assert {rights(path) for path in files} == {0o700}
    assert {rights(path) for path in (settings.data_dir, settings.jobs_dir, settings.models_dir)} == {0o700}
    assert caplog.text.count("could be opened by others") == 7


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_a_folder_that_is_not_the_apps_alone_is_warned_of_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int
) -> None:
    if mode == 0o755:
        (tmp_path / "thesis.txt").write_text("")
    tmp_path.chmod(mode)
    settings = AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path)}).prepare()
    assert tmp_path.stat().st_mode & 0o7777 == mode
    assert f"{tmp_path} can be opened by others" in caplog.text
    assert rights(settings.jobs_dir) == 0o700


def test_a_private_folder_is_nothing_to_speak_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "here")}).prepare()
    assert caplog.text == ""


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="L2M_DATA_DIR"):
        AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "file" / "here")}).prepare()


def test_the_password_stays_out_of_the_printed_settings(tmp_path: Path) -> None:
    settings = AppSettings.from_environment({"L2M_DATABASE_URL": "postgresql://me:s3cret@host/x"})
    assert "s3cret" not in repr(settings)


def test_a_password_can_lie_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3 cret@:/%\n")
    environment = {"L2M_DATABASE_URL": "postgresql://me@host/x", "L2M_DATABASE_PASSWORD_FILE": str(file)}
    settings = AppSettings.from_environment(environment)
    assert parse_url(settings.database_url).password == "s3 cret@:/%"
    assert "cret" not in repr(settings)
    for wrong in ("postgresql://me:other@host/x", "postgresql://host/x", "sqlite:///x"):
        with pytest.raises(ConfigError, match="must name a user and no password") as caught:
            AppSettings.from_environment({**environment, "L2M_DATABASE_URL": wrong})
        assert "cret" not in str(caught.value) and "other" not in str(caught.value)
    for content in (None, "", "\n"):
        file.unlink() if content is None else file.write_text(content)
        with pytest.raises(ConfigError, match="cannot be read, or is empty"):
            AppSettings.from_environment(environment)


def test_a_password_in_a_file_is_in_no_workers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret")
    monkeypatch.setenv("L2M_DATABASE_URL", "postgresql://me@host/x")
    monkeypatch.setenv("L2M_DATABASE_PASSWORD_FILE", str(file))
    environment = worker_environment(AppSettings.from_environment())
    assert not [name for name, value in environment.items() if "s3cret" in value]
    assert AppSettings.from_environment(environment).database_url == "postgresql://me:s3cret@host/x"


@pytest.mark.parametrize("url", ["", "sqlite://", "sqlite:///:memory:", "mysql://me:s3cret@host/x", "nonsense"])
def test_a_database_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="L2M_DATABASE_URL") as caught:
        Store(url)
    assert "s3cret" not in str(caught.value)


def test_a_sign_in_lasts_half_a_day_unless_something_else_is_stated() -> None:
    assert AppSettings.from_environment({}).sign_in_hours == 12
    assert AppSettings.from_environment({"L2M_SIGN_IN_HOURS": "1"}).sign_in_hours == 1
    for wrong in ("0", "721", "1.5", "day"):
        with pytest.raises(ConfigError, match="L2M_SIGN_IN_HOURS"):
            AppSettings.from_environment({"L2M_SIGN_IN_HOURS": wrong})
