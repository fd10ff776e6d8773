"""How much one page's session may have the server hold, and when its share is free again."""

from __future__ import annotations

import pytest
from starlette.datastructures import Headers
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from app.host import uploads

LARGEST = uploads.largest_upload()


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """Streamlit's own, of a server in which only the session "here" is connected."""
    found = MemoryUploadedFileManager("/" + uploads.PATH)
    monkeypatch.setattr(uploads, "_manager", lambda: found)
    monkeypatch.setattr(uploads, "_is_connected", lambda session: session == "here")
    return found


def arrive(manager: MemoryUploadedFileManager, session: str, file: str, size: int = 10) -> None:
    manager.add_file(session, UploadedFileRec(file_id=file, name="f", type="", data=bytes(size)))


def test_what_is_on_its_way_counts_until_it_ends(manager: MemoryUploadedFileManager) -> None:
    room = uploads.Room()
    with room.taken("here", "a", 3 * LARGEST) as first, room.taken("here", "b", LARGEST) as second:
        assert first and second
        with room.taken("here", "c", 1) as third, room.taken("there", "c", LARGEST) as other:
            assert not third and other
    with pytest.raises(ConnectionError), room.taken("here", "a", 4 * LARGEST):
        raise ConnectionError
    with room.taken("here", "c", 4 * LARGEST) as fits:
        assert fits


def test_a_session_that_ends_frees_its_share(manager: MemoryUploadedFileManager) -> None:
    room = uploads.Room()
    arrive(manager, "here", "a", size=100)
    with room.taken("here", "b", 4 * LARGEST) as fits:
        assert not fits
    manager.remove_session_files("here")  # as Streamlit does at a session's end
    with room.taken("here", "b", 4 * LARGEST) as fits:
        assert fits


def test_a_file_that_arrives_after_its_page_is_gone_is_not_kept(manager: MemoryUploadedFileManager) -> None:
    room = uploads.Room()
    for session in ("gone", "here"):
        with room.taken(session, "a", 10):
            arrive(manager, session, "a")
    assert set(manager.file_storage) == {"here"}


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"content-length": "12"}, 12),
        ({}, LARGEST),
        ({"content-length": "-1"}, LARGEST),
        ({"content-length": "12", "transfer-encoding": "chunked"}, LARGEST),
    ],
)
def test_an_upload_is_as_large_as_it_says_or_as_it_may_be(headers: dict[str, str], size: int) -> None:
    assert uploads.size_of(Headers(headers)) == size


def test_only_addresses_of_uploads_are_uploads() -> None:
    assert uploads.place_of("/_stcore/upload_file/s/f") == ("s", "f")
    assert uploads.place_of("/base/_stcore/upload_file/s/f") == ("s", "f")
    for path in ("/", "/_stcore/upload_file", "/_stcore/upload_file/s", "/_stcore/upload_file/s/f/g", "/media/s/f"):
        assert uploads.place_of(path) is None
