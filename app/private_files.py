"""Files and folders that only this user may read: made so, and narrowed where somebody left them open."""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO
SECRET_BYTES = 32

logger = logging.getLogger("l2m.app")


def narrow(path: Path, may_change: bool = True) -> None:
    """Takes away what others may do with an existing file or folder, and says so; else warns that they may.

    may_change: False for what may not be ours alone, such as a folder that holds other things.
    """
    if os.name == "nt":  # rights are kept otherwise there
        return
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if not mode & OTHERS:
            return
        # A folder that everybody puts files into (the sticky bit), such as /tmp, is nobody's own.
        if may_change and not mode & stat.S_ISVTX:
            path.chmod(mode & ~OTHERS)
            logger.warning("%s could be opened by others. Now only this user may.", path)
            return
    except FileNotFoundError:
        return
    except OSError:  # another user's
        pass
    logger.warning("%s can be opened by others, and holds what they should not read. Take their rights away.", path)


def create_secret(path: Path, as_text: bool = False) -> None:
    """Random bytes, or a line of text that a person can copy.

    Writes a draft and links it under its name, so that two processes that start at once read the same secret.
    """
    line = f"{secrets.token_urlsafe(SECRET_BYTES)}\n".encode()
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(line if as_text else secrets.token_bytes(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
