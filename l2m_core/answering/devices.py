"""Where models compute: on the CPU, or on a GPU that is there and has room. One choice, for the library, jobs and the app.

What is asked for is `auto`, `cpu`, `cuda` or `cuda:N`: by an argument, by a command's `--device`, or by the variable
L2M_DEVICE; where nothing asks, it is `auto`. torch is imported where it is needed, so that commands explain themselves at
once.
"""

from __future__ import annotations

import argparse
import copy
import os
import re
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from l2m_core.errors import ConfigError, DeviceWarning

if TYPE_CHECKING:
    from torch import nn

VARIABLE = "L2M_DEVICE"
AUTO, CPU, GPU = "auto", "cpu", "cuda"
NAMES = re.compile(rf"{AUTO}|{CPU}|{GPU}(:\d{{1,3}})?")
LEAST_ROOM = 4 * 2**30
"""Free bytes that `auto` wants of a GPU: for torch itself, the model, and the cohorts that the app keeps in memory."""
AGREEMENT = 1e-4
"""Within this, answers of one device are those of another: probabilities, and continuous outcomes in their own size."""
LIBRARIES = ("CUDA", "cuBLAS", "cuDNN", "CUBLAS", "CUDNN")  # how their errors begin, where torch gives them no class


class Accelerators(Protocol):
    """The GPUs of a machine, numbered from 0. Tests put others in their place."""

    def count(self) -> int: ...
    def title(self, number: int) -> str: ...
    def free_bytes(self, number: int) -> int: ...
    def place(self, module: nn.Module, number: int) -> nn.Module:
        """A copy of the module, on that GPU."""
        ...

    def is_failure(self, error: BaseException) -> bool:
        """Whether a GPU failed or ran out of memory, rather than the work that it was given."""
        ...

    def wait(self, number: int) -> None:
        """Until the GPU has done what it was given; clocks are read only then."""
        ...

    def begin_peak(self, number: int) -> None: ...
    def peak_bytes(self, number: int) -> int:
        """The most that this process held on the GPU at once, since `begin_peak`."""
        ...


class Cuda:
    """Those that torch's CUDA build finds."""

    def count(self) -> int:
        import torch

        return torch.cuda.device_count() if torch.cuda.is_available() else 0

    def title(self, number: int) -> str:
        import torch

        return torch.cuda.get_device_name(number)

    def free_bytes(self, number: int) -> int:
        import torch

        return int(torch.cuda.mem_get_info(number)[0])

    def place(self, module: nn.Module, number: int) -> nn.Module:
        return copy.deepcopy(module).to(f"{GPU}:{number}")

    def is_failure(self, error: BaseException) -> bool:
        import torch

        if isinstance(error, torch.OutOfMemoryError | getattr(torch, "AcceleratorError", torch.OutOfMemoryError)):
            return True
        return isinstance(error, RuntimeError) and str(error).startswith(LIBRARIES)

    def wait(self, number: int) -> None:
        import torch

        torch.cuda.synchronize(number)

    def begin_peak(self, number: int) -> None:
        import torch

        torch.cuda.reset_peak_memory_stats(number)

    def peak_bytes(self, number: int) -> int:
        import torch

        return int(torch.cuda.max_memory_allocated(number))


gpus: Accelerators = Cuda()


@dataclass(frozen=True)
class Device:
    """Where a model computes, and why there."""

    name: str
    """"cpu", or "cuda:0"."""
    title: str = ""
    """What more there is to say: a GPU's product name."""
    reason: str = ""
    """The end of a sentence."""

    @property
    def is_cpu(self) -> bool:
        return self.name == CPU

    @property
    def number(self) -> int:
        """Of a GPU."""
        return int(self.name.partition(":")[2] or 0)

    @property
    def sentence(self) -> str:
        return f"Computes on {self}: {self.reason}."

    def __str__(self) -> str:
        return f"{self.name} ({self.title})" if self.title else self.name


ON_CPU = Device(CPU, reason="nothing else was asked for")


