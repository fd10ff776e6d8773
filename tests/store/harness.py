"""A private PostgreSQL server, and the few things every test of the store begins with."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from uuid import uuid4

import pandas as pd

from app.store import StepThrough, Store, StoredCohort

OWNER = "owner-one"
STRANGER = "owner-two"
SCHEMA = "features: [{name: lactate, unit: mmol/L}]\noutcome: {name: died}\n"


class PostgresServer:
    """Listens on a socket in a folder of its own and nowhere else. It refuses to run as root, so root hands it over."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="l2m-pg-"))
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def start(self, **settings: str) -> None:
        # The tests end processes, never the power: what reached the operating system counts as kept, so no fsync.
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c shared_buffers=16MB -c max_connections=60"
        options += "".join(f" -c {name}={value}" for name, value in settings.items())
        self._run("pg_ctl", "-D", self.data, "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """immediate: every process of the server is ended at once, as in a crash."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def create(self, name: str, template: str | None = None) -> str:
        copy = ["-T", template] if template else []
        self._run("createdb", "-h", str(self.folder), "-U", "postgres", *copy, name)
        return self.url(name)

    def drop(self, name: str) -> None:
        self._run("dropdb", "-h", str(self.folder), "-U", "postgres", "--force", name)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        log = self.folder.with_suffix(".out")  # not a pipe: the server would keep it open and the wait would not end
        with open(log, "w") as output:
            code = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False).returncode
        said = log.read_text()
        log.unlink()
        assert code == 0, f"{program} failed: {said}"


def new_uuid() -> str:
    return str(uuid4())


def table(rows: int = 6) -> pd.DataFrame:
    return pd.DataFrame({"lactate": [1.5, None, 3.0] * (rows // 3), "died": ["no", "yes"] * (rows // 2)})


def add_cohort(store: Store, owner: str = OWNER, content: str = "a", **options: object) -> StoredCohort:
    return store.cohorts.add(owner, "triage", table(), SCHEMA, content * 64, **options)  # type: ignore[arg-type]


def begin(store: Store, owner: str = OWNER, **options: object) -> StepThrough:
    cohort = add_cohort(store, owner)
    return store.step_throughs.create(owner, cohort.id, "model-1", **options)  # type: ignore[arg-type]


def append_many(store: Store, step_through: StepThrough, number: int) -> None:
    owner, length = step_through.owner, store.step_throughs.get(step_through.owner, step_through.id).length
    for sequence in range(length, length + number):
        payload = {"feature": "lactate", "value": sequence + 0.5, "text": "x" * (sequence % 7)}
        store.step_throughs.append_event(owner, step_through.id, new_uuid(), sequence, "observe", payload)
