"""Several processes that train one model: each works on its share of a batch, and all take the same step."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from typing import NoReturn

import torch
import torch.distributed as dist
from torch import Tensor, nn


@contextmanager
def joined(device: str):
    """Under `torchrun`, the processes find each other (gloo on CPU, nccl on GPUs); otherwise nothing happens."""
    if "RANK" not in os.environ:
        yield
        return
    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if on_gpu else "gloo")
    try:
        yield
        # None leaves while the first still writes: one that loses its peers as it ends may be aborted, and torchrun then
        # stops the others.
        dist.barrier()
    finally:
        dist.destroy_process_group()


def leave(code: int) -> NoReturn:
    """Ends this process: under `torchrun` without Python's tidying-up. A thread of gloo that wants Python in the midst of it can
    abort the process, and torchrun then takes a job that is done for one that failed."""
    if "RANK" in os.environ:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def rank_and_world_size() -> tuple[int, int]:
    """This process's number, and how many there are."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)


def sum_over_processes(parameters: list[nn.Parameter], values: dict[str, float]) -> dict[str, float]:
    """Adds gradients and values up in one message. A gradient that no process has stays None."""
    device, dtype = parameters[0].device, torch.float32
    # Whether any process has a gradient travels along: a parameter that none of them used must keep None, or the
    # optimiser's decay would move it.
    present = torch.tensor([float(p.grad is not None) for p in parameters], device=device)
    reported = torch.tensor(list(values.values()), dtype=dtype, device=device)
    gradients = [(torch.zeros_like(p) if p.grad is None else p.grad).flatten().to(dtype) for p in parameters]
    # One message in place of one per parameter: on several machines each has a latency of its own.
    message = torch.cat([present, reported, *gradients])
    dist.all_reduce(message)
    first = len(parameters) + len(values)
    _put_back(parameters, message[: len(parameters)], message[first:])
    return dict(zip(values, message[len(parameters) : first].tolist(), strict=True))


@torch.no_grad()
def take_from_first(parameters: Iterable[nn.Parameter]) -> None:
    """Gives the parameters of every process the values that they have in the first."""
    if dist.is_initialized():
        for parameter in parameters:
            dist.broadcast(parameter, src=0)


def _put_back(parameters: list[nn.Parameter], present: Tensor, flat: Tensor) -> None:
    begin = 0
    for parameter, has in zip(parameters, present.tolist(), strict=True):
        end = begin + parameter.numel()
        # `clone`, or every gradient would keep the whole message alive.
        parameter.grad = flat[begin:end].view_as(parameter).to(parameter.dtype).clone() if has else None
        begin = end
