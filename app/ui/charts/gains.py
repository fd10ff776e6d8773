"""What each test promises, features × steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import TEXT, Chart, axis_of, layout_of, room_for

STATUS_SIGNS = {"known": "●", "unavailable": "✕", "declined": "–", "pending": "…"}
SUGGESTED = "★"
LEGEND = f"{SUGGESTED} suggested then · " + " · ".join(f"{sign} {status}" for status, sign in STATUS_SIGNS.items())
LEAST_BAR = 120  # pixels of the colour bar; with less, its numbers lie on one another
LEAST_APART = 0.15  # share of the colour bar between two of its numbers
MOST_ROWS = 40  # features in one heat map; the table holds all
LONGEST = 22  # characters of a feature's name


@dataclass(frozen=True)
class Column:
    """One step of the heat map: feature → gain in nats, feature → status where it is not open, and the suggestion."""

    title: str
    gains: Mapping[str, float]
    statuses: Mapping[str, str]
    suggested: str | None


def gain_map(features: Sequence[str], columns: Sequence[Column]) -> Chart:
    """Features × steps. Signs mark what is known, cannot be had, or was suggested."""
    latest = columns[-1]
    ranked = sorted(features, key=lambda name: -latest.gains.get(name, -np.inf))
    shown = [name for name in features if name in set(ranked[:MOST_ROWS])]
    steps = list(range(len(columns)))
    gains = [[_finite(column.gains.get(name)) for column in columns] for name in shown]
    rows = list(range(len(shown)))
    top = max((gain for row in gains for gain in row if gain is not None), default=0.0)
    top = top if top > 0 else 1.0
    ticks = _ticks(top)
    # By square roots: after one large early gain, what later tests promise would else be one dark blue.
    shades = [[None if gain is None else _shade(gain, top) for gain in row] for row in gains]
    heat = {
        "type": "heatmap", "x": steps, "y": rows, "z": shades, "zmin": 0.0, "zmax": 1.0, "xgap": 2, "ygap": 2,
        "colorscale": "Cividis", "hoverinfo": "skip",
        "colorbar": {"title": {"text": "gain<br>(nats)"}, "thickness": 10, "x": 1.01, "tickmode": "array",
                     "tickvals": [_shade(tick, top) for tick in ticks], "ticktext": [f"{tick:g}" for tick in ticks],
                     "lenmode": "pixels", "len": max(LEAST_BAR, 21 * len(shown))},
    }  # fmt: skip
    signs: dict[str, list[Any]] = {"x": [], "y": [], "text": [], "color": []}
    cells: dict[str, list[Any]] = {"x": [], "y": [], "customdata": [], "text": []}
    for step, column in enumerate(columns):
        for row, name in zip(rows, shown, strict=True):
            status = column.statuses.get(name)
            sign = STATUS_SIGNS.get(status or "", SUGGESTED if name == column.suggested else "")
            gain = column.gains.get(name)
            if sign:
                bright = status is None and gain is not None and _shade(gain, top) > 0.55
                signs["x"].append(step)
                signs["y"].append(row)
                signs["text"].append(sign)
                signs["color"].append("#10181c" if bright else "#ffffff" if status is None else TEXT)
            cells["x"].append(step)
            cells["y"].append(row)
            cells["customdata"].append([name])
            words = status or ("not ranked" if gain is None else f"{gain:.3f} nats")
            cells["text"].append(f"{labels.chart(name, 40)}<br>step {step}: {words}")
    overlay = {
        "type": "scatter", "mode": "markers", **cells, "hoverinfo": "text",
        "marker": {"symbol": "square", "size": 17, "opacity": 0.0},
    }  # fmt: skip
    marks = {
        "type": "scatter", "mode": "text", "x": signs["x"], "y": signs["y"], "text": signs["text"],
        "textfont": {"color": signs["color"], "size": 13}, "hoverinfo": "skip",
    }  # fmt: skip
    layout = layout_of(
        56 + max(LEAST_BAR, 21 * len(shown)),
        xaxis=axis_of(tickmode="array", tickvals=steps, ticktext=[str(step) for step in steps], side="top",
                    title={"text": "step"}, showgrid=False, range=[-0.5, max(len(columns), 3) - 0.5],
                    automargin=False),
        yaxis=axis_of(tickmode="array", tickvals=rows, ticktext=[labels.chart(name, LONGEST) for name in shown],
                    range=[len(shown) - 0.5, -0.5], showgrid=False, automargin=False),
        # Said beforehand: to find them by itself, Plotly draws this chart twice.
        margin={"l": room_for([labels.short(name, LONGEST) for name in shown]), "r": 62, "t": 44, "b": 12},
    )  # fmt: skip

    def make_table() -> pd.DataFrame:
        steps = {
            f"{step} {column.title}": [
                column.statuses.get(name) or _gain_text(column.gains.get(name)) for name in features
            ]
            for step, column in enumerate(columns)
        }  # fmt: skip
        return pd.DataFrame({"feature": list(features), **steps})

    best = f"Most promising now is {latest.suggested}." if latest.suggested else "Nothing is left to measure."
    alt = f"Expected gain in nats of {len(features)} features at {len(columns)} steps. {best}"
    return Chart({"data": [heat, marks, overlay], "layout": layout}, alt, make_table)


def _shade(gain: float, top: float) -> float:
    """Place of a gain on the colour bar, from 0 to 1. What noise makes negative is nothing."""
    return float(np.sqrt(max(gain, 0.0) / top))


def _ticks(top: float) -> list[float]:
    """Round gains from nothing to `top`, so far apart on the bar that their numbers do not lie on one another."""
    ticks = [0.0]
    decade = np.floor(np.log10(top))
    for exponent in (decade - 2, decade - 1, decade):
        for digit in (1, 2, 5):
            tick = float(f"{digit * 10.0**exponent:.1g}")
            if tick <= top and _shade(tick, top) - _shade(ticks[-1], top) >= LEAST_APART:
                ticks.append(tick)
    return ticks


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _gain_text(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"
