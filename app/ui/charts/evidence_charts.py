"""Charts of what was measured on a cohort: orders, scores, calibration, choices, costs, and what was never recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from app.streamlit_contact.chart_colours import CATEGORY_3
from app.ui import labels
from app.ui.charts.base import ACCENT, ATTENTION, NEUTRAL, TEXT, Chart, axis_of, layout_of
from l2m_core.evidence import Calibration, Curve, Evidence, Positivity
from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import DecisionCurve
from l2m_core.evidence.sentences import LABELS

# For each order its colour, dash and sign, so that lines differ in more than colour.
LOOKS = {
    "model": (ACCENT, "solid", "circle"),
    "random": (NEUTRAL, "dot", "square"),
    "fixed": (ATTENTION, "dash", "diamond"),
    "model per cost": (CATEGORY_3, "dashdot", "triangle-up"),
}
LOOKS_OF_VOICES = {
    "model": LOOKS["model"],
    "council": (CATEGORY_3, "dashdot", "triangle-up"),
    "regression": (NEUTRAL, "dot", "square"),
    "trees": (ATTENTION, "dash", "diamond"),
    "all": (TEXT, "longdash", "circle-open"),
}
LOWEST_SHOWN = -0.1  # of the largest net benefit: below it, curves leave the chart
LEAST_TOP = 0.001  # of that axis: where no threshold gives a benefit, it still has a length
NAMES = {"auroc": "AUROC", "crps": "CRPS", "rmse": "RMSE"}
ASIDE = 0.07  # how far apart the intervals of two orders stand
TESTS_SHOWN = 30  # in one map or bar chart; the table holds all
LEAST_WRITTEN = 0.05  # shares below it are not written into the map
NOTHING_LEFT = "nothing left to ask"


def by_tests(curves: Sequence[Curve], score: str, unit: str, base: float | None = None) -> Chart:
    """A score before any test and after each, with 95% intervals; one line for each order."""
    each = {LABELS[curve.order]: (_of(curve, score), LOOKS[curve.order]) for curve in curves}
    return _by_tests(each, labels.name_with_unit(NAMES.get(score, "log loss"), unit), base)


def by_voice(evidence: Evidence) -> Chart:
    """Log loss before any test and after each; one line for each predictor, all knowing the same."""
    each = {voice.label(evidence.kind): (voice.loss, LOOKS_OF_VOICES[voice.name]) for voice in evidence.voices}
    return _by_tests(each, labels.name_with_unit("log loss", "nats"), evidence.base.value)


Look = tuple[str, str, str]  # colour, dash, sign


def _by_tests(each: Mapping[str, tuple[Sequence[Estimate], Look]], title: str, base: float | None) -> Chart:
    """each: name → values before any test and after each, and how its line looks."""
    estimates = {name: values for name, (values, _) in each.items()}
    steps = list(range(len(next(iter(estimates.values())))))
    traces = [
        _line(name, look, [step + (number - 1) * ASIDE for step in steps], values, "%{customdata} tests")
        | {"customdata": steps}
        for number, (name, (values, look)) in enumerate(each.items())
    ]
    layout = layout_of(
        320,
        xaxis=axis_of(
            title={"text": "tests, at most"}, dtick=1 if len(steps) <= 13 else 2, range=[-0.35, steps[-1] + 0.35]
        ),
        yaxis=axis_of(title={"text": labels.chart(title, 40)}, nticks=7),
        showlegend=True,
        legend=_LEGEND,
        **_base_line(base),
    )
    table = pd.DataFrame({"tests": steps})
    for name, values in estimates.items():
        table[name] = [e.value for e in values]
        table[f"{name}, low"] = [e.low for e in values]
        table[f"{name}, high"] = [e.high for e in values]
    ends = "; ".join(
        f"{name} {_number(values[0].value)} to {_number(values[-1].value)}" for name, values in estimates.items()
    )
    alt = f"{title} before any test and after up to {steps[-1]} tests, with 95% intervals. {ends}."
    return Chart({"data": traces, "layout": layout}, alt, lambda: table, dict.fromkeys(table.columns[1:], "%.4f"))


def by_cost(curves: Sequence[Curve], unit: str) -> Chart:
    """Log loss against what was spent for it on average; one line for each order, one sign for each number of tests."""
    traces = [
        _line(LABELS[curve.order], LOOKS[curve.order], list(curve.cost), curve.loss, "cost %{x:,.4~r}", interval=False)
        for curve in curves
    ]
    layout = layout_of(
        320,
        xaxis=axis_of(title={"text": "mean cost of a patient, in the schema's unit"}, rangemode="tozero"),
        yaxis=axis_of(title={"text": f"log loss ({unit})"}, nticks=7),
        showlegend=True,
        legend=_LEGEND,
    )
    table = pd.concat(
        [
            pd.DataFrame(
                {
                    "order": LABELS[curve.order],
                    "tests": range(len(curve.cost)),
                    "mean cost": curve.cost,
                    "log loss": [each.value for each in curve.loss],
                }
            )
            for curve in curves
        ],
        ignore_index=True,
    )
    ends = "; ".join(
        f"{LABELS[curve.order]} ends at {_number(curve.loss[-1].value)} for {_number(curve.cost[-1])}"
        for curve in curves
    )
    return Chart(
        {"data": traces, "layout": layout},
        f"Log loss by mean cost of a patient. {ends}.",
        lambda: table,
        {"mean cost": "%.2f", "log loss": "%.4f"},
    )


def calibration(found: Calibration, evidence: Evidence) -> Chart:
    """What was predicted against what happened, with 95% intervals; on the diagonal, the two agree."""
    classes = evidence.kind != "continuous"
    if classes:
        of = evidence.classes[1] if evidence.kind == "binary" else "the likeliest class"
        across, up = f"predicted probability of {of}", "observed share"
    else:
        across, up = "nominal coverage of the interval", "observed coverage"
    largest = max(found.count, default=1)
    points: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": list(found.predicted),
        "y": list(found.observed),
        "line": {"color": ACCENT, "width": 1},
        "cliponaxis": False,
        "marker": {
            "symbol": "circle",
            "color": ACCENT,
            "size": [6 + 8 * (count / largest) ** 0.5 if classes else 9 for count in found.count],
        },
        "error_y": _error_bars(ACCENT, 3, found.observed, found.low, found.high),
        "customdata": list(found.count),
        "hovertemplate": "predicted %{x:.1%}, observed %{y:.1%}<br>%{customdata} rows<extra></extra>",
    }
    diagonal = {
        "type": "scatter",
        "mode": "lines",
        "x": [0, 1],
        "y": [0, 1],
        "hoverinfo": "skip",
        "line": {"color": TEXT, "width": 1, "dash": "dot"},
    }
    share = {"range": [-0.03, 1.03], "tickformat": ".0%", "nticks": 6}
    layout = layout_of(
        320,
        xaxis=axis_of(title={"text": labels.chart(across, 56)}, **share),
        yaxis=axis_of(title={"text": up}, **share),
    )
    table = pd.DataFrame(
        {across: found.predicted, up: found.observed, "low": found.low, "high": found.high, "rows": found.count}
    )
    when = "before any test" if found.tests == 0 else f"after up to {found.tests} tests"
    alt = (
        f"Calibration {when}: {up} against {across}, in {len(found.predicted)} groups. They are off by "
        f"{100 * found.error:.1f} percentage points on average; by chance alone it would be {100 * found.by_chance:.1f}."
    )
    return Chart(
        {"data": [diagonal, points], "layout": layout},
        alt,
        lambda: table,
        dict.fromkeys((across, up, "low", "high"), "percent"),
    )


def decision_curve(found: DecisionCurve, evidence: Evidence, threshold: float) -> Chart:
    """Net benefit of acting on all whose probability is at least a threshold; the chosen one is marked."""
    names = {voice.name: voice.label(evidence.kind) for voice in evidence.voices} | {"all": "acting on everybody"}
    top = max(LEAST_TOP, *(max(values) for values in found.benefit.values()))
    traces = []
    for voice, values in found.benefit.items():
        colour, dash, _ = LOOKS_OF_VOICES[voice]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": list(found.thresholds),
                "y": list(values),
                "name": names[voice],
                "line": {"color": colour, "width": 2, "dash": dash},
                "hovertemplate": f"{names[voice]}<br>from %{{x:.0%}} on: %{{y:.3f}}<extra></extra>",
            }
        )
    mark = {
        "type": "line",
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "x0": threshold,
        "x1": threshold,
        "line": {"color": TEXT, "width": 1, "dash": "dot"},
    }
    layout = layout_of(
        320,
        xaxis=axis_of(title={"text": "threshold of action"}, range=[0, 1], tickformat=".0%", nticks=6),
        yaxis=axis_of(title={"text": "net benefit"}, range=[LOWEST_SHOWN * top, 1.08 * top], nticks=6),
        showlegend=True,
        legend=_LEGEND,
        shapes=[mark],
    )
    table = pd.DataFrame({"threshold": found.thresholds, **{names[voice]: v for voice, v in found.benefit.items()}})
    for name in ("value", "low", "high"):
        suffix = "" if name == "value" else f", {name}"
        table[f"over acting on all or nobody{suffix}"] = [getattr(each, name) for each in found.advantage]
    number = min(range(len(found.thresholds)), key=lambda s: abs(found.thresholds[s] - threshold))
    at = "; ".join(f"{names[voice]} {_number(values[number])}" for voice, values in found.benefit.items())
    alt = f"Net benefit by threshold of acting on {found.outcome}. At {threshold:.0%}: {at}; acting on nobody 0."
    formats = {"threshold": "percent", **dict.fromkeys(table.columns[1:], "%.4f")}
    return Chart({"data": traces, "layout": layout}, alt, lambda: table, formats)


def choices(evidence: Evidence) -> Chart:
    """Tests × steps: for which share of the patients the model's order took each test at each step."""
    chosen = list(zip(*evidence.chosen, strict=True))  # by test, then by step
    order = sorted(range(len(evidence.actions)), key=lambda i: -sum(chosen[i][:3]) - 1e-3 * sum(chosen[i]))
    shown = [i for i in order if sum(chosen[i]) > 0][:TESTS_SHOWN]
    steps = range(1, evidence.budget + 1)
    names = [*[evidence.actions[i] for i in shown], NOTHING_LEFT]
    rows = [*[list(chosen[i]) for i in shown], list(evidence.finished)]
    layout = layout_of(
        70 + 22 * len(names),
        xaxis=axis_of(
            title={"text": "step"},
            side="top",
            tickmode="array",
            tickvals=list(steps),
            ticktext=list(map(str, steps)),
            showgrid=False,
            range=[0.5, max(len(steps), 3) + 0.5],  # a single step is not as wide as the page
        ),
        yaxis=_axis_of_names(names),
    )
    table = pd.DataFrame({"test": [*evidence.actions, NOTHING_LEFT]})
    for step in range(evidence.budget):
        table[f"step {step + 1}"] = [*evidence.chosen[step], evidence.finished[step]]
    first = max(range(len(evidence.actions)), key=lambda i: chosen[i][0])
    alt = (
        f"How often each of {len(evidence.actions)} tests is taken at each of {evidence.budget} steps in the model's order. "
        f"First comes most often {evidence.actions[first]}, for {labels.percent(chosen[first][0])} of the patients."
    )
    return Chart(
        {"data": _map_of_shares(names, rows), "layout": layout},
        alt,
        lambda: table,
        dict.fromkeys(table.columns[1:], "percent"),
    )


