"""The uploaded files that Streamlit holds in memory for each open page."""

from __future__ import annotations

from typing import Any

from app.streamlit_contact.insides import InsideMissing, attribute, inside


def sizes_of(session: str) -> dict[str, int]:
    """File → bytes, of all files that a session holds. Empty where that cannot be known."""
    try:
        storage = {} if (manager := _manager()) is None else attribute(manager, "file_storage")
    except InsideMissing as missing:
        missing.log("only uploads that are on their way count towards a page's limit")
        return {}
    return {file: len(record.data) for file, record in dict(storage.get(session, {})).items()}


def forget_if_gone(session: str, file: str) -> None:
    """Removes a file that arrived after its session had ended: Streamlit would keep it for ever."""
    try:
        manager = _manager()
        if manager is None or _is_connected(session):
            return
        attribute(manager, "remove_file")(session, file)
        if not sizes_of(session):
            attribute(manager, "remove_session_files")(session)
    except InsideMissing as missing:
        missing.log("a file that arrives after its page was closed stays in memory")


def _is_connected(session: str) -> bool:
    return bool(attribute(inside("streamlit.runtime", "get_instance")(), "is_active_session")(session))


def _manager() -> Any | None:
    """What keeps the files; None where no server runs."""
    if not inside("streamlit.runtime", "exists")():
        return None
    return attribute(inside("streamlit.runtime", "get_instance")(), "uploaded_file_mgr")
