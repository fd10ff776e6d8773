"""Every chart is valid for Plotly, says what it shows, and has its numbers in a table."""

from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest

from app.ui import charts

HOSTILE = "<b>$x$</b> ![i](http://example.invalid/p.png)"
FEATURES = ["lactate", HOSTILE, "scan"]


def made() -> dict[str, charts.Chart]:
    points = [
        charts.Point("start", {"died": 0.2}),
        charts.Point(HOSTILE, {"died": 0.4}, {"died": 0.3}, {"died": 0.5}),
    ]
    classes = [charts.Point("start", {"a": 0.2, "b": 0.5, HOSTILE: 0.3}), charts.Point("x", {"a": 0.1, "b": 0.6, HOSTILE: 0.3})]
    columns = [
        charts.Column("start", {"lactate": 0.1, HOSTILE: 0.02, "scan": 0.0}, {}, "lactate"),
        charts.Column("lactate", {HOSTILE: 0.01}, {"lactate": "known", "scan": "unavailable"}, HOSTILE),
    ]
    grid = np.linspace(0, 10, 21)
    return {
        "icons": charts.icon_array(0.31, HOSTILE),
        "bars": charts.class_bars({"a": 0.2, HOSTILE: 0.8}, {"a": 0.5, HOSTILE: 0.5}, {"a": (0.1, 0.3), HOSTILE: (0.7, 0.9)}),
        "density": charts.density(grid, np.exp(-grid), np.exp(-2 * grid), (0.1, 3.0), 0.7, HOSTILE, "mg/dL"),
        "history": charts.history(points, HOSTILE, probability=True),
        "histories": charts.history(classes, "probability", probability=True),
        "gains": charts.gain_map(FEATURES, columns),
        "preview": charts.preview(["low 1 mmol/L", HOSTILE], [0.1, 0.6], 0.3, HOSTILE, True),
        "comparison": charts.two_histories(
            [charts.Path("Bed 4", [0, 1], [0.2, 0.4], ["start", HOSTILE]), charts.Path(HOSTILE, [0, 2.5], [0.3, 0.1], ["", ""])],
            "cost", HOSTILE, True,
        ),
        "recorded": charts.recorded_map(np.random.default_rng(0).random((400, 3)) < 0.6, FEATURES),
    }  # fmt: skip


@pytest.mark.parametrize("name", made())
def test_it_is_a_valid_picture_with_words_and_numbers(name: str) -> None:
    chart = made()[name]
    if isinstance(chart.spec, str):
        picture = ElementTree.fromstring(chart.spec)
        assert picture.get("role") == "img" and picture.get("aria-label") == chart.alt and len(picture) > 0
    else:
        figure = go.Figure(**chart.spec)
        assert figure.data and charts.Drawn(chart.spec).to_dict() == chart.spec
    assert len(chart.alt) > 20 and len(chart.table) > 0
    assert set(chart.formats) <= set(chart.table.columns)


@pytest.mark.parametrize("name", made())
def test_no_name_is_read_as_a_tag_or_a_formula(name: str) -> None:
    chart = made()[name]
    if name == "gains":
        del chart.spec["data"][2]["customdata"]  # what a click gives back; never shown
    shown = str(chart.spec)
    assert "<b>" not in shown and (isinstance(chart.spec, str) or "$x$" not in shown)  # only Plotly reads formulas


def test_the_icon_array_fills_as_many_as_it_says() -> None:
    chart = charts.icon_array(0.31, "died")
    icons = ElementTree.fromstring(chart.spec)
    assert [icon.get("class") for icon in icons] == ["has"] * 31 + [None] * 69
    assert "31 have died" in chart.alt and chart.table["of 100"].tolist() == [31, 69]


