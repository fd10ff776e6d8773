"""Under which names this server answers, and whose pages a browser may ask it from.

Without the first, a stranger's name that leads to this machine (DNS rebinding) would make their page ours. Without the
second, a page of any website could open a connection with the reader's cookies. Streamlit asks both, but the first only
of a page's socket, and the second with slow look-ups in the server's loop.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import streamlit as st

from app.streamlit_contact import options

REFUSED = (
    "This server answers under its own names and to its own pages only. Whoever runs it can set the name that people type: "
    "STREAMLIT_BROWSER_SERVER_ADDRESS."
)


def is_known_host(host: str | None) -> bool:
    """host: of the Host header. Whoever sends none is no browser, and cannot be led here by a name."""
    known = st.get_option("server.allowedHosts")
    return not known or host is None or any(_fits(name, _name_in(host)) for name in known)


def is_own_page(origin: str | None, host: str | None) -> bool:
    """Whether a request comes from one of our pages. origin: of the Origin header, which only browsers send."""
    if origin is None:
        return True
    scheme, separator, netloc = origin.partition("://")
    if not separator or scheme.lower() not in ("http", "https"):  # "null": of a page that hides where it is from
        return False
    if host is not None and netloc.lower() == host.lower():
        return True
    name = _name_in(netloc)  # a proxy may ask us under another name than the browser asked it
    return name != "" and name in _public_names()


def _public_names() -> set[str]:
    stated = [st.get_option("browser.serverAddress")] if options.is_set("browser.serverAddress") else []
    return {_name_in(name.rpartition("://")[2]) for name in (*stated, *st.get_option("server.corsAllowedOrigins"))}


def _name_in(netloc: str) -> str:
    """The name in `name:port`, in lower case; empty where it is no such thing."""
    try:
        parts = urlsplit(f"//{netloc}")
        is_plain = parts.port is None or parts.port > 0
    except ValueError:
        return ""
    is_plain = is_plain and parts.username is None and not (parts.path or parts.query or parts.fragment)
    return (parts.hostname or "").rstrip(".") if is_plain else ""


def _fits(pattern: str, name: str) -> bool:
    """As `server.allowedHosts` is read: `*` is any name, `*.x` any name below x."""
    pattern = pattern.strip().strip("[]").lower().rstrip(".")
    return name != "" and (pattern in ("*", name) or (pattern.startswith("*.") and name.endswith(pattern[1:])))
