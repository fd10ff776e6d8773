"""Sign-in by OpenID Connect, as a file says that L2M_SIGN_IN_FILE names: Streamlit's own `[auth]` settings.

Streamlit looks for such a file in folders that depend on where it is started, and without one shows every page to
everyone. Here the place is stated, and an app that was told to ask for sign-in and cannot does not start.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from l2m_core.errors import ConfigError

VARIABLE = "L2M_SIGN_IN_FILE"
NEEDED = ("redirect_uri", "cookie_secret")


def find_file(environment: Mapping[str, str] | None = None) -> Path | None:
    """The file, looked over; None where sign-in is not asked for."""
    chosen = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if not chosen:
        return None
    path = Path(chosen).expanduser().absolute()
    try:
        settings = tomllib.loads(path.read_text("utf-8")).get("auth")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"The sign-in file {path} ({VARIABLE}) cannot be read: {type(error).__name__}.") from None
    missing = [name for name in NEEDED if not isinstance(settings, dict) or not settings.get(name)]
    if missing:
        raise ConfigError(f"The sign-in file {path} ({VARIABLE}) has no {missing[0]} under [auth].")
    return path
