"""Every key of the browser session's state, and who the session belongs to.

Streamlit's session state ends with a reload, so it holds only what may be lost: what is open, a message to show once, an
entry not yet recorded. All else is in the store. The address holds opaque ids and nothing of a patient.

A browser that has not drawn the page yet still shows what stood there before, and tells of it: of a press on a slow line, or with
the next press. Streamlit then calls for a field that is gone. So a callback takes what it needs by `get`, and does nothing where
it is there no more: such a call is *late*.
"""

from __future__ import annotations

import time
import uuid
from functools import lru_cache
from pathlib import Path
from typing import Any

import streamlit as st

from app.host import identity, services, sign_in

STEP_THROUGH = "step"  # query parameter: id of the step-through being looked at
COHORT = "cohort"  # query parameter: id of the cohort being looked at
TRACE = "trace"  # query parameter: id of the recorded step-through being looked at
NEW = "new"  # in the place of an id: none is to be open
ALL = "all"  # the same, where the list of all is shown instead

_BROWSER = "l2m.browser"
_NOTICES = "l2m.notices"
_NONCE = "l2m.nonce"
_LAST = "l2m.last_action"
_OPEN = {STEP_THROUGH: "l2m.open.step", COHORT: "l2m.open.cohort", TRACE: "l2m.open.trace"}

ECHO_SECONDS = 0.7  # a second click within this time of seeing the new state was meant for the old one


# -- who ------------------------------------------------------------------------------------------------------------


def owner() -> str:
    """The signed-in user. Where sign-in is not asked for: this browser, or without cookies this session only."""
    if sign_in_is_required():
        raise sign_in.SignInNeeded
    user = signed_in_user()
    return user if user is not None else identity.browser_owner(browser())


def browser() -> str:
    known = browser_of_cookie()
    if known is None:
        known = st.session_state.setdefault(_BROWSER, services.get().signer.new_browser())
    return str(known)


def browser_of_cookie() -> str | None:
    """The browser's id from its signed cookie; None where it keeps no cookies."""
    return services.get().signer.read(st.context.cookies.get(identity.COOKIE))


def sign_in_is_required() -> bool:
    """Whether sign-in is asked for and nobody is signed in, or no longer."""
    asked = sign_in.asked()
    if asked is None:
        return _may_be_signed_in() and getattr(st.user, "is_logged_in", None) is False
    return not asked.is_signed_in(st.user)


def _may_be_signed_in() -> bool:
    """Whether anybody can be: by our sign-in, or by settings that Streamlit has in files of its own.

    `st.user` reads those files whenever it is asked, there or not, which was a tenth of a step's time.
    """
    return sign_in.asked() is not None or any(Path(file).exists() for file in secrets_files())


@lru_cache(maxsize=1)
def secrets_files() -> tuple[str, ...]:
    """Where Streamlit looks for settings of its own."""
    return tuple(st.get_option("secrets.files"))


def is_active() -> None:
    """Whoever is signed in asks for a page."""
    asked = sign_in.asked()
    if asked is not None:
        asked.is_active(st.user)


def sign_in_problem() -> str:
    """Why nobody can sign in now: what the file with its settings lacks. Empty where they can."""
    asked = sign_in.asked()
    return "" if asked is None else asked.problem


def signed_in_user() -> str | None:
    if not _may_be_signed_in() or sign_in_is_required() or getattr(st.user, "is_logged_in", None) is not True:
        return None
    return identity.user_owner(str(st.user.get("iss", "")), str(st.user.get("sub") or st.user.get("email") or ""))


def signed_in_name() -> str:
    """The signed-in person's name as the provider has it; empty where it has none. To be shown, never stored."""
    return next((str(st.user[name]) for name in ("name", "preferred_username", "email") if st.user.get(name)), "")


def sign_out() -> None:
    asked = sign_in.asked()
    if asked is not None:
        asked.end(st.user)
    st.logout()


