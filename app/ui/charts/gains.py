"""The map of expected gains, features × steps, drawn as HTML (see html_charts.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
import pandas as pd

from app.ui import labels
from app.ui.charts import pictures
from app.ui.charts.base import Chart
from app.ui.charts.cividis import CIVIDIS, colour_of, ink_on
from app.ui.charts.html_charts import html_chart

STATUS_SIGNS = {"known": "●", "unavailable": "✕", "declined": "–", "pending": "…"}
SUGGESTED = "★"
LEGEND = f"{SUGGESTED} suggested then · " + " · ".join(f"{sign} {status}" for status, sign in STATUS_SIGNS.items())
LEAST_TOP = 1e-4  # nats, where the colour bar ends at least: below, gains are noise
LEAST_APART = 0.15  # share of the colour bar between two of its numbers
MOST_ROWS = 12  # tests not known yet in one heat map; the table holds all
LONGEST = 22  # characters of a feature's name
FEWEST_COLUMNS, MOST_COLUMNS = 4, 15  # so wide is the map at the first step already; of more steps the latest are drawn


@dataclass(frozen=True)
class Column:
    """One step of the heat map: feature → gain in nats, feature → status where it is not open, and the suggestion.

    moves: feature → by how much its result would move the prediction, in words.
    """

    title: str
    gains: Mapping[str, float]
    statuses: Mapping[str, str]
    suggested: str | None
    moves: Mapping[str, str] = field(default_factory=dict)


def gain_map(
    features: Sequence[str],
    columns: Sequence[Column],
    name: str = "gains",
    numbers: Sequence[int] = (),
    most: int = MOST_ROWS,
) -> Chart:
    """Features × steps, the most promising now at the top, then what was measured meanwhile. Signs mark tests that are
    known, without a result, or suggested. All steps share one scale, and the last line says what each promised at most.

    name: the chart's name for `clicks`; a row's data-pick is the feature's index in `features`.
    numbers: of the steps, where undone ones are left out. most: features drawn of those that are not known yet.
    """
    latest = columns[-1]
    steps = list(zip(numbers or range(len(columns)), columns, strict=True))
    drawn = steps[max(0, len(columns) - MOST_COLUMNS) :]
    rows = _rows(features, drawn, most)
    gains = [column.gains.get(features[number]) for _, column in drawn for number in rows]
    top = max([LEAST_TOP, *(gain for gain in gains if gain is not None and gain == gain)])
    heads = "".join(f'<span title="{escape(labels.plain(column.title))}">{step}</span>' for step, column in drawn)
    head = f'<span class="head"><span>step</span>{heads}</span>'
    shown = labels.short_apart(features, LONGEST)  # of all, so that a row is called the same at every step
    marks = [
        head,
        *(_row(number, features[number], shown[number], drawn, top) for number in rows),
        _most(drawn),
        _bar(top),
    ]
    best_now = f"Most promising now is {latest.suggested}." if latest.suggested else "Nothing is left to measure."
    alt = f"Expected gain in nats of {len(features)} features at {len(columns)} steps. {best_now}"
    html = html_chart("l2m-gains", alt, "".join(marks), f"--columns:{max(len(drawn), FEWEST_COLUMNS)}", name)

    def make_table() -> pd.DataFrame:
        found = {
            f"{step} {column.title}": [
                column.statuses.get(feature) or _gain_text(column.gains.get(feature)) for feature in features
            ]
            for step, column in steps
        }
        return pd.DataFrame({"feature": list(features), **found})

    return Chart(html, alt, make_table, make_svg=lambda: _picture(features, rows, drawn, top, alt))


def _picture(
    features: Sequence[str], rows: Sequence[int], drawn: Sequence[tuple[int, Column]], top: float, alt: str
) -> str:
    def cell(feature: str, column: Column) -> tuple[str, str, str]:
        gain, sign = column.gains.get(feature), _sign(feature, column)
        if gain is None or gain != gain:
            return "", sign, pictures.INK
        return colour_of(_shade(gain, top)), sign, ink_on(_shade(gain, top))

    lines = [(features[number], [cell(features[number], column) for _, column in drawn]) for number in rows]
    return pictures.grid(
        [str(step) for step, _ in drawn], lines, _largest(drawn), f"{LEGEND}. Bright: {top:.2g} nats", alt
    )


def _sign(feature: str, column: Column) -> str:
    return STATUS_SIGNS.get(column.statuses.get(feature, ""), SUGGESTED if feature == column.suggested else "")


def _rows(features: Sequence[str], drawn: Sequence[tuple[int, Column]], most: int) -> list[int]:
    """Indices of the features that are drawn: the best of those with a gain now, then those that had one at a step drawn."""
    now, before = drawn[-1][1].gains, [column.gains for _, column in drawn[:-1]]
    numbers = range(len(features))
    best = sorted((i for i in numbers if features[i] in now), key=lambda i: -now[features[i]])[:most]
    closed = [i for i in numbers if features[i] not in now and any(features[i] in gains for gains in before)]
    return best + closed


def _row(number: int, feature: str, short: str, drawn: Sequence[tuple[int, Column]], top: float) -> str:
    name = escape(labels.plain(feature))
    cells = [_cell(step, name, feature, column, top) for step, column in drawn]
    return f'<span class="row" data-pick="{number}"><span title="{name}">{escape(short)}</span>{"".join(cells)}</span>'


def _cell(step: int, name: str, feature: str, column: Column, top: float) -> str:
    gain, status = column.gains.get(feature), column.statuses.get(feature)
    sign = _sign(feature, column)
    if gain is None or gain != gain:
        return f'<i title="{name}, step {step}: {status or "not ranked"}">{sign}</i>'
    shade = _shade(gain, top)
    words = status or ", ".join(filter(None, (column.moves.get(feature, ""), f"{labels.gain(gain)} nats")))
    ink = f";color:{ink_on(shade)}" if sign else ""
    return f'<i style="background:{colour_of(shade)}{ink}" title="{name}, step {step}: {escape(words)}">{sign}</i>'


def _most(drawn: Sequence[tuple[int, Column]]) -> str:
    """The largest gain of each step, so that steps can be compared by numbers."""
    cells = "".join(f"<span>{escape(text)}</span>" for text in _largest(drawn))
    return f'<span class="head most"><span>largest</span>{cells}</span>'


def _largest(drawn: Sequence[tuple[int, Column]]) -> list[str]:
    gains = [max((gain for gain in column.gains.values() if gain == gain), default=None) for _, column in drawn]
    return ["" if gain is None else _brief(gain) for gain in gains]


def _brief(gain: float) -> str:
    """Two digits at most, since cells are narrow; small gains in the words of the ranking, never as a power of ten."""
    return "0" if gain < LEAST_TOP else labels.gain(gain) if gain < 0.001 else f"{gain:.2g}"


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


def _ticks(top: float) -> list[float]:
    """Round gains from nothing to `top`, so far apart on the bar that their numbers do not lie on one another.

    Between nothing and LEAST_TOP there is none: such gains are noise, and would be written as powers of ten.
    """
    ticks = [0.0]
    decade = np.floor(np.log10(top))
    for exponent in (decade - 2, decade - 1, decade):
        for digit in (1, 2, 5):
            tick = float(f"{digit * 10.0**exponent:.1g}")
            if LEAST_TOP <= tick <= top and _shade(tick, top) - _shade(ticks[-1], top) >= LEAST_APART:
                ticks.append(tick)
    return ticks


def _gain_text(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"
