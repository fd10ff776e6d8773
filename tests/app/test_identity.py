"""Who is asking: cookies that cannot be made up, downloads for one browser only, headers on every answer."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.host import downloads, guard, hosts, services
from app.host.identity import COOKIE, Signer, load_signer, user_owner
from app.ui.downloads import file_name


def test_a_cookie_comes_back_as_the_browser_it_was_made_for() -> None:
    signer = Signer(b"s" * 32)
    browser = signer.new_browser()
    assert signer.read(signer.sign(browser)) == browser


@pytest.mark.parametrize("cookie", [None, "", "x", "a.b", "é" * 40, "a" * 32, "a" * 32 + "." + "0" * 64, "." * 99])
def test_a_cookie_that_was_made_up_is_nobody(cookie: str | None) -> None:
    assert Signer(b"s" * 32).read(cookie) is None


def test_another_installation_signs_differently() -> None:
    browser = "0" * 32
    assert Signer(b"s" * 32).read(Signer(b"t" * 32).sign(browser)) is None


def test_the_secret_is_made_once_and_kept_private(tmp_path: Path) -> None:
    first = load_signer(tmp_path)
    assert load_signer(tmp_path).secret == first.secret and len(first.secret) == 32
    assert (tmp_path / "secret.key").stat().st_mode & 0o077 == 0
    assert str(first.secret) not in repr(first)


def test_a_signed_in_user_is_an_opaque_owner() -> None:
    owner = user_owner("https://issuer.invalid", "ada@example.invalid")
    assert owner == user_owner("https://issuer.invalid", "ada@example.invalid")
    assert "ada" not in owner and owner != user_owner("https://other.invalid", "ada@example.invalid")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]


class Client:
    """Asks the guard, which stands before a server that answers everything with 200."""

    def __init__(self) -> None:
        async def server(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"content"})

        self.app = guard.Guard(server)
        self.cookie = ""

    def get(self, path: str) -> Answer:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"cookie", f"{COOKIE}={self.cookie}".encode())] if self.cookie else []
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers, "scheme": "http"}
        asyncio.run(self.app(scope, None, send))  # type: ignore[arg-type]
        answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], answered)


@pytest.fixture
def client(shared_services: services.Services) -> Client:
    return Client()


def test_the_page_sets_a_cookie_that_scripts_cannot_read_and_keeps_the_identity(client: Client) -> None:
    first = client.get("/").headers["set-cookie"]
    assert "HttpOnly" in first and "SameSite=Lax" in first and "Secure" not in first
    client.cookie = first.split(";")[0].removeprefix(f"{COOKIE}=")
    assert client.get("/").headers["set-cookie"].split(";")[0] == first.split(";")[0]
    client.cookie = "forged"
    assert client.get("/").headers["set-cookie"].split(";")[0] != first.split(";")[0]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_over_https_no_cookie_is_for_plain_http_as_well(shared_services: services.Services, scheme: str) -> None:
    theirs = [(b"set-cookie", b"_streamlit_user=a; HttpOnly; Path=/"), (b"Set-Cookie", b"b=secure; Secure")]
    sent: list[Any] = []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": theirs})

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "scheme": scheme}
    asyncio.run(guard.Guard(server)(scope, None, send))  # type: ignore[arg-type]
    cookies = [value.decode() for name, value in sent[0]["headers"] if name.lower() == b"set-cookie"]
    assert len(cookies) == 3 and cookies[1] == "b=secure; Secure"
    assert [cookie.endswith("; Secure") for cookie in cookies] == [scheme == "https", True, scheme == "https"]


def test_a_page_from_the_browsers_own_cache_sets_the_cookie_too() -> None:
    assert guard.is_page("/") and guard.is_page("/step_through")
    assert not any(guard.is_page(path) for path in ("/static/js/x.js", "/_stcore/health", "/media/ab", "/favicon.png"))


def test_a_download_is_for_the_browser_it_was_made_for_only(client: Client, shared_services) -> None:
    signer = shared_services.signer
    mine, other = signer.new_browser(), signer.new_browser()
    downloads.allow("abcdef12", mine)
    assert client.get("/media/abcdef12.json").status == 403
    client.cookie = signer.sign(other)
    assert client.get("/media/abcdef12.json").status == 403
    client.cookie = signer.sign(mine)
    answer = client.get("/media/abcdef12.json")
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    assert client.get("/media/abcdef13.json").status == 403


def test_the_programs_own_fonts_are_no_downloads(client: Client) -> None:
    assert client.get("/static/media/font.woff2").status == 200


def test_what_names_functions_and_sessions_is_closed(client: Client) -> None:
    assert client.get("/_stcore/metrics").status == 404
    assert client.get("/_stcore/agent/openapi.json").status == 404


def test_every_answer_keeps_the_page_to_itself(client: Client) -> None:
    headers = client.get("/").headers
    policy = headers["content-security-policy"]
    assert "img-src 'self' data: blob:" in policy and "script-src 'self' 'sha256-" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0] and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert "connect-src 'self';" in policy, "a page may open connections to this server only"
    assert "camera=()" in headers["permissions-policy"] and "microphone=()" in headers["permissions-policy"]


# -- hosts and origins ------------------------------------------------------------------------------------------------


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Streamlit's options that the guard reads; a public name counts as set when it is there."""
    found: dict[str, Any] = {"server.allowedHosts": [], "server.corsAllowedOrigins": []}
    read = hosts.st.get_option
    monkeypatch.setattr(hosts.st, "get_option", lambda name: found[name] if name in found else read(name))
    monkeypatch.setattr(hosts.options, "is_set", lambda name: name in found)
    return found


