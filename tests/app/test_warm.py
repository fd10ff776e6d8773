"""What a server has at hand before anybody comes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.host import warm_up
from app.host.services import Services
from app.settings import AppSettings
from app.store import StepThrough
from tests.app.conftest import small_cohort

MISSING = "0" * 64  # fingerprint of a model that is not here


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Services]:
    """A server that has just started."""
    services = Services(AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}"))
    yield services
    services.shut_down()
    services.store.close()


def read_again(services: Services) -> None:
    """To its end: each task of the background asks for the next one."""
    warm_up.read_again(services)
    for _ in range(warm_up.LATEST + 1):
        services.background.submit(int).result()


def begin(services: Services, rows: int, fingerprint: str | None = None) -> StepThrough:
    """On a cohort that nobody has read."""
    cohort = small_cohort().rows(slice(rows))
    frame, schema = cohort.frame(), cohort.schema.to_yaml()
    stored = services.store.cohorts.add("me", f"ward of {rows}", frame, schema, cohort.content_hash)
    return services.store.step_throughs.create("me", stored.id, fingerprint or services.model("me").fingerprint)


def is_read(services: Services, step_through: StepThrough) -> bool:
    return services.has_read(services.store.cohorts.get("me", step_through.cohort_id), services.model("me"))


def test_the_cohorts_of_the_latest_step_throughs_are_read_again(
    started: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "LATEST", 2)
    step_throughs = [begin(started, rows) for rows in (40, 50, 60)]
    read_again(started)
    assert [is_read(started, step_through) for step_through in step_throughs] == [False, True, True]


def test_what_cannot_be_read_again_does_not_keep_the_rest_from_it(started: Services) -> None:
    there = begin(started, 40)
    begin(started, 50, fingerprint=MISSING)
    gone = begin(started, 60)
    started.store.cohorts.delete("me", gone.cohort_id)
    read_again(started)
    assert is_read(started, there)


def test_no_more_is_read_again_than_there_is_room_for(started: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "MEMORY_BYTES", 1)
    earlier, latest = begin(started, 40), begin(started, 50)
    read_again(started)
    assert (is_read(started, earlier), is_read(started, latest)) == (False, True)
