"""What somebody looks at and takes away is an act in the audit trail, told once an hour and before it is handed out."""

from __future__ import annotations

import logging
import time

import pytest

from app.host import services
from app.store import StepThrough, StoredCohort, StoreError
from app.store.audit import Audit
from app.ui import downloads
from app.ui.step_through import stored_events
from app.ui.traces import loading
from tests.app.conftest import open_app


def acts(owner: str) -> list[tuple[str, str]]:
    """Newest first."""
    return [(act.kind, act.subject) for act in services.get().store.audit.list(owner)]


@pytest.fixture
def kept(
    shared_services: services.Services, owner: str, ward: StoredCohort, loaded: loading.LoadedTrace
) -> StepThrough:
    return loaded.record.step_through


def test_opening_a_cohort_is_an_act_of_who_opens_it(
    shared_services: services.Services, owner: str, ward: StoredCohort
) -> None:
    assert ("cohort read", ward.id) not in acts(owner)
    app = open_app("cohort", cohort=ward.id)
    app.run()
    assert acts(owner).count(("cohort read", ward.id)) == 1, "once, however often the page is drawn"


def test_the_server_itself_reads_without_telling(
    shared_services: services.Services, owner: str, ward: StoredCohort
) -> None:
    shared_services.conditioned(owner, ward, shared_services.model(owner))
    assert ("cohort read", ward.id) not in acts(owner)


@pytest.mark.parametrize("page", ["traces", "step_through"])
def test_opening_a_step_through_is_an_act(owner: str, kept: StepThrough, restart, page: str) -> None:
    restart()  # what was told by the process before is told again
    before = acts(owner).count(("step-through read", kept.id))
    open_app(page, **{"trace" if page == "traces" else "step": kept.id})
    assert acts(owner).count(("step-through read", kept.id)) == before + 1


def test_what_is_read_on_is_told_again_after_an_hour(
    owner: str, kept: StepThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    for hour in (1, 1, 2):
        monkeypatch.setattr("app.store.audit.time.time", lambda hour=hour: 4e9 + hour * 3600)
        stored_events.read(owner, kept.id)
        loading.load(owner, kept.id)
    assert acts(owner).count(("step-through read", kept.id)) == 3, "the first one was when it was made"


def test_another_owners_try_is_no_act_of_theirs(kept: StepThrough, owner: str, someone_else: str) -> None:
    with pytest.raises(StoreError):
        loading.load(someone_else, kept.id)
    assert acts(someone_else) == []


def test_what_cannot_be_told_can_still_be_read(
    owner: str, kept: StepThrough, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*arguments: object, **details: object) -> None:
        raise StoreError("The disk of the database is full.")

    monkeypatch.setattr(Audit, "record", full)
    monkeypatch.setattr("app.store.audit.time.time", lambda: time.monotonic() + 8e9)
    with caplog.at_level(logging.ERROR):
        assert loading.load(owner, kept.id).record.id == kept.id
    assert "not in the audit trail. The disk" in caplog.text


# -- exports ----------------------------------------------------------------------------------------------------------


def test_every_export_is_an_act_before_it_is_handed_out(
    owner: str, kept: StepThrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = offered_files(monkeypatch)
    open_app("traces", trace=kept.id)
    whole = [key for key in offered if key.startswith("export-")]  # charts offer their own numbers beside
    assert sorted(whole) == ["export-csv", "export-html", "export-json", "export-pdf"]
    before = len(acts(owner))
    assert offered["export-csv"]().startswith(b"\xef\xbb\xbf")
    (act,) = services.get().store.audit.list(owner)[: len(acts(owner)) - before]
    assert (act.kind, act.subject, act.details) == ("step-through exported", kept.id, {"file": "csv"})


def test_what_cannot_be_told_is_not_exported(owner: str, kept: StepThrough, monkeypatch: pytest.MonkeyPatch) -> None:
    offered = offered_files(monkeypatch)
    open_app("traces", trace=kept.id)

    def full(*arguments: object, **details: object) -> None:
        raise StoreError("The disk of the database is full.")

    monkeypatch.setattr(Audit, "record", full)
    with pytest.raises(StoreError, match="full"):
        offered["export-csv"]()


def offered_files(monkeypatch: pytest.MonkeyPatch) -> dict:
    """Key of a download button → what makes its file, as the page hands it to Streamlit."""
    offered: dict = {}

    def button(label: str, data, name: str, mime: str, key: str, **more: object) -> bool:  # type: ignore[no-untyped-def]
        offered[key] = data
        return False

    monkeypatch.setattr(downloads.st, "download_button", button)
    monkeypatch.setattr(downloads.media, "file_id", lambda data, mime, name: None)
    return offered
