"""Charts as HTML, for what every step changes: a browser draws them much sooner than Plotly would.

How they look is in page.css. Streamlit shows HTML without scripts; what is clicked in it, `clicks` tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from app.ui import labels
from app.ui.charts.base import Chart


def icon_array(probability: float, outcome: str) -> Chart:
    """A hundred patients like this one; those with the outcome are filled."""
    count = round(100 * probability)
    marks = "".join(f'<span style="--has:{max(0, min(20, count - 20 * row))}"></span>' for row in range(5))
    alt = f"Of 100 patients like this, {labels.of_100(probability).removesuffix(' of 100')} have {outcome}."

    def make_table() -> pd.DataFrame:
        return pd.DataFrame({"outcome": [outcome, f"not {outcome}"], "of 100": [count, 100 - count],
                             "probability": [probability, 1 - probability]})  # fmt: skip

    return Chart(picture("l2m-icons", alt, marks), alt, make_table, {"probability": "percent"})


def preview(results: Sequence[str], values: Sequence[float], now: float, axis: str, probability: bool,
            spread: Sequence[float] | None = None) -> Chart:  # fmt: skip
    """What each result would do to the answer, as lines from where it is now."""
    show = labels.percent if probability else labels.number
    low, high = min([now, *values]), max([now, *values])
    margin = max(0.28 * (high - low), 0.06 if probability else 0.06 * (abs(now) + 1e-9))

    def place(value: float) -> float:
        """Percent of the way from the left end to the right one."""
        return 100 * (value - low + margin) / (high - low + 2 * margin)

    rows = []
    for result, value in zip(results, values, strict=True):
        start, end = sorted((place(now), place(value)))
        side = "up" if value >= now else "down"
        rows.append(
            f'<span class="result">{escape(labels.short(result, 24))}</span><span class="track {side}">'
            f'<span class="line" style="left:{start:.1f}%;width:{end - start:.1f}%"></span>'
            f'<span class="dot" style="left:{place(value):.1f}%"></span>'
            f'<span class="value" style="left:{place(value):.1f}%">{escape(show(value))}</span></span>'
        )
    rows.append(
        f'<span></span><span class="track"><span class="now" style="left:{place(now):.1f}%">now {escape(show(now))}'
        f'</span></span><span></span><span class="axis">{escape(labels.short(axis, 44))}</span>'
    )
    columns = {"result": list(results), axis: list(values), "change": [value - now for value in values]}
    if spread is not None:
        columns["standard deviation"] = list(spread)
    moves = "; ".join(f"{result}: {show(value)}" for result, value in zip(results, values, strict=True))
    reach = max([abs(value - now) for value in values], default=0.0)
    alt = f"{axis} is {show(now)} now and would become {moves}. Largest change {show(reach)}."
    formats = {axis: "percent", "change": "percent"} if probability else {}
    html = picture("l2m-preview", alt, "".join(rows), f"--now:{place(now):.1f}%")
    return Chart(html, alt, lambda: pd.DataFrame(columns), formats)


def picture(kind: str, alt: str, marks: str, style: str = "", name: str = "") -> str:
    """marks: HTML, escaped already; name: what `clicks` knows the chart by."""
    about = f'class="{kind}" role="img" aria-label="{escape(labels.plain(alt))}" style="{style}" data-chart="{name}"'
    return f"<div {about}>{marks}</div>"
