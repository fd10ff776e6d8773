"""The token without which nothing is answered: made at the first start, in a file that only this user can read."""

from __future__ import annotations

import hmac
from pathlib import Path

from app.private_files import create_secret, narrow
from l2m_core.errors import ConfigError

TOKEN = "http.token"
FEWEST_CHARACTERS = 32


def token_file(data_dir: Path) -> Path:
    return data_dir / TOKEN


def load_token(path: Path) -> str:
    """Whoever wants another token deletes the file and starts again."""
    try:
        if not path.exists():
            create_secret(path, as_text=True)
        narrow(path)
        token = path.read_text("ascii").strip()
    except OSError as error:
        raise ConfigError(f"The token {path} cannot be used ({error.strerror}). Check its rights.") from None
    except UnicodeDecodeError:
        token = ""
    if len(token) < FEWEST_CHARACTERS or not token.isprintable() or " " in token:
        raise ConfigError(f"The token {path} is damaged. Delete it, start again, and give the new one to who asks.")
    return token


def is_right(authorization: str | None, token: str) -> bool:
    """Whether the header is `Bearer TOKEN`, in a time that tells nothing of the token."""
    scheme, _, given = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())
