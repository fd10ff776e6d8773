"""Charts that change with every step, as HTML: a browser draws them much faster than Plotly's.

Their styles are in page.css. Streamlit shows HTML without scripts; `clicks` reports clicks in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from typing import Any

import pandas as pd

from app.ui import labels
from app.ui.charts import pictures
from app.ui.charts.base import Chart

# What a dot and a character take of a preview's width where it is narrowest, and the least room at its ends.
DOT, CHARACTER, LEAST_ROOM = 0.04, 0.025, 0.28


def icon_array(probability: float, outcome: str) -> Chart:
    """A hundred patients like this one; those with the outcome are filled."""
    count = round(100 * probability)
    marks = "".join(f'<span style="--has:{max(0, min(20, count - 20 * row))}"></span>' for row in range(5))
    alt = f"{labels.of_100(probability)} patients like this: {outcome}."

    def make_table() -> pd.DataFrame:
        return pd.DataFrame(
            {
                "outcome": [outcome, f"not {outcome}"],
                "of 100": [count, 100 - count],
                "probability": [probability, 1 - probability],
            }
        )

    svg = partial(pictures.icons, count, alt)
    return Chart(html_chart("l2m-icons", alt, marks), alt, make_table, {"probability": "percent"}, svg)


def class_bars(
    probabilities: Mapping[str, float],
    before: Mapping[str, float] | None = None,
    band: Mapping[str, tuple[float, float]] | None = None,
) -> Chart:
    """Probability of each class, as a bar and a number.

    A hollow mark shows the probability a step ago, a line the uncertainty band.
    """
    rows = []
    for short, (name, value) in zip(labels.short_apart(list(probabilities), 44), probabilities.items(), strict=True):
        words, marks = f"{name}: {labels.percent(value)}", f'<span class="bar" style="width:{100 * value:.1f}%"></span>'
        if band:
            low, high = band[name]
            words += f", {labels.percent(low)} to {labels.percent(high)} under resampled cohorts"
            marks += f'<span class="band" style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></span>'
        if before:
            words += f", a step ago {labels.percent(before[name])}"
            marks += f'<span class="before" style="left:{100 * before[name]:.1f}%"></span>'
        rows.append(
            f'<span class="row" title="{escape(labels.plain(words))}"><span>{escape(short)}</span>'
            f'<span class="track">{marks}</span><span class="value">{escape(labels.percent(value))}</span></span>'
        )
    signs = [*(["◇ a step ago"] if before else []), *(["├─┤ under resampled cohorts"] if band else [])]
    about = f'<span class="about">{" · ".join(signs)}</span>'  # there always: nothing moves when a band comes
    values = list(probabilities.values())
    columns: dict[str, Any] = {
        "outcome": list(probabilities),
        "probability": values,
        "of 100": [round(100 * v) for v in values],
    }
    if band:
        columns |= {end: [band[name][index] for name in probabilities] for index, end in enumerate(("low", "high"))}
    if before:
        columns["a step ago"] = [before[name] for name in probabilities]
    likeliest = max(probabilities, key=lambda name: probabilities[name])
    alt = f"Probability of each of {len(values)} outcomes; likeliest is {likeliest} with {labels.percent(max(values))}."
    formats = dict.fromkeys([name for name in columns if name not in ("outcome", "of 100")], "percent")
    drawn = [
        (name, p, before[name] if before else None, band[name] if band else None) for name, p in probabilities.items()
    ]
    svg = partial(pictures.bars, drawn, " · ".join(signs), alt)
    return Chart(
        html_chart("l2m-classes", alt, "".join(rows) + about), alt, lambda: pd.DataFrame(columns), formats, svg
    )


def preview(
    results: Sequence[str],
    values: Sequence[float],
    now: float,
    axis: str,
    probability: bool,
    spread: Sequence[float] | None = None,
) -> Chart:
    """The prediction after each possible result, as lines from the prediction now."""
    show = labels.percent if probability else labels.predicted
    low, high = min([now, *values]), max([now, *values])
    room = _room_beside_dots(max(len(show(value)) for value in (now, *values)))
    margin = max(room * (high - low), 0.06 if probability else 0.06 * (abs(now) + 1e-9))

    def position(value: float) -> float:
        """Percent of the way from the left end to the right one."""
        return 100 * (value - low + margin) / (high - low + 2 * margin)

    rows = []
    for result, value in zip(results, values, strict=True):
        start, end = sorted((position(now), position(value)))
        side = "up" if value >= now else "down"
        rows.append(
            f'<span class="result">{escape(labels.short(result, 24))}</span><span class="track {side}">'
            f'<span class="line" style="left:{start:.1f}%;width:{end - start:.1f}%"></span>'
            f'<span class="dot" style="left:{position(value):.1f}%"></span>'
            f'<span class="value" style="left:{position(value):.1f}%">{escape(show(value))}</span></span>'
        )
    rows.append(
        f'<span></span><span class="track"><span class="now" style="left:{position(now):.1f}%">now {escape(show(now))}'
        f'</span></span><span></span><span class="axis">{escape(labels.short(axis, 44))}</span>'
    )
    believed = labels.as_column(axis, ("result", "change", "standard deviation"))
    columns = {"result": list(results), believed: list(values), "change": [value - now for value in values]}
    if spread is not None:
        columns["standard deviation"] = list(spread)
    moves = "; ".join(f"{result}: {show(value)}" for result, value in zip(results, values, strict=True))
    reach = max([abs(value - now) for value in values], default=0.0)
    alt = f"{axis} is {show(now)} now and would become {moves}. Largest change {show(reach)}."
    formats = {believed: "percent", "change": "percent"} if probability else {}
    html = html_chart("l2m-preview", alt, "".join(rows), f"--now:{position(now):.1f}%")
    drawn = [(result, value, show(value)) for result, value in zip(results, values, strict=True)]
    svg = partial(pictures.moves, drawn, now, show(now), axis, alt)
    return Chart(html, alt, lambda: pd.DataFrame(columns), formats, svg)


def _room_beside_dots(longest: int) -> float:
    """As a share of the way between the outermost dots: what an answer of so many characters needs on either side."""
    of_track = min(0.4, DOT + CHARACTER * longest)
    return max(LEAST_ROOM, of_track / (1 - 2 * of_track))


def html_chart(kind: str, alt: str, marks: str, style: str = "", name: str = "") -> str:
    """marks: HTML, escaped already; name: the chart's name for `clicks`."""
    about = f'class="{kind}" role="img" aria-label="{escape(labels.plain(alt))}" style="{style}" data-chart="{name}"'
    return f"<div {about}>{marks}</div>"
