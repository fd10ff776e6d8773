"""How likely a continuous outcome lies in each of many ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import ACCENT, NEUTRAL, Chart, axis_of, layout_of

RANGES = 30


def ranges(low: float, high: float, whole: bool) -> list[float]:
    """Ascending edges of about RANGES ranges of one width, which reach from low to high.

    whole: the outcome is a whole number, of which each range holds as many as another, and the first one begins with `low`.
    """
    if not whole:
        width = (high - low) / RANGES or 1.0
        return [low + width * number for number in range(RANGES + 1)]
    width, first = max(1, math.ceil((high - low + 1) / RANGES)), math.floor(low)
    return [first - 0.5 + width * number for number in range(math.ceil((high - first + 1) / width) + 1)]


def density(
    edges: Sequence[float],
    now: Sequence[float],
    before: Sequence[float] | None,
    interval: tuple[float, float],
    mean: float,
    outcome: str,
    unit: str,
) -> Chart:
    """The chance of each range as the height of a step; the 90% interval is shaded, the step before is dotted.

    edges: one more than chances; what lies beyond them counts to the first and the last range. A density would be as high as you
    like where many patients share a value; a chance is what it is.
    """
    words = [labels.with_unit(labels.predicted(value), unit) for value in (mean, *interval)]
    shaded = [*(edge for edge in edges if interval[0] < edge < interval[1]), *interval]
    hover = [_hover(low, high, chance, unit) for low, high, chance in zip(edges, edges[1:], now, strict=False)]
    traces: list[dict[str, Any]] = [
        {
            **_outline(sorted(shaded), [now[_range_at(edges, middle)] for middle in _middles(sorted(shaded))]),
            "fill": "tozeroy",
            "line": {"width": 0},
            "fillcolor": "rgba(128,160,170,0.28)",
            "hoverinfo": "skip",
        },
        {**_outline(edges, now), "line": {"color": ACCENT, "width": 2}, "hoverinfo": "skip"},
    ]
    if before is not None:
        dotted = {"color": NEUTRAL, "width": 1.5, "dash": "dot"}
        traces.append({**_outline(edges, before), "line": dotted, "hoverinfo": "skip"})
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": list(_middles(edges)),
            "y": list(now),
            "marker": {"size": 3, "color": ACCENT},
            "customdata": hover,
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [mean],
            "y": [0.0],
            "cliponaxis": False,
            "marker": {"symbol": "triangle-up", "size": 12, "color": ACCENT},
            "hovertemplate": f"mean {labels.chart(words[0])}<extra></extra>",
        }
    )
    title = labels.chart(labels.name_with_unit(outcome, unit), 40)
    chances = axis_of(title={"text": "chance"}, tickformat=".0%", rangemode="tozero", nticks=4)
    layout = layout_of(150, xaxis=axis_of(title={"text": title}), yaxis=chances)
    columns = {f"{outcome}, from": edges[:-1], f"{outcome}, to": edges[1:], "chance": list(now)}
    formats = {"chance": "percent"}
    if before is not None:
        columns["chance a step ago"], formats["chance a step ago"] = list(before), "percent"
    likeliest = int(np.argmax(now))
    alt = (
        f"Chance of each range of {outcome}: mean {words[0]}, 90% of patients like this between {words[1]} and {words[2]}; "
        f"the likeliest range is {_hover(edges[likeliest], edges[likeliest + 1], now[likeliest], unit)}."
    )
    return Chart({"data": traces, "layout": layout}, alt, lambda: pd.DataFrame(columns), formats)


def _outline(edges: Sequence[float], heights: Sequence[float]) -> dict[str, Any]:
    """From the floor up, along each range at its height, and down again."""
    across = [edge for edge in edges for _ in (0, 1)]
    up = [0.0, *(height for height in heights for _ in (0, 1)), 0.0]
    return {"type": "scatter", "mode": "lines", "x": across, "y": up}


def _middles(edges: Sequence[float]) -> list[float]:
    return [(low + high) / 2 for low, high in zip(edges, edges[1:], strict=False)]


def _range_at(edges: Sequence[float], value: float) -> int:
    """In which range a value lies; of one beyond all, the nearest."""
    return int(np.clip(np.searchsorted(edges, value) - 1, 0, len(edges) - 2))


def _hover(low: float, high: float, chance: float, unit: str) -> str:
    ends = f"{labels.number(low)} to {labels.number(high)}"
    return f"{labels.chart(labels.with_unit(ends, unit))}: {labels.percent(chance)}"