def check_name(name: str, asked_by: str = "device") -> str:
    """The name itself. Refuses any that is not one of a device."""
    if not NAMES.fullmatch(name):
        raise ConfigError(
            f"{asked_by} is {name!r}; it must be {AUTO}, {CPU}, {GPU}, or {GPU}:N for the GPU of that number, such as {GPU}:1."
        )
    return name


def wanted(asked: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """What was asked for, else what the variable L2M_DEVICE says, else `auto`."""
    if asked:
        return check_name(asked)
    environment = os.environ if environment is None else environment
    return check_name(environment.get(VARIABLE, "").strip().lower() or AUTO, VARIABLE)


def choose(asked: str | None = None) -> Device:
    """The device to compute on. `auto` takes the GPU with most free memory, if that is LEAST_ROOM; a GPU that is named
    must be there."""
    name = wanted(asked)
    if name == CPU:
        return Device(CPU, reason="that was asked for")
    count = gpus.count()
    if name == AUTO:
        return _roomiest(count)
    number = int(name.partition(":")[2] or 0)
    if number >= count:
        there = f"the GPUs here are numbered 0 to {count - 1}" if count else "there is no GPU here that torch can use"
        raise ConfigError(f"device is {name!r}, but {there}. Choose {AUTO} or {CPU}.")
    return Device(f"{GPU}:{number}", gpus.title(number), "that was asked for")


def _roomiest(count: int) -> Device:
    if not count:
        return Device(CPU, reason="there is no GPU here that torch can use")
    try:
        free, number = max((gpus.free_bytes(number), -number) for number in range(count))
    except RuntimeError as error:  # of a driver, or of a GPU that somebody has to themselves
        if not gpus.is_failure(error):
            raise
        return Device(CPU, reason="the GPU does not say how much of its memory is free")
    if free < LEAST_ROOM:
        return Device(
            CPU,
            reason=f"of the GPU's memory {_in_gib(free)} are free, less than the {_in_gib(LEAST_ROOM)} it should have",
        )
    return Device(f"{GPU}:{-number}", gpus.title(-number), f"{_in_gib(free)} of its memory are free")


def for_training(asked: str) -> str:
    """The device as torch names it, where a job trains: `auto` is told in words. Whether a GPU that is named is there, the
    job itself sees."""
    if check_name(asked) != AUTO:
        return asked
    chosen = choose(AUTO)
    print(chosen.sentence, flush=True)
    # Under `torchrun` each process has a GPU of its own, for which `cuda` stands.
    return GPU if "RANK" in os.environ and not chosen.is_cpu else chosen.name


def put(module: nn.Module, device: Device) -> tuple[nn.Module, Device]:
    """A copy of the module on the device; the module itself where that is the CPU, or where the GPU does not take it."""
    if device.is_cpu:
        return module, device
    try:
        return gpus.place(module, device.number), device
    except RuntimeError as failure:
        if not gpus.is_failure(failure):
            raise
        warnings.warn(f"{what_failed(device, failure)} The model computes on the CPU.", DeviceWarning, stacklevel=2)
        return module, after(device)


def after(failed: Device) -> Device:
    """The CPU, in the place of a GPU that failed."""
    return Device(CPU, f"after {failed} failed", "the GPU failed")


def what_failed(device: Device, failure: BaseException) -> str:
    """A sentence. The error's own words are left out: nobody can say what they quote."""
    import torch

    did = "ran out of memory" if isinstance(failure, torch.OutOfMemoryError) else f"failed ({type(failure).__name__})"
    return f"The GPU {device} {did}."


def _in_gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


# -- commands ---------------------------------------------------------------------------------------------------------


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        type=_option,
        help=f"where models answer: {AUTO}, {CPU}, {GPU} or {GPU}:N (default: as {VARIABLE} says, else {AUTO}: a GPU with room)",
    )


def apply_option(asked: str | None) -> None:
    """For this process and those that it starts: by the variable, which all of them read."""
    if asked is not None:
        os.environ[VARIABLE] = check_name(asked)


def tell_of_gpu() -> None:
    """On standard error, where a command will compute, if that is a GPU."""
    chosen = choose()
    if not chosen.is_cpu:
        print(chosen.sentence, file=sys.stderr, flush=True)


def _option(text: str) -> str:
    try:
        return check_name(text)
    except ConfigError as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None
