"""How much one page's session may have the server hold, and when its share is free again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from starlette.datastructures import Headers
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from app.host import uploads
from app.streamlit_contact import addresses

LARGEST = uploads.largest_upload()


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    """Streamlit's own, of a server in which only the session "here" is connected."""
    found = MemoryUploadedFileManager(addresses.UPLOADS)
    server = SimpleNamespace(uploaded_file_mgr=found, is_active_session=lambda session: session == "here")
    monkeypatch.setattr("streamlit.runtime.exists", lambda: True)
    monkeypatch.setattr("streamlit.runtime.get_instance", lambda: server)
    return found


def arrive(manager: MemoryUploadedFileManager, session: str, file: str, size: int = 10) -> None:
    manager.add_file(session, UploadedFileRec(file_id=file, name="f", type="", data=bytes(size)))


def test_what_is_on_its_way_counts_until_it_ends(manager: MemoryUploadedFileManager) -> None:
    limit = uploads.UploadLimit()
    with limit.reserved("here", "a", 3 * LARGEST) as first, limit.reserved("here", "b", LARGEST) as second:
        assert first and second
        with limit.reserved("here", "c", 1) as third, limit.reserved("there", "c", LARGEST) as other:
            assert not third and other
    with pytest.raises(ConnectionError), limit.reserved("here", "a", 4 * LARGEST):
        raise ConnectionError
    with limit.reserved("here", "c", 4 * LARGEST) as fits:
        assert fits


def test_a_session_that_ends_frees_its_share(manager: MemoryUploadedFileManager) -> None:
    limit = uploads.UploadLimit()
    arrive(manager, "here", "a", size=100)
    with limit.reserved("here", "b", 4 * LARGEST) as fits:
        assert not fits
    manager.remove_session_files("here")  # as Streamlit does at a session's end
    with limit.reserved("here", "b", 4 * LARGEST) as fits:
        assert fits


def test_a_file_that_arrives_after_its_page_is_gone_is_not_kept(manager: MemoryUploadedFileManager) -> None:
    limit = uploads.UploadLimit()
    for session in ("gone", "here"):
        with limit.reserved(session, "a", 10):
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
    assert uploads.session_and_file("/_stcore/upload_file/s/f") == ("s", "f")
    assert uploads.session_and_file("/base/_stcore/upload_file/s/f") == ("s", "f")
    for path in ("/", "/_stcore/upload_file", "/_stcore/upload_file/s", "/_stcore/upload_file/s/f/g", "/media/s/f"):
        assert uploads.session_and_file(path) is None
