"""Sign-in by OpenID Connect, as a file says that L2M_SIGN_IN_FILE names: Streamlit's own `[auth]` settings.

Streamlit by itself looks for such a file in folders that depend on where it is started, and without one that it can use it
takes sign-in as not asked for. Here the file is named, and an app that was told to ask for sign-in never stops asking: it
does not start without a usable file, and when the file becomes unusable later, nobody who is not signed in gets in.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.settings import IDLE_MINUTES
from app.streamlit_contact import sign_in_cookies
from app.streamlit_contact.insides import InsideMissing
from l2m_core.errors import ConfigError, L2MError

VARIABLE = "L2M_SIGN_IN_FILE"
NEEDED = ("redirect_uri", "cookie_secret", "client_id", "client_secret", "server_metadata_url")
MOST_ACTIVE = 10_000  # sign-ins remembered before those that are too old are forgotten

logger = logging.getLogger("l2m.app")


class SignInNeeded(L2MError):
    """Nobody is signed in where that is asked for."""

    def __init__(self) -> None:
        super().__init__("You are not signed in, or no longer. Reload the page and sign in.")


class Unusable(Exception):
    """Why the file cannot be used: the end of a sentence that begins with the file."""


def find_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """The sign-in file, checked; None where sign-in is not asked for."""
    chosen = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if not chosen:
        return None
    path = Path(chosen).expanduser().absolute()
    try:
        read(path)
    except Unusable as reason:
        raise ConfigError(f"The sign-in file {path} ({VARIABLE}) {reason}.") from None
    return path


def read(path: Path) -> dict[str, Any]:
    """The settings under [auth], with everything that Streamlit needs of them."""
    try:
        settings = tomllib.loads(path.read_text("utf-8")).get("auth")
    except OSError as error:
        raise Unusable(f"cannot be read ({error.strerror})") from None
    except ValueError:  # its words may quote a secret
        raise Unusable("is not written as TOML in UTF-8") from None
    found = settings if isinstance(settings, dict) else {}
    own = found.get("default")
    stated = {**found, **own} if isinstance(own, dict) else found
    # Not an empty one either: whoever knows the secret can write themselves a cookie.
    missing = [name for name in NEEDED if not (isinstance(stated.get(name), str) and stated[name].strip())]
    if missing:
        raise Unusable(f"has no {missing[0]} under [auth]")
    return found


class SignIn:
    """Sign-in as this process asks for it. Streamlit gets its settings from here, and only usable ones."""

    def __init__(self, file: Path, hours: float, idle_minutes: float) -> None:
        self.file = file
        self.idle_minutes = idle_minutes
        self.hours = hours
        """How long a sign-in is good. A provider's own tokens may end within minutes, and nothing renews them here."""
        self.problem = ""
        """Why nobody can sign in now, as of `follow`; empty where they can."""
        self._mark: object = None
        self._lock = threading.Lock()  # of the two dicts, which all sessions' threads use
        self._ended: dict[object, float] = {}  # sign-ins that were ended here → when they would be too old anyway
        self._active: dict[object, tuple[float, float]] = {}  # sign-ins → when a page was last asked for, and as above

    def is_signed_in(self, claims: Mapping[str, Any]) -> bool:
        """claims: what Streamlit knows of a visitor. A missing claim counts as not signed in."""
        if claims.get("is_logged_in") is not True or time.time() >= self._good_until(claims):
            return False
        with self._lock:
            return _name(claims) not in self._ended and not self._is_idle(claims)

    @property
    def remembered(self) -> int:
        """Number of sign-ins whose latest activity is known."""
        return len(self._active)

    def is_active(self, claims: Mapping[str, Any]) -> None:
        """Somebody who is signed in asks for a page, or presses something on it. What a page asks for by itself is nothing."""
        now = time.time()
        with self._lock:
            if len(self._active) > MOST_ACTIVE:
                self._active = {name: kept for name, kept in self._active.items() if now < kept[1]}
            self._active[_name(claims)] = now, self._good_until(claims)

    def _is_idle(self, claims: Mapping[str, Any]) -> bool:
        """A sign-in that this process has not seen yet begins to be idle now."""
        last, _ = self._active.setdefault(_name(claims), (time.time(), self._good_until(claims)))
        return time.time() - last > self.idle_minutes * 60

    def end(self, claims: Mapping[str, Any]) -> None:
        """Signs a person out, on every page that is open in the same browser too."""
        now = time.time()
        with self._lock:
            self._ended = {name: until for name, until in self._ended.items() if now < until}
            self._ended[_name(claims)] = self._good_until(claims)

    def _good_until(self, claims: Mapping[str, Any]) -> float:
        issued = claims.get("iat")  # every provider must say it
        return issued + self.hours * 3600 if isinstance(issued, (int, float)) else 0.0

    def follow(self) -> None:
        """Reads the file again if it was changed. While it cannot be used, the earlier settings stay."""
        mark = self._mark_of_file()
        if mark == self._mark and not self.problem:
            return
        try:
            self._hand_over(read(self.file))
        except Unusable as reason:
            if self.problem != str(reason):
                logger.error("Nobody can sign in: the sign-in file %s (%s) %s.", self.file, VARIABLE, reason)
            self.problem = str(reason)
        else:
            self.problem = ""
        self._mark = mark

    def _mark_of_file(self) -> object:
        """A value that differs after every change of the file's content, folder or rights."""
        try:
            found = self.file.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _hand_over(self, settings: dict[str, Any]) -> None:
        try:
            sign_in_cookies.set_auth(settings)
        except TypeError:
            raise Unusable("holds a value that is neither text, number, truth value, list nor table") from None
        except InsideMissing as missing:
            raise Unusable(
                f"cannot be given to this version of Streamlit ({missing}); install one below 1.68"
            ) from None


def _name(claims: Mapping[str, Any]) -> object:
    """Identifies one sign-in of one person by the provider's claims."""
    return tuple(str(claims.get(claim)) for claim in ("iss", "sub", "iat", "nonce"))


_asked: SignIn | None = None


def ask_by(file: Path | None, hours: float, idle_minutes: float = IDLE_MINUTES) -> None:
    """From now on this process asks for sign-in as the file says, and again after so many hours, or so many minutes in which
    nothing was asked for. None: not at all."""
    global _asked
    _asked = None if file is None else SignIn(file, hours, idle_minutes)
    if _asked is not None:
        _asked.follow()


def asked() -> SignIn | None:
    """Sign-in by the file as it is now; None where it is not asked for."""
    if _asked is not None:
        _asked.follow()
    return _asked
