"""Signing in and out in a browser, by keyboard's and screen reader's names, and what stands there when nobody can."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.axe import findings
from tests.e2e.browser import press, serving
from tests.load.provider import providing

pytestmark = pytest.mark.browser


def test_in_and_out_again(repository: Path, page: Page, data_dir: Path, free_port: int) -> None:
    with providing() as provider:
        file = data_dir / "sign-in.toml"
        file.write_text(provider.settings(f"http://127.0.0.1:{free_port}"))
        with serving(repository, data_dir, free_port, L2M_SIGN_IN_FILE=str(file)) as served:
            page.goto(served.address)
            expect(page.get_by_role("button", name="Sign in")).to_be_visible()
            found = findings(page, "sign in")
            press(page, "Sign in")
            expect(page.get_by_role("button", name="Open").first).to_be_visible()
            page.get_by_role("link", name="Sign out").click()
            expect(page.get_by_text("You are signed in as Ada Lovelace.")).to_be_visible()
            found += findings(page, "sign out")
            press(page, "Sign out")
            expect(page.get_by_role("button", name="Sign in")).to_be_visible()
            expect(page.get_by_role("link", name="Cohort")).to_have_count(0)
            assert not [cookie for cookie in page.context.cookies() if "user" in cookie["name"]]
            file.write_text("[auth")
            page.reload()
            expect(page.get_by_text("Nobody can sign in now.")).to_be_visible()
            found += findings(page, "nobody can sign in")
            file.write_text(provider.settings(served.address))
            press(page, "Try again")
            expect(page.get_by_role("button", name="Sign in")).to_be_visible()
            assert found == []
