"""`python -m app.jobs.tether PARENT …`: becomes `python …`, and is told to stop when PARENT ends, whatever ended it.

A trainer that outlived its worker would write into a folder that another worker may have been given. Linux tells it;
elsewhere the next worker of the job looks for it (see `trainer.py`).
"""

from __future__ import annotations

import os
import signal
import sys

TELL_WHEN_PARENT_ENDS = 1  # PR_SET_PDEATHSIG of prctl(2)


def main() -> None:
    parent = int(sys.argv[1])
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(TELL_WHEN_PARENT_ENDS, int(signal.SIGTERM))
    if hasattr(os, "getppid") and os.getppid() != parent:
        sys.exit(1)  # it ended in the meantime
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])


if __name__ == "__main__":
    main()
