"""Serving: by this process alone (`one`), or by several workers (`worker`) behind a front process (`several`)."""

READY = b"r"  # what a worker sends to the front when it can serve
