"""The training loop of all jobs: steps, precision, several processes, logs, checkpoints. The loss decides what is learned."""

from __future__ import annotations

import math
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm import tqdm

from l2m_core.errors import ConfigError, ModelFileError, TrainingError
from l2m_core.learn.checkpoints import (
    flatten_optimiser,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    unflatten_optimiser,
)
from l2m_core.learn.early_stopping import EarlyStopping
from l2m_core.learn.logs import TrainingLog
from l2m_core.learn.losses import share_of
from l2m_core.learn.optimiser import MuonAdamW
from l2m_core.learn.precision import (
    DTYPES,
    FASTER,
    FlopMeter,
    call_lowered,
    check_dtype,
    chosen_dtype,
    compile_blocks,
)
from l2m_core.learn.processes import rank_and_world_size, sum_over_processes
from l2m_core.learn.stages import Episode, Stage, stage_at
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import build_settings, check_least, check_most, to_plain


@dataclass(frozen=True)
class LoopConfig:
    """How to train, whatever is trained."""

    lr: float = 2e-3
    """Peak of the learning rate."""
    weight_decay: float = 0.01
    """Decoupled weight decay."""
    muon: bool = True
    """Whether Muon updates the matrices inside the blocks and AdamW the rest; without it, AdamW updates everything."""
    beta2: float = 0.98
    """AdamW's decay of the second moment; 0.999 is Adam's default, and the study's."""
    decay: str = "cosine"
    """How the rate falls from a stage's first share of the peak to its last: "cosine" or "linear"."""
    clip: float = 1.0
    """Largest norm of the gradient; 0: gradients are not clipped."""
    warmup: int = 100
    """Steps over which the learning rate rises from zero."""
    average: float = 0.998
    """Decay of the running average of the weights; the average is what gets released."""
    dtype: str = FASTER
    """Arithmetic of the forward and backward pass: "bfloat16", "float32", or by "auto" what a trial of a second finds faster on
    this machine. Master weights stay float32."""
    compile: bool = False
    """Whether `torch.compile` builds kernels for the network's blocks: for GPUs."""
    checkpoint_minutes: float = 5.0
    """Minutes between checkpoints; one is also written at the end and on SIGTERM."""
    evaluate_every: int = 500
    """Steps between evaluations on held-out tasks (0: only at the end)."""
    log_every: int = 10
    """Steps between lines of the log."""
    bad_steps: int = 20
    """Steps in a row with a NaN or infinite loss that stop the job."""
    threads: int = 1
    """CPU threads. They are set here and never guessed."""
    count_operations: bool = True
    """Whether the log tells GFLOP/s, which costs one more run of each new shape of tasks."""
    minutes: float = 0.0
    """When positive, this run stops after so many minutes, with a checkpoint from which --resume goes on."""
    timed: bool = False
    """Whether the learning rate follows the share of `minutes` that has passed instead of the steps planned, and training ends
    with them, however many steps that took: for a machine that is lent, whose speed is not known beforehand."""

    def __post_init__(self) -> None:
        check_dtype("loop.dtype", self.dtype)
        if not self.lr > 0:
            raise ConfigError(f"loop.lr is {self.lr}; it must be above 0.")
        if self.decay not in ("cosine", "linear"):
            raise ConfigError(f"loop.decay is {self.decay!r}; it must be cosine or linear.")
        if not 0 < self.beta2 < 1:
            raise ConfigError(f"loop.beta2 is {self.beta2}; it must lie between 0 and 1.")
        check_least(self, "loop", bad_steps=1, threads=1, log_every=1, minutes=0, clip=0, checkpoint_minutes=0)
        # The average is a mean of weights: beyond 0 … 1 it would run away from them.
        check_least(self, "loop", average=0, weight_decay=0, warmup=0, evaluate_every=0)
        check_most(self, "loop", average=1)
        if self.timed and not self.minutes:
            raise ConfigError("loop.timed is set, so loop.minutes must say how many minutes there are.")


RESUME = "The same command with --resume goes on from there."


