"""How the prediction moved with every step, drawn as HTML (see html_charts.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.belief_curve import BeliefCurve, Line, Point
from app.ui.charts import pictures
from app.ui.charts.base import Chart
from app.ui.charts.html_charts import html_chart

FEWEST_STEPS = 4  # so wide is the chart at the first step already
MOST_NAMED = 9  # with more steps their numbers stand below
MOST_TICKS = 6
OF_STEPS = 2  # columns of the table of numbers


def history(curve: BeliefCurve) -> Chart:
    """One line for each outcome shown; bars span the uncertainty band."""
    points, lines, numbers = curve.points, curve.lines, curve.step_numbers
    low, high = _range(points, curve.probability)

    def up(value: float) -> float:
        """Percent of the height, from above."""
        return 100 * (high - value) / (high - low)

    def along(step: float) -> float:
        return 100 * (step + 0.5) / max(len(points), FEWEST_STEPS)

    marks = [
        f'<span class="grid" style="top:{up(tick):.1f}%"><span>{escape(curve.show_tick(tick))}</span></span>'
        for tick in _ticks(low, high, curve.probability)
    ]
    for line in lines:
        marks += _line(line, curve, along, up)
    marks += [
        f'<span class="step" style="left:{along(step):.1f}%;width:{100 / max(len(points), FEWEST_STEPS):.1f}%" '
        f'title="{escape(labels.plain(point.learned))}">'
        f"{escape(labels.short(point.learned, 24)) if len(points) <= MOST_NAMED else number}</span>"
        for step, (number, point) in enumerate(zip(numbers, points, strict=True))
    ]
    legend = "".join(
        f'<span class="s{line.kind}">{line.sign}</span> {escape(short)} '
        for line, short in zip(lines, labels.short_apart([line.name for line in lines], 20), strict=True)
    )
    name = "probability" if curve.probability else curve.axis
    title = legend if len(lines) > 1 else escape(labels.short(name, 44))
    alt = curve.description
    html = html_chart(
        "l2m-history", alt, f'<span class="title">{title}</span><span class="plot">{"".join(marks)}</span>'
    )
    columns = _columns(points, [line.name for line in lines], numbers)
    values = list(columns)[OF_STEPS:]
    formats = dict.fromkeys(values, "percent") if curve.probability else {}
    ticks = [(tick, curve.show_tick(tick)) for tick in _ticks(low, high, curve.probability)]
    svg = partial(pictures.lines, curve, (low, high), ticks)
    return Chart(html, alt, lambda: pd.DataFrame(columns), formats, svg)


def _line(line: Line, curve: BeliefCurve, along: Callable[[float], float], up: Callable[[float], float]) -> list[str]:
    """A line as the outline of its thickness, a bar for each band, a sign at each step."""
    positions = [(along(step), up(value)) for step, value in enumerate(line.values)]
    above = [f"{x:.1f}% calc({y:.1f}% - 1px)" for x, y in positions]
    below = [f"{x:.1f}% calc({y:.1f}% + 1px)" for x, y in reversed(positions)]
    marks = []
    if len(positions) > 1:
        outline = ",".join([*above, *below])
        marks.append(f'<span class="line s{line.kind}" style="clip-path:polygon({outline})"></span>')
    for number, point, (x, y) in zip(curve.step_numbers, curve.points, positions, strict=True):
        words = f"step {number}: {point.learned}, {curve.show(point.values[line.name])}"
        if point.low and point.high and line.name in point.low:
            low, high = point.low[line.name], point.high[line.name]
            top, bottom = up(high), up(low)
            style = f"left:{x:.1f}%;top:{top:.1f}%;height:{bottom - top:.1f}%"
            marks.append(f'<span class="band s{line.kind}" style="{style}"></span>')
            words += f" ({curve.show(low)} to {curve.show(high)})"
        marks.append(
            f'<span class="point s{line.kind}" style="left:{x:.1f}%;top:{y:.1f}%" '
            f'title="{escape(labels.plain(words))}">{line.sign}</span>'
        )
    return marks


def _columns(points: Sequence[Point], series: Sequence[str], numbers: Sequence[int]) -> dict[str, Any]:
    """The first OF_STEPS say which step it is; those that follow, what was believed then."""
    columns: dict[str, Any] = {"step": list(numbers), "learned": [point.learned for point in points]}
    for name in series:
        columns[labels.as_column(name, columns)] = [point.values[name] for point in points]
        for end, values in (("low", [point.low for point in points]), ("high", [point.high for point in points])):
            found = [(value or {}).get(name, np.nan) for value in values]
            columns[labels.as_column(f"{name}, {end}", columns)] = found
    return columns


def _range(points: Sequence[Point], probability: bool) -> tuple[float, float]:
    """The range of all values drawn; at least 30 percentage points, so that small moves do not look large."""
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
