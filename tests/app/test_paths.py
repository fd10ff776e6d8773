"""Names and ids that try to leave the data folder."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.host import services
from app.store import StoreError
from app.ui import downloads, state
from l2m_core.errors import L2MError
from tests.app.test_identity import Client

HOSTILE = (
    "../../etc/passwd",
    "/etc/passwd",
    "..\\..\\x",
    "general/../../x",
    "\x00",
    "~",
    "C:\\x",
    "%2e%2e%2f",
    "a\n/b",
)


@given(st.lists(st.text(), max_size=3), st.sampled_from(["json", "csv", "yaml"]))
def test_a_file_name_never_holds_a_path(parts: list[str], ending: str) -> None:
    assert re.fullmatch(rf"[A-Za-z0-9][A-Za-z0-9-]*\.{ending}", downloads.file_name(*parts, ending=ending))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_models_name_is_never_a_path(shared_services: services.Services, owner: str, name: str) -> None:
    with pytest.raises(L2MError, match="no model"):
        shared_services.model(owner, name)


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_id_opens_nothing(shared_services: services.Services, owner: str, name: str) -> None:
    assert not state.is_id(name)
    store = shared_services.store
    for ask in (store.cohorts.get, store.step_throughs.get, store.jobs.get):
        with pytest.raises(StoreError):
            ask(owner, name)


@example(path="_stcore/metrics")
@given(path=st.one_of(st.text(), st.sampled_from(HOSTILE)))
def test_no_address_below_media_opens_without_permission(shared_services: services.Services, path: str) -> None:
    assert Client().get(f"/media/{path}").status == 403
