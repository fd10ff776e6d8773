"""Figures are legible without colour, name their units, and never leave a stale picture behind."""

import importlib.util

import pandas as pd
import pytest

from train.study.experiments import figures
from train.study.experiments.experiment import EXPERIMENTS, experiment_settings, scales_of

TABLE = pd.DataFrame(
    {
        "family": ["a"] * 4 + ["b"] * 4,
        "method": ["l2m", "l2m", "gdfs", "gdfs"] * 2,
        "step": [0, 1] * 4,
        "value": [0.6, 0.5, 0.7, 0.6, 0.4, 0.3, 0.5, 0.45],
        "value_low": [0.5] * 8,
        "value_high": [0.8] * 8,
    }
)


def draw():
    return figures.lines(TABLE, "step", "value", "method", "family", "acquisitions", "log loss (nats)")


def test_lines_differ_in_more_than_colour():
    own, other = draw().data[:2]
    assert own.line.dash != other.line.dash and own.marker.symbol != other.marker.symbol
    assert own.line.color != other.line.color


def test_a_method_has_one_style_in_all_panels_and_one_entry_in_the_legend():
    traces = [t for t in draw().data if t.name == "L2M"]
    assert len({t.line.color for t in traces}) == 1 and len(traces) == 2
    assert [bool(t.showlegend) for t in traces] == [True, False]


def test_every_family_and_method_of_the_configs_has_a_name_that_readers_know():
    shown = {"digits", "nhanes", "eicu", "ckd", "hospital", "heart_cleveland", "pima_diabetes", "nhanes_diabetes"}
    for name in EXPERIMENTS:
        for scale in scales_of(name):
            settings = experiment_settings(name, scale)
            names = {family.name for family in settings.families} | set(getattr(settings, "methods", ()))
            assert {each for each in names if figures.named(each) == each.replace("_", " ")} <= shown


def test_a_method_that_the_first_panel_lacks_is_in_the_legend_too():
    late = TABLE[(TABLE["family"] != "a") | (TABLE["method"] != "gdfs")]
    figure = figures.lines(late, "step", "value", "method", "family", "acquisitions", "log loss (nats)")
    assert sorted(t.name for t in figure.data if t.showlegend) == ["GDFS", "L2M"]


def test_axes_say_what_and_in_which_unit():
    figure = draw()
    assert figure.layout.xaxis.title.text == "acquisitions"
    assert figure.layout.yaxis.title.text == "log loss (nats)"


def test_rows_of_panels_leave_room_for_axes_and_names():
    many = pd.concat([TABLE.assign(family=f"family {i}") for i in range(8)])
    figure = figures.lines(many, "step", "value", "method", "family", "acquisitions", "log loss (nats)")
    drawn = figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    ends = sorted({figure.layout[f"yaxis{i or ''}"].domain for i in (0, 4, 7)})
    assert len(ends) == 3
    assert all((above[0] - below[1]) * drawn >= 90 for below, above in zip(ends, ends[1:], strict=False))


def test_a_title_stands_above_the_panels_names():
    plain, figure = draw(), figures.entitled(draw(), "Acquisition (scale small)")
    assert figure.layout.title.text == "Acquisition (scale small)"
    assert figure.layout.margin.t == plain.layout.margin.t + 30 and figure.layout.height == plain.layout.height + 30


def test_intervals_are_shown_where_the_table_has_them():
    assert draw().data[0].error_y.array[0] == pytest.approx(0.2)
    bare = TABLE.drop(columns=["value_low", "value_high"])
    assert figures.bars(bare, "family", "value", "method", "family", "nats").data[0].error_y.array is None


def test_bars_are_hatched():
    shapes = [bar.marker.pattern.shape for bar in figures.bars(TABLE, "family", "value", "method", "x", "y").data]
    assert len(set(shapes)) == 2


def test_a_heat_map_writes_its_numbers():
    frame = pd.DataFrame([[0.75, 0.0], [0.25, 1.0]], index=["lactate", "sodium"], columns=[1, 2])
    heat = figures.heat_maps({"L2M": frame}, "step", "feature", "share").data[0]
    assert heat.text.tolist() == [["0.75", ""], ["0.25", "1.00"]]


def test_long_names_beside_a_map_do_not_reach_into_the_next_one():
    names = ["a_feature_with_a_long_name", "b"]
    maps = {title: pd.DataFrame([[1.0], [0.0]], index=names, columns=[1]) for title in ("L2M", "GDFS", "DIME")}
    figure = figures.heat_maps(maps, "step", "feature", "share")
    gap = (figure.layout.xaxis2.domain[0] - figure.layout.xaxis.domain[1]) * 900  # of a figure 1,100 pixels wide
    assert gap > 7 * len(names[0])


def test_without_a_renderer_a_page_is_written_and_an_old_picture_goes(tmp_path):
    (tmp_path / "f.png").write_bytes(b"old")
    assert figures.save(draw(), tmp_path, "f") == [tmp_path / "f.html"]
    assert not (tmp_path / "f.png").exists()


def test_pictures_of_two_runs_are_the_same_text():
    drawn = "<g class='trace scatter trace{0}'/><defs id=\"defs-{1}\"/><path clip='#clip{1}xy' d='M{2},1'/>"
    one = figures.without_chance(drawn.format("53aa73", "123456", 123456))
    assert one == figures.without_chance(drawn.format("a5ea84", "eb582b", 123456))
    assert "M123456,1" in one  # a number is no name


@pytest.mark.browser
@pytest.mark.skipif(importlib.util.find_spec("kaleido") is None, reason="needs kaleido: pip install kaleido")
def test_with_a_renderer_there_is_a_picture_too(tmp_path):
    saved = figures.save(draw(), tmp_path, "f")
    assert [p.suffix for p in saved] == [".png", ".html"]
    assert saved[0].read_bytes().startswith(b"\x89PNG")
