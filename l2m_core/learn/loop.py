"""The one training loop: steps, precision, several processes, logs, checkpoints, faults. What is learned is a loss."""

from __future__ import annotations

import json
import math
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.func import functional_call
from tqdm import tqdm

from l2m_core.errors import TrainingError
from l2m_core.learn.checkpoints import (
    flatten_optimiser,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    unflatten_optimiser,
)
from l2m_core.learn.losses import share_of
from l2m_core.learn.optimiser import MuonAdamW
from l2m_core.learn.stages import Exercise, Stage, stage_at

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class LoopConfig:
    """How to train, whatever is trained."""

    lr: float = 2e-3
    weight_decay: float = 0.01
    muon: bool = True
    clip: float = 1.0
    """Largest norm of the gradient."""
    warmup: int = 100
    average: float = 0.998
    """Decay of the running average of the weights; the average is what gets released."""
    dtype: str = "bfloat16"
    """Arithmetic of the forward and backward pass; master weights stay float32."""
    checkpoint_minutes: float = 5.0
    evaluate_every: int = 500
    """Steps between looks at held-out tasks (0: never)."""
    bad_steps: int = 20
    """So many steps in a row with a NaN or infinite loss stop the job."""
    threads: int = 1
    """CPU threads: set, not guessed."""