def _map_of_shares(names: Sequence[str], rows: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    """Shares as colours, with the larger ones written on them. rows: of each name, one share for each step."""
    steps = list(range(1, len(rows[0]) + 1))
    top = max((value for row in rows for value in row), default=0.0) or 1.0
    heat = {
        "type": "heatmap",
        "x": steps,
        "y": list(range(len(names))),
        "z": rows,
        "zmin": 0.0,
        "zmax": top,
        "xgap": 2,
        "ygap": 2,
        "colorscale": "Cividis",
        "hoverinfo": "text",
        "text": [
            [
                f"{labels.chart(name, 40)}<br>step {step}: {labels.percent(value)} of the patients"
                for step, value in zip(steps, row, strict=True)
            ]
            for name, row in zip(names, rows, strict=True)
        ],
        "colorbar": {
            "title": {"text": "patients"},
            "thickness": 10,
            "len": 0.9,
            "tickformat": ".0%",
            "nticks": 3,
            "x": 1.01,
        },
    }
    written = [
        (step, position, value)
        for position, row in enumerate(rows)
        for step, value in zip(steps, row, strict=True)
        if value >= LEAST_WRITTEN
    ]
    marks = {
        "type": "scatter",
        "mode": "text",
        "hoverinfo": "skip",
        "x": [step for step, _, _ in written],
        "y": [position for _, position, _ in written],
        "text": [f"{value:.0%}" for _, _, value in written],
        # Dark letters where the map is light.
        "textfont": {"size": 11, "color": ["#10181c" if value > 0.55 * top else "#ffffff" for _, _, value in written]},
    }
    return [heat, marks]


def wishes(found: Sequence[Positivity], rows: int) -> Chart:
    """For each test how often the model asked for it first: filled where it had been recorded, hatched where not."""
    shown = sorted([wish for wish in found if wish.wished], key=lambda wish: -wish.wished)[:TESTS_SHOWN]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "y": list(range(len(shown))),
            "x": counts,
            "name": name,
            "width": 0.62,
            "hoverinfo": "text",
            "hovertext": [
                f"{labels.chart(wish.action, 40)}<br>{count} times {name}"
                for wish, count in zip(shown, counts, strict=True)
            ],
            "textposition": "none",
            "marker": {
                "color": colour,
                "pattern": {"shape": shape, "fgcolor": colour, "fillmode": "replace", "size": 6},
                "line": {"color": colour, "width": 1},
            },
        }
        for name, counts, colour, shape in (
            ("recorded", [wish.recorded for wish in shown], ACCENT, ""),
            ("not recorded", [wish.wished - wish.recorded for wish in shown], ATTENTION, "/"),
        )
    ]
    layout = layout_of(
        84 + 22 * len(shown),
        barmode="stack",
        xaxis=axis_of(title={"text": "decisions in which the model asked for it first"}, rangemode="tozero"),
        yaxis=_axis_of_names([wish.action for wish in shown]),
        showlegend=True,
        legend=_LEGEND,
    )
    table = pd.DataFrame(
        {
            "test": [wish.action for wish in found],
            "asked for first": [wish.wished for wish in found],
            "… and recorded": [wish.recorded for wish in found],
            "… few such patients had it": [wish.thin for wish in found],
            "recorded in the cohort": [wish.support for wish in found],
            "share of the cohort": [wish.support / max(rows, 1) for wish in found],
        }
    )
    asked, had = sum(wish.wished for wish in found), sum(wish.recorded for wish in found)
    alt = f"Of {asked} decisions, the test that the model asked for first had been recorded in {had}."
    return Chart({"data": bars, "layout": layout}, alt, lambda: table, {"share of the cohort": "percent"})


_LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0, "xanchor": "left"}


def _of(curve: Curve, score: str) -> Sequence[Estimate]:
    return curve.loss if score == "log loss" else curve.scores[score]


def _line(
    name: str, look: Look, x: list[float], estimates: Sequence[Estimate], where: str, interval: bool = True
) -> dict[str, Any]:
    colour, dash, sign = look
    values = [_or_none(estimate.value) for estimate in estimates]
    line: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": values,
        "name": name,
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"symbol": sign, "size": 7, "color": colour},
        "hovertemplate": f"{name}<br>{where}: %{{y:.3f}}<extra></extra>",
        "cliponaxis": False,
    }
    known = all(estimate.low == estimate.low for estimate in estimates)
    if interval and known:
        ends = ([getattr(estimate, end) for estimate in estimates] for end in ("value", "low", "high"))
        line["error_y"] = _error_bars(colour, 2, *ends)
    return line


def _error_bars(
    colour: str, width: int, values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "color": colour,
        "thickness": 1,
        "width": width,
        "array": [high - value for high, value in zip(highs, values, strict=True)],
        "arrayminus": [value - low for low, value in zip(lows, values, strict=True)],
    }


def _axis_of_names(names: Sequence[str]) -> dict[str, Any]:
    """An upright axis with a name at each whole number, the first at the top."""
    return axis_of(
        tickmode="array",
        tickvals=list(range(len(names))),
        ticktext=labels.chart_apart(names, 24),
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
    )


def _base_line(base: float | None) -> dict[str, Any]:
    if base is None:
        return {}
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": base,
        "y1": base,
        "line": {"color": TEXT, "width": 1, "dash": "dot"},
    }
    word = {
        "xref": "paper",
        "x": 1,
        "y": base,
        "text": "base rate",
        "showarrow": False,
        "xanchor": "right",
        "yanchor": "bottom",
        "font": {"size": 11},
    }
    return {"shapes": [line], "annotations": [word]}


def _or_none(value: float) -> float | None:
    return None if value != value else value


def _number(value: float) -> str:
    return "unknown" if value != value else labels.predicted(value)
