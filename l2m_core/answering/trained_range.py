"""What a model was trained on, and what is said of a cohort that lies outside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from l2m_core.answering.context_rows import MOST_ROWS
from l2m_core.answering.settings import check_number
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError

LARGEST_OUTCOME = 1e15  # beyond it, sums of squares and the ends of a predictive distribution may overflow
WITHIN = "Rows, features and classes are within the range that the model was trained on."
OUTCOMES = ("binary", "multiclass", "continuous")


@dataclass(frozen=True)
class TrainedRange:
    """What the model was trained on; outside it answers come with a warning."""

    features: int = 40
    """Most features of a training task."""
    context_rows: int = 2000
    """Most context rows of a training task."""
    classes: int = 10
    """Most classes; an outcome with more is refused."""
    outcomes: tuple[str, ...] = OUTCOMES
    """Kinds of outcome; others are refused."""

    def __post_init__(self) -> None:
        for name in ("features", "context_rows", "classes"):
            check_number(name, getattr(self, name), int, 1, math.inf)
        if not self.outcomes or not set(self.outcomes) <= set(OUTCOMES):
            raise ConfigError(f"outcomes is {self.outcomes!r}; it must name some of {', '.join(OUTCOMES)}.")

    @property
    def most_rows(self) -> int:
        """Rows of a cohort that are read together, at most, unless a release says otherwise."""
        return max(MOST_ROWS, self.context_rows)

    @property
    def sizes(self) -> dict[str, int]:
        """The largest of each size, by what it counts."""
        return {"features": self.features, "context rows": self.context_rows, "classes": self.classes}

    @property
    def sentence(self) -> str:
        largest = ", ".join(f"{most:,} {what}" for what, most in self.sizes.items())
        return f"Trained for up to {largest}; outcomes: {', '.join(self.outcomes)}."

    def check(self, cohort: Cohort, model: str, together: int | None = None) -> tuple[str, ...]:
        """One sentence for each way in which the cohort lies outside the range. An outcome that the model cannot answer
        for is refused. model: its name, for the sentences; together: how many rows it reads together, at most."""
        if cohort.n_classes > self.classes:
            raise CohortError(
                f"Outcome '{cohort.schema.outcome.name}' has {cohort.n_classes} classes; model '{model}' supports "
                f"at most {self.classes}. Merge rare classes."
            )
        if cohort.kind not in self.outcomes:
            raise CohortError(
                f"Model '{model}' was not trained for a {cohort.kind} outcome ({', '.join(self.outcomes)} only)."
            )
        largest = float(abs(cohort.y).max()) if cohort.kind == "continuous" else 0.0
        if largest > LARGEST_OUTCOME:
            raise CohortError(
                f"Outcome '{cohort.schema.outcome.name}' holds {largest:g}; numbers up to {LARGEST_OUTCOME:g} can be "
                f"predicted. Correct the value, or give the outcome in a larger unit."
            )
        sizes = {"features": len(cohort.names), "context rows": min(len(cohort), together or self.most_rows)}
        return tuple(
            f"The cohort has {have:,} {what}, {have / self.sizes[what]:.1f} times the {self.sizes[what]:,} that model "
            f"'{model}' was trained on; its answers may be worse than measured."
            for what, have in sizes.items()
            if have > self.sizes[what]
        )
