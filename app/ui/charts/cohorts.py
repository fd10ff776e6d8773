"""The map of recorded and missing values of a cohort."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import Chart, axis_of, layout_of

ROWS_SHOWN = 250  # cohort rows in the map of what was recorded


def recorded_map(recorded: np.ndarray, features: Sequence[str]) -> Chart:
    """recorded: (N, d) bool, which values are recorded. Rows with the same missing values are drawn together."""
    rows = np.arange(len(recorded))
    if len(rows) > ROWS_SHOWN:
        rows = np.random.default_rng(0).choice(rows, ROWS_SHOWN, replace=False)
    part = recorded[rows]
    order = np.argsort(-part.mean(axis=0), kind="stable")
    part = part[np.lexsort(part[:, order[::-1]].T)][::-1]
    heat = {
        "type": "heatmap",
        "z": part.T.astype(int).tolist(),
        "y": list(range(len(features))),
        "colorscale": [[0, "#c9a23a"], [0.5, "#c9a23a"], [0.5, "#1f4e79"], [1, "#1f4e79"]],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "ygap": 1,
        "hoverinfo": "skip",
    }
    share = recorded.mean(axis=0)
    names = labels.chart_apart(features, 22)
    ticks = [f"{name}  {labels.percent(part)}" for name, part in zip(names, share, strict=True)]
    shown = f"{len(rows):,} rows" if len(rows) == len(recorded) else f"{len(rows)} of {len(recorded):,} rows"
    layout = layout_of(
        74 + 19 * len(features),
        xaxis=axis_of(
            title={"text": f"{shown}<br>dark: recorded, light: missing"}, showticklabels=False, showgrid=False
        ),
        yaxis=axis_of(
            tickmode="array",
            tickvals=list(range(len(features))),
            ticktext=ticks,
            range=[len(features) - 0.5, -0.5],
            showgrid=False,
        ),
    )
    table = pd.DataFrame({"feature": list(features), "recorded": recorded.sum(axis=0), "share": share})
    fewest = features[int(share.argmin())]
    alt = (
        f"Which values are recorded (dark) and which are missing (light) in {shown}. "
        f"Overall {labels.percent(float(recorded.mean()))} are recorded; fewest of {fewest} "
        f"({labels.percent(float(share.min()))})."
    )
    return Chart({"data": [heat], "layout": layout}, alt, lambda: table, {"share": "percent"})
