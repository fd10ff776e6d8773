"""What all tests share: prerequisites by marker and by fixture, and settings for property tests."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from tests import figures, prerequisites

# Times vary on a busy machine, so no deadline; in CI the same examples are tried each time.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

PREREQUISITES: dict[str, Callable[[], Path]] = {
    "browser": prerequisites.chromium,
    "postgres": prerequisites.postgres,
    "shared_data": prerequisites.shared_data,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-figures", action="store_true", help="write what long checks measure to docs/results")
    parser.addoption("--write-pictures", action="store_true", help="write the user guide's pictures to docs/pictures")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, find in PREREQUISITES.items():
        if item.get_closest_marker(marker):
            find()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the project."""
    return prerequisites.REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of the real cohorts, beside the repository."""
    return prerequisites.shared_data()


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program."""
    return prerequisites.chromium()


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder with initdb, pg_ctl and postgres."""
    return prerequisites.postgres()


@pytest.fixture
def free_port() -> int:
    """A port of the loopback interface that nothing uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> figures.Keep:
    """Call it with check, target, measured, met: printed, and with --write-figures kept in docs/results/reliability.md."""

    def keep(check: str, target: str, measured: str, met: bool) -> None:
        found = figures.Figure(check, target, measured, met, figures.here())
        print(f"\n{found.line()}")
        if request.config.getoption("--write-figures"):
            figures.write([found])

    return keep
