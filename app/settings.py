"""Settings of an installation, from environment variables: where data are kept, and what background jobs may use.

| variable | meaning | default |
| --- | --- | --- |
| `L2M_DATA_DIR` | folder for the database, job logs and trained models | a folder of the user's own |
| `L2M_DATABASE_URL` | `sqlite:///path` or `postgresql://user:password@host/name` | `l2m.sqlite3` in the data folder |
| `L2M_DATABASE_PASSWORD_FILE` | file with the password that the URL leaves out | none |
| `L2M_JOBS` | background jobs at once; the others wait their turn | 1 |
| `L2M_JOB_THREADS` | CPU threads of each background job | 1 |
| `L2M_DEVICE` | where models compute: `auto` (a GPU with room, else the CPU), `cpu`, `cuda` or `cuda:N` | `auto` |
| `L2M_TRAINING` | who may start training jobs: `everyone`, `signed-in` or `off` | `everyone` |
| `L2M_HEADS_FILE` | file of signed heads, best where no administrator can write | `heads.jsonl` in the data folder |
| `L2M_HEADS_KEY_FILE` | file with the key that signs them, 32 bytes or more | `heads.key` in the data folder |
| `L2M_SIGN_IN_HOURS` | hours after which a person must sign in again | 12 |
| `L2M_IDLE_MINUTES` | the same after minutes in which they asked for nothing | 60 |
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from app.private_files import narrow
from l2m_core.answering.devices import AUTO, wanted
from l2m_core.errors import ConfigError

SECRET = "secret.key"
DATABASE = "l2m.sqlite3"
HEADS, HEADS_KEY = "heads.jsonl", "heads.key"
COOKIE_HOURS = 30 * 24  # for which Streamlit's cookie of a sign-in is good
IDLE_MINUTES = 60
WHO_MAY_TRAIN = ("everyone", "signed-in", "off")


@dataclass(frozen=True)
class AppSettings:
    """Settings of one installation. `database_url` stays out of the printed form: it may hold a password."""

    data_dir: Path
    database_url: str = field(repr=False)
    jobs_at_once: int = 1
    job_threads: int = 1
    device: str = AUTO
    """Where models compute; see l2m_core/answering/devices.py."""
    training: str = "everyone"
    sign_in_hours: int = 12
    idle_minutes: int = IDLE_MINUTES
    council: bool = True
    """Whether models fitted to a cohort's own rows are heard beside the model; see l2m_core/council."""
    chosen_heads_file: Path | None = None
    chosen_heads_key: Path | None = None

    @property
    def jobs_dir(self) -> Path:
        """Logs and working folders of background jobs."""
        return self.data_dir / "jobs"

    @property
    def models_dir(self) -> Path:
        """Models trained or fine-tuned on this installation."""
        return self.data_dir / "models"

    @property
    def councils_dir(self) -> Path:
        """Recipes of councils that were found for the cohorts of this installation."""
        return self.data_dir / "councils"

    @property
    def secret_file(self) -> Path:
        """What cookies are signed with. It lies there from the first start on."""
        return self.data_dir / SECRET

    @property
    def heads_file(self) -> Path:
        """Signed heads of chains, which give away a database that was written anew."""
        return self.chosen_heads_file or self.data_dir / HEADS

    @property
    def heads_key(self) -> Path:
        """What the heads are signed with."""
        return self.chosen_heads_key or self.data_dir / HEADS_KEY

    @property
    def heads_key_is_ours(self) -> bool:
        """Whether the app itself makes the key. One that is named must be there."""
        return self.chosen_heads_key is None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> AppSettings:
        environment = os.environ if environment is None else environment
        data_dir = _data_dir(environment)
        url = environment.get("L2M_DATABASE_URL", "").strip() or f"sqlite:///{data_dir / DATABASE}"
        password_file = _path(environment, "L2M_DATABASE_PASSWORD_FILE")
        return cls(
            data_dir=data_dir,
            database_url=url if password_file is None else _with_password(url, password_file),
            jobs_at_once=_count(environment, "L2M_JOBS", 1, 64),
            job_threads=_count(environment, "L2M_JOB_THREADS", 1, 1024),
            device=wanted(environment=environment),
            training=_training(environment),
            sign_in_hours=_count(environment, "L2M_SIGN_IN_HOURS", 12, COOKIE_HOURS),
            idle_minutes=_count(environment, "L2M_IDLE_MINUTES", IDLE_MINUTES, COOKIE_HOURS * 60),
            council=_switch(environment, "L2M_COUNCIL"),
            chosen_heads_file=_path(environment, "L2M_HEADS_FILE"),
            chosen_heads_key=_path(environment, "L2M_HEADS_KEY_FILE"),
        )

    def prepare(self) -> AppSettings:
        """Makes the folders, readable by this user only. Returns itself.

        A data folder of before that others may open is narrowed, unless it is not the app's alone: then a warning says so.
        """
        for folder in (self.data_dir, *self._own_folders):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigError(
                    f"The data folder {folder} cannot be made ({error.strerror}). "
                    "Set L2M_DATA_DIR to a folder that this user may write to."
                ) from error
        narrow(self.data_dir, may_change=self._is_ours())
        for folder in self._own_folders:
            narrow(folder)
        return self

    @property
    def _own_folders(self) -> tuple[Path, ...]:
        return self.jobs_dir, self.models_dir, self.councils_dir

    def _is_ours(self) -> bool:
        """Whether all that lies in the data folder was put there by the app."""
        own = {DATABASE, HEADS, *(folder.name for folder in self._own_folders)}
        return all(
            path.name in own or path.name.startswith((f"{DATABASE}-", ".")) or path.suffix in (".key", ".token")
            for path in self.data_dir.iterdir()
        )


def _count(environment: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environment.get(name, "").strip() or str(default)
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= most:
        raise ConfigError(f"{name} is {text!r}; it must be a whole number from 1 to {most}.")
    return int(text)


def _with_password(url: str, file: Path) -> str:
    """No message repeats the URL or what the file holds."""
    try:
        password = file.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        password = ""
    if not password:
        raise ConfigError(f"The password in {file} (L2M_DATABASE_PASSWORD_FILE) cannot be read, or is empty.")
    scheme, _, rest = url.partition("://")
    user, at, host = rest.partition("@")
    if not at or not user or ":" in user:
        raise ConfigError(
            "L2M_DATABASE_PASSWORD_FILE gives the password of L2M_DATABASE_URL, which must name a user and no password: "
            "postgresql://user@host/name."
        )
    return f"{scheme}://{user}:{quote(password, safe='')}@{host}"


def _switch(environment: Mapping[str, str], name: str) -> bool:
    """On, where nothing else is said."""
    text = environment.get(name, "").strip().lower() or "on"
    if text not in ("on", "off"):
        raise ConfigError(f"{name} is {text!r}; it must be 'on' or 'off'.")
    return text == "on"


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    chosen = environment.get(name, "").strip()
    return Path(chosen).expanduser().absolute() if chosen else None


def _training(environment: Mapping[str, str]) -> str:
    text = environment.get("L2M_TRAINING", "").strip().lower() or WHO_MAY_TRAIN[0]
    if text not in WHO_MAY_TRAIN:
        raise ConfigError(f"L2M_TRAINING is {text!r}; it must be one of {', '.join(WHO_MAY_TRAIN)}.")
    return text


def _data_dir(environment: Mapping[str, str]) -> Path:
    chosen = _path(environment, "L2M_DATA_DIR")
    if chosen is not None:
        return chosen
    if sys.platform == "win32":
        base = environment.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Application Support")
    else:
        base = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "learning-to-measure"
