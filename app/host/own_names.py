"""Where a server listens, and by which names it may be asked: a page of somebody else's cannot reach it by its own name."""

from __future__ import annotations

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
ANY_ADDRESS = ("0.0.0.0", "::")


def own_names(*further: str | None) -> list[str]:
    """Those of this computer, and further ones that are names of it."""
    return [*LOOPBACK, *(name for name in further if name and name not in (*LOOPBACK, *ANY_ADDRESS))]
