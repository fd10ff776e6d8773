"""What lies on a GPU, and goes on on the CPU when the GPU fails in the middle of work."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Generic, TypeVar

from l2m_core.answering import devices
from l2m_core.answering.devices import Device
from l2m_core.answering.release import Release
from l2m_core.errors import DeviceWarning

Made = TypeVar("Made")
Result = TypeVar("Result")

# One for all: a GPU fails seldom, and a lock of its own would keep a memory from being sent to another process.
_moving = threading.Lock()


class OnDevice(Generic[Made]):
    """What a release made, with the release, on one device.

    When the GPU fails, it is made again with the release on the CPU, where it stays, and what failed is done again there.
    Nothing is copied from the GPU: after some failures nothing can be.
    """

    def __init__(self, release: Release, make: Callable[[Release], Made]) -> None:
        self._make: Callable[[Release], Made] | None = make
        try:
            self._now = release, make(release)
        except RuntimeError as failure:
            self._now = self._made_on_cpu(release, failure)
        if self.device.is_cpu:
            self._make = None  # nothing more can fail, and what it holds may not go to another process

    @property
    def device(self) -> Device:
        return self._now[0].device

    @property
    def made(self) -> Made:
        return self._now[1]

    def use(self, work: Callable[[Release, Made], Result]) -> Result:
        """What `work` returns, whose tensors must be on the CPU by then. It may be called twice, from any thread."""
        before = self._now
        try:
            return work(*before)
        except RuntimeError as failure:
            with _moving:
                if self._now is before:  # else another thread has moved it meanwhile
                    self._now = self._made_on_cpu(before[0], failure)
        return work(*self._now)

    def _made_on_cpu(self, release: Release, failure: RuntimeError) -> tuple[Release, Made]:
        if release.spare is None or self._make is None or not devices.gpus.is_failure(failure):
            raise failure
        warnings.warn(
            f"{devices.what_failed(release.device, failure)} The model reads this cohort on the CPU and goes on there: "
            "answers are the same but for rounding, and take longer.",
            DeviceWarning,
            stacklevel=3,
        )
        on_cpu = release.on_cpu()
        return on_cpu, self._make(on_cpu)
