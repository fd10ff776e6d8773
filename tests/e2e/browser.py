"""The real server, a real browser, and the few presses that every journey shares."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.prerequisites import REPOSITORY

PATIENCE = 120_000  # milliseconds; a busy machine is slow
# Without these, Chromium itself talks to the outside, which would hide what the pages do.
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
expect.set_options(timeout=PATIENCE)


@dataclass(frozen=True)
class Served:
    """Where the app answers, where it keeps its data, and all that it has printed so far."""

    address: str
    data_dir: Path
    lines: list[str]
    pid: int


@contextmanager
def serving(
    repository: Path, data_dir: Path, port: int = 0, processes: int = 1, **environment: str
) -> Iterator[Served]:
    command = [sys.executable, "-m", "app", "--port", str(port), "--no-browser", "--data-dir", str(data_dir)]
    command += ["--processes", str(processes)]
    server = subprocess.Popen(
        command,
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    assert server.stdout is not None
    lines: list[str] = []
    try:
        for line in server.stdout:
            lines.append(line)
            if found := re.search(r"http://\S+:\d+", line):
                break
        else:
            pytest.fail("The app ended before it served:\n" + "".join(lines))
        reader = threading.Thread(target=lambda: lines.extend(server.stdout or ()), daemon=True)
        reader.start()
        yield Served(found.group().replace("localhost", "127.0.0.1"), data_dir, lines, server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@contextmanager
def chromium_running(program: Path) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(program), args=QUIET)
        yield browser
        browser.close()


def new_page(
    browser: Browser, scheme: Literal["light", "dark"] = "light", width: int = 1280, height: int = 800
) -> Page:
    """A page of a fresh visitor."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.set_default_timeout(PATIENCE)
    return page


def press(page: Page, name: str, role: Literal["button", "link"] = "button") -> None:
    try:
        page.get_by_role(role, name=name).last.click()
    except PlaywrightTimeout:
        pytest.fail(f"There was no '{name}' to press at {page.url}. The page says:\n{page.inner_text('body')[:3000]}")


def follow(page: Page, name: str) -> None:
    press(page, name, "link")


def settled(page: Page) -> None:
    """The server has nothing more to say: Streamlit's own sign of work is gone, and stays gone."""
    running = page.locator("[data-testid=stApp][data-test-script-state=running]")
    for _ in range(2):
        expect(running).to_have_count(0, timeout=PATIENCE)
        page.wait_for_timeout(400)
    expect(page.locator("[data-testid=stSkeleton]")).to_have_count(0, timeout=PATIENCE)


def events(page: Page, count: int) -> None:
    """The log says how many events are stored, beside the rules it began with; it is shown only after they are."""
    expect(page.get_by_text(f"Log ({count + 1} events)")).to_be_visible(timeout=PATIENCE)


def open_example(page: Page, address: str, number: int = 0) -> None:
    """By its own key: where the machine is busy, the browser may draw the button of a later one first."""
    page.goto(address)
    page.locator(f".st-key-open-example-{number} button").click()
    expect(page.get_by_role("link", name="Start a step-through")).to_be_visible()
    settled(page)


def begin_step_through(page: Page, address: str) -> None:
    """From nothing to a patient with an example's values."""
    open_example(page, address)
    follow(page, "Start a step-through")
    press(page, "Fill in an example")
    press(page, "Begin")
    events(page, 1)
    settled(page)


def set_number(page: Page, name: str, value: int) -> None:
    field = page.get_by_role("spinbutton", name=name)
    field.fill(str(value))
    field.press("Tab")
    settled(page)


def turn_to(page: Page, test: str) -> None:
    """By the select box, as with a keyboard."""
    box = page.get_by_role("combobox", name="Test", exact=True)
    box.click()
    page.get_by_role("option", name=re.compile(f"^{test}")).click()
    settled(page)


def page_names() -> list[str]:
    return sorted(file.stem for file in (REPOSITORY / "app" / "views").glob("[a-z]*.py"))
