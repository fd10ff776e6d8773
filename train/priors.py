"""Which prior a job draws from: a name of the registry and its settings, one prior for each kind of outcome."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from l2m_core.tasks.mixture import Prior
from l2m_core.tasks.registry import PRIORS, build_prior


@dataclass(frozen=True)
class PriorChoice:
    """A prior of `l2m_core.tasks.registry`."""

    name: str = "synthetic"
    """Its name."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings in place of its defaults. One that names the `outcome` leaves out the other kind of outcome."""


def priors_of(choice: PriorChoice) -> dict[str, Prior]:
    """{"classes": …, "continuous": …}; a prior that knows one kind of outcome only appears alone."""
    entry = PRIORS.get(choice.name)
    has_outcome = entry is not None and "outcome" in {f.name for f in dataclasses.fields(entry.config)}
    if not has_outcome or "outcome" in choice.settings:
        kind = choice.settings.get("outcome", "continuous" if choice.name == "gp" else "classes")
        return {kind: build_prior(choice.name, choice.settings)}
    kinds = ("classes", "continuous")
    return {kind: build_prior(choice.name, {**choice.settings, "outcome": kind}) for kind in kinds}
