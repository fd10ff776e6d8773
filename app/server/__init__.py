"""Serving: by this process alone (`one`), or by several processes (`worker`) behind one in front (`several`)."""

READY = b"r"  # what a worker says to the process in front when it can serve
