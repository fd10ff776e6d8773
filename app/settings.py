"""Settings of an installation, from environment variables: where data are kept, and what background jobs may use.

| variable | meaning | default |
| --- | --- | --- |
| `L2M_DATA_DIR` | folder for the database, job logs and trained models | a folder of the user's own |
| `L2M_DATABASE_URL` | `sqlite:///path` or `postgresql://user:password@host/name` | `l2m.sqlite3` in the data folder |
| `L2M_JOBS` | background jobs at once; the others wait their turn | 1 |
| `L2M_JOB_THREADS` | CPU threads of each background job | 1 |
| `L2M_TRAINING` | who may start training jobs: `everyone`, `signed-in` or `off` | `everyone` |
| `L2M_SIGN_IN_HOURS` | hours after which a person must sign in again | 12 |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from l2m_core.errors import ConfigError

SECRET = "secret.key"
COOKIE_HOURS = 30 * 24  # for which Streamlit's cookie of a sign-in is good
WHO_MAY_TRAIN = ("everyone", "signed-in", "off")


@dataclass(frozen=True)
class AppSettings:
    """Settings of one installation. `database_url` stays out of the printed form: it may hold a password."""

    data_dir: Path
    database_url: str = field(repr=False)
    jobs_at_once: int = 1
    job_threads: int = 1
    training: str = "everyone"
    sign_in_hours: int = 12

    @property
    def jobs_dir(self) -> Path:
        """Logs and working folders of background jobs."""
        return self.data_dir / "jobs"

    @property
    def models_dir(self) -> Path:
        """Models trained or fine-tuned on this installation."""
        return self.data_dir / "models"

    @property
    def secret_file(self) -> Path:
        """What cookies are signed with. It lies there from the first start on."""
        return self.data_dir / SECRET

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> AppSettings:
        environment = os.environ if environment is None else environment
        data_dir = _data_dir(environment)
        url = environment.get("L2M_DATABASE_URL", "").strip() or f"sqlite:///{data_dir / 'l2m.sqlite3'}"
        return cls(
            data_dir=data_dir,
            database_url=url,
            jobs_at_once=_count(environment, "L2M_JOBS", 1, 64),
            job_threads=_count(environment, "L2M_JOB_THREADS", 1, 1024),
            training=_training(environment),
            sign_in_hours=_count(environment, "L2M_SIGN_IN_HOURS", 12, COOKIE_HOURS),
        )

    def prepare(self) -> AppSettings:
        """Makes the folders, readable by this user only. Returns itself."""
        for folder in (self.data_dir, self.jobs_dir, self.models_dir):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"The data folder {folder} cannot be made ({error.strerror}). "
                    "Set L2M_DATA_DIR to a folder that this user may write to."
                ) from error
        return self


def _count(environment: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise ConfigError(f"{name} is {text!r}; it must be a whole number from 1 to {most}.")
    return int(text)


def _training(environment: Mapping[str, str]) -> str:
    text = environment.get("L2M_TRAINING", "").strip().lower() or WHO_MAY_TRAIN[0]
    if text not in WHO_MAY_TRAIN:
        raise ConfigError(f"L2M_TRAINING is {text!r}; it must be one of {', '.join(WHO_MAY_TRAIN)}.")
    return text


def _data_dir(environment: Mapping[str, str]) -> Path:
    chosen = environment.get("L2M_DATA_DIR", "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = environment.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "learning-to-measure"