def test_a_preview_leads_from_the_answer_now_to_each_that_a_result_would_bring() -> None:
    picture = ElementTree.fromstring(charts.preview(["low", "high"], [0.1, 0.6], 0.3, "died", True).spec)
    now = float(picture.get("style", "").removeprefix("--now:").removesuffix("%"))
    tracks = [found for found in picture if found.get("class") in ("track up", "track down")]
    assert [track[2].text for track in tracks] == ["10%", "60%"]
    for track, is_left in zip(tracks, (True, False), strict=True):
        left, width = (float(part.split(":")[1].strip("%")) for part in track[0].get("style", "").split(";"))
        dot = float(track[1].get("style", "").removeprefix("left:").removesuffix("%"))
        assert np.allclose([left, left + width], [dot, now] if is_left else [now, dot], atol=0.11)


def test_the_heat_map_marks_states_by_signs_and_offers_each_cell_for_clicking() -> None:
    chart = made()["gains"]
    heat, marks, overlay = chart.spec["data"]
    assert heat["colorscale"] == "Cividis"
    assert sorted(marks["text"]) == sorted(["★", "★", "●", "✕"])
    assert [data[0] for data in overlay["customdata"]] == FEATURES + FEATURES
    assert chart.table.iloc[:, 2].tolist() == ["known", "0.0100", "unavailable"]


@pytest.mark.parametrize("top", [1e-6, 0.003, 0.27, 0.69, 1.0, 12.0])
def test_small_gains_stay_apart_beside_one_large_gain_and_the_colour_bar_says_nats(top: float) -> None:
    gains = {"large": top, "small": top / 20, "smaller": top / 100, "noise": -top / 50}
    heat, *_ = charts.gain_map(list(gains), [charts.Column("start", gains, {}, "large")]).spec["data"]
    shades = [row[0] for row in heat["z"]]
    assert shades[0] == heat["zmax"] and shades[3] == heat["zmin"]
    assert shades[1] - shades[2] > 0.1 and shades[2] - shades[3] > 0.05
    bar = heat["colorbar"]
    nats = np.array([float(text) for text in bar["ticktext"]])
    assert nats[0] == 0 and len(nats) >= 4 and top / 3 <= nats[-1] <= top * (1 + 1e-9)
    assert np.allclose(bar["tickvals"], np.sqrt(nats / top)) and np.diff(bar["tickvals"]).min() >= 0.15


def test_a_step_at_which_nothing_promises_anything_is_drawn() -> None:
    (heat, *_) = charts.gain_map(["a"], [charts.Column("start", {"a": 0.0}, {}, "a")]).spec["data"]
    assert heat["z"] == [[0.0]]


def test_a_wide_cohort_shows_the_best_and_tables_all() -> None:
    names = [f"f{i}" for i in range(60)]
    chart = charts.gain_map(names, [charts.Column("start", {n: i / 100 for i, n in enumerate(names)}, {}, "f59")])
    assert len(chart.spec["data"][0]["y"]) == charts.MOST_ROWS and len(chart.table) == 60
    assert "f59" in chart.spec["layout"]["yaxis"]["ticktext"] and "f0" not in chart.spec["layout"]["yaxis"]["ticktext"]


@pytest.mark.parametrize("values", [[0.0, 0.01], [0.99, 1.0], [0.4, 0.45], [0.1, 0.9]])
def test_a_history_shows_everything_and_never_magnifies_noise(values: list[float]) -> None:
    points = [charts.Point(str(i), {"died": value}) for i, value in enumerate(values)]
    low, high = charts.history(points, "died", probability=True).spec["layout"]["yaxis"]["range"]
    assert low <= min(values) and high >= max(values)
    assert 0.3 <= high - low <= 1.07 and low >= -0.04 and high <= 1.04


def test_the_map_of_what_is_recorded_says_what_its_shades_mean_and_how_many_rows_it_shows() -> None:
    for rows, words in ((400, "250 of 400 rows"), (100, "100 rows")):
        chart = charts.recorded_map(np.ones((rows, 3), dtype=bool), FEATURES)
        title = chart.spec["layout"]["xaxis"]["title"]["text"]
        assert words in title and "dark: recorded, light: missing" in title and words in chart.alt
