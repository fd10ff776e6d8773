"""The id under which Streamlit keeps a download in memory."""

from __future__ import annotations

from app.streamlit_contact.insides import InsideMissing, inside


def file_id(data: bytes, mime: str, file_name: str) -> str | None:
    """As the download's address has it; None where this version of Streamlit does not tell."""
    try:
        found = inside("streamlit.runtime.memory_media_file_storage", "_calculate_file_id")(data, mime, file_name)
    except InsideMissing as missing:
        missing.log("a browser that asked for a download may fetch every file whose address it knows")
        return None
    return str(found)