def come(kind: str = "http", method: str = "GET", path: str = "/", **headers: str) -> tuple[str, int]:
    """The kind and status (or code) of the first message sent back; 200 and 1 come from the server behind the guard."""
    sent: list[Any] = []

    async def server(scope: Any, receive: Any, send: Any) -> None:
        answers = {"http": {"type": "http.response.start", "status": 200, "headers": []}}
        await send(answers.get(kind, {"type": "websocket.accept"}))

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "method": method, "path": path, "headers": named, "scheme": kind}
    asyncio.run(guard.Guard(server)(scope, None, send))  # type: ignore[arg-type]
    return sent[0]["type"], sent[0].get("status", 0)


PAGE, SOCKET = ("http.response.start", 200), ("websocket.accept", 0)
NO_PAGE, NO_SOCKET = ("http.response.start", 403), ("websocket.close", 0)
HERE = "l2m.example.org:8501"


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://l2m.example.org:3000", "x", "http://", "http://["]
)
@pytest.mark.parametrize("public", [None, "other.example.org"])
def test_a_page_of_another_site_opens_no_socket(
    shared_services: services.Services, options: dict[str, Any], public: str | None, origin: str
) -> None:
    if public is not None:
        options["browser.serverAddress"] = public
    assert come("websocket", host=HERE, origin=origin) == NO_SOCKET
    assert come("http", "PUT", host=HERE, origin=origin) == NO_PAGE


def test_our_own_pages_and_programs_that_are_no_browsers_are_answered(
    shared_services: services.Services, options: dict[str, Any]
) -> None:
    for origin in ({}, {"origin": f"http://{HERE}"}, {"origin": f"https://{HERE.upper()}"}):
        assert come("websocket", host=HERE, **origin) == SOCKET
        assert come(host=HERE, **origin) == come("http", "PUT", host=HERE, **origin) == PAGE
    assert come(host=HERE, origin="null") == PAGE, "a browser that comes back from signing in"
    assert come(host=HERE, origin="http://evil.example") == NO_PAGE


def test_a_proxy_may_ask_under_its_own_name_for_pages_of_the_public_one(
    shared_services: services.Services, options: dict[str, Any]
) -> None:
    options["browser.serverAddress"] = "l2m.example.org"
    options["server.corsAllowedOrigins"] = ["https://second.example.org"]
    for name in ("l2m", "second"):
        assert come("websocket", host="127.0.0.1:8501", origin=f"https://{name}.example.org") == SOCKET
    assert come("websocket", host="127.0.0.1:8501", origin="https://third.example.org") == NO_SOCKET


def test_a_name_that_is_not_ours_gets_no_page_but_may_ask_for_the_servers_health(
    shared_services: services.Services, options: dict[str, Any]
) -> None:
    options["server.allowedHosts"] = ["l2m.example.org"]
    for path in ("/", "/step_through", "/_stcore/upload_file/a/b", "/a/readyz"):
        assert come(path=path, host="evil.example") == NO_PAGE
        assert come(path=path, host="evil.example", origin="http://evil.example") == NO_PAGE
    assert come("websocket", host="evil.example", origin="http://evil.example") == NO_SOCKET
    assert come(host=HERE) == come(path="/readyz", host="10.0.0.7") == come(path="/_stcore/health", host="x") == PAGE


def test_a_file_name_holds_nothing_but_letters_digits_and_dashes() -> None:
    assert file_name("../../etc/passwd", "ab", ending="csv") == "etc-passwd-ab.csv"
    assert file_name("日本", ending="json") == "l2m.json"
