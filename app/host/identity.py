"""Who is asking: an opaque id for each browser in a signed cookie, or the signed-in user.

The cookie is set on the page's first response, cannot be read by scripts, and is worth nothing without this
installation's secret, which lies in the data folder. It stands for a browser, not for a person.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from app.private_files import SECRET_BYTES, create_secret, narrow
from app.settings import SECRET
from l2m_core.errors import ConfigError

COOKIE = "l2m_browser"
COOKIE_SECONDS = 400 * 24 * 3600  # the longest that browsers keep one; renewed by every visit


@dataclass(frozen=True)
class Signer:
    """Signs and checks the text of the cookie: a browser's id and its signature."""

    secret: bytes = field(repr=False)

    def new_browser(self) -> str:
        return secrets.token_hex(16)

    def sign(self, browser: str) -> str:
        return f"{browser}.{self._signature(browser)}"

    def read(self, cookie: str | None) -> str | None:
        """The browser's id, or None where the text is not one of ours."""
        browser, _, signature = (cookie if isinstance(cookie, str) else "").partition(".")
        genuine = len(browser) == 32 and browser.isascii() and browser.isalnum() and signature.isascii()
        return browser if genuine and hmac.compare_digest(signature, self._signature(browser)) else None

    def derive(self, purpose: str) -> str:
        """Another secret, for another purpose."""
        return hmac.new(self.secret, f"purpose {purpose}".encode(), sha256).hexdigest()

    def _signature(self, browser: str) -> str:
        return hmac.new(self.secret, f"browser {browser}".encode(), sha256).hexdigest()


def load_signer(data_dir: Path) -> Signer:
    """The installation's own secret, made on first use and readable by this user only."""
    path = data_dir / SECRET
    try:
        if not path.exists():
            create_secret(path)
        narrow(path)
        secret = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"The secret {path} cannot be used ({error.strerror}). Check its rights.") from None
    if len(secret) != SECRET_BYTES:
        raise ConfigError(f"The secret {path} is damaged. Delete it; everyone then gets a new identity.")
    return Signer(secret)


def user_owner(issuer: str, subject: str) -> str:
    """A signed-in user's owner id: the same in every browser, and not readable as a name."""
    return "user-" + sha256(f"{issuer}\n{subject}".encode()).hexdigest()[:32]


def browser_owner(browser: str) -> str:
    return f"browser-{browser}"
