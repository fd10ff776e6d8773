"""With sign-in configured as the deployment page says, nobody sees a page without it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from app.sign_in import find_file
from l2m_core.errors import ConfigError
from tests.e2e.browser import serving
from tests.load.visitor import Visitor


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


@pytest.mark.parametrize("text", [None, "", "[auth", "[auth]\nredirect_uri = 'x'", "auth = 3", "[other]\na = 1"])
def test_an_app_that_should_ask_and_cannot_does_not_start(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "sign-in.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match="sign-in.toml"):
        find_file({"L2M_SIGN_IN_FILE": str(file)})
    assert find_file({}) is None
