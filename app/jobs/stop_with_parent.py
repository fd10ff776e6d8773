"""`python -m app.jobs.stop_with_parent PID …`: becomes `python …`, which gets SIGTERM when its parent PID ends.

A trainer that outlived its worker would write into a folder that another worker may have been given. Linux sends the
signal; elsewhere the job's next worker looks for a trainer that is left (`trainer.py`).
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2): the signal to get when the parent ends


def main() -> None:
    parent = int(sys.argv[1])
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
    if hasattr(os, "getppid") and os.getppid() != parent:
        sys.exit(1)  # it has ended already
    os.execv(sys.executable, [sys.executable, *sys.argv[2:]])


if __name__ == "__main__":
    main()
