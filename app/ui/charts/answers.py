"""What is believed: as bars, and as a density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import ACCENT, HIDDEN, NEUTRAL, TEXT, Chart, axis_of, layout_of


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
