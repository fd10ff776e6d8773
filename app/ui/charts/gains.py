"""The map of expected gains, features × steps, drawn as HTML (see html_charts.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts.base import Chart
from app.ui.charts.html_charts import html_chart

STATUS_SIGNS = {"known": "●", "unavailable": "✕", "declined": "–", "pending": "…"}
SUGGESTED = "★"
LEGEND = f"{SUGGESTED} suggested then · " + " · ".join(f"{sign} {status}" for status, sign in STATUS_SIGNS.items())
LEAST_TOP = 0.02  # nats, where the colour bar ends at least: gains too small to matter are never bright
LEAST_APART = 0.15  # share of the colour bar between two of its numbers
MOST_ROWS = 40  # features in one heat map; the table holds all
LONGEST = 22  # characters of a feature's name
FEWEST_COLUMNS, MOST_COLUMNS = 4, 15  # so wide is the map at the first step already; of more steps the latest are drawn
# Cividis, as the theme has it for Plotly's charts: dark to bright for everyone's eyes.
CIVIDIS = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838")
SHADES = 64
BRIGHT = 0.55  # from this shade on, signs are dark


@dataclass(frozen=True)
class Column:
    """One step of the heat map: feature → gain in nats, feature → status where it is not open, and the suggestion."""

    title: str
    gains: Mapping[str, float]
    statuses: Mapping[str, str]
    suggested: str | None


def gain_map(
    features: Sequence[str], columns: Sequence[Column], name: str = "gains", numbers: Sequence[int] = ()
) -> Chart:
    """Features × steps. Signs mark tests that are known, without a result, or suggested.

    name: the chart's name for `clicks`; a row's data-pick is the feature's index in `features`.
    numbers: of the steps, where undone ones are left out.
    """
    latest = columns[-1]
    ranked = sorted(features, key=lambda feature: -latest.gains.get(feature, -np.inf))
    best = set(ranked[:MOST_ROWS])
    first = max(0, len(columns) - MOST_COLUMNS)
    steps = list(zip(numbers or range(len(columns)), columns, strict=True))
    drawn = steps[first:]
    gains = [column.gains.get(feature) for _, column in drawn for feature in best]
    top = max([LEAST_TOP, *(gain for gain in gains if gain is not None and gain == gain)])
    rows = [_row(number, feature, drawn, top) for number, feature in enumerate(features) if feature in best]
    heads = "".join(f"<span>{step}</span>" for step, _ in drawn)
    head = f'<span class="head"><span>step</span>{heads}</span>'
    best_now = f"Most promising now is {latest.suggested}." if latest.suggested else "Nothing is left to measure."
    alt = f"Expected gain in nats of {len(features)} features at {len(columns)} steps. {best_now}"
    style = f"--columns:{max(len(drawn), FEWEST_COLUMNS)}"
    html = html_chart("l2m-gains", alt, "".join([head, *rows, _bar(top)]), style, name)

    def make_table() -> pd.DataFrame:
        found = {
            f"{step} {column.title}": [
                column.statuses.get(feature) or _gain_text(column.gains.get(feature)) for feature in features
            ]
            for step, column in steps
        }
        return pd.DataFrame({"feature": list(features), **found})

    return Chart(html, alt, make_table)


def _row(number: int, feature: str, drawn: Sequence[tuple[int, Column]], top: float) -> str:
    name = escape(labels.plain(feature))
    cells = [_cell(step, name, feature, column, top) for step, column in drawn]
    short = escape(labels.short(feature, LONGEST))
    return f'<span class="row" data-pick="{number}"><span title="{name}">{short}</span>{"".join(cells)}</span>'


def _cell(step: int, name: str, feature: str, column: Column, top: float) -> str:
    gain, status = column.gains.get(feature), column.statuses.get(feature)
    sign = STATUS_SIGNS.get(status or "", SUGGESTED if feature == column.suggested else "")
    if gain is None or gain != gain:
        return f'<i title="{name}, step {step}: {status or "not ranked"}">{sign}</i>'
    shade = _shade(gain, top)
    words = status or f"{escape(labels.gain(gain))} nats"
    ink = f";color:{'#10181c' if shade > BRIGHT else '#fff'}" if sign else ""
    return f'<i style="background:{_colour(shade)}{ink}" title="{name}, step {step}: {words}">{sign}</i>'


def _bar(top: float) -> str:
    """The colour bar, with round gains below it."""
    ticks = "".join(f'<span style="left:{100 * _shade(tick, top):.1f}%">{tick:g}</span>' for tick in _ticks(top))
    colours = ",".join(CIVIDIS)
    return (
        f'<span class="bar"><span>gain (nats)</span><span><span style="background:linear-gradient(to right,{colours})">'
        f"</span>{ticks}</span></span>"
    )


def _shade(gain: float, top: float) -> float:
    """Position of a gain on the colour bar, from 0 to 1; negative noise is 0.

    By square roots: after one large early gain, all later gains would otherwise be one dark blue.
    """
    return float(np.sqrt(max(gain, 0.0) / top))


def _colour(shade: float) -> str:
    return PALETTE[round(shade * (SHADES - 1))]


def _mixed(shade: float) -> str:
    """Between the two nearest colours of the theme."""
    position = shade * (len(CIVIDIS) - 1)
    low = min(int(position), len(CIVIDIS) - 2)
    one, other = ([int(CIVIDIS[i][j : j + 2], 16) for j in (1, 3, 5)] for i in (low, low + 1))
    return "#" + "".join(f"{round(a + (b - a) * (position - low)):02x}" for a, b in zip(one, other, strict=True))


PALETTE = [_mixed(number / (SHADES - 1)) for number in range(SHADES)]


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


def _gain_text(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"
