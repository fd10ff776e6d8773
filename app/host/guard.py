"""Middleware before every request: hosts, origins, identity, sign-in, downloads and uploads, and security headers."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Sequence
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie

import anyio
import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from app.host import downloads, hosts, services, sign_in, sign_in_tries, uploads
from app.host.identity import COOKIE, COOKIE_SECONDS
from app.streamlit_contact import addresses, front_end, sign_in_cookies

_FILE = re.compile(r"([0-9a-fA-F]+)(?:\.[A-Za-z0-9]+)?")
_NOT_PAGES = (*addresses.NOT_PAGES, "/readyz")
# They name cached functions and count sessions for anyone who asks; a deployment measures at its proxy instead.
_CLOSED = (addresses.METRICS, addresses.AGENT)
# Whoever watches over a server may ask it by its number; these tell nothing else.
_FOR_ANY_HOST = (addresses.HEALTH, "/readyz")
# A page uses none of them; a copied text goes through the clipboard, which stays.
_UNUSED = ("camera", "display-capture", "geolocation", "microphone", "midi", "payment", "serial", "usb")
_PERMISSIONS = ", ".join(f"{feature}=()" for feature in _UNUSED)

logger = logging.getLogger("l2m.app")


class Guard:
    """ASGI middleware; plain, because Starlette's own base class would hold every response in memory."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._uploads = uploads.UploadLimit()
        base = st.get_option("server.baseUrlPath").strip("/")
        self._media = f"/{base}{addresses.MEDIA}" if base else addresses.MEDIA
        self._for_any_host = {*_FOR_ANY_HOST, *(f"/{base}{path}" for path in _FOR_ANY_HOST)}
        self._to_sign_in = tuple(f"/{base}{path}" if base else path for path in (addresses.LOG_IN, addresses.SIGNED_IN))
        self._tries = sign_in_tries.Tries()
        self._has_logged = False
        self._policy = content_security_policy(front_end.inline_scripts())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and self._is_foreign(scope):
            self._log_refusal()
            refuse = PlainTextResponse(hosts.REFUSED, 403) if scope["type"] == "http" else WebSocketClose()
            await refuse(scope, receive, send)
            return
        sign_in.asked()  # before Streamlit reads by its settings who has signed in
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookies = headers.get("cookie", "")
        browser = read_browser(cookies)
        refusal = self._refuse(scope, cookies, browser)
        answer = self._receiving(scope, headers) if refusal is None else PlainTextResponse(refusal[1], refusal[0])
        send = self._with_headers(scope, send, browser)
        await answer(scope, receive, self._counting_tries(scope, send) if refusal is None else send)

    def _is_foreign(self, scope: Scope) -> bool:
        """Whether it came under a name that is not ours, or from a page that is not."""
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if origin == "null" and scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            origin = None  # a browser that comes back from signing in may hide where it was; reading changes nothing
        is_known = scope["path"] in self._for_any_host or hosts.is_known_host(host)
        return not is_known or not hosts.is_own_page(origin, host)

    def _log_refusal(self) -> None:
        """Once, since strangers choose how often it happens, and without the names, which they choose as well."""
        if not self._has_logged:
            self._has_logged = True
            logger.warning(
                "Refused a request that came under an unknown name or from a page of another site, and will refuse such "
                "requests without a word. If people come under another name, set STREAMLIT_BROWSER_SERVER_ADDRESS to it."
            )

    def _refuse(self, scope: Scope, cookies: str, browser: str | None) -> tuple[int, str] | None:
        path = scope["path"]
        if path in self._to_sign_in and sign_in.asked() is not None and self._tries.are_used_up(_address(scope)):
            return 429, sign_in_tries.REFUSED
        if (addresses.UPLOADS in path or path.startswith(self._media)) and is_stranger(cookies):
            return 401, "Sign in on the page first."
        if path.startswith(self._media):
            found = _FILE.fullmatch(path.removeprefix(self._media))
            if found is None or not downloads.is_allowed(found[1], browser):
                return 403, "This file was made for another browser, or is gone. Go back to the page and ask again."
        if any(closed in path for closed in _CLOSED):
            return 404, "Not found"
        return None

    def _receiving(self, scope: Scope, headers: Headers) -> ASGIApp:
        """The application that answers. An upload reaches it only if it fits."""
        upload = uploads.session_and_file(scope["path"]) if scope["method"] == "PUT" else None
        if upload is None:
            return self.app

        async def receive_file(scope: Scope, receive: Receive, send: Send) -> None:
            with self._uploads.reserved(*upload, uploads.size_of(headers)) as fits:
                await (self.app if fits else PlainTextResponse(uploads.FULL, 413))(scope, receive, send)

        return receive_file

    def _counting_tries(self, scope: Scope, send: Send) -> Send:
        """Where somebody comes back from the identity provider: whether they are signed in is told by the answer's cookies."""
        is_try = scope["path"] == self._to_sign_in[-1] and re.search(
            rb"(^|&)(code|error)=", scope.get("query_string", b"")
        )
        if not is_try or sign_in.asked() is None:
            return send

        async def send_and_count(message: Message) -> None:
            if message["type"] == "http.response.start" and not sign_in_cookies.is_given(message["headers"]):
                await anyio.to_thread.run_sync(self._tries.fail, _address(scope))
            await send(message)

        return send_and_count

    def _with_headers(self, scope: Scope, send: Send, browser: str | None) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                if scope.get("scheme") == "https":
                    message["headers"] = [secured(name, value) for name, value in message["headers"]]
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = self._policy
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Referrer-Policy"] = "no-referrer"
                headers["Permissions-Policy"] = _PERMISSIONS
                headers["Cross-Origin-Opener-Policy"] = "same-origin"
                if scope["path"].startswith(self._media):
                    headers["Cache-Control"] = "no-store"
                if browser is None:
                    # The next request comes with a cookie, by a connection that can be led by it; see server/several.py.
                    headers["Connection"] = "close"
                if is_page(scope["path"]):
                    headers.append("Set-Cookie", browser_cookie(browser, secure=scope.get("scheme") == "https"))
            await send(message)

        return send_with_headers


