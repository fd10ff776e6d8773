"""What the app does where an installed Streamlit lacks a part: the page still works, and the log says so once."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st

from app.host import sign_in
from app.host.downloads import is_allowed
from app.host.uploads import LARGEST_AT_ONCE, UploadLimit, largest_upload
from app.store import Store
from app.streamlit_contact import (
    chart_colours,
    clicks,
    front_end,
    insides,
    no_answer,
    options,
    popovers,
    scripts,
    sign_in_cookies,
    top,
    typed_numbers,
    uploaded_files,
)
from app.ui import downloads
from tests.streamlit_contact.conftest import ELEMENTS, visitor_of
from tests.streamlit_contact.looked_up import names

TakeAway = Callable[[str], None]
PLAIN_DELIVERY = {"get_script_run_ctx", "_enqueue", "exists", "get_instance", "Runtime", "_session_mgr"} | {
    "get_session_info",
    "_browser_queue",
    "_call_soon_on_event_loop",
    "_scriptrunner",
}
NO_SCRIPTS = {"get_bidi_component_manager", "get_component_asset_root", "register_from_manifest", "component"} | {
    "ComponentConfig",
    "ComponentManifest",
}


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines about missing parts."""
    caplog.set_level(logging.WARNING, "l2m.app")
    return lambda: [record.getMessage() for record in caplog.records if "has no" in record.getMessage()]


async def use(address: str) -> tuple[str, set[str], int, str]:
    """Draws the page twice, uploads a file and asks for a download."""
    async with visitor_of(address) as visitor:
        await visitor.press("again")
        status = await asyncio.to_thread(visitor.upload, "f", 10)
        kinds = {element.WhichOneof("type") for element in visitor.elements.values()}
        return visitor.text(), kinds, status, await visitor.ask_for_download("download")


