"""Which browser may fetch which download.

Streamlit serves a download under an address that answers anyone who knows it. Here the file's id on the server is
remembered together with the browser it was made for, and `Guard` refuses every other browser.
"""

from __future__ import annotations

from app.cache import BoundedCache

_allowed = BoundedCache(10_000)


_ANY_FILE = "any file"


def allow(file_id: str | None, browser: str) -> None:
    """Lets this browser fetch the file. file_id: None where Streamlit does not tell it, which allows the browser all files."""
    _allowed.get((file_id or _ANY_FILE, browser), lambda: True)


def is_allowed(file_id: str, browser: str | None) -> bool:
    return browser is not None and any(_allowed.peek((known, browser)) for known in (file_id, _ANY_FILE))
