"""Sign-in that is asked for: without a word from Streamlit that somebody is signed in, nobody is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.secrets import secrets_singleton

from app.host import services, sign_in
from app.ui import state
from tests.app.conftest import open_app, texts

GOOD = """[auth]
redirect_uri = "http://localhost/oauth2callback"
cookie_secret = "a long random text"
client_id = "l2m"
client_secret = "secret"
server_metadata_url = "http://localhost/metadata"
"""


@pytest.fixture
def file(tmp_path: Path, shared_services: services.Services) -> Iterator[Path]:
    """A sign-in file that this process asks by."""
    path = tmp_path / "sign-in.toml"
    path.write_text(GOOD)
    sign_in.ask_by(path, hours=12)
    yield path
    sign_in.ask_by(None, hours=12)
    secrets_singleton._programmatic_secrets = None
    secrets_singleton._reset()


def user(monkeypatch: pytest.MonkeyPatch, **claims: Any) -> None:
    """Who Streamlit says is there."""

    class User(dict[str, Any]):
        def __getattr__(self, name: str) -> Any:
            try:
                return self[name]
            except KeyError:
                raise AttributeError(name) from None

    monkeypatch.setattr("streamlit.user", User(claims))


def signed_in(**claims: Any) -> dict[str, Any]:
    return {"is_logged_in": True, "iss": "https://id.invalid", "sub": "ada", "iat": int(time.time()), **claims}


@pytest.mark.parametrize("said", [{}, {"is_logged_in": False}, {"is_logged_in": None}, {"is_logged_in": "yes"}])
def test_nobody_owns_anything_whom_streamlit_does_not_call_signed_in(
    file: Path, owner: str, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any]
) -> None:
    user(monkeypatch, **said)
    assert state.sign_in_is_required() and state.signed_in_user() is None
    with pytest.raises(sign_in.SignInNeeded):
        state.owner()


def test_without_sign_in_the_browser_is_the_owner(owner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch)
    assert not state.sign_in_is_required() and state.owner() == owner


def test_only_who_is_signed_in_may_train_where_that_is_asked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, **signed_in())
    assert not state.sign_in_is_required() and state.owner().startswith("user-")


def test_the_page_says_what_the_file_lacks_and_recovers_when_it_is_mended(file: Path, owner: str) -> None:
    assert "Sign in" in [button.label for button in open_app().button]
    file.write_text(GOOD.replace('client_id = "l2m"\n', ""))
    app = open_app()
    assert "has no client_id under [auth]" in texts(app).replace("\u2060", "")
    assert [button.label for button in app.button] == ["Try again"]
    file.unlink()
    assert "cannot be read (No such file or directory)" in texts(app.button[0].click().run())
    file.write_text(GOOD)
    assert [button.label for button in app.button[0].click().run().button] == ["Sign in"]


def test_settings_that_cannot_be_used_never_reach_streamlit(file: Path) -> None:
    file.write_text('[auth]\ncookie_secret = ""\n')
    assert sign_in.asked() is not None
    assert secrets_singleton["auth"]["cookie_secret"] == "a long random text"
    file.write_text(GOOD.replace("a long random text", "another random text"))
    asked = sign_in.asked()
    assert asked is not None and asked.problem == ""
    assert secrets_singleton["auth"]["cookie_secret"] == "another random text"
    file.write_text(GOOD + "since = 2026-01-01\n")
    asked = sign_in.asked()
    assert asked is not None and "neither text" in asked.problem


def test_a_sign_in_is_good_for_so_long_whatever_the_providers_token_says(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = int(time.time())
    user(monkeypatch, **signed_in(iat=now - 11 * 3600, exp=now - 10 * 3600))
    assert not state.sign_in_is_required()
    for issued in (now - 13 * 3600, None, "today"):
        user(monkeypatch, **signed_in(iat=issued, exp=now + 3600))
        assert state.sign_in_is_required() and state.signed_in_user() is None
        with pytest.raises(sign_in.SignInNeeded):
            state.owner()


def test_who_signs_out_is_signed_out_on_every_page_and_may_sign_in_again(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []
    monkeypatch.setattr("streamlit.logout", lambda: left.append(True))
    first = signed_in(nonce="1")
    user(monkeypatch, **first)
    state.sign_out()
    assert left and state.sign_in_is_required()
    user(monkeypatch, **signed_in(nonce="2"))
    assert not state.sign_in_is_required()
    user(monkeypatch, **first)
    assert state.sign_in_is_required()


def test_who_is_signed_in_has_the_name_that_the_provider_says(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user(monkeypatch, **signed_in(name="Ada *Lovelace*"))
    assert state.signed_in_name() == "Ada *Lovelace*"
    user(monkeypatch, **signed_in())
    assert state.signed_in_name() == ""
