"""Who a process is, and whether it still runs. A process id alone is not enough: the system hands it out again."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

SEPARATOR = "|"


def identity(pid: int) -> str:
    """host | boot | pid | start: names one process among all machines and all times, as far as this system tells."""
    return SEPARATOR.join((socket.gethostname(), _boot(), str(pid), _state_and_start(pid)[1]))


def is_alive(process: str) -> bool | None:
    """None where it cannot be told from here: another machine, or a system that does not say."""
    try:
        host, boot, pid_text, start = process.rsplit(SEPARATOR, 3)
        pid = int(pid_text)
    except ValueError:
        return None
    if host != socket.gethostname():
        return None
    if start:
        state, running_start = _state_and_start(pid)
        return boot == _boot() and start == running_start and state not in ("Z", "X")
    return _answers(pid)


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _state_and_start(pid: int) -> tuple[str, str]:
    """The state letter and the start time in ticks, from Linux; empty elsewhere or if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""


def _answers(pid: int) -> bool | None:
    if sys.platform == "win32":  # asking with signal 0 would end the process there
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