class Loop:
    """Runs `loss_module(exercise) → (loss, report)` over `draw(step)`. Only parameters that require a gradient move."""

    def __init__(
        self,
        loss_module: nn.Module,
        draw: Callable[[int], Exercise],
        stages: tuple[Stage, ...],
        config: LoopConfig,
        folder: Path,
        *,
        facts: dict | None = None,
        evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
        quiet: bool = False,
    ):
        self.loss_module, self.draw, self.stages, self.config = loss_module, draw, stages, config
        self.model: nn.Module = loss_module.model  # type: ignore[assignment]
        self.folder, self.facts, self.evaluate, self.quiet = folder, facts or {}, evaluate, quiet
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.world = dist.get_world_size() if dist.is_initialized() else 1
        self.steps = sum(stage.steps for stage in stages)
        self.step, self.seconds, self.tasks_seen, self.skipped = 0, 0.0, 0, 0
        self.optimiser = MuonAdamW(self.model, lr=config.lr, weight_decay=config.weight_decay, muon=config.muon)
        self.average = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self._stop_asked = False

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, until: int | None = None) -> None:
        """Up to `until` steps in all (default: the stages' end); saves at the end and when asked to stop."""
        end = min(self.steps, until or self.steps)
        self.folder.mkdir(parents=True, exist_ok=True)
        previous = _on_signal(lambda *_: setattr(self, "_stop_asked", True))
        bar = tqdm(total=end, initial=self.step, disable=self.quiet or self.rank > 0, mininterval=5, file=sys.stderr)
        saved_at, began, bad, smooth = time.monotonic(), time.monotonic() - self.seconds, 0, None
        try:
            while self.step < end and not self._stop_asked:
                report = self._one_step()
                bad = 0 if report is not None else bad + 1
                if bad >= self.config.bad_steps:
                    raise TrainingError(
                        f"{bad} steps in a row had a NaN or infinite loss, the last at step {self.step}. "
                        f"Lower loop.lr, or look at that step's tasks: they follow from the job's seed and the step."
                    )
                self.step += 1
                self.seconds = time.monotonic() - began
                if report is not None:
                    smooth = report["loss"] if smooth is None else 0.98 * smooth + 0.02 * report["loss"]
                    bar.set_postfix(loss=f"{smooth:.4f}", refresh=False)
                    self._log(report)
                bar.update(1)
                self._maybe_evaluate()
                if time.monotonic() - saved_at > 60 * self.config.checkpoint_minutes:
                    self.save()
                    saved_at = time.monotonic()
        finally:
            bar.close()
            _restore_signals(previous)
        self.save()

    def _one_step(self) -> dict[str, float] | None:
        exercise = self.draw(self.step)
        total = len(exercise.tasks.y)
        mine = share_of(exercise, self.rank, self.world)
        share = len(mine.tasks.y) / total
        dtype = DTYPES[self.config.dtype]
        lowered = {name: p.to(dtype) if p.is_floating_point() else p for name, p in self.loss_module.named_parameters()}
        loss, report = functional_call(self.loss_module, lowered, (mine,))
        (loss * share).backward()
        parameters = [p for p in self.model.parameters() if p.grad is not None]
        values = {name: float(value) * share for name, value in report.items()}
        if self.world > 1:
            values = _sum_over_processes(parameters, values)
        norm = float(nn.utils.clip_grad_norm_(parameters, self.config.clip))
        if not (math.isfinite(norm) and math.isfinite(values["loss"])):
            self.skipped += 1
            self.optimiser.zero_grad()
            return None
        self.optimiser.step(self._rate())
        self.optimiser.zero_grad()
        decay = min(self.config.average, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.average[name].lerp_(p, 1 - decay)
        self.tasks_seen += total
        return {**values, "norm": norm}

    def _rate(self) -> float:
        stage, place = stage_at(self.stages, self.step)
        start, end = stage.lr
        share = min(1.0, place / max(1, stage.steps))
        scale = end + (start - end) * 0.5 * (1 + math.cos(math.pi * share))
        return scale * min(1.0, (self.step + 1) / max(1, self.config.warmup))

    def _maybe_evaluate(self) -> None:
        every = self.config.evaluate_every
        if self.evaluate and every and self.rank == 0 and (self.step % every == 0 or self.step == self.steps):
            with self.averaged(), torch.no_grad():
                self._log({f"held_out/{k}": v for k, v in self.evaluate(self.model).items()}, always=True)

    def averaged(self):
        """Within this context the model holds the running average of its weights."""
        return _Swapped(self.model, self.average)

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(self) -> None:
        if self.rank > 0:
            return
        optimiser, rest = flatten_optimiser(self.optimiser.state_dict())
        weights = dict(self.model.state_dict())
        facts = {
            **self.facts,
            "optimiser": rest,
            "seconds": self.seconds,
            "tasks_seen": self.tasks_seen,
            "skipped": self.skipped,
            "loop": asdict(self.config),
        }
        groups = {"weights": weights, "average": self.average, "optimiser": optimiser}
        groups["random"] = {"torch": torch.get_rng_state()}
        save_checkpoint(self.folder / "checkpoints", self.step, groups, facts)

    def resume(self) -> None:
        """Continues from the newest whole checkpoint in the job's folder."""
        path, facts = load_checkpoint(self.folder / "checkpoints")
        self.model.load_state_dict(load_tensors(path, "weights"))
        self.average = load_tensors(path, "average")
        tensors = load_tensors(path, "optimiser")
        self.optimiser.load_state_dict(unflatten_optimiser(tensors, facts["optimiser"]))
        torch.set_rng_state(load_tensors(path, "random")["torch"])
        self.step, self.seconds = facts["step"], facts["seconds"]
        self.tasks_seen, self.skipped = facts["tasks_seen"], facts["skipped"]

    def _log(self, values: dict[str, float], always: bool = False) -> None:
        if self.rank > 0 or not (always or self.step % 10 == 0):
            return
        line = {"step": self.step, "tasks": self.tasks_seen, "seconds": round(self.seconds, 2), **values}
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps({k: round(v, 6) if isinstance(v, float) else v for k, v in line.items()}) + "\n")


class _Swapped:
    """Puts other weights into a model for a while."""

    def __init__(self, model: nn.Module, weights: dict[str, Tensor]):
        self.model, self.weights = model, weights

    def __enter__(self):
        self.own = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self._put(self.weights)

    def __exit__(self, *_):
        self._put(self.own)

    @torch.no_grad()
    def _put(self, weights: dict[str, Tensor]) -> None:
        for name, p in self.model.named_parameters():
            p.copy_(weights[name])


def _sum_over_processes(parameters: list[nn.Parameter], values: dict[str, float]) -> dict[str, float]:
    """Adds gradients and reports up in one message, so that every process takes the same step."""
    flat = torch.cat([p.grad.flatten() for p in parameters] + [torch.tensor(list(values.values()))])  # type: ignore[union-attr]
    dist.all_reduce(flat)
    place = 0
    for p in parameters:
        p.grad = flat[place : place + p.numel()].view_as(p).clone()
        place += p.numel()
    return dict(zip(values, flat[place:].tolist(), strict=True))


def _on_signal(handler) -> dict:
    try:
        return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    except ValueError:  # not the main thread: the caller stops us in other ways
        return {}


def _restore_signals(previous: dict) -> None:
    for number, handler in previous.items():
        signal.signal(number, handler)
