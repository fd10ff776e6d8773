"""Trace: the exportable record of a step-through. JSON replays to the same posteriors; CSV has one row per step."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch

from l2m_core import __version__
from l2m_core.answering.devices import AGREEMENT, CPU, Device
from l2m_core.answering.engine import ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.answering.release import Release
from l2m_core.cohort import Cohort
from l2m_core.council.council import Council, Recipe
from l2m_core.errors import InputError
from l2m_core.step_through.events import Event, undone_by
from l2m_core.step_through.strict_json import read_json
from l2m_core.step_through.words import counted
from l2m_core.tables.spreadsheet_cells import plain_cell

FORMAT = 1
MOST_STEPS = 10_000
MEAN, STD = "mean", "std"  # of a continuous outcome, beside quantiles
SAME_DEVICE = 1e-6  # within which posteriors of one build agree on one device; of another device, within AGREEMENT


class Stepped(Protocol):
    """What a trace reads of a `Patient`."""

    @property
    def memory(self) -> ConditionedModel: ...
    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def posterior(self) -> np.ndarray | Predictive: ...
    @property
    def open_gains(self) -> dict[str, float]: ...
    @property
    def suggestion(self) -> str | None: ...
    @property
    def spent(self) -> float: ...
    def until(self, count: int) -> Self: ...


StepsOn = TypeVar("StepsOn", bound=Stepped, covariant=True)


class Replays(Protocol[StepsOn]):
    """What a trace reads of a `CohortMemory` to be replayed on it."""

    @property
    def release(self) -> Release: ...
    @property
    def cohort(self) -> Cohort: ...
    @property
    def device(self) -> Device: ...
    def replay(self, events: Sequence[Event]) -> StepsOn: ...
    def under(self, recipe: Recipe | None) -> Self: ...


@dataclass(frozen=True)
class Step:
    """An event, and what the model answered after it."""

    event: Event
    posterior: Mapping[str, float]
    """Class → probability; or mean, std and quantiles."""
    gains: Mapping[str, float]
    """Open feature → nats, best first."""
    suggested: str | None
    spent: float


@dataclass(frozen=True)
class Trace:
    """Everything that is needed to audit and to replay: steps, and by which model, cohort and software."""

    steps: tuple[Step, ...]
    model: str
    model_fingerprint: str
    cohort: str
    cohort_hash: str
    outcome: str
    versions: Mapping[str, str]
    council: Recipe | None = None
    """Of the council that was heard beside the model; None: the model answered alone."""
    device: str = CPU
    """Where the answers were computed. In a file only another than the CPU is named, as before there were others."""

    def __repr__(self) -> str:
        made = f"'{self.model}' ({self.model_fingerprint[:12]}) on '{self.cohort}'"
        return f"Trace({counted(len(self.steps), 'event')}, outcome '{self.outcome}', by {made})"

    @classmethod
    def of(cls, patient: Stepped) -> Trace:
        memory = patient.memory
        return cls(
            tuple(map(step_of, after_each_event(patient))),
            memory.release.name,
            memory.release.fingerprint,
            memory.cohort.name,
            memory.cohort.content_hash,
            memory.cohort.schema.outcome.name,
            versions(),
            memory.council.recipe if isinstance(memory.council, Council) else None,
            str(memory.device),
        )

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(step.event for step in self.steps)

    def replay(self, memory: Replays[StepsOn], tolerance: float | None = None) -> StepsOn:
        """The patient again, after checking that model and cohort are the same and that every step agrees.

        tolerance: of posteriors; None: as near as the device of then and that of now allow.
        """
        if tolerance is None:
            tolerance = SAME_DEVICE if str(memory.device) == self.device else AGREEMENT
        for what, have, want in (
            ("model", memory.release.fingerprint, self.model_fingerprint),
            ("cohort", memory.cohort.content_hash, self.cohort_hash),
        ):
            if have != want:
                raise InputError(
                    f"The trace was made with another {what} (fingerprint {want[:12]}…, here {have[:12]}…); open it "
                    f"with that {what}, or start a new step-through with its values."
                )
        patient = memory.under(self.council).replay(self.events)
        for number, (was, apart) in enumerate(zip(self.steps, self._differences_from(patient), strict=True)):
            if not apart <= tolerance * max(1.0, *map(abs, was.posterior.values())):
                raise InputError(
                    f"Step {number} replays to another posterior (largest difference {apart:.2g}); "
                    f"the trace was changed, or made by another build."
                )
        return patient

    def differences(self, memory: Replays[StepsOn]) -> tuple[float, ...]:
        """For each step, how far the posterior that this memory gives lies from the one in the trace: largest absolute
        difference; infinite where the two name different outcomes."""
        return self._differences_from(memory.under(self.council).replay(self.events))

    def _differences_from(self, patient: Stepped) -> tuple[float, ...]:
        return tuple(
            difference_from(now, step.posterior)
            for now, step in zip(after_each_event(patient), self.steps, strict=True)
        )

    # -- choices ----------------------------------------------------------------------------------------------------

    @property
    def regrets(self) -> tuple[float | None, ...]:
        """For each step, the expected gain of the suggested test minus that of the one done instead, in nats.

        0 where the suggestion was followed. A panel counts as the best of its tests. None where nothing was measured,
        or where the gain of what was measured was not known, as for a test that had been declared unavailable.
        """
        found: list[float | None] = []
        for before, step in zip((None, *self.steps), self.steps, strict=False):
            event = step.event
            done = [before.gains[name] for name in event.about if name in before.gains] if before else []
            suggested = before.gains.get(event.suggested) if before and event.suggested else None
            if event.kind != "observe" or not done or suggested is None:
                found.append(None)
            else:
                found.append(0.0 if event.suggested in event.about else suggested - max(done))
        return tuple(found)

    # -- files ------------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        plain = {
            "format": FORMAT,
            "kind": "learning-to-measure trace",
            "model": {"name": self.model, "fingerprint": self.model_fingerprint},
            "cohort": {"name": self.cohort, "hash": self.cohort_hash, "outcome": self.outcome},
            "versions": dict(self.versions),
            **({"council": self.council.to_data()} if self.council else {}),
            **({"device": self.device} if self.device != CPU else {}),
            "steps": [
                {
                    "event": step.event.to_dict(),
                    "posterior": dict(step.posterior),
                    "gains": dict(step.gains),
                    "suggested": step.suggested,
                    "spent": step.spent,
                }
                for step in self.steps
            ],
        }
        return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Trace:
        """Refuses a text that is no trace, has too many steps, or holds what no trace holds: a NaN, half a character."""
        plain = read_json(text, "The trace")
        if not isinstance(plain, dict) or plain.get("kind") != "learning-to-measure trace":
            raise InputError("This file is not a trace that L2M wrote (its 'kind' is missing).")
        if plain.get("format") != FORMAT:
            raise InputError(f"The trace has format {plain.get('format')!r}; this version reads format {FORMAT}.")
        try:
            if len(plain["steps"]) > MOST_STEPS:
                raise InputError(f"It has {len(plain['steps']):,} steps; at most {MOST_STEPS:,} are read.")
            steps = tuple(
                Step(
                    Event.from_dict(s["event"]),
                    _numbers(s["posterior"]),
                    _numbers(s["gains"]),
                    _name(s["suggested"]),
                    _numbers({"spent": s["spent"]})["spent"],
                )
                for s in plain["steps"]
            )
            if len({frozenset(step.posterior) for step in steps}) > 1:
                raise ValueError("its steps are about different outcomes")
            return cls(
                steps,
                str(plain["model"]["name"]),
                str(plain["model"]["fingerprint"]),
                str(plain["cohort"]["name"]),
                str(plain["cohort"]["hash"]),
                str(plain["cohort"]["outcome"]),
                dict(plain["versions"]),
                Recipe.from_data(plain["council"]) if "council" in plain else None,
                str(plain.get("device", CPU)),
            )
        except InputError as error:
            raise InputError(f"The trace was changed by hand, or is not one that L2M wrote. {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InputError(f"The trace is incomplete or was changed by hand: {error}.") from error

    def to_csv(self) -> str:
        """One row per step. No text begins a formula, whatever separator the file is opened with; numbers are untouched."""
        out = io.StringIO()
        writer = csv.writer(out)  # its own line ends: with others a carriage return in a text would begin a row
        outcomes = list(self.steps[0].posterior) if self.steps else []
        undone = undone_by([step.event for step in self.steps])
        head = ["step", "at", "event", "features", "values", "limits", "suggested_before", "reason", "regret", "spent"]
        tail = ["suggested_next", "gain_next", "model_fingerprint", "cohort_hash", "undone_by"]
        writer.writerow([*head, *(plain_cell(f"posterior {name}") for name in outcomes), *tail])
        for number, (step, regret) in enumerate(zip(self.steps, self.regrets, strict=True)):
            event = step.event
            values = "; ".join("taken back" if v is None else str(v) for v in event.values.values())
            cells = [
                event.at,
                event.kind,
                "; ".join(event.about),
                values,
                # As many as there are values where one has a limit, so that they stand for each other.
                "; ".join(event.limits.get(name, "") for name in event.values) if event.limits else "",
                event.suggested or "",
                event.reason,
            ]
            gain = step.gains.get(step.suggested, "") if step.suggested else ""
            writer.writerow(
                [
                    number,
                    *map(plain_cell, cells),
                    "" if regret is None else regret,
                    step.spent,
                    *(step.posterior[name] for name in outcomes),
                    plain_cell(step.suggested or ""),
                    gain,
                    self.model_fingerprint,
                    self.cohort_hash,
                    undone.get(number, ""),
                ]
            )
        return out.getvalue()


def after_each_event(patient: Stepped) -> tuple[Stepped, ...]:
    return tuple(patient.until(count) for count in range(1, len(patient.events) + 1))


def difference_from(patient: Stepped, then: Mapping[str, float]) -> float:
    """How far what is believed of a patient now lies from what was recorded."""
    if isinstance(patient.posterior, Predictive):
        # Earlier releases recorded numbers beyond what the outcome can be.
        then = {
            name: float(np.clip(value, *patient.posterior.reach)) if name != STD else value
            for name, value in then.items()
        }
    return largest_difference(summarise(patient), then)


def largest_difference(now: Mapping[str, float], then: Mapping[str, float]) -> float:
    """Between two posteriors, in absolute value; infinite where they name different outcomes."""
    if set(now) != set(then):
        return float("inf")
    return float(np.max([abs(now[name] - value) for name, value in then.items()]))


def step_of(patient: Stepped) -> Step:
    return Step(patient.events[-1], summarise(patient), patient.open_gains, patient.suggestion, patient.spent)


def summarise(patient: Stepped) -> dict[str, float]:
    """The posterior as named numbers."""
    posterior = patient.posterior
    if isinstance(posterior, np.ndarray):
        return {name: float(p) for name, p in zip(patient.memory.classes, posterior, strict=True)}
    return summarise_predictive(posterior)


def summarise_predictive(posterior: Predictive) -> dict[str, float]:
    levels = {f"{level:.0%} quantile": level for level in (0.05, 0.25, 0.5, 0.75, 0.95)}
    quantiles = {name: float(posterior.quantile(level)[0]) for name, level in levels.items()}
    return {MEAN: float(posterior.mean[0]), STD: float(posterior.std[0]), **quantiles}


def versions() -> dict[str, str]:
    return {
        "l2m": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _numbers(plain: Mapping[str, Any]) -> dict[str, float]:
    """Refuses infinities: the tolerance of a replay grows with the values, so they would agree with anything."""
    numbers = {str(key): float(value) for key, value in plain.items()}
    if not np.isfinite(list(numbers.values())).all():
        raise ValueError("a posterior, a gain or what was spent is no finite number")
    return numbers


def _name(given: Any) -> str | None:
    if not isinstance(given, str | None):
        raise ValueError("a suggestion is no name")
    return given
