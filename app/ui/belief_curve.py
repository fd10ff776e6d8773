"""How the prediction moved with every step: computed here once, drawn by the page, the HTML report and the PDF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ui import labels, posterior_words, wording
from app.ui.posterior_words import HIGH, LOW, MEAN
from l2m_core.schema import Outcome
from l2m_core.step_through.events import Event

# Of lines, with the colours .s0, .s1 … of page.css: they tell lines apart without colour. As many as a model has classes.
SIGNS = ("●", "■", "◆", "▲", "▼", "★", "✚", "✖", "○", "□")
# The same colours as the theme has them on white, since a report is for paper.
PAPER_COLOURS = (
    "#0b6b7d",
    "#7b8a92",
    "#b4540a",
    "#5b4b8a",
    "#2f7d4f",
    "#8c3b52",
    "#4a5a63",
    "#a0832a",
    "#356a9c",
    "#6b6b6b",
)

Band = Mapping[str, tuple[float, float]]  # outcome → (low, high)


@dataclass(frozen=True)
class Point:
    """One step: what was learned, and the prediction after it. low, high: the uncertainty band, where it is known."""

    learned: str
    values: Mapping[str, float]
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Line:
    """One number of the prediction, after each step. kind: of its sign and colour."""

    name: str
    values: tuple[float, ...]
    kind: int = 0

    @property
    def sign(self) -> str:
        return SIGNS[self.kind]

    @property
    def colour(self) -> str:
        return PAPER_COLOURS[self.kind]


@dataclass(frozen=True)
class BeliefCurve:
    """points: one for each step; axis: what the numbers are.

    kinds: for each line the number of its sign and colour, which it keeps whichever other lines are shown.
    numbers: of the steps, where undone ones are left out.
    """

    points: Sequence[Point]
    axis: str
    probability: bool
    kinds: Sequence[int] = ()
    numbers: Sequence[int] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        names = list(self.points[0].values) if self.points else []
        kinds = self.kinds or range(len(names))
        return tuple(
            Line(name, tuple(point.values[name] for point in self.points), kind % len(SIGNS))
            for name, kind in zip(names, kinds, strict=True)
        )

    @property
    def learned(self) -> tuple[str, ...]:
        return tuple(point.learned for point in self.points)

    @property
    def step_numbers(self) -> Sequence[int]:
        return self.numbers or range(len(self.points))

    def show(self, value: float) -> str:
        return labels.percent(value) if self.probability else labels.predicted(value)

    def show_tick(self, value: float) -> str:
        return labels.percent(value) if self.probability else labels.number(value)

    @property
    def description(self) -> str:
        """The curve in words, for people who cannot see it."""
        several = len(self.lines) > 1
        moves = [
            f"{f'{line.name} ' if several else ''}from {self.show(line.values[0])} to {self.show(line.values[-1])}"
            for line in self.lines
        ]
        return f"{self.axis} after each of {len(self.points)} steps, {'; '.join(moves)}."

    @property
    def ends(self) -> tuple[float, float]:
        """Of the vertical axis in a report: 0 and 1 for probabilities, else all values with room around them."""
        if self.probability:
            return 0.0, 1.0
        values = [value for line in self.lines for value in line.values]
        low, high = min(values), max(values)
        margin = 0.2 * (high - low) or 0.1 * abs(high) or 1.0
        return low - margin, high + margin

    def shares(self, line: Line) -> tuple[tuple[float, float], ...]:
        """The line's points in a report, as shares of the width and of the height, from the lower left."""
        low, high = self.ends
        last = max(1, len(line.values) - 1)
        return tuple((step / last, (value - low) / (high - low)) for step, value in enumerate(line.values))

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Grid lines of a report: share of the height, and the number that stands beside it."""
        low, high = self.ends
        return tuple((share, self.show(low + share * (high - low))) for share in (0.0, 0.25, 0.5, 0.75, 1.0))


def belief_curve(
    outcome: Outcome,
    events: Sequence[Event],
    posteriors: Sequence[Mapping[str, float]],
    most_lines: int,
    bands: Sequence[Band | None] = (),
    numbers: Sequence[int] = (),
) -> BeliefCurve:
    """The leading number after each event; of several classes those that were ever likely, at most `most_lines`.

    bands: the uncertainty bands of classes. A continuous outcome has its 90% interval in their place.
    """
    learned = [wording.learned(event) for event in events]
    if outcome.kind == "continuous":
        points = [
            Point(words, *({MEAN: posterior[key]} for key in (MEAN, LOW, HIGH)))
            for words, posterior in zip(learned, posteriors, strict=True)
        ]
        return BeliefCurve(points, posterior_words.name_of(outcome, MEAN), probability=False, numbers=numbers)
    if outcome.kind == "binary":
        axis, kinds = posterior_words.positive(outcome), [0]
        names = {outcome.classes[1]: axis}
    else:
        shown = posterior_words.most_believed(outcome, posteriors, most_lines)
        axis, kinds = f"Probability of {labels.plain(outcome.name)}", [outcome.classes.index(name) for name in shown]
        names = {name: labels.plain(name) for name in shown}
    points = []
    for words, posterior, band in zip(learned, posteriors, bands or [None] * len(learned), strict=True):
        ends = ({line: band[name][end] for name, line in names.items()} for end in (0, 1)) if band else ()
        points.append(Point(words, {line: posterior[name] for name, line in names.items()}, *ends))
    return BeliefCurve(points, axis, probability=True, kinds=kinds, numbers=numbers)
