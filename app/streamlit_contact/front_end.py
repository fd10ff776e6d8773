"""The document that Streamlit's server sends for every page."""

from __future__ import annotations

import re
from pathlib import Path

import streamlit as st

from app.streamlit_contact.insides import InsideMissing

STATIC = Path(st.__file__).parent / "static"


def inline_scripts(document: Path = STATIC / "index.html") -> list[str]:
    """Scripts written into the document itself, which a content security policy must name by their hashes."""
    if not document.is_file():
        InsideMissing(f"static/{document.name}").log("scripts inside the page's document are blocked")
        return []
    return re.findall(r"<script>(.*?)</script>", document.read_text("utf-8"), flags=re.DOTALL)
