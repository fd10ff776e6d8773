"""Every chart of the app. Each has units, a description for those who cannot see it, and a table of its numbers.

A chart is made from plain numbers, never from a model. Colours come from the theme, so that light and dark both work:
Streamlit puts its own in place of these markers. No meaning hangs on colour alone: signs, fills and texts carry it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from plotly.basedatatypes import BaseFigure
from streamlit.elements.lib.streamlit_plotly_theme import CATEGORY_0, CATEGORY_1, CATEGORY_2, GRAY_70

from app.ui import labels

ACCENT, NEUTRAL, ATTENTION, TEXT = CATEGORY_0, CATEGORY_1, CATEGORY_2, GRAY_70
CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False, "showTips": False}
STATUS_SIGNS = {"known": "●", "unavailable": "✕", "declined": "–", "pending": "…"}
SUGGESTED = "★"
MOST_ROWS = 40  # features in one heat map; the table holds all
ROWS_SHOWN = 250  # cohort rows in the map of what was recorded


@dataclass(frozen=True)
class Chart:
    """spec: a Plotly figure as plain data; alt: what it shows, in words; table: its numbers."""

    spec: dict[str, Any]
    alt: str
    table: pd.DataFrame
    formats: Mapping[str, str] = field(default_factory=dict)


class Drawn(BaseFigure):
    """A figure that is known to be valid (tests see to that): checking it again would take longer than a step."""

    def __init__(self, spec: dict[str, Any]) -> None:
        object.__setattr__(self, "_spec", spec)

    def to_dict(self) -> dict[str, Any]:
        return self._spec  # type: ignore[no-any-return]


def draw(chart: Chart, key: str, on_click: Callable[[], None] | None = None, table: bool = True) -> None:
    """The chart, and below it the table of its numbers, made when it is opened."""
    st.plotly_chart(
        Drawn(chart.spec), key=key, alt=chart.alt, config=CONFIG, theme="streamlit", width="stretch",
        on_select=on_click or "ignore", selection_mode="points",
    )  # fmt: skip
    if table:
        twin = st.expander("Numbers", key=f"{key}-numbers", type="compact", on_change="rerun")
        if twin.open:
            with twin:
                show_table(chart, f"{key}-table")


def show_table(chart: Chart, key: str) -> None:
    columns = {
        name: st.column_config.NumberColumn(format=chart.formats[name]) if name in chart.formats else None
        for name in chart.table.columns
    }
    st.dataframe(
        chart.table, key=key, hide_index=True, alt=f"Numbers behind the chart: {labels.plain(chart.alt)}",
        column_config={name: column for name, column in columns.items() if column is not None},
    )  # fmt: skip


def clicked(key: str) -> str | None:
    """In an `on_click` callback: the custom data of the point that was clicked."""
    points = st.session_state.get(key, {}).get("selection", {}).get("points", [])
    data = points[0].get("customdata") if points else None
    return str(data[0] if isinstance(data, list | tuple) else data) if data else None


def _layout(height: int, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
        **more,
    }


def _axis(**more: Any) -> dict[str, Any]:
    return {"fixedrange": True, "zeroline": False, "automargin": True, **more}


_HIDDEN = {"visible": False, "fixedrange": True}


# -- what is believed -----------------------------------------------------------------------------------------------


def icon_array(probability: float, outcome: str) -> Chart:
    """A hundred patients like this one; those with the outcome are filled."""
    count = round(100 * probability)
    place = np.arange(100)
    x, y = place % 20, 4 - place // 20
    traces = []
    for rows, sign, colour, words in (
        (place < count, "circle", ACCENT, outcome),
        (place >= count, "circle-open", NEUTRAL, f"not {outcome}"),
    ):
        traces.append(
            {
                "type": "scatter", "mode": "markers", "x": x[rows].tolist(), "y": y[rows].tolist(),
                "marker": {"symbol": sign, "size": 8, "color": colour, "line": {"width": 0 if sign == "circle" else 1.5}},
                "hoverinfo": "text", "text": labels.chart(words), "cliponaxis": False,
            }
        )  # fmt: skip
    spec = {"data": traces, "layout": _layout(92, xaxis=_HIDDEN, yaxis=_HIDDEN)}
    alt = f"Of 100 patients like this, {labels.of_100(probability).removesuffix(' of 100')} have {outcome}."
    table = pd.DataFrame({"outcome": [outcome, f"not {outcome}"], "of 100": [count, 100 - count],
                          "probability": [probability, 1 - probability]})  # fmt: skip
    return Chart(spec, alt, table, {"probability": "percent"})


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
    table = pd.DataFrame({"outcome": names, "probability": values, "of 100": [round(100 * v) for v in values]})
    if band:
        low, high = (np.array([band[name][i] for name in names]) for i in (0, 1))
        bars["error_x"] = {
            "type": "data", "symmetric": False, "array": (high - values).tolist(),
            "arrayminus": (np.array(values) - low).tolist(), "color": TEXT, "thickness": 1.5, "width": 4,
        }  # fmt: skip
        bars["textposition"] = "none"
        table["low"], table["high"] = low, high
    traces = [bars]
    if before:
        traces.append(
            {
                "type": "scatter", "mode": "markers", "y": axis_names, "x": [before[name] for name in names],
                "marker": {"symbol": "diamond-open", "size": 9, "color": TEXT, "line": {"width": 1.5}},
                "hovertemplate": "a step ago: %{x:.1%}<extra></extra>",
            }
        )  # fmt: skip
        table["a step ago"] = [before[name] for name in names]
    layout = _layout(
        40 + 26 * len(names),
        xaxis=_axis(range=[0, 1.08], tickformat=".0%", title={"text": "probability"}),
        yaxis=_axis(autorange="reversed"),
    )
    likeliest = max(probabilities, key=lambda name: probabilities[name])
    alt = f"Probability of each of {len(names)} outcomes; likeliest is {likeliest} with {labels.percent(max(values))}."
    formats = {name: "percent" for name in ("probability", "low", "high", "a step ago")}
    return Chart({"data": traces, "layout": layout}, alt, table, formats)


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
    layout = _layout(150, xaxis=_axis(title={"text": title}), yaxis={**_HIDDEN, "rangemode": "tozero"})
    table = pd.DataFrame({outcome: list(grid), "density": list(now)})
    if before is not None:
        table["density a step ago"] = list(before)
    words = [labels.with_unit(labels.number(value), unit) for value in (median, *interval)]
    alt = f"Predicted {outcome}: median {words[0]}, 90% of patients like this between {words[1]} and {words[2]}."
    return Chart({"data": traces, "layout": layout}, alt, table)


@dataclass(frozen=True)
class Point:
    """One step of a history: what was learned, and the answer after it. low, high: the band, where it is known."""

    learned: str
    values: Mapping[str, float]
    low: Mapping[str, float] | None = None
    high: Mapping[str, float] | None = None


def history(points: Sequence[Point], axis: str, probability: bool) -> Chart:
    """How the answer moved with every step. One line for each outcome shown; bars span the uncertainty band."""
    series = list(points[0].values) if points else []
    steps = list(range(len(points)))
    colours, dashes = (ACCENT, NEUTRAL, ATTENTION), ("solid", "dash", "dot", "dashdot")
    signs = ("circle", "square", "diamond", "triangle-up")
    traces = []
    for number, name in enumerate(series):
        values = [point.values[name] for point in points]
        colour = colours[number % len(colours)]
        trace: dict[str, Any] = {
            "type": "scatter", "mode": "lines+markers", "x": steps, "y": values, "name": labels.chart(name, 20),
            "line": {"color": colour, "width": 2, "dash": dashes[number % len(dashes)]},
            "marker": {"symbol": signs[number % len(signs)], "size": 7},
            "customdata": [labels.chart(point.learned, 40) for point in points],
            "hovertemplate": "step %{x}: %{customdata}<br>" + ("%{y:.1%}" if probability else "%{y:.4g}")
            + "<extra></extra>",
        }  # fmt: skip
        bounds = [
            (point.values[name] - point.low[name], point.high[name] - point.values[name])
            if point.low and point.high and name in point.low else (0.0, 0.0)
            for point in points
        ]  # fmt: skip
        if any(sum(bound) for bound in bounds):
            trace["error_y"] = {
                "type": "data", "symmetric": False, "array": [b[1] for b in bounds],
                "arrayminus": [b[0] for b in bounds], "color": colour, "thickness": 1, "width": 3,
            }  # fmt: skip
        traces.append(trace)
    few = len(points) <= 9
    ticks = [labels.chart(point.learned, 11 if len(points) > 5 else 16) for point in points]
    layout = _layout(
        190,
        xaxis=_axis(tickmode="array", tickvals=steps, ticktext=ticks if few else [str(s) for s in steps],
                    range=[-0.4, max(len(points), 4) - 0.6], tickangle=0 if len(points) <= 4 else -30),
        yaxis=_axis(title={"text": "probability" if probability else labels.chart(axis, 26)},
                    **({"range": _probability_range(points), "tickformat": ".0%", "nticks": 6} if probability else {})),
        showlegend=len(series) > 1,
        legend={"orientation": "h", "y": 1.15, "x": 0},
    )  # fmt: skip
    table = pd.DataFrame({"step": steps, "learned": [point.learned for point in points]})
    for name in series:
        table[name] = [point.values[name] for point in points]
        table[f"{name}, low"] = [point.low[name] if point.low and name in point.low else np.nan for point in points]
        table[f"{name}, high"] = [point.high[name] if point.high and name in point.high else np.nan for point in points]
    show = labels.percent if probability else labels.number
    ends = [f"{show(points[i].values[series[0]])}" for i in (0, -1)] if points else ["", ""]
    alt = f"{axis} after each of {len(points)} steps, from {ends[0]} to {ends[1]}."
    numbers = [column for column in table.columns if column not in ("step", "learned")]
    return Chart(
        {"data": traces, "layout": layout}, alt, table, dict.fromkeys(numbers, "percent") if probability else {}
    )


def _probability_range(points: Sequence[Point]) -> list[float]:
    """All that is drawn, and at least 30 points of it, so that small moves neither vanish nor look large."""
    values = [
        value for point in points for part in (point.values, point.low, point.high) for value in (part or {}).values()
    ]
    low, high = min(values, default=0.0), max(values, default=1.0)
    widen = max(0.0, 0.3 - (high - low)) / 2
    low, high = low - widen, high + widen
    shift = max(0.0, -low) - max(0.0, high - 1.0)
    return [low + shift - 0.03, high + shift + 0.03]


# -- what to measure ------------------------------------------------------------------------------------------------


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
    top = max((gain for row in gains for gain in row if gain is not None), default=0.0) or 1.0
    heat = {
        "type": "heatmap", "x": steps, "y": rows, "z": gains, "zmin": 0.0, "zmax": top, "xgap": 2, "ygap": 2,
        "colorscale": "Cividis", "hoverinfo": "skip",
        "colorbar": {"title": {"text": "gain<br>(nats)"}, "thickness": 10, "len": 0.9, "tickformat": ".2~g", "x": 1.01},
    }  # fmt: skip
    signs: dict[str, list[Any]] = {"x": [], "y": [], "text": [], "color": []}
    cells: dict[str, list[Any]] = {"x": [], "y": [], "customdata": [], "text": []}
    for step, column in enumerate(columns):
        for row, name in zip(rows, shown, strict=True):
            status = column.statuses.get(name)
            sign = STATUS_SIGNS.get(status or "", SUGGESTED if name == column.suggested else "")
            gain = column.gains.get(name)
            if sign:
                bright = status is None and gain is not None and gain > 0.55 * top
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
    layout = _layout(
        64 + 21 * len(shown),
        xaxis=_axis(tickmode="array", tickvals=steps, ticktext=[str(step) for step in steps], side="top",
                    title={"text": "step"}, showgrid=False, range=[-0.5, max(len(columns), 3) - 0.5]),
        yaxis=_axis(tickmode="array", tickvals=rows, ticktext=[labels.chart(name, 22) for name in shown],
                    range=[len(shown) - 0.5, -0.5], showgrid=False),
    )  # fmt: skip
    table = pd.DataFrame({"feature": list(features)})
    for step, column in enumerate(columns):
        table[f"{step} {column.title}"] = [
            column.statuses.get(name) or _gain_text(column.gains.get(name)) for name in features
        ]
    best = f"Most promising now is {latest.suggested}." if latest.suggested else "Nothing is left to measure."
    alt = f"Expected gain in nats of {len(features)} features at {len(columns)} steps. {best}"
    return Chart({"data": [heat, marks, overlay], "layout": layout}, alt, table)


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _gain_text(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4f}"


def preview(results: Sequence[str], values: Sequence[float], now: float, axis: str, probability: bool,
            spread: Sequence[float] | None = None) -> Chart:  # fmt: skip
    """What each result would do to the answer, as arrows from where it is now."""
    show = labels.percent if probability else labels.number
    rows = list(range(len(results)))
    lines = [
        {"type": "scatter", "mode": "lines", "x": [now, value], "y": [row, row], "hoverinfo": "skip",
         "line": {"color": ACCENT, "width": 3}}
        for row, value in zip(rows, values, strict=True)
    ]  # fmt: skip
    reach = max([abs(value - now) for value in values], default=0.0)
    low, high = min([now, *values]), max([now, *values])
    margin = max(0.28 * (high - low), 0.06 if probability else 0.06 * (abs(now) + 1e-9))
    dots = {
        "type": "scatter", "mode": "markers+text", "x": list(values), "y": rows,
        "marker": {"color": ACCENT, "size": 10}, "text": [show(value) for value in values],
        "textposition": ["middle right" if value >= now else "middle left" for value in values],
        "hoverinfo": "skip", "cliponaxis": False,
    }  # fmt: skip
    layout = _layout(
        46 + 24 * len(rows),
        xaxis=_axis(title={"text": labels.chart(axis, 44)}, range=[low - margin, high + margin], nticks=5,
                    **({"tickformat": ".0%"} if probability else {})),
        yaxis=_axis(tickmode="array", tickvals=rows, ticktext=[labels.chart(result, 24) for result in results],
                    range=[len(rows) - 0.5, -0.5], showgrid=False),
        shapes=[{"type": "line", "x0": now, "x1": now, "y0": -0.5, "y1": len(rows) - 0.5,
                 "line": {"color": TEXT, "width": 1, "dash": "dot"}}],
    )  # fmt: skip
    table = pd.DataFrame({"result": list(results), axis: list(values), "change": [value - now for value in values]})
    if spread is not None:
        table["standard deviation"] = list(spread)
    moves = "; ".join(f"{result}: {show(value)}" for result, value in zip(results, values, strict=True))
    alt = f"{axis} is {show(now)} now and would become {moves}. Largest change {show(reach)}."
    formats = {axis: "percent", "change": "percent"} if probability else {}
    return Chart({"data": [*lines, dots], "layout": layout}, alt, table, formats)


# -- a cohort -------------------------------------------------------------------------------------------------------


def recorded_map(recorded: np.ndarray, features: Sequence[str], seed: int = 0) -> Chart:
    """(N, d) bool: which values the cohort holds, rows with like holes together."""
    rows = np.arange(len(recorded))
    if len(rows) > ROWS_SHOWN:
        rows = np.random.default_rng(seed).choice(rows, ROWS_SHOWN, replace=False)
    part = recorded[rows]
    order = np.argsort(-part.mean(axis=0), kind="stable")
    part = part[np.lexsort(part[:, order[::-1]].T)][::-1]
    heat = {
        "type": "heatmap", "z": part.T.astype(int).tolist(), "y": list(range(len(features))),
        "colorscale": [[0, "#c9a23a"], [0.5, "#c9a23a"], [0.5, "#1f4e79"], [1, "#1f4e79"]], "zmin": 0, "zmax": 1,
        "showscale": False, "ygap": 1, "hoverinfo": "skip",
    }  # fmt: skip
    share = recorded.mean(axis=0)
    ticks = [f"{labels.chart(name, 22)}  {labels.percent(part)}" for name, part in zip(features, share, strict=True)]
    layout = _layout(
        56 + 19 * len(features),
        xaxis=_axis(title={"text": f"{len(rows)} rows"}, showticklabels=False, showgrid=False),
        yaxis=_axis(tickmode="array", tickvals=list(range(len(features))), ticktext=ticks,
                    range=[len(features) - 0.5, -0.5], showgrid=False),
    )  # fmt: skip
    table = pd.DataFrame({"feature": list(features), "recorded": recorded.sum(axis=0), "share": share})
    fewest = features[int(share.argmin())]
    alt = (
        f"Which values are recorded (dark) and which are missing (light) in {len(rows)} rows. "
        f"Overall {labels.percent(float(recorded.mean()))} are recorded; fewest of {fewest} "
        f"({labels.percent(float(share.min()))})."
    )
    return Chart({"data": [heat], "layout": layout}, alt, table, {"share": "percent"})


def warm_up(patient: Any) -> None:
    """Makes one of each kind once, so that the first visitor does not wait for imports."""
    gains = dict(zip(patient.ranking.feature, patient.ranking.gain, strict=True))
    for chart in (
        icon_array(0.3, "outcome"),
        history([Point("start", {"outcome": 0.3})], "probability", True),
        gain_map(list(gains), [Column("start", gains, {}, patient.suggestion)]),
    ):
        Drawn(chart.spec).to_dict()
