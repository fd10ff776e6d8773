"""Charts of evidence and of training: valid, in words, and with their numbers; nothing hangs on colour alone."""

from __future__ import annotations

import html
import math
import re
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

import l2m_core as l2m
from app.ui import charts
from app.ui.charts import evidence_charts as drawings
from app.ui.charts import figure_pictures, training_charts
from app.ui.experiments import watching
from l2m_core.evidence import Evidence, EvidenceSettings, gather
from tests.app.test_charts import HOSTILE, stands_alone

QUICK = EvidenceSettings(folds=2, budget=2, most_rows=12, draws=100)


@pytest.fixture(scope="module")
def binary() -> Evidence:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3)).astype(np.float32)
    x[draw.random(x.shape) < 0.2] = np.nan
    cohort = l2m.Cohort.from_arrays(
        x, draw.integers(0, 2, 60), names=["lactate", HOSTILE, "scan"], costs=[1, 2, 3], classes=["no", HOSTILE]
    )
    return gather(l2m.load(), cohort, QUICK)


@pytest.fixture(scope="module")
def continuous() -> Evidence:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3)).astype(np.float32)
    return gather(l2m.load(), l2m.Cohort.from_arrays(x, x[:, 0], kind="continuous"), QUICK)


LOG = [
    {
        "step": step,
        "seconds": step / 2,
        "loss": 1 / step,
        **({"held_out/own": 0.5, "held_out/own_base": 0.6} if step % 10 == 0 else {}),
    }
    for step in range(1, 1001)
]


def made(found: Evidence) -> list[charts.Chart]:
    return [
        drawings.by_tests(found.curves, "log loss", "nats", found.base.value),
        *(drawings.by_tests(found.curves, score, "") for score in found.curve.scores),
        drawings.by_cost(found.curves, "nats"),
        drawings.calibration(found.calibration[0], found),
        drawings.calibration(found.calibration[-1], found),
        drawings.by_voice(found),
        *(drawings.decision_curve(each, found, 0.3) for each in found.decisions_at),
        drawings.choices(found),
        drawings.wishes(found.wishes, found.rows),
    ]


def valid(chart: charts.Chart) -> None:
    figure = go.Figure(**chart.spec)
    assert figure.data and len(chart.alt) > 20 and len(chart.table) > 0
    assert set(chart.formats) <= set(chart.table.columns)
    assert "<b>" not in str(chart.spec) and "$x$" not in str(chart.spec)
    stands_alone(chart)


def test_every_chart_of_evidence_is_valid_with_words_and_numbers(binary: Evidence, continuous: Evidence) -> None:
    for chart in (*made(binary), *made(continuous)):
        valid(chart)


def test_tests_taken_are_marked_for_no_step_beyond_the_budget(binary: Evidence) -> None:
    across = drawings.choices(binary).spec["layout"]["xaxis"]
    assert across["range"][1] > 3 and across["tickvals"] == [1, 2] and across["ticktext"] == ["1", "2"]


def test_orders_differ_in_dash_and_sign(binary: Evidence) -> None:
    lines = drawings.by_tests(binary.curves, "log loss", "nats").spec["data"]
    assert len(lines) == 4
    assert len({line["line"]["dash"] for line in lines}) == len({line["marker"]["symbol"] for line in lines}) == 4


def test_the_table_holds_the_curve_with_its_interval(binary: Evidence) -> None:
    table = drawings.by_tests(binary.curves, "log loss", "nats").table
    assert table["the model's order"].tolist() == [each.value for each in binary.curve.loss]
    assert (table["the model's order, low"] <= table["the model's order"]).all()


def test_a_score_that_cannot_be_known_leaves_a_gap(binary: Evidence) -> None:
    unknown = replace(binary.curve.loss[0], value=math.nan, low=math.nan, high=math.nan)
    curve = replace(binary.curve, scores={"auroc": (unknown,) * 3})
    chart = drawings.by_tests([curve], "auroc", "")
    valid(chart)
    assert chart.spec["data"][0]["y"] == [None] * 3 and "unknown" in chart.alt


def test_what_was_not_recorded_is_hatched(binary: Evidence) -> None:
    recorded, not_recorded = drawings.wishes(binary.wishes, binary.rows).spec["data"]
    assert (recorded["marker"]["pattern"]["shape"], not_recorded["marker"]["pattern"]["shape"]) == ("", "/")
    assert sum(recorded["x"]) + sum(not_recorded["x"]) == binary.decisions


def test_large_scores_and_costs_are_told_with_their_digits(binary: Evidence) -> None:
    large = replace(binary.curve.loss[0], value=1234.4)
    curve = replace(binary.curve, cost=(0.0, 1500.0, 12500.0), scores={"crps": (large,) * 3})
    assert "1,234 to 1,234" in drawings.by_tests([curve], "crps", "g").alt
    assert "for 12,500." in drawings.by_cost([curve], "nats").alt


