"""With sign-in configured as the deployment page says, nobody sees a page without it, whatever becomes of its file."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.host.services import NOBODY
from app.host.sign_in import find_file
from app.store import Store
from l2m_core.errors import ConfigError
from tests.e2e.browser import Served, serving
from tests.load.provider import Browser, Provider, providing
from tests.load.visitor import Visitor

UNUSABLE = {
    "a syntax error": "[auth",
    "nothing": "",
    "no [auth]": "[other]\na = 1\n",
    "no table": "auth = 3\n",
    "no secret": "[auth]\nredirect_uri = 'http://127.0.0.1/oauth2callback'\ncookie_secret = ''\n",
    "no file": None,
}
HALF = "[auth]\nredirect_uri = 'x'\ncookie_secret = 'y'"  # nothing of the provider


@dataclass(frozen=True)
class Installation:
    """The app in two processes, its sign-in file, and the provider that the file names."""

    served: Served
    file: Path
    provider: Provider

    @property
    def address(self) -> str:
        return self.served.address

    def look(self, browser: Browser | None = None, page: str = "") -> Visitor:
        """What a visitor sees who comes now."""

        async def come() -> Visitor:
            async with browser.visitor(page) if browser else Visitor(self.address, page) as visitor:
                return visitor

        return asyncio.run(come())

    def sign_in(self) -> Browser:
        browser = Browser(self.address)
        asyncio.run(browser.sign_in())
        return browser


@pytest.fixture(scope="module")
def installation(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("sign-in")
    with socket.socket() as probe:  # the provider must know the app's address, and the app the provider's
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with providing() as provider:
        file = folder / "sign-in.toml"
        file.write_text(provider.settings(f"http://127.0.0.1:{port}"))
        with serving(repository, folder / "data", port, processes=2, L2M_SIGN_IN_FILE=str(file)) as served:
            yield Installation(served, file, provider)


def test_who_signs_in_at_the_provider_sees_the_pages(installation: Installation) -> None:
    browser = installation.sign_in()
    assert "/authorize" in installation.provider.asked
    assert "open-example-0" in installation.look(browser).keys()
    assert installation.look().keys() == {"sign-in"}


@pytest.mark.parametrize("text", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_file_that_breaks_while_the_app_runs_lets_nobody_in(installation: Installation, text: str | None) -> None:
    signed_in = installation.sign_in()
    good = installation.file.read_text()
    try:
        if text is None:
            installation.file.unlink()
        else:
            installation.file.write_text(text)
        for page in ("", "step_through", "about", ""):  # more than there are processes
            visitor = installation.look(page=page)
            assert visitor.keys() == {"try-again"}
            assert "Nobody can sign in now" in visitor.text() and "sign-in file, which" in visitor.text()
            assert str(installation.file) not in visitor.text(), "strangers need not know where it lies"
        assert "open-example-0" in installation.look(signed_in).keys(), "who has signed in goes on"
    finally:
        installation.file.write_text(good)
    for _ in range(3):
        assert installation.look().keys() == {"sign-in"}
    assert "open-example-0" in installation.look(installation.sign_in()).keys()
    assert not [line for line in installation.served.lines if "Traceback" in line]
    assert [line for line in installation.served.lines if str(installation.file) in line], "the log names the file"


def test_who_signs_out_is_out_on_all_their_pages_and_at_the_provider(installation: Installation) -> None:
    browser = installation.sign_in()

    async def go() -> None:
        async with browser.visitor("sign_out") as page, browser.visitor() as other, browser.visitor() as third:
            assert "signed in as Ada Lovelace" in page.text()
            await page.press("sign-out")
            await other.run()
            assert other.keys() == {"sign-in"}, "a page that was open elsewhere in the browser"
            await third.press("open-example-0")
            assert "open-example-0" not in third.keys() and "went wrong" not in third.text()
            kept = browser.cookie
            browser.open(page.sent_to)
            assert "_streamlit_user" not in browser.cookie and "/end" in installation.provider.asked
        async with Visitor(installation.address, cookie=kept) as thief:
            assert thief.keys() == {"sign-in"}, "a copy of the cookie is worth nothing here"

    asyncio.run(go())
    assert installation.look(browser).keys() == {"sign-in"}
    asyncio.run(browser.sign_in())
    assert "open-example-0" in installation.look(browser).keys()


def test_a_sign_in_is_good_for_hours_whatever_the_providers_tokens_say(installation: Installation) -> None:
    now = int(time.time())
    claims = dict(installation.provider.claims)
    try:
        installation.provider.claims.update(exp=now + 2)
        browser = installation.sign_in()
        time.sleep(3)
        assert "open-example-0" in installation.look(browser).keys(), "its token has ended"
        installation.provider.claims.update(iat=now - 13 * 3600, exp=now + 300)
        assert installation.look(installation.sign_in()).keys() == {"sign-in"}
    finally:
        installation.provider.claims = claims


def test_a_new_cookie_secret_signs_everybody_out_who_comes_again(installation: Installation) -> None:
    browser = installation.sign_in()
    good = installation.file.read_text()
    try:
        installation.file.write_text(good.replace("a long random text", "another random text"))
        assert installation.look(browser).keys() == {"sign-in"}
    finally:
        installation.file.write_text(good)
    assert "open-example-0" in installation.look(browser).keys()


def test_made_up_answers_of_the_provider_are_counted_and_then_refused(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "sign-in.toml"
    with providing() as provider:
        file.write_text(provider.settings("http://127.0.0.1:1"))
        with serving(repository, tmp_path / "data", L2M_SIGN_IN_FILE=str(file)) as served:
            forged = Visitor(served.address)
            statuses = [forged.get("/oauth2callback?code=forged&state=forged") for _ in range(12)]
            assert statuses[-2:] == [429, 429] and 429 not in statuses[:10]
            assert forged.get("/about") == 200
    with closing(Store(f"sqlite:///{tmp_path / 'data' / 'l2m.sqlite3'}")) as store:
        assert [act.kind for act in store.audit.list(NOBODY)] == ["sign-in failed"] * 10


def test_nothing_is_shown_before_signing_in(repository: Path, tmp_path: Path) -> None:
    page = (repository / "docs" / "deployment.md").read_text("utf-8")
    (settings,) = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(settings)

    async def look(address: str, page_name: str) -> tuple[set[str], str]:
        async with Visitor(address, page_name) as visitor:
            return visitor.keys(), visitor.text()

    with serving(repository, tmp_path / "data", L2M_SIGN_IN_FILE=str(secrets)) as served:
        for name in ("", "step_through", "about"):
            keys, text = asyncio.run(look(served.address, name))
            assert "Sign in" in text
            assert not [key for key in keys if key.startswith(("open-", "cohort", "start"))]


@pytest.mark.parametrize("text", [*UNUSABLE.values(), "[auth]\nredirect_uri = 'x'", HALF])
def test_an_app_that_should_ask_and_cannot_does_not_start(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "sign-in.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match="sign-in.toml"):
        find_file({"L2M_SIGN_IN_FILE": str(file)})
    assert find_file({}) is None
