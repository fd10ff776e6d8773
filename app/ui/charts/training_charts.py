"""Charts of a training job while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from app.streamlit_contact.chart_colours import CATEGORY_3
from app.ui import labels
from app.ui.charts.base import ACCENT, ATTENTION, NEUTRAL, TEXT, Chart, axis_of, layout_of

MOST_POINTS = 400  # of one line; the mean of the lines between two of them is drawn
HELD_OUT = "held_out/"
BASE = "_base"
LOOKS = (
    (ATTENTION, "solid", "circle"),
    (ACCENT, "dash", "square"),
    (CATEGORY_3, "dot", "diamond"),
    (NEUTRAL, "dashdot", "triangle-up"),
)


def training_loss(entries: Sequence[Mapping[str, Any]], steps: int) -> Chart:
    """The loss of each logged step (thin line) and the running mean (thick line)."""
    logged = [entry for entry in entries if isinstance(entry.get("loss"), int | float)]
    x, y = thinned([entry["step"] for entry in logged], [float(entry["loss"]) for entry in logged])
    smooth = pd.Series(y, dtype=float).ewm(alpha=0.1).mean().tolist()
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(x) < 20 else "lines",
            "x": x,
            "y": y,
            "opacity": 0.45,
            "line": {"color": NEUTRAL, "width": 1},
            "marker": {"size": 4},
            "name": "each log line",
            "hovertemplate": "step %{x:,}: %{y:.4f} nats<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": smooth,
            "line": {"color": ACCENT, "width": 2.5},
            "name": "running mean",
            "hovertemplate": "step %{x:,}: %{y:.4f} nats, running mean<extra></extra>",
        },
    ]
    layout = layout_of(
        280,
        xaxis=axis_of(title={"text": "step"}, range=[0, max(1, steps)]),
        yaxis=axis_of(title={"text": "training loss (nats)"}, nticks=6),
        showlegend=True,
        legend=_LEGEND,
    )
    table = pd.DataFrame({"step": x, "training loss": y, "running mean": smooth})
    now = f"now {smooth[-1]:.4f}, at first {y[0]:.4f}" if y else "nothing yet"
    alt = f"Training loss in nats over {steps:,} steps: {now}."
    return Chart(
        {"data": traces, "layout": layout}, alt, lambda: table, {"training loss": "%.4f", "running mean": "%.4f"}
    )


def held_out_loss(entries: Sequence[Mapping[str, Any]], steps: int) -> Chart | None:
    """The loss on held-out tasks or rows. Below the base rate, where there is one, something was learned."""
    looks = [entry for entry in entries if any(key.startswith(HELD_OUT) for key in entry)]
    names = list(
        dict.fromkeys(
            key.removeprefix(HELD_OUT)
            for entry in looks
            for key in entry
            if key.startswith(HELD_OUT) and not key.endswith(BASE)
        )
    )
    if not names:
        return None
    against_base = all(f"{HELD_OUT}{name}{BASE}" in looks[-1] for name in names)
    axis = "held-out loss minus base rate (nats)" if against_base else "held-out loss (nats)"
    traces, table = [], pd.DataFrame({"step": [entry["step"] for entry in looks]})
    for number, name in enumerate(names):
        values = [_held_out(entry, name, against_base) for entry in looks]
        colour, dash, sign = LOOKS[number % len(LOOKS)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [entry["step"] for entry in looks],
                "y": values,
                "name": labels.chart(name, 24),
                "line": {"color": colour, "width": 2, "dash": dash},
                "marker": {"symbol": sign, "size": 8},
                "hovertemplate": f"{labels.chart(name, 24)}, step %{{x:,}}: %{{y:.4f}} nats<extra></extra>",
            }
        )
        table[name] = values
    layout = layout_of(
        280,
        xaxis=axis_of(title={"text": "step"}, range=[0, max(1, steps)]),
        yaxis=axis_of(title={"text": axis}, nticks=6),
        showlegend=True,
        legend=_LEGEND,
        **({"shapes": [_ZERO], "annotations": [_ZERO_WORD]} if against_base else {}),
    )
    last = "; ".join(f"{name} {table[name].iloc[-1]:.4f}" for name in names)
    alt = f"{axis} at {len(looks)} looks over {steps:,} steps. Last: {last}."
    return Chart({"data": traces, "layout": layout}, alt, lambda: table, dict.fromkeys(names, "%.4f"))


def thinned(x: Sequence[int], y: Sequence[float]) -> tuple[list[int], list[float]]:
    """At most MOST_POINTS points, each the mean of those it stands for, at the last of their steps."""
    if len(x) <= MOST_POINTS:
        return list(x), list(y)
    parts = np.array_split(np.arange(len(x)), MOST_POINTS)
    values = np.asarray(y)
    return [int(x[part[-1]]) for part in parts], [float(values[part].mean()) for part in parts]


def _held_out(entry: Mapping[str, Any], name: str, against_base: bool) -> float | None:
    value = entry.get(HELD_OUT + name)
    if value is None:
        return None
    return float(value) - (float(entry.get(f"{HELD_OUT}{name}{BASE}") or 0.0) if against_base else 0.0)


_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"}
_ZERO = {
    "type": "line",
    "xref": "paper",
    "x0": 0,
    "x1": 1,
    "y0": 0,
    "y1": 0,
    "line": {"color": TEXT, "width": 1, "dash": "dot"},
}
_ZERO_WORD = {
    "xref": "paper",
    "x": 1,
    "y": 0,
    "text": "base rate",
    "showarrow": False,
    "xanchor": "right",
    "yanchor": "bottom",
    "font": {"size": 11},
}
