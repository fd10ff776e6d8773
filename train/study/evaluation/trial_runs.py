"""Runs methods on one trial: each learns from the same context and acquires for the same rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from l2m_core.acquire.policies import NAMED_POLICIES
from l2m_core.acquire.rollout import Rollout, roll_out_on
from l2m_core.errors import ConfigError, L2MError, TrainingError
from l2m_core.lazy import lazy
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.methods import make_method
from l2m_core.methods.interface import find_method
from l2m_core.methods.l2m import L2MMethod
from l2m_core.plugins import is_address
from l2m_core.schema import did_you_mean
from train.study.evaluation.cells import Trial

L2M_PREFIX = "l2m"
COUNCIL_PREFIX = "l2m_council"
FAILURES = (
    L2MError,
    ArithmeticError,
    ValueError,
    LookupError,
    RuntimeError,
    TypeError,
    AttributeError,
    AssertionError,
)
"""What a method, another package's among them, may end in on some rows: it is reported, and the others go on."""


@dataclass(frozen=True)
class MethodChoice:
    """A method of the comparison. `l2m` is the model's default policy, `l2m_POLICY` another one, and `l2m_council` and
    `l2m_council_POLICY` are the same with a council fitted to the context."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pretrained(self) -> bool:
        is_policy = self.name.startswith(L2M_PREFIX + "_") and not is_address(self.name)
        return self.name == L2M_PREFIX or is_policy

    @property
    def council(self) -> bool:
        return self.name == COUNCIL_PREFIX or self.name.startswith(COUNCIL_PREFIX + "_")

    @property
    def policy(self) -> str | None:
        prefix = COUNCIL_PREFIX if self.council else L2M_PREFIX
        return self.name[len(prefix) + 1 :].replace("_", " ") or None


@dataclass(frozen=True)
class MethodRun:
    """What one method did on one trial. Seconds are of one thread's processor time."""

    method: str
    rollout: Rollout | None
    fit_seconds: float = 0.0
    query_seconds: float = 0.0
    error: str = ""


def check_methods(names: Sequence[str]) -> tuple[str, ...]:
    """Refuses a name that no method, or no policy of the model, has."""
    for name in names:
        choice = MethodChoice(name)
        if not choice.pretrained:
            find_method(name)
        elif choice.policy and choice.policy not in NAMED_POLICIES:
            prefix = COUNCIL_PREFIX if choice.council else L2M_PREFIX
            policies = [f"{prefix}_{policy.replace(' ', '_')}" for policy in NAMED_POLICIES]
            raise ConfigError(
                f"--methods: {name!r} names no policy.{did_you_mean(name, policies)} The model's own is {prefix}; others are "
                f"{', '.join(policies)}."
            )
    return tuple(names)


def work_groups(methods: Sequence[str]) -> list[tuple[str, ...]]:
    """Small pieces of work to resume from: the pretrained policies share a memory, each other method is alone."""
    pretrained = tuple(name for name in methods if MethodChoice(name).pretrained)
    return [pretrained] * bool(pretrained) + [(name,) for name in methods if name not in pretrained]


@lru_cache(maxsize=8)
def load_model(name: str) -> L2M:
    return load(name)


def run_trial(
    trial: Trial, choices: Sequence[MethodChoice], *, model: str = "general", budget: int = 8, seed: int = 0
) -> list[MethodRun]:
    """One run for each choice; a method that fails is reported with its error, and the others go on."""
    memories = _Memories(trial, model, seed)
    method_runs = []
    for choice in choices:
        try:
            method, fit_seconds = _fit(choice, trial, memories, seed)
            start = time.process_time()
            rollout = roll_out(method, trial, budget)
            method_runs.append(MethodRun(choice.name, rollout, fit_seconds, time.process_time() - start))
        except FAILURES as error:
            method_runs.append(MethodRun(choice.name, None, error=_named(error)))
    return method_runs


def scored(method_run: MethodRun, scores: Callable[[Rollout], dict[str, Any]]) -> dict[str, Any]:
    """The scores of what a method did; its error where it failed, or where what it predicted cannot be scored."""
    if method_run.rollout is None:
        return {"error": method_run.error}
    try:
        return scores(method_run.rollout)
    except FAILURES as error:
        return {"error": _named(error)}


def refuse_if_all_failed(records: Sequence[Mapping[str, Any]], page: Path) -> None:
    """A command of which nothing came says so to who called it, a script for instance."""
    failed = [record["error"] for record in records if record.get("error")]
    if failed and len(failed) == len(records):
        raise TrainingError(
            f"All {len(failed)} trials failed, the first of them with: {failed[0]} All are named in {page}."
        )


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@dataclass(frozen=True)
class _Memories:
    """Of one trial's context, with the seconds that each took: each is made at its first use."""

    trial: Trial
    model: str
    seed: int

    @lazy
    def alone(self) -> tuple[CohortMemory, float]:
        return _timed(lambda: load_model(self.model).condition(self.trial.context))

    @lazy
    def with_council(self) -> tuple[CohortMemory, float]:
        memory, read_seconds = self.alone
        blended, seconds = _timed(lambda: memory.with_council(memory.fit_council(self.seed)))
        return blended, read_seconds + seconds


def _fit(choice: MethodChoice, trial: Trial, memories: _Memories, seed: int) -> tuple[Any, float]:
    """A method that has learned from the trial's context, and the seconds that took."""
    if choice.pretrained:
        memory, seconds = memories.with_council if choice.council else memories.alone
        method = L2MMethod(seed=seed, model=memory.model, policy=choice.policy, **choice.settings)
        return method.use(memory), seconds
    return _timed(lambda: make_method(choice.name, seed=seed, **choice.settings).fit(trial.context))


def roll_out(method: Any, trial: Trial, budget: int) -> Rollout:
    """Baseline features are known at the start, for every method alike."""
    return roll_out_on(trial.context, method, trial.x, budget=budget)


def could_be_had(trial: Trial) -> np.ndarray:
    """(n, d) bool: not known at the start, and there to be asked for."""
    return ~np.isnan(trial.x) & trial.context.acquirable


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start