class Loop:
    """Runs `loss_module(episode) → (loss, report)` over `draw(step)`. Only parameters that require a gradient move.

    folder: where checkpoints and logs go, None to keep nothing; rate_of: share of the learning rate by a parameter's
    name; stopping: ends the run early, by what `evaluate` says of the averaged weights; how_to_go_on: what a run that
    stopped before its end tells.
    """

    def __init__(
        self,
        loss_module: nn.Module,
        draw: Callable[[int], Episode],
        stages: tuple[Stage, ...],
        config: LoopConfig,
        folder: Path | None,
        *,
        facts: dict | None = None,
        evaluate: Callable[[nn.Module], dict[str, float]] | None = None,
        rate_of: Callable[[str], float] | None = None,
        stopping: EarlyStopping | None = None,
        quiet: bool = False,
        how_to_go_on: str = RESUME,
    ):
        self.how_to_go_on = how_to_go_on
        self.loss_module, self.draw, self.stages, self.config = loss_module, draw, stages, config
        self.model: nn.Module = loss_module.model  # type: ignore[assignment]
        self.folder, self.facts, self.evaluate, self.quiet = folder, facts or {}, evaluate, quiet
        self.dtype = chosen_dtype(config.dtype, next(self.model.parameters()).device, config.threads)
        self.stopping = stopping
        self.rank, self.world_size = rank_and_world_size()
        self.steps = sum(stage.steps for stage in stages)
        self.step, self.seconds, self.tasks_seen, self.skipped = 0, 0.0, 0, 0
        self.held_out: dict[str, float] = {}
        self.optimiser = MuonAdamW(self.model, config.lr, config.weight_decay, config.muon, rate_of, config.beta2)
        self.average = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.meter = FlopMeter()
        if config.compile:
            compile_blocks(self.model)
        self._log: TrainingLog | None = None
        self._stop_asked = self._stopping = False

    # -- running ---------------------------------------------------------------------------------------------------

    def run(self, until: int | None = None) -> None:
        """Trains up to step `until` (default: the end of the stages). Saves at the end and when asked to stop."""
        end = (until or sys.maxsize) if self.config.timed else min(self.steps, until or self.steps)
        self._open_folder()
        previous = _on_signal(lambda *_: self.ask_to_stop())
        total = None if end == sys.maxsize else end
        bar = tqdm(total=total, initial=self.step, disable=self.quiet or self.rank > 0, mininterval=5, file=sys.stderr)
        # `began` lies in the past by the seconds of earlier runs, so the clock counts the whole job.
        saved_at, began, bad, smooth = time.monotonic(), time.monotonic() - self.seconds, 0, None
        seconds = 60 * self.config.minutes
        # Of a timed job the minutes of earlier runs count.
        deadline = (began if self.config.timed else time.monotonic()) + seconds if seconds else math.inf
        try:
            if self.stopping and self.step == 0:
                self._evaluate()
            self._stopping = self.stopping is not None and self.stopping.is_over
            while self.step < end and not self._stopping:
                if time.monotonic() > deadline:
                    self.ask_to_stop()
                report = self.take_step()
                bad = 0 if report is not None else bad + 1
                if bad >= self.config.bad_steps:
                    raise TrainingError(self._bad_news(bad))
                self.step += 1
                self.seconds = time.monotonic() - began
                if report is not None:
                    # Only what the progress bar shows is smoothed; the log has each step's own loss.
                    smooth = report["loss"] if smooth is None else 0.98 * smooth + 0.02 * report["loss"]
                    bar.set_postfix_str(f"loss={smooth:.4f}{self._speed()}", refresh=False)
                    # The last one too: a leg of a few steps has a curve.
                    if self.step % self.config.log_every == 0 or self.step == end or self._stopping:
                        self._write(report)
                bar.update(1)
                every = self.config.evaluate_every
                if self.step == end or (every and self.step % every == 0):
                    self._evaluate()
                if time.monotonic() - saved_at > 60 * self.config.checkpoint_minutes:
                    self.save()
                    saved_at = time.monotonic()
            self.save()
        finally:
            bar.close()
            if self._log:
                self._log.close()
            # Only now: a second signal (Linux may send one for each thread of a parent that died) spares the checkpoint.
            _restore_signals(previous)
        self._say_how_to_go_on(end)

    def _say_how_to_go_on(self, end: int) -> None:
        is_time_up = self.config.timed and self.seconds >= 60 * self.config.minutes
        has_ended = self.step >= end or is_time_up or (self.stopping is not None and self.stopping.is_over)
        if not (has_ended or self.quiet or self.rank or self.folder is None):
            print(
                f"Stopped after step {self.step:,} of {end:,}, which is saved in {self.folder / 'checkpoints'}.",
                self.how_to_go_on,
                file=sys.stderr,
                flush=True,
            )

    def ask_to_stop(self) -> None:
        """Ends `run` after this step, in every process that shares the batch."""
        self._stop_asked = True

    def take_step(self) -> dict[str, float] | None:
        """One step of the optimiser: what the loss reports, or None where the step was skipped."""
        episode = self.draw(self.step)
        total = len(episode.tasks.y)
        if total < self.world_size:
            raise ConfigError(
                f"Step {self.step} has {total} tasks for {self.world_size} processes; draw more per step."
            )
        mine = share_of(episode, self.rank, self.world_size)
        share = len(mine.tasks.y) / total
        # Each process counts its loss by its share of the tasks, so the sum below is the mean over the whole batch.
        values = self._forward_and_backward(mine, share)
        moving = [p for p in self.model.parameters() if p.requires_grad]
        self._stopping = self._stop_asked
        if self.world_size > 1:
            values = sum_over_processes(moving, {**values, "stop": float(self._stop_asked)})
            self._stopping = values.pop("stop") > 0
        # After the sum over processes, so that all of them clip alike.
        largest = self.config.clip or math.inf
        norm = float(nn.utils.clip_grad_norm_([p for p in moving if p.grad is not None], largest))
        # A step with a NaN is skipped whole: its gradient would spoil the optimiser's momentum for good.
        if not (math.isfinite(norm) and math.isfinite(values["loss"])):
            self.skipped += 1
            self.optimiser.zero_grad()
            return None
        self.optimiser.step(self.learning_rate())
        self.optimiser.zero_grad()
        # The average begins short and grows to its full memory: the first weights would else stay in it for 1 / (1 -
        # decay) steps.
        decay = min(self.config.average, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                self.average[name].lerp_(p, 1 - decay)
        self.tasks_seen += total
        return {**values, "norm": norm}

    def _forward_and_backward(self, episode: Episode, share: float) -> dict[str, float]:
        """Leaves gradients on the parameters and returns what the loss reports, both multiplied by `share`."""

        def step() -> dict[str, float]:
            loss, report = call_lowered(self.loss_module, DTYPES[self.dtype], episode)
            (loss * share).backward()
            return {name: float(value) * share for name, value in report.items()}

        # The number of operations depends on these alone.
        shape = (*episode.tasks.x.shape, episode.context, episode.tasks.continuous)
        if self.config.count_operations:
            self.meter.count(shape, step)
        self.optimiser.zero_grad()
        return self.meter.run(shape, step)

    def _bad_news(self, bad: int) -> str:
        seed = self.facts.get("job", {}).get("seed", "not recorded")
        return (
            f"{bad} steps in a row had a NaN or infinite loss, the last at step {self.step}. Lower loop.lr, or look at "
            f"that step's tasks: they follow from the job's seed ({seed}) and the step."
        )

    def learning_rate(self) -> float:
        passed = self.step
        if self.config.timed:
            passed = round(self.steps * min(1.0, self.seconds / (60 * self.config.minutes)))
        number, step_in_stage = stage_at(self.stages, passed)
        stage = self.stages[number]
        start, end = stage.lr
        share = min(1.0, step_in_stage / max(1, stage.steps))
        left = 1 - share if self.config.decay == "linear" else 0.5 * (1 + math.cos(math.pi * share))
        # From the stage's first share of the peak to its last, times a linear warm-up over all.
        scale = end + (start - end) * left
        return scale * min(1.0, (self.step + 1) / max(1, self.config.warmup))

    def _evaluate(self) -> None:
        """Evaluates the averaged weights on held-out tasks. Other processes wait at the next step's sum."""
        if self.evaluate is None or self.rank > 0:
            return
        # Uncompiled: kernels for this alone would take longer to build than they save.
        with self.averaged(), torch.no_grad(), torch.compiler.set_stance("force_eager"):
            self.held_out = self.evaluate(self.model)
            if self.stopping:
                self.stopping.update(self.held_out, self.model)
                self._stop_asked |= self.stopping.is_over
                self._stopping |= self._stop_asked and self.world_size == 1  # several processes agree at the next sum
        self._write({f"held_out/{name}": value for name, value in self.held_out.items()})

    def averaged(self):
        """Within this context the model holds the running average of its weights."""
        return _Swapped(self.model, self.average)

    def summary(self) -> str:
        """The last evaluation on held-out tasks, in lines for a person."""
        lines = [
            f"{self.step:,} steps in {self.dtype}, {self.tasks_seen:,} tasks, {self.seconds:,.0f} s{self._speed()}, "
            f"{self.skipped} steps skipped"
        ]
        for name, value in self.held_out.items():
            base = self.held_out.get(f"{name}_base")
            if base is not None:
                apart = f"{abs(base - value):.4f} nats {'under' if value <= base else 'above'} it"
                lines.append(f"held-out {name}: loss {value:.4f}, base rate {base:.4f}, {apart}")
            elif not name.endswith("_base"):
                lines.append(f"held-out {name}: {value:.4f}")
        return "\n".join(lines)

    # -- keeping ---------------------------------------------------------------------------------------------------

    def save(self) -> None:
        if self.rank > 0 or self.folder is None:
            return
        optimiser, rest = flatten_optimiser(self.optimiser.state_dict())
        facts = {
            **self.facts,
            "optimiser": rest,
            "seconds": self.seconds,
            "tasks_seen": self.tasks_seen,
            "skipped": self.skipped,
            "loop": asdict(self.config),
            "dtype": self.dtype,
            "held_out": self.held_out,
        }
        groups = {"weights": dict(self.model.state_dict()), "average": self.average, "optimiser": optimiser}
        # The generator's state is kept too, so a resumed job draws what an unbroken one would have drawn.
        groups["random"] = {"torch": torch.get_rng_state()}
        if self.stopping:
            facts["stopping"], groups["best"] = self.stopping.facts(), self.stopping.best
        try:
            save_checkpoint(self.folder / "checkpoints", self.step, groups, facts)
        except OSError as error:
            raise self._cannot_write("checkpoint", error) from error

    def _cannot_write(self, what: str, error: OSError) -> TrainingError:
        way = "There is none before it: free some space, then start the job again."
        if self._has_checkpoints():
            way = "Earlier checkpoints are whole: free some space, then resume the job (on the command line with --resume)."
        return TrainingError(f"The {what} of step {self.step} could not be written to {self.folder} ({error}). {way}")

    def resume(self) -> None:
        """Continues from the newest whole checkpoint in the job's folder, which must be this job's own."""
        assert self.folder is not None
        try:
            path, facts = load_checkpoint(self.folder / "checkpoints")
        except ModelFileError as error:
            # Without --resume, a folder with checkpoints is refused, damaged or not.
            way = "Name another folder" if self._has_checkpoints() else "Start without --resume"
            raise ModelFileError(f"{error} {way} to begin anew.") from error
        if changed := _changed(facts, self.facts):
            raise ConfigError(
                f"{self.folder} holds a job with other settings ({', '.join(changed)}). Resume it with its own, or begin a "
                "job in another folder; init takes up the weights of this one."
            )
        device = next(self.model.parameters()).device
        # Training goes on from the weights themselves; the average is kept beside them.
        self.model.load_state_dict(load_tensors(path, "weights"))
        self.average = {name: t.to(device) for name, t in load_tensors(path, "average").items()}
        self.optimiser.load_state_dict(unflatten_optimiser(load_tensors(path, "optimiser"), facts["optimiser"]))
        if self.stopping:
            self.stopping.restore(facts["stopping"], load_tensors(path, "best"))
        torch.set_rng_state(load_tensors(path, "random")["torch"])
        self.step, self.seconds = facts["step"], facts["seconds"]
        self.tasks_seen, self.skipped = facts["tasks_seen"], facts["skipped"]
        self.held_out = facts.get("held_out", {})  # older checkpoints have none
        if self.config.dtype == FASTER:  # as it began, whatever is faster here
            self.dtype = facts.get("dtype", self.dtype)

    def _has_checkpoints(self) -> bool:
        return self.folder is not None and any((self.folder / "checkpoints").glob("step-*"))

    def _open_folder(self) -> None:
        if self.folder is None or self.rank > 0:
            return
        if self.step == 0 and self._has_checkpoints():
            raise ConfigError(
                f"{self.folder} holds checkpoints of an earlier job. Continue it with --resume, or name another folder."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        self._log = TrainingLog(self.folder, self.step)

    def _speed(self) -> str:
        """Of the steps since this process began; nothing where there was none, or operations are not counted."""
        if not (self.config.count_operations and self.meter.seconds):
            return ""
        return f", {self.meter.total / self.meter.seconds / 1e9:.3g} GFLOP/s"

    def _write(self, values: dict[str, float]) -> None:
        if self._log:
            facts = {"tasks": self.tasks_seen, "seconds": round(self.seconds, 2), "skipped": self.skipped}
            try:
                self._log.write(self.step, facts, values)
            except OSError as error:
                raise self._cannot_write("record", error) from error


def _changed(kept: dict, own: dict) -> list[str]:
    """Names of the settings that make a job the one that it is, its network and the tasks or rows that it draws, and
    that differ.

    How it is computed, its rate and its length may change on the way. What one of them does not tell is not compared.
    """
    before, now = _identity(kept), _identity(own)
    return [name for name in now if None not in (before[name], now[name]) and now[name] != before[name]]


def _identity(facts: dict) -> dict[str, Any]:
    job, model = facts.get("job", {}), facts.get("model")
    prior = to_plain(job.get("prior", {}))
    return {
        "model": model and build_settings(ModelConfig, model, "model"),
        "seed": job.get("seed"),
        "cohort": job.get("cohort"),
        # With another share, rows that were trained on would decide when to stop.
        "finetune.held_out": job.get("finetune.held_out"),
        "classes_by_frequency": job.get("classes_by_frequency", False),
        # Not the place of its data, which differs between machines.
        "prior": {name: prior.get(name) for name in ("name", "settings")},
    }


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


def _on_signal(handler) -> dict:
    try:
        return {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    except ValueError:  # not the main thread: the caller stops us in other ways
        return {}


def _restore_signals(previous: dict) -> None:
    for number, handler in previous.items():
        signal.signal(number, handler)
