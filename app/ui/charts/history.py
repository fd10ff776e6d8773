"""How the answer moved with every step; as HTML, see marks.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import Chart
from app.ui.charts.html_marks import picture

# Of lines, with the colours .s0, .s1 … of page.css: they tell lines apart without colour. As many as a model has classes.
SIGNS = ("●", "■", "◆", "▲", "▼", "★", "✚", "✖", "○", "□")
FEWEST_STEPS = 4  # so wide is the chart at the first step already
MOST_NAMED = 9  # with more steps their numbers stand below
MOST_TICKS = 6


@dataclass(frozen=True)
class Point:
    """One step of a history: what was learned, and the answer after it. low, high: the band, where it is known."""

    learned: str
    values: Mapping[str, float]
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None


def history(
    points: Sequence[Point], axis: str, probability: bool, kinds: Sequence[int] = (), numbers: Sequence[int] = ()
) -> Chart:
    """One line for each outcome shown; bars span the uncertainty band. kinds: of each line, the number of its sign and
    colour, where a line should keep them whichever others are shown; numbers: of the steps, where some are left out."""
    series = list(points[0].values) if points else []
    kinds = [kind % len(SIGNS) for kind in kinds or range(len(series))]
    numbers = numbers or range(len(points))
    show = labels.percent if probability else labels.number
    low, high = _range(points, probability)

    def up(value: float) -> float:
        """Percent of the height, from above."""
        return 100 * (high - value) / (high - low)

    def along(step: float) -> float:
        return 100 * (step + 0.5) / max(len(points), FEWEST_STEPS)

    marks = [
        f'<span class="grid" style="top:{up(tick):.1f}%"><span>{escape(show(tick))}</span></span>'
        for tick in _ticks(low, high, probability)
    ]
    for kind, name in zip(kinds, series, strict=True):
        marks += _line(kind, name, points, numbers, show, along, up)
    marks += [
        f'<span class="step" style="left:{along(step):.1f}%;width:{100 / max(len(points), FEWEST_STEPS):.1f}%" '
        f'title="{escape(labels.plain(point.learned))}">'
        f"{escape(labels.short(point.learned, 24)) if len(points) <= MOST_NAMED else number}</span>"
        for step, (number, point) in enumerate(zip(numbers, points, strict=True))
    ]
    legend = "".join(
        f'<span class="s{kind}">{SIGNS[kind]}</span> {escape(labels.short(name, 20))} '
        for kind, name in zip(kinds, series, strict=True)
    )
    title = legend if len(series) > 1 else escape(labels.short("probability" if probability else axis, 44))
    moves = [
        f"{f'{name} ' if len(series) > 1 else ''}from {show(points[0].values[name])} to {show(points[-1].values[name])}"
        for name in series
    ]
    alt = f"{axis} after each of {len(points)} steps, {'; '.join(moves)}."
    html = picture("l2m-history", alt, f'<span class="title">{title}</span><span class="plot">{"".join(marks)}</span>')
    columns = _columns(points, series, numbers)
    values = [column for column in columns if column not in ("step", "learned")]
    return Chart(html, alt, lambda: pd.DataFrame(columns), dict.fromkeys(values, "percent") if probability else {})


def _line(
    kind: int,
    name: str,
    points: Sequence[Point],
    numbers: Sequence[int],
    show: Callable[[float], str],
    along: Callable[[float], float],
    up: Callable[[float], float],
) -> list[str]:
    """A series: the line as the outline of its thickness, a bar for each band, a sign at each step."""
    places = [(along(step), up(point.values[name])) for step, point in enumerate(points)]
    above = [f"{x:.1f}% calc({y:.1f}% - 1px)" for x, y in places]
    below = [f"{x:.1f}% calc({y:.1f}% + 1px)" for x, y in reversed(places)]
    found = []
    if len(points) > 1:
        found.append(f'<span class="line s{kind}" style="clip-path:polygon({",".join([*above, *below])})"></span>')
    for number, point, (x, y) in zip(numbers, points, places, strict=True):
        words = f"step {number}: {point.learned}, {show(point.values[name])}"
        if point.low and point.high and name in point.low:
            top, bottom = up(point.high[name]), up(point.low[name])
            found.append(
                f'<span class="band s{kind}" style="left:{x:.1f}%;top:{top:.1f}%;height:{bottom - top:.1f}%"></span>'
            )
            words += f" ({show(point.low[name])} to {show(point.high[name])})"
        found.append(
            f'<span class="point s{kind}" style="left:{x:.1f}%;top:{y:.1f}%" title="{escape(labels.plain(words))}">'
            f"{SIGNS[kind]}</span>"
        )
    return found


def _columns(points: Sequence[Point], series: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
    columns: dict[str, Any] = {"step": list(numbers), "learned": [point.learned for point in points]}
    for name in series:
        columns[name] = [point.values[name] for point in points]
        columns[f"{name}, low"] = [(point.low or {}).get(name, np.nan) for point in points]
        columns[f"{name}, high"] = [(point.high or {}).get(name, np.nan) for point in points]
    return columns


def _range(points: Sequence[Point], probability: bool) -> tuple[float, float]:
    """All that is drawn; of probabilities at least 30 points, so that small moves neither vanish nor look large."""
    values = [
        value for point in points for part in (point.values, point.low, point.high) for value in (part or {}).values()
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    if not probability:
        margin = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
        return low - margin, high + margin
    widen = max(0.0, 0.3 - (high - low)) / 2
    low, high = low - widen, high + widen
    shift = max(0.0, -low) - max(0.0, high - 1.0)
    return low + shift - 0.03, high + shift + 0.03


def _ticks(low: float, high: float, probability: bool) -> list[float]:
    """Round numbers between the ends, at most MOST_TICKS; nothing is 0, never -0."""
    decade = 10.0 ** np.floor(np.log10((high - low) / MOST_TICKS))
    apart = next(step * decade for step in (1, 2, 5, 10) if (high - low) / (step * decade) <= MOST_TICKS)
    ticks = [float(tick) for tick in np.arange(np.ceil(low / apart), np.floor(high / apart) + 1) * apart]
    return [round(tick, 10) + 0.0 for tick in ticks if not probability or -1e-9 <= tick <= 1 + 1e-9]
