"""What is pressed before the page has drawn the last press, on a slow line: it counts from where that one led."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from app.host.identity import COOKIE, browser_owner
from app.host.services import Services
from app.settings import AppSettings
from tests.app.conftest import small_cohort
from tests.app.recorded import keep, memory_of
from tests.e2e.browser import Served, follow, new_page, open_example, serving, settled
from tests.e2e.test_own_cohort import choose_file, ward_csv

pytestmark = pytest.mark.browser

LOOKS = 3000  # milliseconds in which a page looks by itself more than once
SILENCE = 1000  # milliseconds without a message, after which a run of the script has said everything


class SlowLine:
    """What the server says reaches the page only where it is not held back."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._to_page: WebSocketRoute | None = None
        self._is_held = False
        self._waiting: list[str | bytes] = []
        self.own_looks = 0  # what the page asked by its own clock
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, to_page: WebSocketRoute) -> None:
        self._to_page = to_page
        server = to_page.connect_to_server()
        server.on_message(self._take)

        def ask(message: str | bytes) -> None:
            assert isinstance(message, bytes)
            self.own_looks += BackMsg.FromString(message).rerun_script.is_auto_rerun
            server.send(message)

        to_page.on_message(ask)

    def _take(self, message: str | bytes) -> None:
        self._waiting.append(message)
        if not self._is_held:
            self._let_go()

    def _let_go(self) -> None:
        assert self._to_page is not None
        for message in self._waiting:
            self._to_page.send(message)
        self._waiting.clear()

    def hold(self) -> None:
        self._is_held = True

    def press(self, key: str) -> None:
        """Until the server has carried the press out, of which the page knows nothing yet: a busy one may think for long."""
        before, heard = len(self._waiting), -1
        self._page.keyboard.press(key)
        while heard != len(self._waiting) or not any(map(_ends_a_run, self._waiting[before:])):
            heard = len(self._waiting)
            self._page.wait_for_timeout(SILENCE)

    def release(self) -> None:
        self._is_held = False
        self._let_go()


def _ends_a_run(message: str | bytes) -> bool:
    return isinstance(message, bytes) and ForwardMsg.FromString(message).WhichOneof("type") == "script_finished"


def keep_for(page: Page, served: Served, marked: int = 0) -> tuple[str, int]:
    """A step-through of this page's visitor, in which so many tests are not available: its id, and its last step."""
    folder = served.data_dir
    services = Services(AppSettings(folder, f"sqlite:///{folder / 'l2m.sqlite3'}"))
    visitor = services.signer.new_browser()
    stored = services.add_cohort(browser_owner(visitor), small_cohort())
    patient = memory_of(services, browser_owner(visitor), stored).start({})
    for _ in range(marked):
        patient = patient.unavailable(patient.suggestion)
    kept = keep(services, browser_owner(visitor), stored, patient)
    page.context.add_cookies([{"name": COOKIE, "value": services.signer.sign(visitor), "url": served.address}])
    services.shut_down()
    services.store.close()
    return kept.id, len(patient.events) - 1


def test_a_press_before_the_page_shows_the_last_one_is_a_step_of_its_own(
    browser: Browser, repository: Path, tmp_path: Path
) -> None:
    page = new_page(browser)
    line = SlowLine(page)
    with serving(repository, tmp_path) as served:
        kept, last = keep_for(page, served, marked=3)
        page.goto(f"{served.address}/traces?trace={kept}")
        expect(page.get_by_role("heading", name=f"Step {last} of {last}")).to_be_visible()
        settled(page)
        line.hold()
        for _ in range(2):
            line.press("p")
        line.release()
        expect(page.get_by_role("heading", name=f"Step {last - 2} of {last}")).to_be_visible()
        settled(page)
        expect(page.get_by_role("heading", name=f"Step {last - 2} of {last}")).to_be_visible()
    page.close()


def test_a_field_changed_before_the_page_shows_that_the_cohort_is_saved_changes_nothing(
    browser: Browser, repository: Path, tmp_path: Path
) -> None:
    page = new_page(browser)
    line = SlowLine(page)
    with serving(repository, tmp_path) as served:
        page.goto(served.address)
        choose_file(page, ward_csv(tmp_path))
        outcome = page.get_by_role("combobox", name="Outcome: the column to predict")
        expect(page.get_by_role("button", name="Save cohort")).to_be_visible()
        settled(page)
        line.hold()
        page.get_by_role("button", name="Save cohort").focus()
        line.press("Enter")
        outcome.focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        line.press("Enter")
        line.release()
        expect(page.get_by_role("link", name="Start a step-through")).to_be_visible()
        settled(page)
        expect(page.get_by_text("Something went wrong")).to_have_count(0)
        assert not [said for said in served.lines if "Error" in said]
    page.close()


def test_a_page_that_is_left_asks_for_nothing_any_more(browser: Browser, repository: Path, tmp_path: Path) -> None:
    """A look for how far the model is belongs to the page that asks: the server would turn back to that page."""
    page = new_page(browser)
    line = SlowLine(page)
    with serving(repository, tmp_path) as served:
        open_example(page, served.address)
        page.wait_for_timeout(LOOKS)
        assert line.own_looks > 0, "it looks for how far the model is"
        line.hold()
        follow(page, "Start a step-through")
        before = line.own_looks
        page.wait_for_timeout(LOOKS)
        assert line.own_looks == before
        line.release()
        expect(page.get_by_role("heading", name="New step-through")).to_be_visible()
    page.close()