def test_learning_curves_are_valid_and_bounded() -> None:
    loss, held_out = training_charts.training_loss(LOG, 1000), training_charts.held_out_loss(LOG, 1000)
    assert held_out is not None
    valid(loss), valid(held_out)
    assert len(loss.spec["data"][0]["x"]) == training_charts.MOST_POINTS and loss.spec["data"][0]["x"][-1] == 1000
    assert held_out.table["own"].iloc[-1] == pytest.approx(-0.1) and "minus base rate" in held_out.alt
    assert training_charts.held_out_loss(LOG[:5], 1000) is None
    valid(training_charts.training_loss(LOG[:1], 1000))


def drawn(chart: charts.Chart) -> str:
    assert chart.picture is not None
    return chart.picture()


def test_the_picture_of_lines_has_each_with_its_look_and_its_name(binary: Evidence) -> None:
    chart = drawings.by_tests(binary.curves, "log loss", "nats", binary.base.value)
    svg = drawn(chart)
    for line in chart.spec["data"]:
        dashes = figure_pictures.DASHES.get(line["line"]["dash"])
        assert f">{html.escape(line['name'], quote=False)}<" in svg or html.escape(line["name"]) in svg
        assert dashes is None or f'stroke-dasharray="{dashes}"' in svg
    assert "base rate" in svg and "log loss (nats)" in svg and "tests, at most" in svg


def test_the_picture_of_bars_hatches_what_was_not_recorded(binary: Evidence) -> None:
    svg = drawn(drawings.wishes(binary.wishes, binary.rows))
    assert f'fill="url(#{figure_pictures.HATCH})"' in svg and f'<pattern id="{figure_pictures.HATCH}"' in svg


def test_the_picture_of_a_gap_joins_nothing_over_it(binary: Evidence) -> None:
    known, missing = binary.curve.loss[0], replace(binary.curve.loss[0], value=math.nan, low=math.nan, high=math.nan)
    curve = replace(binary.curve, scores={"auroc": (known, known, missing, known, known)})
    svg = drawn(drawings.by_tests([curve], "auroc", ""))
    assert [points.count(",") for points in re.findall(r'<polyline points="([^"]*)"', svg)] == [2, 2]


def test_the_rate_is_that_of_the_last_minute() -> None:
    slow = [{"step": step, "seconds": 10.0 * step} for step in range(1, 11)]
    fast = [{"step": 10 + step, "seconds": 100 + step / 4} for step in range(1, 401)]
    assert watching.rate_of(slow + fast) == pytest.approx(4.0)
    assert watching.rate_of(slow[:1]) is None and watching.rate_of([]) is None
    assert [watching.duration(seconds) for seconds in (None, 20, 600, 7200)] == ["—", "20 s", "10 min", "2.0 h"]


def test_predictors_differ_in_dash_and_the_chosen_threshold_is_marked(binary: Evidence) -> None:
    lines = drawings.by_voice(binary).spec["data"]
    assert len({line["line"]["dash"] for line in lines}) == len(lines) == 3
    (curve,) = binary.decisions_at
    chart = drawings.decision_curve(curve, binary, 0.3)
    assert chart.spec["layout"]["shapes"][0]["x0"] == 0.3
    assert len({line["line"]["dash"] for line in chart.spec["data"]}) == len(chart.spec["data"])
    assert len({dash for _, dash, _ in drawings.LOOKS_OF_VOICES.values()}) == len(drawings.LOOKS_OF_VOICES)
    assert chart.table["acting on everybody"].tolist() == list(curve.benefit["all"])
    assert f"{curve.benefit['model'][29]:.3g}" in chart.alt


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.0, 1.0], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([0.31, 0.69], [0.3, 0.4, 0.5, 0.6, 0.7]),
        ([math.nan], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ([-3.0, 12.0], [-5.0, 0.0, 5.0, 10.0, 15.0]),
    ],
)
def test_ticks_are_round_and_reach_around_the_values(values: list[float], expected: list[float]) -> None:
    assert figure_pictures.ticks(values) == expected


@pytest.mark.parametrize("value", [0.0, 5.0, -0.02, 1e9])
def test_one_value_alone_has_an_axis_too(value: float) -> None:
    found = figure_pictures.ticks([value, value])
    assert found[0] <= value <= found[-1] and found[-1] > found[0]


def test_a_decision_curve_without_any_benefit_can_be_drawn_and_saved(binary: Evidence) -> None:
    """Of an outcome so rare that acting is worth it at no threshold."""
    (curve,) = binary.decisions_at
    benefit = {voice: tuple(min(value, 0.0) for value in values) for voice, values in curve.benefit.items()}
    chart = drawings.decision_curve(replace(curve, benefit=benefit), binary, 0.3)
    low, high = chart.spec["layout"]["yaxis"]["range"]
    assert low < high and "<svg" in figure_pictures.svg_of(chart.spec, chart.alt)
