"""When to stop measuring: budgets in count and cost, too little left to gain, or confident enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from l2m_core.acquire.information import Outlook
from l2m_core.answering.release import Release
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, type_of
from l2m_core.metrics import entropies
from l2m_core.tables.cell_parsing import entered_text

POINT = 1.0  # of a probability, or of a hundredth of the spread of a continuous outcome: what is less changes nothing for people
OF_RARE = 0.1
"""Of a rare outcome, this share of how often it is: where one in fifty has it, a point more or less is half as many again."""
LIKELY = 0.05  # the least chance that a test carries the belief across a threshold for it to be worth having
ROUNDING = 1e-6
"""Share of a cost budget. Decimals are not kept exactly: 0.1 spent three times is a little more than 0.3."""


def least_points_for(cohort: Cohort) -> float:
    """Moves of the belief by fewer points count as none: one point, or of a rare outcome of two a tenth of its own percentage."""
    if len(cohort.class_counts) != 2:
        return POINT
    rarer = 100 * float(cohort.class_counts.min()) / len(cohort)
    return min(POINT, float(f"{OF_RARE * rarer:.2g}"))


def points_in_words(count: float) -> str:
    """'1 point', '0.2 points'."""
    return f"{count:g} point" + ("" if count == 1 else "s")


@dataclass(frozen=True)
class Stopping:
    """Rules that are None do not apply. The first that holds, in this order, gives the reason."""

    budget: int | None = None
    """Most actions."""
    cost_budget: float | None = None
    """Most cost in all."""
    least_gain: float | None = None
    """Nats; stop when the best test promises less."""
    confidence: float | None = None
    """Stop when the likeliest class is at least this likely; a continuous outcome has none."""
    most_entropy: float | None = None
    """Nats; stop when what is left to know falls below this."""
    least_points: float | None = None
    """Percentage points (of a continuous outcome, hundredths of its spread); stop when no test left is expected to move the
    belief by more."""
    threshold: float | None = None
    """Of a binary outcome, the probability from which one would act: stop when no test left is likely to carry the belief
    across it."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | np.number)):
                raise ConfigError(f"stopping.{setting.name} is {value!r}; it must be a number.")
        for name in ("budget", "cost_budget", "least_gain", "most_entropy", "least_points"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ConfigError(f"stopping.{name} is {value}; it must be zero or more.")
        if self.budget is not None and not isinstance(self.budget, int | np.integer):
            raise ConfigError(f"stopping.budget is {self.budget}; it must be a whole number of actions.")
        if self.confidence is not None and not 0 < self.confidence <= 1:
            raise ConfigError(f"stopping.confidence is {self.confidence}; it must lie between 0 and 1.")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise ConfigError(f"stopping.threshold is {self.threshold}; it must lie strictly between 0 and 1.")

    @classmethod
    def checked(cls, given: Stopping | None) -> Stopping:
        """The rules that are given; none by default."""
        if given is not None and not isinstance(given, cls):
            raise ConfigError(f"stopping is {type_of(given)}; give a Stopping, such as Stopping(budget=3).")
        return given or cls()

    @classmethod
    def at_first(cls, cohort: Cohort, release: Release) -> Stopping:
        """What a step-through begins with, and what a question over HTTP adds to: stopping is advised as soon as no test is
        expected to move the belief by what counts as a move. A model that foresees no results cannot say how far they would."""
        return cls(least_points=least_points_for(cohort)) if release.foresees else cls()

    @property
    def looks_ahead(self) -> bool:
        """Whether a rule asks what the results of tests may lead to."""
        return self.least_points is not None or self.threshold is not None

    def reached(self, prediction, best_gain: np.ndarray, taken: np.ndarray, spent: np.ndarray) -> np.ndarray:
        """(n,) bool. best_gain: nats of the best test left, -inf where none is; taken: actions so far; spent: cost so far."""
        if self.looks_ahead:
            raise ConfigError("stopping.least_points and stopping.threshold are for one patient's step-through.")
        stop = np.zeros(len(taken), dtype=bool)
        for holds, _ in self._rules(prediction, best_gain, taken, spent):
            stop |= holds
        return stop

    def reason(
        self,
        prediction,
        best_gain: float,
        taken: int,
        spent: float,
        outlooks: Sequence[Outlook] = (),
        unit: str = "",
    ) -> str | None:
        """Why to stop now, in words; None to go on. For one patient.

        outlooks: of the tests that could move the belief most; where none is known, the rules that look ahead do not apply;
        unit: of a continuous outcome.
        """
        one = (np.array([value]) for value in (best_gain, taken, spent))
        reason = next((words(0) for holds, words in self._rules(prediction, *one) if holds[0]), None)
        return reason or (self._ahead(prediction, outlooks, unit) if outlooks else None)

    def _ahead(self, prediction, outlooks: Sequence[Outlook], unit: str) -> str | None:
        """The rules about what results may lead to. With a threshold, a test that may cross it is worth having however
        little it moves the belief on average."""
        crossing = 0.0
        if self.threshold is not None and isinstance(prediction, np.ndarray) and prediction.shape[1] == 2:
            crossing = max(outlook.crossing(self.threshold) for outlook in outlooks)
            if crossing < LIKELY:
                chance = "below 1%" if crossing < 0.005 else f"{crossing:.0%} at most"
                return f"Nothing left is likely to carry this across {_as_entered(self.threshold)}: the chance is {chance}."
        moves = 100 * max(outlook.movement for outlook in outlooks)
        if self.least_points is not None and moves < self.least_points and crossing < LIKELY:
            return f"Nothing left is likely to move this by more than {_amount(self.least_points, prediction, unit)}."
        return None

    def cost_left(self, spent: float) -> float:
        """What may still be spent; infinite without a cost budget."""
        return float("inf") if self.cost_budget is None else max(0.0, self.cost_budget - spent)

    def pays_for(self, cost: float, spent: float) -> bool:
        """As `affordable`, one test of one patient."""
        return bool(self.affordable(np.array([spent]), np.array([cost]))[0, 0])

    def affordable(self, spent: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """(n, d) bool: tests that cost no more than what is left. spent: (n,); costs: (d,)."""
        budget = float("inf") if self.cost_budget is None else self.cost_budget
        return spent[:, None] + costs <= budget * (1 + ROUNDING)

    def _rules(
        self, prediction, best_gain: np.ndarray, taken: np.ndarray, spent: np.ndarray
    ) -> Iterator[tuple[np.ndarray, Callable[[int], str]]]:
        """The rules that apply, in order: for which of n patients each holds (n,), and the words for one of them."""
        if self.budget is not None:
            yield (
                taken >= self.budget,
                lambda i: f"The budget of {self.budget:,} test{'' if self.budget == 1 else 's'} is used.",
            )
        if (budget := self.cost_budget) is not None:
            yield (
                spent >= budget * (1 - ROUNDING),
                lambda i: f"The cost budget of {entered_text(budget)} is used ({entered_text(spent[i])} spent).",
            )
        yield ~np.isfinite(best_gain), lambda i: "No test is left to ask for."
        if (least := self.least_gain) is not None:
            yield (
                best_gain < least,
                lambda i: (
                    f"The best test left promises {_in_digits(best_gain[i], 2)} nats, less than the threshold of "
                    f"{_in_digits(least, 6)}."
                ),
            )
        if self.confidence is not None and isinstance(prediction, np.ndarray):
            top, asked = prediction.max(-1), self.confidence
            yield (
                top >= asked,
                lambda i: (
                    f"The likeliest outcome has reached {top[i]:.1%}, at least the {_as_entered(asked)} asked for."
                ),
            )
        if self.most_entropy is not None:
            left = entropies(prediction)
            yield (
                left <= self.most_entropy,
                lambda i: f"What is left to know ({left[i]:.3f} nats) is at most the {self.most_entropy:g} asked for.",
            )


def _in_digits(gain: float, digits: int) -> str:
    """With so many digits that count: 0.000031, not 3.1e-05; what no model tells from nothing is 0."""
    told = round(float(gain), 9) + 0.0  # no -0
    return np.format_float_positional(told, precision=digits, fractional=False, trim="-")


def _as_entered(share: float) -> str:
    """'2.5%': a limit that somebody set is no estimate to be rounded."""
    return f"{100 * share:g}%"


def _amount(count: float, prediction, unit: str) -> str:
    """So many points of a probability; hundredths of the spread of a number in the number's own unit."""
    if isinstance(prediction, np.ndarray):
        return points_in_words(count)
    # Two digits, and never as a power of ten: 200 is not 2e+02.
    amount = f"{float(f'{count / 100 * float(prediction.distribution.scale):.2g}'):,.10g}"
    return f"{amount} {unit}" if unit else amount