def _address(scope: Scope) -> str:
    return str(scope["client"][0]) if scope.get("client") else ""


def is_page(path: str) -> bool:
    """Whether Streamlit answers this address with its one document (or "not changed")."""
    return not any(part in path for part in _NOT_PAGES) and "." not in path.rpartition("/")[2]


def read_browser(cookies: str) -> str | None:
    """The browser's id from the Cookie header; None where it has none of ours."""
    try:
        found = SimpleCookie(cookies).get(COOKIE)
    except CookieError:
        return None
    return services.get().signer.read(found.value) if found else None


def is_stranger(cookies: str) -> bool:
    """Whether nobody is signed in, by the Cookie header, where that is asked for."""
    asked = sign_in.asked()
    return asked is not None and not asked.is_signed_in(sign_in_cookies.claims_in(cookie_parser(cookies)))


def secured(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A header for HTTPS. Streamlit does not mark its cookies as secure, not even those of sign-in."""
    is_open = name.lower() == b"set-cookie" and b"secure" not in [part.strip().lower() for part in value.split(b";")]
    return name, value + b"; Secure" if is_open else value


def browser_cookie(browser: str | None, secure: bool) -> str:
    """A Set-Cookie header that renews the browser's id, or gives it a new one."""
    signer = services.get().signer
    value = signer.sign(browser or signer.new_browser())
    flags = "; Secure" if secure else ""
    return f"{COOKIE}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{flags}"


def content_security_policy(scripts: Sequence[str]) -> str:
    """Everything from this server only. The page's own inline scripts are named by their hashes, so no other one runs."""
    hashes = " ".join(f"'sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {hashes}".rstrip(),
            "style-src 'self' 'unsafe-inline'",  # Streamlit and Plotly set styles from script
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )
