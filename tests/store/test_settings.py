"""Where the app keeps its data."""

from pathlib import Path

import pytest

from app.settings import AppSettings
from app.store import Store
from l2m_core.errors import ConfigError


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


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="L2M_DATA_DIR"):
        AppSettings.from_environment({"L2M_DATA_DIR": str(tmp_path / "file" / "here")}).prepare()


def test_the_password_stays_out_of_the_printed_settings(tmp_path: Path) -> None:
    settings = AppSettings.from_environment({"L2M_DATABASE_URL": "postgresql://me:s3cret@host/x"})
    assert "s3cret" not in repr(settings)


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
