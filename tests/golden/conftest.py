"""The app on a copy of the kept data folder, for tests that read it; those that change it unpack their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.golden import inside, stores


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """As the files were made: another number of threads sums in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def app() -> Iterator[inside.Services]:
    with stores.opened() as (opened, _):
        yield opened


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own, which is where commands run."""
    folder = tmp_path / "data"
    stores.unpack(folder)
    monkeypatch.chdir(folder)
    return folder
