"""What one open page may have the server hold in memory. Streamlit limits the size of a file, and not how many there are.

Every visitor has an open page, so without this a single one could fill the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from streamlit import config, runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

PATH = "_stcore/upload_file"
LARGEST_AT_ONCE = 4  # files of the largest size
FILES_AT_ONCE = 100
FULL = (
    "This page holds as many uploaded files as it may. Remove one that is not needed any more, or reload the page, "
    "and upload it again."
)


class Room:
    """Counts what each page's session holds, and what is on its way to it. Used from the server's one event loop."""

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()  # session → bytes announced by uploads that are on their way
        self._files: Counter[str] = Counter()

    @contextmanager
    def taken(self, session: str, file: str, size: int) -> Iterator[bool]:
        """Around an upload: whether there is room for it. One under the same name makes room for itself."""
        held = [len(record.data) for name, record in files_of(session).items() if name != file]
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
            forget_if_gone(session, file)


def largest_upload() -> int:
    return int(config.get_option("server.maxUploadSize")) * 1024 * 1024


def size_of(headers: Headers) -> int:
    """Bytes of an upload. One that does not say its size may be as large as is allowed."""
    announced = headers.get("content-length", "")
    if "transfer-encoding" in headers or not (announced.isascii() and announced.isdigit()):
        return largest_upload()
    return int(announced)


def place_of(path: str) -> tuple[str, str] | None:
    """(session, file) of an upload's address; None for any other."""
    parts = path.partition(f"/{PATH}/")[2].split("/")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None


def files_of(session: str) -> dict[str, UploadedFileRec]:
    manager = _manager()
    return dict(manager.file_storage.get(session, {})) if manager is not None else {}


def forget_if_gone(session: str, file: str) -> None:
    """Streamlit forgets a session's files when it ends, and would keep for ever one that arrives afterwards."""
    manager = _manager()
    if manager is not None and not _is_connected(session):
        manager.remove_file(session, file)
        if not files_of(session):
            manager.remove_session_files(session)


def _is_connected(session: str) -> bool:
    return runtime.get_instance().is_active_session(session)


def _manager() -> MemoryUploadedFileManager | None:
    found = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    return found if isinstance(found, MemoryUploadedFileManager) else None
