"""Sessions side by side: nobody receives what another has, and nothing of a patient is printed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState

from app.host.identity import COOKIE, browser_owner
from app.host.services import Services
from app.settings import AppSettings
from l2m_core.cohort import Cohort
from tests.e2e.browser import Served, serving
from tests.figures import Keep
from tests.load.visitor import Visitor

PEOPLE, MANY = 5, 20


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def served(repository: Path, data_dir: Path) -> Iterator[Served]:
    with serving(repository, data_dir) as found:
        yield found


def canary(number: int) -> str:
    """A name that is in one person's cohort only."""
    return f"canary{number:02d}x{7351 + number}"


def cohort_of(number: int) -> Cohort:
    draw = np.random.default_rng(number)
    x = draw.normal(size=(40, 3)).round(3)
    frame = pd.DataFrame(x, columns=["age", f"{canary(number)} lab", "sodium"])
    frame["died"] = np.where(x[:, 1] > 0, "yes", "no")
    return Cohort.from_frame(frame, outcome="died", baseline=["age"], name=f"{canary(number)} ward")


def cookies_with_cohorts(data_dir: Path, people: int) -> list[str]:
    """Identities of browsers that each have a cohort of their own already."""
    services = Services(AppSettings(data_dir, f"sqlite:///{data_dir / 'l2m.sqlite3'}"))
    cookies = []
    try:
        for number in range(people):
            browser = services.signer.new_browser()
            services.add_cohort(browser_owner(browser), cohort_of(number))
            cookies.append(f"{COOKIE}={services.signer.sign(browser)}")
    finally:
        services.shut_down()
        services.store.close()
    return cookies


async def step_through_together(address: str, cookies: list[str]) -> list[Visitor]:
    """Everyone begins on their own cohort, makes a step, and asks for a download, all at once."""
    async with AsyncExitStack() as stack:
        people = [
            await stack.enter_async_context(Visitor(address, cookie=cookie, everything=bytearray()))
            for cookie in cookies
        ]

        async def one(person: Visitor) -> None:
            await person.follow("Start a step-through")
            await person.press("start-submit")
            await person.press("mark-unavailable")

        await asyncio.gather(*(one(person) for person in people))
    return people


@pytest.fixture(scope="module")
def people(served: Served, data_dir: Path) -> list[Visitor]:
    return asyncio.run(step_through_together(served.address, cookies_with_cohorts(data_dir, PEOPLE)))


def leaks(people: list[Visitor]) -> list[tuple[int, int]]:
    """(who, whose canary) for every canary that reached another; everyone must have seen their own."""
    found = []
    for number, person in enumerate(people):
        received = bytes(person.everything or b"")
        assert canary(number).encode() in received
        found += [(number, other) for other in range(MANY) if other != number and canary(other).encode() in received]
    return found


def test_everyone_sees_their_own_and_nothing_of_others(people: list[Visitor]) -> None:
    assert leaks(people) == []


@pytest.mark.reliability
def test_twenty_sessions_at_once_leak_nothing(served: Served, data_dir: Path, figure: Keep) -> None:
    people = asyncio.run(step_through_together(served.address, cookies_with_cohorts(data_dir, MANY)))
    found = leaks(people)
    figure("isolation: 20 sessions at once, a canary in each cohort", "0 leaks", f"{len(found)} leaks", not found)
    assert found == []


def test_the_address_of_another_opens_nothing(served: Served, people: list[Visitor]) -> None:
    """By way of the query in the address, which people copy and send."""

    async def visit(stranger: Visitor, query: str) -> bytes:
        async with Visitor(served.address, "step_through", query, stranger.cookie, everything=bytearray()) as visitor:
            return bytes(visitor.everything or b"")

    assert "step=" in people[0].query and "cohort=" in people[0].query
    received = asyncio.run(visit(people[1], people[0].query))
    assert canary(1).encode() in received
    assert canary(0).encode() not in received


def test_what_was_received_holds_no_address_of_a_download_that_opens_for_another(
    served: Served, people: list[Visitor]
) -> None:
    """Pages hold no download until it is asked for; what was asked for opens for its browser only."""

    async def ask(person: Visitor) -> str:
        async with Visitor(served.address, "step_through", person.query, person.cookie) as visitor:
            return await visitor.ask_for_download("export-json")

    path = asyncio.run(ask(people[0]))
    assert re.fullmatch(r"/media/[0-9a-f]+\.\w+", path)
    assert people[0].get(path) == 200
    assert people[1].get(path) == 403
    assert Visitor(served.address).get(path) == 403


def test_names_and_values_stay_out_of_the_log(served: Served, people: list[Visitor]) -> None:
    """A canary as a cohort's name, a column's name, a value typed that is refused, and an address."""

    async def provoke() -> None:
        async with Visitor(served.address, query=f"step={canary(3)}&cohort={canary(3)}"):
            pass
        async with Visitor(served.address, "step_through", people[2].query, people[2].cookie) as visitor:
            # A widget's value of a kind that the page never sends: an error inside the program.
            widget = visitor.find("step-test", partly=True)
            await visitor.run([WidgetState(id=widget.id, string_value=f"{canary(2)} no such test")])

    asyncio.run(provoke())
    printed = "".join(served.lines)
    assert [number for number in range(PEOPLE) if canary(number) in printed] == []
    assert all(person.cookie.split("=")[1] not in printed for person in people)