# -- where ----------------------------------------------------------------------------------------------------------


def opened(what: str) -> str | None:
    """The id of the step-through, cohort or trace that is open: from the address, else from this session. None where the address
    says NEW or ALL."""
    in_address = st.query_params.get(what)
    if in_address in (NEW, ALL):  # stays there, or the way back would lead to it again and again
        st.session_state[_OPEN[what]] = None
        return None
    if in_address is not None and is_id(in_address):
        st.session_state[_OPEN[what]] = in_address
        return str(in_address)
    remembered = st.session_state.get(_OPEN[what])
    if remembered is not None:
        st.query_params[what] = remembered
    elif in_address is not None:
        del st.query_params[what]
    return remembered


def open_id(what: str, identifier: str | None) -> None:
    st.session_state[_OPEN[what]] = identifier
    if identifier is None:
        st.query_params.pop(what, None)
    else:
        st.query_params[what] = identifier


def open_from_list(what: str, identifier: str | None) -> None:
    """As `open_id`, so that the browser's Back leads to the list: the list first gets an address of its own.

    Its plain address opens again what is open, for those who come from another page.
    """
    if identifier is not None and what not in st.query_params:
        st.query_params[what] = ALL
    open_id(what, identifier)


def turn_to(what: str, identifier: str | None) -> None:
    """For the callback of a field in which one of them is chosen; None: a late call."""
    if identifier is not None:
        open_id(what, identifier)


def close(what: str, identifier: str) -> None:
    """Where this one is open, none is any more. For what was deleted."""
    if st.session_state.get(_OPEN[what]) == identifier:
        open_id(what, None)


def is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


# -- actions --------------------------------------------------------------------------------------------------------


def event_id(step_through: str, expected_length: int, kind: str, about: tuple[str, ...] = ()) -> str:
    """An id that is the same for the same press in this session, so that a press that arrives twice is one event."""
    nonce = st.session_state.setdefault(_NONCE, str(uuid.uuid4()))
    return str(uuid.uuid5(uuid.UUID(nonce), f"{step_through} {expected_length} {kind} {about!r}"))


def new_id(intention: str) -> str:
    """One id for one intention: a double click on "Start" begins one step-through. `spend` it when it is used."""
    ids = st.session_state.setdefault("l2m.ids", {})
    return str(ids.setdefault(intention, str(uuid.uuid4())))


def spend(intention: str) -> None:
    st.session_state.setdefault("l2m.ids", {}).pop(intention, None)


def acted(kind: str) -> None:
    """An action was carried out; its outcome is not on the screen yet."""
    st.session_state[_LAST] = {"kind": kind, "at": time.monotonic(), "seen": False}


def drawn() -> None:
    """The page was drawn to its end: from now on people see what the last action did."""
    last = st.session_state.get(_LAST)
    if last is not None and not last["seen"]:
        st.session_state[_LAST] = {**last, "at": time.monotonic(), "seen": True}


def is_echo(kind: str) -> bool:
    """Whether the outcome of such an action is not on the screen yet: another press of the same kind is then a double click."""
    last = st.session_state.get(_LAST)
    if last is None or last["kind"] != kind:
        return False
    return not last["seen"] or time.monotonic() - last["at"] < ECHO_SECONDS


# -- messages -------------------------------------------------------------------------------------------------------


def notify(severity: str, sentence: str, section: str = "page") -> None:
    """Keeps a message until this section of the page is drawn next. severity: error, warning, info or success."""
    waiting = st.session_state.setdefault(_NOTICES, [])
    waiting.append({"severity": severity, "sentence": sentence, "section": section})


def take_notices(section: str = "page") -> list[dict[str, Any]]:
    """Messages for this section, which are then forgotten."""
    waiting = st.session_state.get(_NOTICES, [])
    st.session_state[_NOTICES] = [notice for notice in waiting if notice["section"] != section]
    return [notice for notice in waiting if notice["section"] == section]
