"""Events of a step-through, and the fold that turns a list of them into the present state.

A step-through *is* its list of events: undo, replay, audit and export all follow from that. Events are only added.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from l2m_core.errors import FeatureError, InputError

KINDS = ("start", "observe", "unavailable", "declined", "pending", "correct", "undo", "stop", "reopen")
STATUSES = {"unavailable": "unavailable", "declined": "declined", "pending": "pending"}
LIMITS = ("below", "above")


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    kind: str
    values: Mapping[str, Any] = field(default_factory=dict)
    """Feature → value as entered; a number that was written as text is a number here (start, observe, correct)."""
    features: tuple[str, ...] = ()
    """The features of an event without values."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Feature → "below" or "above", where the value is a detection limit."""
    suggested: str | None = None
    """What the model ranked first before the event."""
    reason: str = ""
    """In a person's words."""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    codes: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)
    """Feature → its value as x holds it, where it was checked against a cohort; no part of the record."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"There is no event '{self.kind}'. Known: {', '.join(KINDS)}.")
        for name, limit in self.limits.items():
            if limit not in LIMITS or name not in self.values:
                raise FeatureError(f"'{name}': a detection limit must be 'below' or 'above' and come with its value.")

    @property
    def about(self) -> tuple[str, ...]:
        return tuple(self.values) or self.features

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-able settings; empty fields are left out."""
        plain = {
            "kind": self.kind,
            "values": dict(self.values),
            "features": list(self.features),
            "limits": dict(self.limits),
            "suggested": self.suggested,
            "reason": self.reason,
        }
        return {"id": self.id, "at": self.at, **{k: v for k, v in plain.items() if v}}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Event:
        unknown = sorted(set(plain) - set(_SHAPES))
        if unknown:
            raise InputError(f"An event has the unknown field '{unknown[0]}'; known: {', '.join(sorted(_SHAPES))}.")
        if "kind" not in plain:
            raise InputError("An event has no 'kind'; the trace is not one that L2M wrote.")
        for name, given in plain.items():
            if not _SHAPES[name](given):
                raise InputError(f"The field '{name}' of an event holds something else than it should.")
        return cls(**{**plain, "features": tuple(plain.get("features", ()))})


def _is_text(given: Any) -> bool:
    return isinstance(given, str)


def _is_time(given: Any) -> bool:
    try:
        datetime.fromisoformat(given)
    except (TypeError, ValueError):
        return False
    return True


# What each field of an event looks like in a file.
_SHAPES: dict[str, Callable[[Any], bool]] = {
    "id": _is_text,
    "at": _is_time,
    "kind": _is_text,
    "values": lambda given: (
        isinstance(given, Mapping)
        and all(_is_text(name) and (v is None or isinstance(v, str | bool | int | float)) for name, v in given.items())
    ),
    "features": lambda given: isinstance(given, list | tuple) and all(map(_is_text, given)),
    "limits": lambda given: isinstance(given, Mapping) and all(_is_text(name) for name in given),
    "suggested": lambda given: given is None or _is_text(given),
    "reason": _is_text,
}


@dataclass(frozen=True)
class State:
    """The state of a step-through after its events."""

    values: Mapping[str, Any]
    """Feature → value as entered."""
    limits: Mapping[str, str]
    """Feature → "below" or "above", for values that are detection limits."""
    statuses: Mapping[str, str]
    """Feature → unavailable, declined or pending."""
    acquired: tuple[tuple[str, ...], ...]
    """The features of each action since the start, in order."""
    stopped: bool
    codes: Mapping[str, float]
    """Feature → its value as x holds it, of events that were checked against a cohort."""


def effective(events: Iterable[Event]) -> tuple[Event, ...]:
    """The events that are in effect: neither undone nor an undo."""
    events = tuple(events)
    undone = undone_by(events)
    return tuple(event for number, event in enumerate(events) if event.kind != "undo" and number not in undone)


def undone_by(events: Sequence[Event]) -> dict[int, int]:
    """Number of each event that was taken back → number of the undo that did it: of the last in effect, but never the start."""
    in_effect: list[int] = []
    undone = {}
    for number, event in enumerate(events):
        if event.kind != "undo":
            in_effect.append(number)
        elif len(in_effect) > 1:
            undone[in_effect.pop()] = number
    return undone


def fold(events: Iterable[Event]) -> State:
    values: dict[str, Any] = {}
    limits: dict[str, str] = {}
    statuses: dict[str, str] = {}
    acquired: list[tuple[str, ...]] = []
    codes: dict[str, float] = {}
    stopped = False
    for event in effective(events):
        if event.kind in ("start", "observe", "correct"):
            for name, value in event.values.items():
                limits.pop(name, None)
                statuses.pop(name, None)
                if value is None:
                    values.pop(name, None)
                else:
                    values[name] = value
            codes.update(event.codes)
            limits.update({name: limit for name, limit in event.limits.items() if name in values})
            if event.kind == "observe":
                acquired.append(tuple(event.values))
        elif event.kind in STATUSES:
            for name in event.features:
                values.pop(name, None)
                limits.pop(name, None)
                statuses[name] = STATUSES[event.kind]
        elif event.kind == "stop":
            stopped = True
        elif event.kind == "reopen":
            stopped = False
    known = {name: code for name, code in codes.items() if name in values}
    return State(values, limits, statuses, tuple(acquired), stopped, known)
