"""Moments are UTC, kept as fixed-width text: the same in every database, sortable, and hashed as they are read."""

from __future__ import annotations

from datetime import UTC, datetime

WIDTH = len("2025-01-31T12:00:00.000000Z")


def now() -> datetime:
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    return datetime.fromisoformat(text)
