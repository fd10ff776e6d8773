"""What the app takes from Streamlit beyond its documentation, held against the installed package."""

from __future__ import annotations

import asyncio
import logging
import re
import urllib.request
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit import config, net_util
from streamlit.auth_util import set_cookie_with_chunks
from streamlit.runtime import Runtime
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.media_file_storage import MediaFileKind
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.secrets import secrets_singleton
from streamlit.runtime.uploaded_file_manager import UploadedFileRec
from streamlit.web.server.server_util import get_cookie_secret, is_url_from_allowed_origins
from streamlit.web.server.starlette import starlette_agent_routes, starlette_app, starlette_routes, starlette_websocket
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from app.host import hosts
from app.host.guard import content_security_policy
from app.streamlit_contact import (
    addresses,
    chart_colours,
    front_end,
    loggers,
    media,
    options,
    outside,
    scripts,
    sign_in_cookies,
    uploaded_files,
)
from tests.load.visitor import Visitor
from tests.prerequisites import REPOSITORY
from tests.streamlit_contact.conftest import ELEMENTS, visitor_of
from tests.streamlit_contact.looked_up import looked_up

CONTENT = b"a,b\n1,2\n"  # of the page's download
CLICKS = scripts.component_of("clicks")


def visit(address: str, act: Callable[[Visitor], Awaitable[Any]]) -> Any:
    async def come() -> Any:
        async with visitor_of(address) as visitor:
            return await act(visitor)

    return asyncio.run(come())


@pytest.mark.parametrize(("module", "name"), looked_up("inside"))
def test_every_part_that_is_looked_up_is_there(module: str, name: str) -> None:
    assert hasattr(import_module(module), name)