@pytest.mark.parametrize("name", names())
def test_the_page_still_works_without(
    name: str, address: str, take_away: TakeAway, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(name)
    # As in a process that has just begun, where no script was registered yet.
    package = f"l2m{name.replace('_', '').lower()}"
    for constant, value in {"_mounts": {}, "PACKAGE": package}.items():
        monkeypatch.setattr(scripts, constant, value)
    text, kinds, status, download = asyncio.run(use(address))
    assert all(f"element {number} of run 1" in text for number in range(ELEMENTS))
    assert status == 204 and download.endswith(".csv")
    assert ("bidi_component" in kinds) == (name not in NO_SCRIPTS)
    if name in PLAIN_DELIVERY | NO_SCRIPTS:
        assert [name in line for line in log()] == [True] * (2 if name in NO_SCRIPTS else 1)


def test_a_component_that_cannot_be_registered_leaves_the_page_without_it(
    take_away: TakeAway, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = SimpleNamespace(get_component_asset_root=lambda name: None)
    module = import_module("streamlit.components.v2.get_bidi_component_manager")
    monkeypatch.setattr(module, "get_bidi_component_manager", lambda: manager)
    for _ in range(2):
        clicks.listen("chart", lambda: None)
        top.begin_at_the_top("step")
        typed_numbers.refuse_what_is_left_out()
        no_answer.say_in_our_words()
        popovers.open_to_the_tab_key()
    assert [line.split(": ")[1] for line in log()] == [
        "charts do not react to clicks; the select boxes beside them do the same.",
        "a new view is shown as far down as the one before was scrolled.",
        "a comma that is typed into a number may be left out by the browser, as 45 of 4,5.",
        "a server that does not answer is told of in Streamlit's words.",
        "what a button opens is reached by the Tab key only at the page's end.",
    ]


def test_a_download_without_a_known_id_opens_for_the_browser_that_asked(
    monkeypatch: pytest.MonkeyPatch, take_away: TakeAway, log: Callable[[], list[str]], tmp_path: Path
) -> None:
    monkeypatch.delattr("streamlit.runtime.memory_media_file_storage._calculate_file_id")
    monkeypatch.setattr(downloads.state, "browser", lambda: "mine")
    monkeypatch.setattr(downloads.state, "owner", lambda: "me")
    store = Store(f"sqlite:///{tmp_path / 'store.sqlite3'}", migrate=True)
    monkeypatch.setattr(downloads.services, "get", lambda: SimpleNamespace(store=store))
    built: list[Any] = []
    monkeypatch.setattr(st, "download_button", lambda label, build, *rest, **more: built.append(build()))
    downloads.button("Download", lambda: "a,b", "a.csv", "text/csv", key="d", act=("exported", "this"))
    assert built == [b"a,b"] and len(log()) == 1
    assert [(act.kind, act.subject) for act in store.audit.list("me")] == [("exported", "this")]
    store.close()
    assert is_allowed("whatever id it has", "mine")
    assert not is_allowed("whatever id it has", "theirs") and not is_allowed("whatever id it has", None)


@pytest.mark.parametrize("name", ["exists", "get_instance", "uploaded_file_mgr", "file_storage"])
def test_where_held_files_are_unknown_those_on_their_way_still_count(
    name: str, take_away: TakeAway, address: str
) -> None:
    take_away(name)
    limit = UploadLimit()
    with limit.reserved("session", "a", LARGEST_AT_ONCE * largest_upload()) as first:
        with limit.reserved("session", "b", 1) as second:
            assert first and not second
    assert uploaded_files.sizes_of("session") == {}


SETTINGS = """[auth]
redirect_uri = "http://localhost/oauth2callback"
cookie_secret = "a long random text"
client_id = "l2m"
client_secret = "secret"
server_metadata_url = "http://localhost/metadata"
"""


@pytest.mark.parametrize("name", ["secrets_singleton", "merge_programmatic_secrets"])
def test_sign_in_that_cannot_be_set_up_lets_nobody_in(name: str, take_away: TakeAway, tmp_path: Path) -> None:
    take_away(name)
    path = tmp_path / "sign-in.toml"
    path.write_text(SETTINGS)
    sign_in.ask_by(path, hours=12)
    asked = sign_in.asked()
    sign_in.ask_by(None, hours=12)
    assert asked is not None and "install one below 1.68" in asked.problem
    assert not asked.is_signed_in({})


@pytest.mark.parametrize(
    "name", ["get_cookie_with_chunks", "get_cookie_secret", "decode_signed_value", "USER_COOKIE_NAME"]
)
def test_a_cookie_that_cannot_be_checked_is_nobodys(
    name: str, take_away: TakeAway, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    take_away(name)
    assert sign_in_cookies.claims_in({"_streamlit_user": "anything"}) == {}
    assert [name in line for line in log()] == [True]


def test_options_stay_as_the_file_has_them(
    take_away: TakeAway, log: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = st.get_option("server.maxUploadSize")
    monkeypatch.setitem(os.environ, "STREAMLIT_SERVER_MAX_UPLOAD_SIZE", str(before + 1))
    for name in ("get_config_options", "set_option", "is_manually_set"):
        take_away(name)
    options.take_environment()
    options.set_option("server.maxUploadSize", before + 1)
    assert st.get_option("server.maxUploadSize") == before and not options.is_set("server.maxUploadSize")
    assert len(log()) == 3


def test_a_document_elsewhere_has_no_scripts_that_are_allowed(
    take_away: TakeAway, log: Callable[[], list[str]], tmp_path: Path
) -> None:
    assert front_end.inline_scripts(tmp_path / "index.html") == []
    assert len(log()) == 1


def test_charts_keep_colours_that_can_be_seen(take_away: TakeAway, log: Callable[[], list[str]]) -> None:
    take_away("CATEGORY_3")
    assert chart_colours.markers() == chart_colours.LIGHT and len(log()) == 1


def test_a_part_is_logged_once_and_by_its_name(take_away: TakeAway, log: Callable[[], list[str]]) -> None:
    for _ in range(3):
        with pytest.raises(insides.InsideMissing) as missing:
            insides.inside("streamlit.attic", "box")
        missing.value.log("the plainer way")
    assert log() == [f"Streamlit {st.__version__} has no streamlit.attic.box: the plainer way."]
