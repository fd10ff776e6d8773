"""Limits what one open page may hold in the server's memory. Streamlit limits the size of a file, not how many there are.

Every visitor has an open page, so without this limit a single visitor could fill the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from starlette.datastructures import Headers

from app.streamlit_contact import addresses, uploaded_files

LARGEST_AT_ONCE = 4  # files of the largest size
FILES_AT_ONCE = 100
FULL = (
    "This page holds as many uploaded files as it may. Remove one that is not needed any more, or reload the page, "
    "and upload it again."
)


class UploadLimit:
    """Counts what each page's session holds, and what is on its way to it. Used from the server's one event loop."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()  # session → bytes announced by uploads that are on their way
        self._files: Counter[str] = Counter()

    @contextmanager
    def reserved(self, session: str, file: str, size: int) -> Iterator[bool]:
        """Around an upload: whether it fits. A file of the same name counts as replaced."""
        held = [size for name, size in uploaded_files.sizes_of(session).items() if name != file]
        fits = (
            sum(held) + self._bytes[session] + size <= LARGEST_AT_ONCE * largest_upload()
            and len(held) + self._files[session] < FILES_AT_ONCE
        )
        if not fits:
            yield False
            return
        self._bytes[session] += size
        self._files[session] += 1
        try:
            yield True
        finally:
            self._bytes[session] -= size
            self._files[session] -= 1
            if not self._files[session]:
                del self._bytes[session], self._files[session]
            uploaded_files.forget_if_gone(session, file)


def largest_upload() -> int:
    return int(st.get_option("server.maxUploadSize")) * 1024 * 1024


def size_of(headers: Headers) -> int:
    """Bytes of an upload. One that does not state its size counts as the largest allowed."""
    announced = headers.get("content-length", "")
    if "transfer-encoding" in headers or not (announced.isascii() and announced.isdigit()):
        return largest_upload()
    return int(announced)


def session_and_file(path: str) -> tuple[str, str] | None:
    """The session and the file that an upload's address names; None for any other address."""
    parts = path.partition(f"{addresses.UPLOADS}/")[2].split("/")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None
