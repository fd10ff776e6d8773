"""Two step-throughs in one chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from app.ui import labels
from app.ui.charts.base import ACCENT, ATTENTION, Chart, axis_of, layout_of


@dataclass(frozen=True)
class Path:
    """How one number moved in one step-through. positions: of the points along the horizontal axis."""

    name: str
    positions: Sequence[float]
    values: Sequence[float]
    learned: Sequence[str]


def two_histories(paths: Sequence[Path], across: str, axis: str, probability: bool) -> Chart:
    """One line for each step-through; lines differ in colour, dash and sign."""
    show = labels.percent if probability else labels.predicted
    traces = []
    for path, colour, dash, sign in zip(
        paths, (ACCENT, ATTENTION), ("solid", "dash"), ("circle", "square"), strict=False
    ):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": list(path.positions),
                "y": list(path.values),
                "name": labels.chart(path.name, 40),
                "line": {"color": colour, "width": 2, "dash": dash, "shape": "hv"},
                "marker": {"symbol": sign, "size": 8},
                "customdata": [labels.chart(text, 40) for text in path.learned],
                "hovertemplate": "%{customdata}<br>"
                + ("%{y:.1%}" if probability else "%{y:,.4~r}")
                + "<extra></extra>",
            }
        )
    furthest = max((position for path in paths for position in path.positions), default=0)
    span = furthest or 1
    whole = all(float(position).is_integer() for path in paths for position in path.positions) and furthest <= 12
    layout = layout_of(
        300,
        xaxis=axis_of(title={"text": across}, range=[-0.03 * span, 1.03 * span], **({"dtick": 1} if whole else {})),
        yaxis=axis_of(
            title={"text": labels.chart(axis, 40)},
            **({"range": [-0.03, 1.03], "tickformat": ".0%"} if probability else {}),
        ),
        showlegend=True,
        legend={"orientation": "h", "y": 1.12, "x": 0},
    )
    believed = labels.as_column(axis, ("step-through", across, "learned"))
    table = pd.concat(
        [
            pd.DataFrame(
                {"step-through": path.name, across: path.positions, "learned": path.learned, believed: path.values}
            )
            for path in paths
        ],
        ignore_index=True,
    )
    ends = "; ".join(f"{path.name}: {show(path.values[0])} to {show(path.values[-1])}" for path in paths)
    return Chart(
        {"data": traces, "layout": layout},
        f"{axis} by {across}. {ends}.",
        lambda: table,
        {believed: "percent"} if probability else {},
    )
