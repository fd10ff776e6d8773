"""Sign-in that is asked for: without a word from Streamlit that somebody is signed in, nobody is."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.secrets import secrets_singleton

from app.host import guard, services, sign_in, sign_in_tries
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


def test_streamlit_s_own_sign_in_counts_where_its_file_is(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user(monkeypatch, is_logged_in=False)
    secrets = tmp_path / "secrets.toml"
    monkeypatch.setattr(state, "secrets_files", lambda: (str(secrets),))
    assert not state.sign_in_is_required() and state.owner() == owner
    secrets.write_text("[auth]\n")
    assert state.sign_in_is_required()
    user(monkeypatch, **signed_in())
    assert not state.sign_in_is_required() and state.owner().startswith("user-")


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


# -- who does nothing -------------------------------------------------------------------------------------------------


def test_who_asks_for_nothing_for_an_hour_signs_in_again(
    file: Path, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.time()
    user(monkeypatch, **signed_in(iat=began))
    for minutes in (0, 50, 100, 150):  # each within an hour of the one before
        monkeypatch.setattr(time, "time", lambda minutes=minutes: began + minutes * 60)
        assert "Sign in" not in [button.label for button in open_app().button]
    monkeypatch.setattr(time, "time", lambda: began + 209 * 60)
    assert not state.sign_in_is_required(), "to ask who is there is no activity"
    monkeypatch.setattr(time, "time", lambda: began + 211 * 60)
    assert state.sign_in_is_required()
    assert "Sign in" in [button.label for button in open_app().button]
    assert state.sign_in_is_required(), "nor does the page that asks to sign in end it"
    user(monkeypatch, **signed_in(iat=began + 211 * 60))
    assert not state.sign_in_is_required(), "another sign-in is good"


def test_a_sign_in_of_before_a_restart_begins_to_be_idle_when_it_is_seen(file: Path) -> None:
    asked = sign_in.asked()
    assert asked is not None
    claims = signed_in(iat=int(time.time()) - 5 * 3600)
    assert asked.is_signed_in(claims)


def test_of_many_sign_ins_those_that_are_too_old_are_forgotten(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "MOST_ACTIVE", 5)
    asked = sign_in.asked()
    assert asked is not None
    for number in range(20):
        asked.is_active(signed_in(sub=str(number), iat=time.time() - (13 if number < 15 else 1) * 3600))
    assert asked.remembered <= 6


# -- tries that fail --------------------------------------------------------------------------------------------------


def guarded(answers_with: str = "") -> Callable[..., int]:
    """Asks the guard before a server that answers with this cookie, and returns the status."""

    async def server(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"set-cookie", answers_with.encode())] if answers_with else []
        await send({"type": "http.response.start", "status": 302, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    app = guard.Guard(server)

    def ask(path: str = "/oauth2callback", query: str = "code=x&state=y", address: str = "192.0.2.1") -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
        asyncio.run(app({**scope, "scheme": "http", "client": (address, 1)}, None, send))  # type: ignore[arg-type]
        return int(sent[0]["status"])

    return ask


def failures() -> list[str]:
    acts = services.get().store.audit.list(services.NOBODY)
    return [act.subject for act in acts if act.kind == "sign-in failed"]


def test_ten_tries_that_fail_are_acts_and_the_eleventh_is_refused(file: Path) -> None:
    ask, before = guarded(), len(failures())
    assert [ask() for _ in range(12)] == [302] * 10 + [429] * 2
    assert ask("/auth/login", "") == 429 and ask("/about") == 302
    assert ask(address="192.0.2.2") == 302, "another address"
    told = failures()[: len(failures()) - before]
    assert len(told) == 11 and len(set(told)) == 2
    assert not any("192.0" in subject for subject in told), "no act holds a network address"


def test_tries_are_forgotten_after_a_quarter_of_an_hour(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, began = guarded(), time.monotonic()
    assert [ask() for _ in range(11)][-1] == 429
    monkeypatch.setattr(sign_in_tries.time, "monotonic", lambda: began + sign_in_tries.SECONDS + 60)
    assert ask() == 302


def test_who_gets_in_or_comes_back_from_signing_out_has_failed_nothing(file: Path) -> None:
    before = len(failures())
    assert {guarded("_streamlit_user=abc; HttpOnly")() for _ in range(15)} == {302}
    ask = guarded()
    assert {ask(query="") for _ in range(15)} == {302}
    assert len(failures()) == before
    guarded('_streamlit_user=""; Max-Age=0')()
    assert len(failures()) == before + 1, "a cookie that is taken away is no sign-in"


def test_without_sign_in_nothing_is_counted(owner: str) -> None:
    ask, before = guarded(), len(failures())
    assert {ask() for _ in range(15)} == {302} and len(failures()) == before


def test_many_addresses_do_not_fill_the_audit_trail(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in_tries, "MOST_ACTS", 7)
    ask, before = guarded(), len(failures())
    for number in range(20):
        ask(address=f"198.51.100.{number}")
    assert len(failures()) == before + 7


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "unix", False),
    ],
)
def test_addresses_of_one_network_count_together(one: str, other: str, same: bool) -> None:
    assert (sign_in_tries.network_of(one) == sign_in_tries.network_of(other)) == same


def test_everybody_who_signs_out_at_once_is_signed_out(tmp_path: Path) -> None:
    """However threads take turns: what one notes, another does not undo."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(40):
            asked = sign_in.SignIn(tmp_path / "sign-in.toml", 12, 30)
            people = [signed_in(sub=f"person {number}") for number in range(200)]
            with ThreadPoolExecutor(8) as threads:
                list(threads.map(asked.end, people))
            assert not any(asked.is_signed_in(claims) for claims in people)
    finally:
        sys.setswitchinterval(usual)
