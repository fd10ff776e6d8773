"""The body of a request: bounded in size and in time, so that nobody holds the server's memory or its connections."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from l2m_core.patients import MEGABYTES

LARGEST = MEGABYTES * 1_000_000
DISCARDED = 4 * LARGEST  # bytes beyond which a client is cut off; up to there it is let finish, so that it hears why
PATIENCE = 10.0  # seconds within which a whole body must have come
CLOSE = {"Connection": "close"}


async def read_body(request: Request) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(PATIENCE):
            async for piece in request.stream():
                size += len(piece)
                if size > DISCARDED:
                    break
                if size <= LARGEST:
                    pieces.append(piece)
                else:
                    pieces.clear()
    except TimeoutError:
        raise HTTPException(408, f"The body did not come within {PATIENCE:g} seconds. Send it again.", CLOSE) from None
    except ClientDisconnect:
        raise HTTPException(400, "The body broke off.", CLOSE) from None
    if size > LARGEST:
        raise HTTPException(413, f"The body is larger than {MEGABYTES} MB. Ask about fewer patients at a time.", CLOSE)
    return b"".join(pieces)
