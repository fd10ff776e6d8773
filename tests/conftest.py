"""What all tests share: prerequisites by marker and by fixture, and settings for property tests."""

import functools
import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

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

LONG_FIRST = ("e2e", "load")  # folders whose files take minutes each


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-figures", action="store_true", help="write what long checks measure to docs/results")
    parser.addoption("--write-pictures", action="store_true", help="write the user guide's pictures to docs/pictures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes by itself comes first, then files of many tests: processes that share the files end together."""
    tests_of = Counter(item.path for item in items)
    folders = {name: place for place, name in enumerate(LONG_FIRST)}
    items.sort(key=lambda item: (folders.get(item.path.parent.name, len(folders)), -tests_of[item.path], item.path))


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, find in PREREQUISITES.items():
        if item.get_closest_marker(marker):
            find()


@pytest.fixture(scope="session")
def unfinished() -> Iterator[set[Future[Any]]]:
    """What tests handed to the threads of an executor, whichever, and is not done yet."""
    futures: set[Future[Any]] = set()
    plain = ThreadPoolExecutor.submit

    @functools.wraps(plain)
    def submit(*args: Any, **kwargs: Any) -> Future[Any]:
        future = plain(*args, **kwargs)
        futures.add(future)
        future.add_done_callback(futures.discard)
        return future

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", submit)
        yield futures


@pytest.fixture(scope="module", autouse=True)
def background_at_rest(unfinished: set[Future[Any]]) -> Iterator[None]:
    """What a file's tests left to the app's threads (councils, resamples) is done before the next file begins: it would ask
    models that the next tests watch, and `warnings.catch_warnings` of one thread undoes that of another."""
    yield
    until = time.monotonic() + 120
    while (left := list(unfinished)) and time.monotonic() < until:
        wait(left, timeout=max(until - time.monotonic(), 0))  # what ends may have handed on more


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
