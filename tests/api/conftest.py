"""A real server process on loopback, over a data folder with a shared, a private and a continuous cohort."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from app.api import openapi
from app.host.services import Services
from app.settings import AppSettings
from l2m_core.cohort import Cohort
from tests.patients.ward import ward
from tests.prerequisites import REPOSITORY

OWNER = "browser-of-somebody"


@dataclass(frozen=True)
class Served:
    """A server that runs, and what a client of it needs."""

    process: subprocess.Popen[str]
    address: str
    said: tuple[str, ...]
    """The lines that it printed when it began."""
    data_dir: Path
    log: Path

    @property
    def token(self) -> str:
        return (self.data_dir / "http.token").read_text().strip()

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=60, trust_env=False)


def start(data_dir: Path, name: str = "server") -> Served:
    log = data_dir / f"{name}.log"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-P", "-m", "app.api", "--port", "0", "--data-dir", str(data_dir)]
    with log.open("w") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    said: list[str] = []
    while not said or "token" not in said[-1]:
        line = process.stdout.readline()
        assert line, log.read_text()
        said.append(line.rstrip("\n"))
    found = re.search(r"http://\S+", said[0])
    assert found is not None
    return Served(process, found[0], tuple(said), data_dir, log)


def stop(served: Served) -> int:
    served.process.send_signal(signal.SIGTERM)
    return served.process.wait(30)


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def services(data_dir: Path) -> Iterator[Services]:
    """The installation as the app would have it beside the server."""
    made = Services(AppSettings(data_dir, f"sqlite:///{data_dir / 'l2m.sqlite3'}"))
    yield made
    made.shut_down()
    made.store.close()


@pytest.fixture(scope="session")
def cohorts(services: Services) -> dict[str, str]:
    """Name → id."""
    ids = {}
    for name, cohort, shared in (
        ("ward", ward(), True),
        ("private", ward(lactate_later=True), False),
        ("uncoded", Cohort.from_frame(ward().frame(), "sodium", baseline=["age"], name="uncoded"), True),
    ):
        stored = services.add_cohort(OWNER, cohort)
        services.store.cohorts.share(OWNER, stored.id, shared)
        ids[name] = stored.id
    return ids


@pytest.fixture(scope="session")
def served(data_dir: Path, cohorts: dict[str, str]) -> Iterator[Served]:
    running = start(data_dir)
    yield running
    assert stop(running) in (0, -signal.SIGTERM)


@pytest.fixture(scope="session")
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as made:
        yield made


def holds(answer: httpx.Response, schema: str) -> Any:
    """The answer's JSON, which the OpenAPI document's schema of this name must fit."""
    document = openapi.document()
    jsonschema.Draft202012Validator({**document, "$ref": f"#/components/schemas/{schema}"}).validate(answer.json())
    return answer.json()


def refusal(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(holds(answer, "Error")["error"])
