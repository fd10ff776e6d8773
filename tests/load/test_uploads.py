"""What strangers can have the server hold: nothing before they have signed in, and afterwards so much for each page."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.host.uploads import FILES_AT_ONCE, LARGEST_AT_ONCE
from tests.e2e.browser import Served, serving
from tests.load.provider import Browser, providing
from tests.load.visitor import Visitor

SIZE = 1_048_000  # bytes, nearly the largest that this server takes


@pytest.fixture(scope="module")
def served(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(repository, tmp_path_factory.mktemp("data"), STREAMLIT_SERVER_MAX_UPLOAD_SIZE="1") as found:
        yield found


async def upload(visitor: Visitor, *names: str, size: int = SIZE, **how: bool) -> list[int]:
    """All at once."""
    with ThreadPoolExecutor(len(names)) as pool:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(
            *(loop.run_in_executor(pool, lambda name=name: visitor.upload(name, size, **how)) for name in names)
        )


def test_a_page_holds_a_few_of_the_largest_files(served: Served) -> None:
    async def go() -> None:
        async with Browser(served.address).visitor() as visitor:
            answers = await upload(visitor, *map(str, range(12)))
            assert sorted(answers) == [204] * LARGEST_AT_ONCE + [413] * (12 - LARGEST_AT_ONCE), "sent side by side"
            assert await upload(visitor, "more") == [413]
            held = [str(number) for number, answer in enumerate(answers) if answer == 204]
            assert await upload(visitor, held[0]) == [204], "one that is replaced makes room for itself"
            assert await asyncio.to_thread(visitor.upload, held[0], 0, "DELETE") == 204
            assert await upload(visitor, "more") == [204], "one that is removed makes room"
            assert await upload(visitor, "another") == [413]
        async with Browser(served.address).visitor() as visitor:
            assert await upload(visitor, "a") == [204], "another page has room of its own"

    asyncio.run(go())


def test_a_page_holds_so_many_small_files(served: Served) -> None:
    async def go() -> None:
        async with Browser(served.address).visitor() as visitor:
            answers = [await asyncio.to_thread(visitor.upload, str(n), 1) for n in range(FILES_AT_ONCE + 1)]
            assert answers == [204] * FILES_AT_ONCE + [413]

    asyncio.run(go())


def test_a_file_that_does_not_say_its_size_counts_as_the_largest(served: Served) -> None:
    async def go() -> None:
        async with Browser(served.address).visitor() as visitor:
            assert await upload(visitor, *"abc") == [204] * 3
            assert await upload(visitor, "small", size=10_000) == [204]
            assert await upload(visitor, "unsaid", size=10, chunked=True) == [413]

    asyncio.run(go())


def test_nothing_is_taken_of_who_has_not_signed_in(repository: Path, tmp_path: Path, free_port: int) -> None:
    async def go(address: str) -> None:
        stranger, known = Browser(address), Browser(address)
        await known.sign_in()
        async with stranger.visitor() as visitor:
            assert await upload(visitor, *"abcdefghijkl") == [401] * 12
            visitor.cookie += "; _streamlit_user=eyJpc19sb2dnZWRfaW4iOnRydWV9.aaaaaa.bbbbbbbb"
            assert await upload(visitor, "a") == [401], "made up"
            assert visitor.get("/media/abcdef12.json") == 401
        async with known.visitor() as visitor:
            assert await upload(visitor, "a") == [204]
            assert visitor.get("/media/abcdef12.json") == 403

    with providing() as provider:
        file = tmp_path / "sign-in.toml"
        file.write_text(provider.settings(f"http://127.0.0.1:{free_port}"))
        with serving(repository, tmp_path / "data", free_port, L2M_SIGN_IN_FILE=str(file)) as served:
            asyncio.run(go(served.address))