# -- delivery ---------------------------------------------------------------------------------------------------------


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that a session is handed one by one, each of which wakes the server."""
    texts: list[str] = []
    enqueue = AppSession._enqueue_forward_msg

    def watched(session: AppSession, message: Any) -> None:
        texts.append(message.delta.new_element.markdown.body)
        enqueue(session, message)

    monkeypatch.setattr(AppSession, "_enqueue_forward_msg", watched)
    return texts


def test_what_is_batched_arrives_whole_and_wakes_nobody(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = one_by_one(monkeypatch)

    async def look(visitor: Visitor) -> str:
        await visitor.press("again")
        return visitor.text()

    shown = visit(address, look)
    assert all(f"element {number} of run 1" in shown for number in range(ELEMENTS))
    assert not any("element" in text for text in sent) and sent != []


def test_nothing_of_an_older_run_is_drawn_into_a_newer_one(address: str) -> None:
    async def look(visitor: Visitor) -> str:
        await visitor.press("again")
        await visitor.press("again")
        return visitor.text()

    shown = visit(address, look)
    assert "element 0 of run 2" in shown and "of run 1" not in shown


# -- clicks -----------------------------------------------------------------------------------------------------------


def test_the_script_that_listens_to_clicks_is_served_as_a_file(address: str) -> None:
    async def look(visitor: Visitor) -> Any:
        return next(e.bidi_component for e in visitor.elements.values() if e.WhichOneof("type") == "bidi_component")

    element = visit(address, look)
    assert element.component_name == CLICKS and element.json == '"chart"'
    with urllib.request.urlopen(f"{address}/_stcore/bidi-components/{CLICKS}/{element.js_source_path}") as file:
        assert b'setTriggerValue("pick"' in file.read()


def test_every_script_has_its_file() -> None:
    for name in scripts.NAMES:
        assert (Path(scripts.__file__).parent / name / f"{name}.js").is_file()


def test_a_page_drawn_again_registers_the_script_no_second_time(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visit(address, lambda visitor: visitor.press("again"))
    made: list[object] = []
    monkeypatch.setattr("streamlit.components.v2.component", lambda *names, **more: made.append(names))
    visit(address, lambda visitor: visitor.press("again"))
    assert made == []


# -- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [CONTENT, bytes(3_000_000)])
def test_a_download_has_the_id_that_streamlit_gives_it(data: bytes) -> None:
    storage = MemoryMediaFileStorage(addresses.MEDIA)
    given = storage.load_and_get_id(data, "text/csv", MediaFileKind.DOWNLOADABLE, "table.csv")
    assert media.file_id(data, "text/csv", "table.csv") == given


def test_a_downloads_address_ends_in_its_id(address: str) -> None:
    path = visit(address, lambda visitor: visitor.ask_for_download("download"))
    assert path == f"{addresses.MEDIA}{media.file_id(CONTENT, 'text/csv', 'table.csv')}.csv"
    with urllib.request.urlopen(address + path) as file:
        assert file.read() == CONTENT


def test_uploads_of_an_open_page_are_counted_and_those_of_a_closed_one_forgotten(address: str) -> None:
    async def send(visitor: Visitor) -> tuple[int, dict[str, int], str]:
        status = await asyncio.to_thread(visitor.upload, "first", 100)
        uploaded_files.forget_if_gone(visitor.session, "first")
        return status, uploaded_files.sizes_of(visitor.session), visitor.session

    status, held, session = visit(address, send)
    assert (status, held) == (204, {"first": 100})
    late = UploadedFileRec(file_id="late", name="f", type="", data=bytes(10))
    Runtime.instance().uploaded_file_mgr.add_file("gone", late)  # type: ignore[attr-defined]
    assert uploaded_files.sizes_of("gone") == {"late": 10}
    uploaded_files.forget_if_gone("gone", "late")
    assert "gone" not in Runtime.instance().uploaded_file_mgr.file_storage  # type: ignore[attr-defined]


# -- sign-in ----------------------------------------------------------------------------------------------------------

AUTH = {"redirect_uri": "http://localhost/oauth2callback", "cookie_secret": "a long random text of many letters"}


@pytest.fixture
def auth() -> Any:
    sign_in_cookies.set_auth(AUTH)
    yield AUTH
    secrets_singleton._programmatic_secrets = None
    secrets_singleton._reset()


@pytest.mark.parametrize("name", ["ada", "ada " * 2000])
def test_streamlits_own_cookie_says_who_is_signed_in_and_no_other_does(auth: dict[str, str], name: str) -> None:
    assert get_cookie_secret() == AUTH["cookie_secret"]
    cookies: dict[str, str] = {}
    for secret in ("another secret", AUTH["cookie_secret"]):

        def sign(part: str, value: str, secret: str = secret) -> bytes:
            return create_signed_value(secret, part, value)

        cookies.clear()
        claims = {"is_logged_in": True, "sub": name}
        set_cookie_with_chunks(
            lambda part, value, sign=sign: cookies.update({part: sign(part, value).decode()}),
            sign,
            "_streamlit_user",
            claims,
            cookie_attr_size=50,
        )
        assert sign_in_cookies.claims_in(cookies) == (claims if secret == AUTH["cookie_secret"] else {})
    assert sign_in_cookies.claims_in({}) == {}


def test_settings_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(TypeError):
        sign_in_cookies.set_auth({"since": object()})


# -- the server -------------------------------------------------------------------------------------------------------


def test_an_option_that_is_set_is_read_and_known_to_be_set() -> None:
    before = st.get_option("server.allowedHosts")
    options.set_option("server.allowedHosts", ["l2m.example.org"])
    assert st.get_option("server.allowedHosts") == ["l2m.example.org"]
    assert options.is_set("server.allowedHosts") and not options.is_set("server.baseUrlPath")
    config.set_option("server.allowedHosts", before)


def test_no_check_of_an_origin_looks_up_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(net_util, "_make_blocking_http_get", lambda *address, **more: asked.append(address))
    for name in ("_external_ip", "_internal_ip"):
        monkeypatch.setattr(net_util, name, None)
    for name in ("get_external_ip", "get_internal_ip"):
        monkeypatch.setattr(net_util, name, getattr(net_util, name))  # put back at the end
    outside.never_look_up()
    outside.never_look_up()
    assert not is_url_from_allowed_origins("http://evil.example")
    assert is_url_from_allowed_origins("http://localhost:8501")
    assert asked == [] and net_util._internal_ip is None


@pytest.mark.parametrize("allowed", [[], ["l2m.example.org", "[::1]", "::1"], ["*.example.org"], ["*"]])
@pytest.mark.parametrize(
    "host",
    ["l2m.example.org", "L2M.example.org.:8501", "example.org", "evil.example", "a@l2m.example.org", "[::1]:8501"]
    + ["l2m.example.org:x", "l2m.example.org/a", ""],
)
def test_a_host_is_known_to_us_where_it_is_to_streamlit(
    allowed: list[str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = st.get_option("server.allowedHosts")
    config.set_option("server.allowedHosts", allowed)
    try:
        assert hosts.is_known_host(host) == starlette_websocket.is_host_allowed(host)
    finally:
        config.set_option("server.allowedHosts", before)


def test_addresses_are_those_that_the_server_answers(address: str) -> None:
    assert addresses.UPLOADS == f"/{starlette_routes.BASE_ROUTE_UPLOAD_FILE}"
    assert addresses.METRICS == f"/{starlette_routes.ROUTE_METRICS}"
    assert f"/{starlette_agent_routes._ROUTE_AGENT_SCHEMA}".startswith(addresses.AGENT)
    assert set(addresses.NOT_PAGES) == {*starlette_app._RESERVED_ROUTE_PREFIXES}
    with urllib.request.urlopen(address + addresses.HEALTH) as answer:
        assert answer.status == 200


def test_scripts_inside_the_document_are_found_and_allowed(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        document = answer.read().decode()
    scripts = front_end.inline_scripts()
    assert scripts and len(scripts) == document.count("<script>")
    assert all(f"<script>{script}</script>" in document for script in scripts)
    assert content_security_policy(scripts).count("'sha256-") == len(scripts)


def test_errors_of_a_page_and_of_a_download_are_logged_under_the_known_names(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    for name in loggers.OF_ERRORS:  # Streamlit's loggers hand nothing up
        logging.getLogger(name).addHandler(caplog.handler)

    async def provoke(visitor: Visitor) -> None:
        await visitor.ask_for_download("fails")
        with pytest.raises(Exception, match="stack trace"):
            await visitor.press("again", value="fail")

    try:
        visit(address, provoke)
    finally:
        for name in loggers.OF_ERRORS:
            logging.getLogger(name).removeHandler(caplog.handler)
    quoting = {record.name for record in caplog.records if record.exc_info and "9.9" in str(record.exc_info[1])}
    assert {"streamlit.runtime.backend_operation_handler", "streamlit.error_util"} <= quoting <= {*loggers.OF_ERRORS}


def test_colours_of_charts_are_markers_that_the_front_end_replaces() -> None:
    markers = [getattr(chart_colours, name) for name in chart_colours.NAMES]
    assert all(re.fullmatch("#0000[0-9a-f]{2}", marker) for marker in markers) and len({*markers}) == 5


def test_what_the_style_sheet_names_is_in_the_front_end() -> None:
    style = (REPOSITORY / "app" / "ui" / "page.css").read_text("utf-8")
    hooks = set(re.findall(r'data-testid="(\w+)"|\.(st[A-Z]\w+)', style))
    script = "".join(path.read_text("utf-8") for path in (front_end.STATIC / "static" / "js").glob("*.js"))
    wanted = {first or second for first, second in hooks} | {"data-stale", "st-key-"}
    assert len(wanted) > 5 and [hook for hook in sorted(wanted) if hook not in script] == []
