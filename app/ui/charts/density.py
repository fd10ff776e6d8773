"""The predictive density of a continuous outcome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import ACCENT, HIDDEN, NEUTRAL, Chart, axis_of, layout_of


def density(
    grid: Sequence[float],
    now: Sequence[float],
    before: Sequence[float] | None,
    interval: tuple[float, float],
    median: float,
    outcome: str,
    unit: str,
) -> Chart:
    """Predictive density of a continuous outcome; the 90% interval is marked, the step before is dotted."""
    where = [value for value in grid if interval[0] <= value <= interval[1]]
    inside = [float(np.interp(value, grid, now)) for value in where]
    hover = f"%{{x:.4g}} {labels.chart(unit)}<extra></extra>"
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": where,
            "y": inside,
            "fill": "tozeroy",
            "line": {"width": 0},
            "fillcolor": "rgba(128,160,170,0.28)",
            "hoverinfo": "skip",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": list(grid),
            "y": list(now),
            "line": {"color": ACCENT, "width": 2},
            "hovertemplate": hover,
        },
    ]
    if before is not None:
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": list(grid),
                "y": list(before),
                "hoverinfo": "skip",
                "line": {"color": NEUTRAL, "width": 1.5, "dash": "dot"},
            }
        )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": [median],
            "y": [0.0],
            "cliponaxis": False,
            "marker": {"symbol": "triangle-up", "size": 12, "color": ACCENT},
            "hovertemplate": "median " + hover,
        }
    )
    title = labels.chart(labels.name_with_unit(outcome, unit), 40)
    layout = layout_of(150, xaxis=axis_of(title={"text": title}), yaxis={**HIDDEN, "rangemode": "tozero"})
    columns = {outcome: list(grid), "density": list(now)}
    if before is not None:
        columns["density a step ago"] = list(before)
    words = [labels.with_unit(labels.number(value), unit) for value in (median, *interval)]
    alt = f"Predicted {outcome}: median {words[0]}, 90% of patients like this between {words[1]} and {words[2]}."
    return Chart({"data": traces, "layout": layout}, alt, lambda: pd.DataFrame(columns))
