"""Checks of what callers hand in, so that both databases accept and refuse the same. No message repeats a value."""

from __future__ import annotations

from uuid import UUID, uuid4

from .errors import StoreInputError


def new_id() -> str:
    return str(uuid4())


def require_text(what: str, text: str, longest: int = 200, empty: bool = False) -> str:
    if not isinstance(text, str):
        raise StoreInputError(f"{what} must be text, not {type(text).__name__}.")
    if not text.strip() and not empty:
        raise StoreInputError(f"{what} is empty.")
    if len(text) > longest:
        raise StoreInputError(f"{what} has {len(text)} characters; at most {longest} are allowed.")
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise StoreInputError(f"{what} holds characters that are not text (NUL or half of a pair). Remove them.")
    return text


def require_uuid(what: str, text: str | UUID) -> str:
    try:
        return str(UUID(str(text)))
    except ValueError:
        pass
    raise StoreInputError(f"{what} must be a UUID, for example from uuid.uuid4().")
