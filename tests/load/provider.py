"""An identity provider for tests, and a browser's way through it: OpenID Connect, with one person who always agrees."""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.load.visitor import PATIENCE, Visitor


@dataclass
class Provider:
    """`claims` is said of whoever signs in next; a change of it makes another person, or another time."""

    port: int
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "test", "use": "sig"}))
    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "ada", "name": "Ada Lovelace"})
    asked: list[str] = field(default_factory=list)
    _nonces: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, app: str) -> str:
        """A sign-in file for the app at this address."""
        return (
            f'[auth]\nredirect_uri = "{app}/oauth2callback"\ncookie_secret = "a long random text"\nclient_id = "l2m"\n'
            f'client_secret = "secret"\nserver_metadata_url = "{self.address}/.well-known/openid-configuration"\n'
        )

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/jwks",
            "end_session_endpoint": f"{self.address}/end",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def agree(self, query: dict[str, str]) -> str:
        """Where the browser goes with a fresh code."""
        code = f"code{len(self._nonces)}"
        self._nonces[code] = query["nonce"]
        return f"{query['redirect_uri']}?{urllib.parse.urlencode({'code': code, 'state': query['state']})}"

    def tokens(self, form: dict[str, str]) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.address, "aud": "l2m", "iat": now, "exp": now + 300, "nonce": self._nonces[form["code"]]}
        token = jwt.encode({"alg": "RS256", "kid": "test"}, {**claims, **self.claims}, self.key)
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": token}


@contextmanager
def providing() -> Iterator[Provider]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            provider.asked.append(path)
            if path == "/authorize":
                self._go(provider.agree(dict(urllib.parse.parse_qsl(query))))
            elif path == "/end":
                self._go(dict(urllib.parse.parse_qsl(query))["post_logout_redirect_uri"])
            else:
                self._say({"keys": [provider.key.as_dict(private=False)]} if path == "/jwks" else provider.metadata())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._say(provider.tokens(dict(urllib.parse.parse_qsl(body))))

        def _go(self, to: str) -> None:
            self.send_response(302)
            self.send_header("Location", to)
            self.end_headers()

        def _say(self, content: dict[str, Any]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = Provider(server.server_address[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()


class Browser:
    """Keeps cookies and follows where it is sent, as a browser does."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.jar = CookieJar()
        direct = urllib.request.ProxyHandler({})
        self._opener = urllib.request.build_opener(direct, urllib.request.HTTPCookieProcessor(self.jar))
        self.open("/")
        self.open("/_stcore/health")  # gives the token without which Streamlit reads no sign-in

    def open(self, path: str) -> str:
        """The address at which it ended."""
        with self._opener.open(self.address + path, timeout=PATIENCE) as answer:
            return str(answer.url)

    @property
    def cookie(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)

    def visitor(self, page: str = "") -> Visitor:
        return Visitor(self.address, page, cookie=self.cookie)

    async def sign_in(self) -> None:
        """By the button on the page."""
        async with self.visitor() as visitor:
            await visitor.press("sign-in")
            self.open(visitor.sent_to)
