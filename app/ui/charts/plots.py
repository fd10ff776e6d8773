"""Lines and points over two axes as SVG: the evidence's charts on paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.ui import labels
from app.ui.belief_curve import PAPER_COLOURS, SIGNS
from app.ui.charts.pictures import FAINT, INK, WIDTH, picture, stroke, words

LEFT, RIGHT, TOP, BOTTOM = 70.0, WIDTH - 20.0, 34.0, 250.0
LINE_OF_LEGEND = 20


@dataclass(frozen=True)
class Series:
    """Points, and perhaps an interval of each; drawn as a line, with a sign at each point unless there are many."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def plot(
    series: Sequence[Series],
    across: str,
    up: str,
    alt: str,
    level: tuple[float, str] | None = None,
    diagonal: bool = False,
) -> str:
    """level: a dotted horizontal line, and its name; diagonal: from (0, 0) to (1, 1)."""
    xs = [x for each in series for x in each.x] + ([0.0, 1.0] if diagonal else [])
    ys = [y for each in series for y in (*each.y, *each.low, *each.high)] + ([level[0]] if level else [])
    ys += [0.0, 1.0] if diagonal else []
    across_ticks, up_ticks = ticks(xs), ticks(ys)

    def at(x: float, y: float) -> tuple[float, float]:
        left, right, low, high = across_ticks[0], across_ticks[-1], up_ticks[0], up_ticks[-1]
        return LEFT + (RIGHT - LEFT) * (x - left) / (right - left), BOTTOM - (BOTTOM - TOP) * (y - low) / (high - low)

    marks = [words(LEFT, 14, up), words(RIGHT, BOTTOM + 38, across, "end")]
    for tick in up_ticks:
        y = at(across_ticks[0], tick)[1]
        marks += [stroke(LEFT, y, RIGHT, y, FAINT), words(LEFT - 8, y, f"{tick:g}", "end")]
    for tick in across_ticks:
        marks.append(words(at(tick, up_ticks[0])[0], BOTTOM + 18, f"{tick:g}", "middle"))
    if level is not None:
        y = at(across_ticks[0], level[0])[1]
        marks += [stroke(LEFT, y, RIGHT, y, INK, 1, "2 3"), words(RIGHT, y - 9, level[1], "end")]
    if diagonal:
        (left, bottom), (right, top) = at(0, 0), at(1, 1)
        marks.append(stroke(left, bottom, right, top, INK, 1, "2 3"))
    for number, each in enumerate(series):
        marks += _drawn(each, number, at)
        sign, colour = SIGNS[number % len(SIGNS)], PAPER_COLOURS[number % len(PAPER_COLOURS)]
        if len(series) > 1:
            marks.append(words(LEFT, BOTTOM + 62 + LINE_OF_LEGEND * number, f"{sign} {each.name}", colour=colour))
    below = LINE_OF_LEGEND * len(series) if len(series) > 1 else 0
    return picture(BOTTOM + 56 + below, marks, alt)


def _drawn(series: Series, number: int, at) -> list[str]:
    sign, colour = SIGNS[number % len(SIGNS)], PAPER_COLOURS[number % len(PAPER_COLOURS)]
    known = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    points = [at(x, y) for x, y in known]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for x, low, high in zip(series.x, series.low, series.high, strict=False):
        if math.isfinite(low) and math.isfinite(high):
            (left, bottom), (right, top) = at(x, low), at(x, high)
            marks.append(stroke(left, bottom, right, top, colour))
    every = max(1, len(points) // 12)
    marks += [words(x, y, sign, "middle", colour) for x, y in points[::every]]
    return marks


def ticks(values: Sequence[float]) -> list[float]:
    """Round numbers, about five of them, that reach from below the smallest value to above the largest."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    reach = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(reach / 4))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor * 5 >= reach)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def series_of(name: str, x: Sequence[float], estimates) -> Series:
    return Series(
        labels.plain(name), x, [e.value for e in estimates], [e.low for e in estimates], [e.high for e in estimates]
    )
