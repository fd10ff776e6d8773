"""Streamlit's settings for sign-in, and its signed cookie of whoever is signed in.

There is no plainer way where a part is missing: then nobody counts as signed in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from app.streamlit_contact.insides import InsideMissing, attribute, inside


def set_auth(settings: dict[str, Any]) -> None:
    """Gives Streamlit its `[auth]` settings as values. It keeps no settings of a file that it cannot read, and without
    any it lets everybody in. Raises TypeError for a value of a kind that it does not take, InsideMissing where it takes
    none."""
    secrets = inside("streamlit.runtime.secrets", "secrets_singleton")
    attribute(secrets, "merge_programmatic_secrets")({"auth": settings})


def claims_in(cookies: Mapping[str, str]) -> dict[str, Any]:
    """What the provider said of whoever has these cookies, if Streamlit's signature on them is genuine."""
    try:
        text = _signed_text(cookies)
    except InsideMissing as missing:
        missing.log("nobody counts as signed in, so uploads and downloads are refused where sign-in is asked for")
        return {}
    try:
        claims = json.loads(text or b"{}")
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def is_given(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a response's headers hand out a cookie of somebody who is signed in."""
    try:
        name = str(inside("streamlit.web.server.starlette.starlette_server_config", "USER_COOKIE_NAME"))
    except InsideMissing as missing:
        missing.log("every sign-in counts as one that failed")
        return False
    given = [value.decode("latin-1") for header, value in headers if header.lower() == b"set-cookie"]
    return any(text.startswith(name) and "max-age=0" not in text.lower() for text in given)


def _signed_text(cookies: Mapping[str, str]) -> bytes | None:
    join = inside("streamlit.auth_util", "get_cookie_with_chunks")
    secret = inside("streamlit.web.server.server_util", "get_cookie_secret")
    decode = inside("streamlit.web.server.starlette.starlette_app_utils", "decode_signed_value")
    name = inside("streamlit.web.server.starlette.starlette_server_config", "USER_COOKIE_NAME")

    def read_signed(part: str) -> bytes | None:
        signed = cookies.get(part)
        return None if signed is None else decode(secret(), part, signed)

    found: bytes | None = join(read_signed, name)
    return found
