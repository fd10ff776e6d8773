"""The same step-through in two tabs: what is typed in one is not lost by what is recorded in the other."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.e2e.browser import Served, new_page, press, settled
from tests.e2e.test_quick_presses import keep_for

pytestmark = pytest.mark.browser

BAND = "had the cohort held other patients"


class Gate:
    """What a page asks of the server by itself, such as a look for the band, waits while the gate is shut."""

    def __init__(self, page: Page) -> None:
        self.is_shut = False
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, to_page: WebSocketRoute) -> None:
        server = to_page.connect_to_server()

        def pass_on(message: str | bytes) -> None:
            if not self.is_shut:
                server.send(message)

        to_page.on_message(pass_on)


def test_a_tab_does_not_turn_by_itself_and_keeps_what_is_typed(browser: Browser, served: Served) -> None:
    tab = new_page(browser)
    gate = Gate(tab)
    kept, _ = keep_for(tab, served)
    address = f"{served.address}/step_through?step={kept}"
    tab.goto(address)
    field = tab.get_by_role("spinbutton", name="lactate")
    expect(field).to_be_visible()
    gate.is_shut = True  # before this tab looks for the band a second time
    expect(tab.get_by_text("The uncertainty band is being computed")).to_be_visible()
    field.fill("2.5")
    other = new_page(browser)
    other.context.add_cookies(tab.context.cookies())  # type: ignore[arg-type]
    other.goto(address)
    press(other, "Not available")
    expect(other.get_by_text(BAND)).to_be_visible()
    gate.is_shut = False
    expect(tab.get_by_text("This step-through went on elsewhere")).to_be_visible()
    expect(field).to_have_value("2.5")
    press(tab, "Show its current state")
    expect(tab.get_by_text("You see its current state now")).to_be_visible()
    settled(tab)
    expect(tab.get_by_text(BAND)).to_be_visible()
    other.close()
    tab.close()
