"""What is believed: as bars, as a density, and as it moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import ACCENT, ATTENTION, HIDDEN, NEUTRAL, TEXT, Chart, axis_of, layout_of


def class_bars(
    probabilities: Mapping[str, float], before: Mapping[str, float] | None = None,
    band: Mapping[str, tuple[float, float]] | None = None,
) -> Chart:  # fmt: skip
    """Probability of each class; a hollow mark where it was a step ago, a line for the uncertainty band."""
    names = list(probabilities)
    values = list(probabilities.values())
    axis_names = [labels.chart(name, 24) for name in names]
    bars: dict[str, Any] = {
        "type": "bar", "orientation": "h", "y": axis_names, "x": values, "marker": {"color": ACCENT}, "width": 0.55,
        "text": [labels.percent(value) for value in values], "textposition": "outside", "cliponaxis": False,
        "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
    }  # fmt: skip
    columns: dict[str, Any] = {"outcome": names, "probability": values, "of 100": [round(100 * v) for v in values]}
    if band:
        low, high = (np.array([band[name][i] for name in names]) for i in (0, 1))
        bars["error_x"] = {
            "type": "data", "symmetric": False, "array": (high - values).tolist(),
            "arrayminus": (np.array(values) - low).tolist(), "color": TEXT, "thickness": 1.5, "width": 4,
        }  # fmt: skip
        bars["textposition"] = "none"
        columns |= {"low": low, "high": high}
    traces = [bars]
    if before:
        traces.append(
            {
                "type": "scatter", "mode": "markers", "y": axis_names, "x": [before[name] for name in names],
                "marker": {"symbol": "diamond-open", "size": 9, "color": TEXT, "line": {"width": 1.5}},
                "hovertemplate": "a step ago: %{x:.1%}<extra></extra>",
            }
        )  # fmt: skip
        columns["a step ago"] = [before[name] for name in names]
    layout = layout_of(
        40 + 26 * len(names),
        xaxis=axis_of(range=[0, 1.08], tickformat=".0%", title={"text": "probability"}),
        yaxis=axis_of(autorange="reversed"),
    )
    likeliest = max(probabilities, key=lambda name: probabilities[name])
    alt = f"Probability of each of {len(names)} outcomes; likeliest is {likeliest} with {labels.percent(max(values))}."
    formats = {name: "percent" for name in ("probability", "low", "high", "a step ago")}
    return Chart({"data": traces, "layout": layout}, alt, lambda: pd.DataFrame(columns), formats)


def density(
    grid: Sequence[float], now: Sequence[float], before: Sequence[float] | None, interval: tuple[float, float],
    median: float, outcome: str, unit: str,
) -> Chart:  # fmt: skip
    """Predictive density of a continuous outcome; the 90% interval is marked, the step before is dotted."""
    where = [value for value in grid if interval[0] <= value <= interval[1]]
    inside = [float(np.interp(value, grid, now)) for value in where]
    hover = f"%{{x:.4g}} {labels.chart(unit)}<extra></extra>"
    traces: list[dict[str, Any]] = [
        {"type": "scatter", "mode": "lines", "x": where, "y": inside, "fill": "tozeroy", "line": {"width": 0},
         "fillcolor": "rgba(128,160,170,0.28)", "hoverinfo": "skip"},
        {"type": "scatter", "mode": "lines", "x": list(grid), "y": list(now), "line": {"color": ACCENT, "width": 2},
         "hovertemplate": hover},
    ]  # fmt: skip
    if before is not None:
        traces.append({"type": "scatter", "mode": "lines", "x": list(grid), "y": list(before), "hoverinfo": "skip",
                       "line": {"color": NEUTRAL, "width": 1.5, "dash": "dot"}})  # fmt: skip
    traces.append({"type": "scatter", "mode": "markers", "x": [median], "y": [0.0], "cliponaxis": False,
                   "marker": {"symbol": "triangle-up", "size": 12, "color": ACCENT},
                   "hovertemplate": "median " + hover})  # fmt: skip
    title = labels.chart(labels.with_unit(outcome, f"({unit})" if unit else ""), 40)
    layout = layout_of(150, xaxis=axis_of(title={"text": title}), yaxis={**HIDDEN, "rangemode": "tozero"})
    columns = {outcome: list(grid), "density": list(now)}
    if before is not None:
        columns["density a step ago"] = list(before)
    words = [labels.with_unit(labels.number(value), unit) for value in (median, *interval)]
    alt = f"Predicted {outcome}: median {words[0]}, 90% of patients like this between {words[1]} and {words[2]}."
    return Chart({"data": traces, "layout": layout}, alt, lambda: pd.DataFrame(columns))


@dataclass(frozen=True)
class Point:
    """One step of a history: what was learned, and the answer after it. low, high: the band, where it is known."""

    learned: str
    values: Mapping[str, float]
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None


def history(points: Sequence[Point], axis: str, probability: bool) -> Chart:
    """How the answer moved with every step. One line for each outcome shown; bars span the uncertainty band."""
    series = list(points[0].values) if points else []
    steps = list(range(len(points)))
    colours, dashes = (ACCENT, NEUTRAL, ATTENTION), ("solid", "dash", "dot", "dashdot")
    signs = ("circle", "square", "diamond", "triangle-up")
    traces = []
    for number, name in enumerate(series):
        values = [point.values[name] for point in points]
        colour = colours[number % len(colours)]
        trace: dict[str, Any] = {
            "type": "scatter", "mode": "lines+markers", "x": steps, "y": values, "name": labels.chart(name, 20),
            "line": {"color": colour, "width": 2, "dash": dashes[number % len(dashes)]},
            "marker": {"symbol": signs[number % len(signs)], "size": 7},
            "customdata": [labels.chart(point.learned, 40) for point in points],
            "hovertemplate": "step %{x}: %{customdata}<br>" + ("%{y:.1%}" if probability else "%{y:.4g}")
            + "<extra></extra>",
        }  # fmt: skip
        bounds = [
            (point.values[name] - point.low[name], point.high[name] - point.values[name])
            if point.low and point.high and name in point.low else (0.0, 0.0)
            for point in points
        ]  # fmt: skip
        if any(sum(bound) for bound in bounds):
            trace["error_y"] = {
                "type": "data", "symmetric": False, "array": [b[1] for b in bounds],
                "arrayminus": [b[0] for b in bounds], "color": colour, "thickness": 1, "width": 3,
            }  # fmt: skip
        traces.append(trace)
    few, slanted = len(points) <= 9, 4 < len(points) <= 9
    ticks = [labels.chart(point.learned, 11 if len(points) > 5 else 16) for point in points]
    layout = layout_of(
        190,
        xaxis=axis_of(tickmode="array", tickvals=steps, ticktext=ticks if few else [str(s) for s in steps],
                    range=[-0.4, max(len(points), 4) - 0.6], tickangle=-30 if slanted else 0, automargin=False),
        yaxis=axis_of(title={"text": "probability" if probability else labels.chart(axis, 26)}, automargin=not probability,
                    **({"range": _probability_range(points), "tickformat": ".0%", "nticks": 6} if probability else {})),
        showlegend=len(series) > 1,
        legend={"orientation": "h", "y": 1.15, "x": 0},
        # Said beforehand: to find them by itself, Plotly draws a chart twice.
        margin={"l": 62 if probability else 8, "r": 8, "t": 26 if len(series) > 1 else 8, "b": 54 if slanted else 26},
    )  # fmt: skip
    columns: dict[str, Any] = {"step": steps, "learned": [point.learned for point in points]}
    for name in series:
        columns[name] = [point.values[name] for point in points]
        columns[f"{name}, low"] = [(point.low or {}).get(name, np.nan) for point in points]
        columns[f"{name}, high"] = [(point.high or {}).get(name, np.nan) for point in points]
    show = labels.percent if probability else labels.number
    ends = [f"{show(points[i].values[series[0]])}" for i in (0, -1)] if points else ["", ""]
    alt = f"{axis} after each of {len(points)} steps, from {ends[0]} to {ends[1]}."
    numbers = [column for column in columns if column not in ("step", "learned")]
    formats = dict.fromkeys(numbers, "percent") if probability else {}
    return Chart({"data": traces, "layout": layout}, alt, lambda: pd.DataFrame(columns), formats)


def _probability_range(points: Sequence[Point]) -> list[float]:
    """All that is drawn, and at least 30 points of it, so that small moves neither vanish nor look large."""
    values = [
        value for point in points for part in (point.values, point.low, point.high) for value in (part or {}).values()
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    widen = max(0.0, 0.3 - (high - low)) / 2
    low, high = low - widen, high + widen
    shift = max(0.0, -low) - max(0.0, high - 1.0)
    return [low + shift - 0.03, high + shift + 0.03]
