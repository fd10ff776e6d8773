"""Every chart is valid for Plotly, says what it shows, and has its numbers in a table."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from app.streamlit_contact import chart_colours
from app.streamlit_contact.chart_colours import LIGHT
from app.ui import charts, labels
from app.ui.charts import base, pictures, png
from app.ui.charts.cividis import CIVIDIS, PALETTE

HOSTILE = "<b>$x$</b> ![i](http://example.invalid/p.png)"
FEATURES = ["lactate", HOSTILE, "scan"]


def made() -> dict[str, charts.Chart]:
    points = [
        charts.Point("start", {"died": 0.2}),
        charts.Point(HOSTILE, {"died": 0.4}, {"died": 0.3}, {"died": 0.5}),
    ]
    classes = [
        charts.Point("start", {"a": 0.2, "b": 0.5, HOSTILE: 0.3}),
        charts.Point("x", {"a": 0.1, "b": 0.6, HOSTILE: 0.3}),
    ]
    columns = [
        charts.Column("start", {"lactate": 0.1, HOSTILE: 0.02, "scan": 0.0}, {}, "lactate", {"lactate": "±9 points"}),
        charts.Column("lactate", {HOSTILE: 0.01}, {"lactate": "known", "scan": "unavailable"}, HOSTILE),
    ]
    edges = charts.ranges(0.0, 10.0, whole=True)
    chances = np.exp(-np.array(edges[1:]))
    return {
        "icons": charts.icon_array(0.31, HOSTILE),
        "bars": charts.class_bars(
            {"a": 0.2, HOSTILE: 0.8}, {"a": 0.5, HOSTILE: 0.5}, {"a": (0.1, 0.3), HOSTILE: (0.7, 0.9)}
        ),
        "density": charts.density(edges, chances, chances**2, (0.1, 3.0), 0.7, HOSTILE, "mg/dL"),
        "history": charts.history(charts.BeliefCurve(points, HOSTILE, probability=True)),
        "histories": charts.history(charts.BeliefCurve(classes, "probability", probability=True)),
        "gains": charts.gain_map(FEATURES, columns),
        "preview": charts.preview(["low 1 mmol/L", HOSTILE], [0.1, 0.6], 0.3, HOSTILE, True),
        "comparison": charts.two_histories(
            [
                charts.Path("Bed 4", [0, 1], [0.2, 0.4], ["start", HOSTILE]),
                charts.Path(HOSTILE, [0, 2.5], [0.3, 0.1], ["", ""]),
            ],
            "cost",
            HOSTILE,
            True,
        ),
        "ranking": charts.ranking(
            {
                "test": charts.RankingColumn(HOSTILE),
                "gain": charts.RankingColumn("gain", HOSTILE, "%.3f"),
                "per cost": charts.RankingColumn("per cost", write="<{:g}".format),
            },
            {"test": [HOSTILE, "b"], "gain": [0.2, float("nan")], "per cost": [1, 2]},
            [3, 1],
            1,
            f"{HOSTILE} in order",
            "gains",
        ),
        "recorded": charts.recorded_map(np.random.default_rng(0).random((400, 3)) < 0.6, FEATURES),
    }


@pytest.mark.parametrize("name", made())
def test_it_is_a_valid_picture_with_words_and_numbers(name: str) -> None:
    chart = made()[name]
    if isinstance(chart.spec, str):
        picture = ElementTree.fromstring(chart.spec)
        assert picture.get("role") in ("img", "region") and picture.get("aria-label") == chart.alt and len(picture) > 0
    else:
        figure = go.Figure(**chart.spec)
        assert figure.data and charts.Drawn(chart.spec).to_dict() == chart.spec
    assert len(chart.alt) > 20 and len(chart.table) > 0
    assert set(chart.formats) <= set(chart.table.columns)


def stands_alone(chart: charts.Chart) -> None:
    """As a picture: all its words lie on it, and nothing in it runs, is fetched or hangs on a theme."""
    assert chart.picture is not None
    svg = chart.picture()
    picture = ElementTree.fromstring(svg)
    sign = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{sign}svg" and picture[0].tag == f"{sign}title" and picture[0].text
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    for text in picture.iter(f"{sign}text"):
        assert 0 <= float(text.get("x", -1)) <= width and 0 <= float(text.get("y", -1)) <= height, text.text
    assert not {"script", "image", "a", "style", "foreignObject"} & {
        part.tag.removeprefix(sign) for part in picture.iter()
    }
    assert "nan" not in svg and not any(marker in svg for marker in set(chart_colours.markers()) - set(LIGHT))
    made_of_pixels = Image.open(io.BytesIO(png.from_svg(svg)))
    assert made_of_pixels.format == "PNG"
    assert made_of_pixels.size == (round(png.ZOOM * width), round(png.ZOOM * height))
    assert len(made_of_pixels.convert("RGB").getcolors(1 << 24)) > 2, "more than paper"


@pytest.mark.parametrize("name", [name for name, chart in made().items() if chart.picture is not None])
def test_it_can_be_taken_away_as_a_picture_that_stands_alone(name: str) -> None:
    stands_alone(made()[name])


def test_every_chart_has_a_picture() -> None:
    assert {name for name, chart in made().items() if chart.picture is None} == {"ranking"}, "which is a table"


def test_the_picture_has_letters_whatever_fonts_the_server_has() -> None:
    def inked(word: str) -> int:
        image = Image.open(io.BytesIO(png.from_svg(pictures.picture(40, [pictures.words(10, 20, word)], "a word"))))
        return int((np.asarray(image.convert("L")) < 128).sum())

    assert inked("") == 0 and inked("µ ★ ≥ Ω Ж") > 200


def test_the_picture_of_the_map_of_gains_has_its_colours_and_signs() -> None:
    chart = made()["gains"]
    assert chart.make_svg is not None
    svg = chart.make_svg()
    shown = {background(cell) for row in cells(ElementTree.fromstring(chart.spec)) for cell in row} - {""}
    assert shown and all(colour in svg for colour in shown) and svg.count(">★<") == 2


def test_the_numbers_as_a_file_hold_no_formula_and_say_how_they_are_written() -> None:
    chart = charts.class_bars({"=HYPERLINK(1)": 0.25, "µ": 0.75})
    lines = base.to_csv(chart).split("\r\n")
    assert lines == ["\ufeffoutcome,probability,of 100", "'=HYPERLINK(1),0.25,25", "µ,0.75,75", ""]


@pytest.mark.parametrize("name", made())
def test_no_name_is_read_as_a_tag_or_a_formula(name: str) -> None:
    chart = made()[name]
    shown = str(chart.spec)
    assert "<b>" not in shown and (isinstance(chart.spec, str) or "$x$" not in shown)  # only Plotly reads formulas


def test_the_icon_array_fills_as_many_as_it_says() -> None:
    chart = charts.icon_array(0.31, "died")
    rows = ElementTree.fromstring(chart.spec)
    assert [row.get("style") for row in rows] == ["--has:20", "--has:11", "--has:0", "--has:0", "--has:0"]
    assert "31 of 100 patients like this: died" in chart.alt and chart.table["of 100"].tolist() == [31, 69]


def bars(before: bool, band: bool) -> ElementTree.Element:
    now, then = {"a": 0.46, "b": 0.5, "c": 0.04}, {"a": 0.45, "b": 0.5, "c": 0.05}
    ends = {"a": (0.3, 0.6), "b": (0.4, 0.7), "c": (0.0, 0.1)}
    return ElementTree.fromstring(charts.class_bars(now, then if before else None, ends if band else None).spec)


@pytest.mark.parametrize(("before", "band"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_number_of_each_class_stands_apart_from_its_marks_in_every_state(before: bool, band: bool) -> None:
    picture = bars(before, band)
    rows = [row for row in picture if row.get("class") == "row"]
    assert [[cell.text for cell in row] for row in rows] == [["a", None, "46%"], ["b", None, "50%"], ["c", None, "4%"]]
    marks = ["bar", *(["band"] if band else []), *(["before"] if before else [])]
    assert all([mark.get("class") for mark in row[1]] == marks for row in rows)
    styles = [mark.get("style") for mark in rows[0][1]]
    assert styles == ["width:46.0%", *(["left:30.0%;width:30.0%"] if band else []), *(["left:45.0%"] if before else [])]
    said = "".join(part.text or "" for part in picture if part.get("class") == "about")
    assert ("a step ago" in said, "resampled" in said) == (before, band), "what a mark means is said where it is"


def test_a_ranking_says_what_to_turn_to_and_leaves_empty_what_nobody_can_say() -> None:
    chart = made()["ranking"]
    table = ElementTree.fromstring(chart.spec)[0]
    rows = table.findall("tbody/tr")
    assert [(row.get("data-pick"), row.get("aria-current")) for row in rows] == [("3", None), ("1", "true")]
    assert [[cell.text for cell in row] for row in rows] == [[HOSTILE, "0.200", "<1"], ["b", None, "<2"]]
    assert [head.get("scope") for head in table.findall("thead/tr/th")] == ["col"] * 3
    assert chart.table[HOSTILE].tolist() == [HOSTILE, "b"] and chart.formats == {"gain": "%.3f"}


def test_a_class_may_be_called_as_a_column_of_the_table_is() -> None:
    classes = {"step": 0.2, "learned": 0.3, "learned, low": 0.1, "grade 3": 0.4}
    points = [charts.Point("start", classes), charts.Point("crp", classes, classes, classes)]
    table = charts.history(charts.BeliefCurve(points, "probability", probability=True)).table
    assert table["step"].tolist() == [0, 1] and table["learned"].tolist() == ["start", "crp"]
    assert table.shape == (2, 2 + 3 * len(classes)) and table.columns.is_unique
    assert table["step (outcome)"].tolist() == [0.2, 0.2] and table["grade 3"].tolist() == [0.4, 0.4]


def test_an_outcome_may_be_called_as_a_column_of_the_table_is() -> None:
    preview = charts.preview(["low", "high"], [0.1, 0.6], 0.3, "result", True).table
    assert preview["result"].tolist() == ["low", "high"] and preview["result (outcome)"].tolist() == [0.1, 0.6]
    path = charts.Path("Bed 4", [0, 1], [0.2, 0.4], ["start", "crp"])
    compared = charts.two_histories([path], "cost", "cost", True).table
    assert compared["cost"].tolist() == [0, 1] and compared["cost (outcome)"].tolist() == [0.2, 0.4]


def test_files_of_a_chart_hold_names_as_they_are_in_the_table() -> None:
    name = "\u05d2\u05d9\u05dc"
    chart = charts.density([0.0, 1.0, 2.0], [0.4, 0.6], None, (0.1, 1.9), 1.1, labels.plain(name), "")
    assert f"\u2068{name}\u2069" in chart.alt
    assert f"{name}, from" in base.to_csv(chart) and "\u2068" not in base.to_csv(chart)


def test_ranges_of_whole_numbers_hold_as_many_of_them_each() -> None:
    assert charts.ranges(0, 4, whole=True) == [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]
    many = charts.ranges(0, 90, whole=True)
    assert set(np.diff(many)) == {4} and many[0] == -0.5 and many[-1] >= 90.5
    measured = charts.ranges(0.2, 9.2, whole=False)
    assert np.allclose(np.diff(measured), 0.3) and measured[0] == 0.2 and np.isclose(measured[-1], 9.2)


def test_a_value_that_many_share_is_as_high_as_it_is_likely() -> None:
    """A density would be as high there as its bin is narrow."""
    chart = charts.density([-0.5, 0.5, 1.5, 2.5], [0.45, 0.35, 0.2], None, (0.0, 2.2), 0.8, "days", "d")
    drawn = chart.spec["data"][1]  # type: ignore[index]
    assert max(drawn["y"]) == 0.45 and drawn["x"][:3] == [-0.5, -0.5, 0.5]
    shaded = chart.spec["data"][0]  # type: ignore[index]
    assert (min(shaded["x"]), max(shaded["x"]), max(shaded["y"])) == (0.0, 2.2, 0.45)
    assert chart.table["chance"].tolist() == [0.45, 0.35, 0.2] and "45%" in chart.alt and "mean 0.8 d" in chart.alt


def test_long_answers_of_a_preview_have_room_between_its_ends() -> None:
    values = [3_029_218_816.0, 4_889_053_696.0, 6_656_728_064.0]
    drawn = str(charts.preview(["low", "typical", "high"], values, 4_872_357_376.0, "charges", False).spec)
    needed = 13 * 6.2 / 250  # characters of 6.2 pixels in 250
    left, _, right = (float(at) / 100 for at in re.findall(r'class="value" style="left:([\d.]+)%"', drawn))
    assert left > needed and right < 1 - needed


def test_a_preview_leads_from_the_answer_now_to_each_that_a_result_would_bring() -> None:
    picture = ElementTree.fromstring(charts.preview(["low", "high"], [0.1, 0.6], 0.3, "died", True).spec)
    now = float(picture.get("style", "").removeprefix("--now:").removesuffix("%"))
    tracks = [found for found in picture if found.get("class") in ("track up", "track down")]
    assert [track[2].text for track in tracks] == ["10%", "60%"]
    for track, is_left in zip(tracks, (True, False), strict=True):
        left, width = (float(part.split(":")[1].strip("%")) for part in track[0].get("style", "").split(";"))
        dot = float(track[1].get("style", "").removeprefix("left:").removesuffix("%"))
        assert np.allclose([left, left + width], [dot, now] if is_left else [now, dot], atol=0.11)


def cells(picture: ElementTree.Element) -> list[list[ElementTree.Element]]:
    """Of each row of a heat map."""
    return [row.findall("i") for row in picture if row.get("class") == "row"]


def background(cell: ElementTree.Element) -> str:
    return cell.get("style", "").removeprefix("background:").split(";")[0]


def test_the_heat_map_marks_states_by_signs_and_offers_each_row_for_clicking() -> None:
    chart = made()["gains"]
    picture = ElementTree.fromstring(chart.spec)
    assert picture.get("data-chart") == "gains"
    assert [[cell.text for cell in row] for row in cells(picture)] == [[None, "★"], ["★", "●"], [None, "✕"]]
    assert [row.get("data-pick") for row in picture if row.get("class") == "row"] == ["1", "0", "2"]
    assert [cell.get("title") for cell in cells(picture)[1]] == [
        "lactate, step 0: ±9 points, 0.100 nats",
        "lactate, step 1: known",
    ]
    assert not background(cells(picture)[1][1]) and background(cells(picture)[0][1])
    (largest,) = (part for part in picture if part.get("class") == "head most")
    assert [cell.text for cell in largest] == ["largest", "0.1", "0.01"], "what each step promised at most"
    assert chart.table.iloc[:, 2].tolist() == ["known", "0.0100", "unavailable"]


def test_rows_whose_names_differ_in_the_middle_can_be_told_apart() -> None:
    names = [f"laboratory value number {number} of the first morning" for number in range(12)]
    chart = charts.gain_map(names, [charts.Column("start", dict.fromkeys(names, 0.1), {}, names[0])])
    assert isinstance(chart.spec, str)
    rows = [part for part in ElementTree.fromstring(chart.spec) if part.get("data-pick")]
    assert len({row[0].text for row in rows}) == len({row[0].get("title") for row in rows}) == 12
    recorded = charts.recorded_map(np.ones((40, 12), dtype=bool), names)
    assert len(set(recorded.spec["layout"]["yaxis"]["ticktext"])) == 12


@pytest.mark.parametrize("top", [0.02, 0.27, 0.69, 1.0, 12.0])
def test_small_gains_stay_apart_beside_one_large_gain_and_the_colour_bar_says_nats(top: float) -> None:
    gains = {"large": top, "small": top / 20, "smaller": top / 100, "noise": -top / 50}
    picture = ElementTree.fromstring(charts.gain_map(list(gains), [charts.Column("start", gains, {}, "large")]).spec)
    shades = [background(row[0]) for row in cells(picture)]
    assert shades[0] == CIVIDIS[-1] and shades[3] == CIVIDIS[0] and len(set(shades)) == 4
    (bar,) = (part for part in picture if part.get("class") == "bar")
    ticks = bar[1].findall("span")[1:]
    nats = np.array([float(tick.text or "") for tick in ticks])
    places = np.array([float(tick.get("style", "").removeprefix("left:").removesuffix("%")) for tick in ticks]) / 100
    assert bar[0].text == "gain (nats)"
    assert nats[0] == 0 and len(nats) >= 4 and top / 3 <= nats[-1] <= top * (1 + 1e-9)
    assert np.allclose(places, np.sqrt(nats / top), atol=1e-3) and np.diff(places).min() >= 0.149


def test_where_all_gains_are_small_they_are_told_apart_and_the_scale_says_how_small_they_are() -> None:
    gains = {"most": 0.0004, "half": 0.0001, "none": 0.0}
    picture = ElementTree.fromstring(charts.gain_map(list(gains), [charts.Column("start", gains, {}, "most")]).spec)
    assert [background(row[0]) for row in cells(picture)] == [CIVIDIS[-1], PALETTE[32], CIVIDIS[0]]
    (bar,) = (part for part in picture if part.get("class") == "bar")
    assert float(bar[1].findall("span")[-1].text or "") <= 0.0004


@pytest.mark.parametrize("most", [1e-6, 2e-6])
def test_gains_that_tell_nothing_are_dark_however_much_larger_than_the_others(most: float) -> None:
    gains = {"most": most, "none": 0.0}
    picture = ElementTree.fromstring(charts.gain_map(list(gains), [charts.Column("start", gains, {}, "most")]).spec)
    shades = [PALETTE.index(background(row[0])) / (len(PALETTE) - 1) for row in cells(picture)]
    assert max(shades) < 0.15
    assert [row[0].get("title") for row in cells(picture)] == ["most, step 0: <0.001 nats", "none, step 0: 0.000 nats"]
    (bar,) = (part for part in picture if part.get("class") == "bar")
    assert bar[1].findall("span")[-1].text == "0.0001", "the scale says where it ends"


@pytest.mark.parametrize("top", [1e-6, 1e-4, 0.0003, 0.0008, 0.002])
def test_small_gains_are_plain_numbers_in_the_map_and_on_its_colour_bar(top: float) -> None:
    chart = charts.gain_map(["a", "b"], [charts.Column("start", {"a": top, "b": top / 20}, {}, "a")])
    picture = ElementTree.fromstring(chart.spec)
    (bar,) = (part for part in picture if part.get("class") == "bar")
    (largest,) = (part for part in picture if part.get("class") == "head most")
    texts = [*(tick.text or "" for tick in bar[1].findall("span")[1:]), largest[1].text or ""]
    assert [text for text in texts if not re.fullmatch(r"<?\d+(\.\d+)?", text)] == []
    assert texts[-1] == {1e-6: "0", 0.0008: "0.001", 0.002: "0.002"}.get(top, "<0.001")
    assert len(texts) >= 3, "the bar says where it begins, and one gain more"


def test_a_brighter_cell_promises_more() -> None:
    gains = {str(number): number / 50 for number in range(51)}
    picture = ElementTree.fromstring(charts.gain_map(list(gains), [charts.Column("", gains, {}, "50")], most=51).spec)
    brightness = [
        sum(int(background(row[0])[i : i + 2], 16) * w for i, w in ((1, 2), (3, 7), (5, 1))) for row in cells(picture)
    ]
    assert len(brightness) == 51 and np.all(np.diff(brightness) <= 0) and brightness[0] > brightness[-1]


@pytest.mark.parametrize(("suggested", "ink"), [("bright", "#10181c"), ("dark", "#fff")])
def test_a_sign_stands_out_from_its_cell(suggested: str, ink: str) -> None:
    gains = {"bright": 1.0, "dark": 0.01}
    picture = ElementTree.fromstring(charts.gain_map(list(gains), [charts.Column("", gains, {}, suggested)]).spec)
    (marked,) = (row[0] for row in cells(picture) if row[0].text)
    assert marked.text == "★" and marked.get("style", "").endswith(f";color:{ink}")


def test_a_step_at_which_nothing_promises_anything_is_drawn() -> None:
    picture = ElementTree.fromstring(charts.gain_map(["a"], [charts.Column("start", {"a": 0.0}, {}, "a")]).spec)
    assert background(cells(picture)[0][0]) == CIVIDIS[0]


def test_a_wide_cohort_shows_the_best_and_tables_all() -> None:
    names = [f"f{i}" for i in range(60)]
    chart = charts.gain_map(names, [charts.Column("start", {n: i / 100 for i, n in enumerate(names)}, {}, "f59")])
    rows = [row for row in ElementTree.fromstring(chart.spec) if row.get("class") == "row"]
    assert len(rows) == charts.MOST_ROWS and len(chart.table) == 60
    assert [row[0].text for row in rows] == names[: -charts.MOST_ROWS - 1 : -1] and rows[0].get("data-pick") == "59"
    picture = ElementTree.fromstring(
        charts.gain_map(names, [charts.Column("start", dict.fromkeys(names, 0.1), {}, "f0")], most=60).spec
    )
    assert len(cells(picture)) == 60, "all of them where they are asked for"


def test_what_was_measured_since_stays_below_the_best_that_are_left() -> None:
    names = [f"f{i}" for i in range(30)]
    gains = {name: i / 100 for i, name in enumerate(names)}
    later = {name: gain for name, gain in gains.items() if name not in ("f3", "f29")}
    columns = [
        charts.Column("start", gains, {}, "f29"),
        charts.Column("f29", later, {"f29": "known", "f3": "declined"}, "f28"),
    ]
    rows = [row for row in ElementTree.fromstring(charts.gain_map(names, columns).spec) if row.get("class") == "row"]
    assert [row[0].text for row in rows][-3:] == ["f17", "f3", "f29"] and len(rows) == charts.MOST_ROWS + 2


def test_of_many_steps_the_latest_are_drawn_and_all_are_in_the_table() -> None:
    columns = [charts.Column(str(step), {"a": step / 40}, {}, "a") for step in range(40)]
    chart = charts.gain_map(["a"], columns)
    picture = ElementTree.fromstring(chart.spec)
    (head,) = (part for part in picture if part.get("class") == "head")
    assert [step.text for step in head][1:] == [str(step) for step in range(25, 40)]
    assert [cell.get("title") for cell in cells(picture)[0]][0] == "a, step 25: 0.625 nats" and len(
        chart.table.columns
    ) == 41


def test_where_steps_are_left_out_the_others_keep_their_numbers() -> None:
    columns = [charts.Column("start", {"a": 0.2}, {}, "a"), charts.Column("b", {"a": 0.1}, {}, "a")]
    chart = charts.gain_map(["a"], columns, numbers=[0, 3])
    assert [cell.get("title") for cell in cells(ElementTree.fromstring(chart.spec))[0]][1] == "a, step 3: 0.100 nats"
    assert list(chart.table.columns) == ["feature", "0 start", "3 b"]
    points = [charts.Point("start", {"died": 0.2}), charts.Point("b", {"died": 0.4})]
    history = charts.history(charts.BeliefCurve(points, "died", probability=True, numbers=[0, 3]))
    assert "step 3: b, 40%" in str(history.spec) and history.table["step"].tolist() == [0, 3]


def ticks_of(picture: ElementTree.Element) -> list[tuple[str, float]]:
    """Text and height in percent of each line of the grid."""
    found = [mark for mark in picture[1] if mark.get("class") == "grid"]
    return [(mark[0].text or "", float(mark.get("style", "").removeprefix("top:").removesuffix("%"))) for mark in found]


@pytest.mark.parametrize("values", [[0.0, 0.01], [0.18, 0.18], [0.99, 1.0], [0.4, 0.45], [0.1, 0.9]])
def test_a_history_shows_everything_and_never_magnifies_noise(values: list[float]) -> None:
    points = [charts.Point(str(i), {"died": value}) for i, value in enumerate(values)]
    picture = ElementTree.fromstring(charts.history(charts.BeliefCurve(points, "died", probability=True)).spec)
    ticks = ticks_of(picture)
    shares = [float(text.strip("%<>")) / 100 for text, _ in ticks]
    assert not any(text.startswith("-") for text, _ in ticks)
    per_percent = (shares[0] - shares[-1]) / (ticks[0][1] - ticks[-1][1])
    assert 0.3 <= -100 * per_percent <= 1.07 and 3 <= len(ticks) <= 6 and min(shares) >= 0 and max(shares) <= 1
    heights = [
        float(mark.get("style", "").split("top:")[1].removesuffix("%"))
        for mark in picture[1]
        if mark.get("class", "").startswith("point")
    ]
    assert all(0 <= height <= 100 for height in heights)
    drawn = [shares[0] + (height - ticks[0][1]) * per_percent for height in heights]
    assert np.allclose(drawn, values, atol=0.005)


def test_a_history_of_several_outcomes_tells_its_lines_apart_without_colour_and_shows_bands() -> None:
    picture = ElementTree.fromstring(made()["histories"].spec)
    assert {mark.text for mark in picture[0]} == {"●", "■", "◆"}
    assert [mark.text for mark in picture[1] if mark.get("class", "").startswith("point")] == list("●●■■◆◆")
    assert "band" not in made()["histories"].spec
    banded = ElementTree.fromstring(made()["history"].spec)
    (band,) = (mark for mark in banded[1] if mark.get("class", "").startswith("band"))
    (point,) = (mark for mark in banded[1] if "step 1" in mark.get("title", ""))
    assert "(30% to 50%)" in point.get("title", "")
    assert band.get("style", "").split(";")[0] == point.get("style", "").split(";")[0]


def test_a_line_keeps_its_sign_whichever_others_are_shown() -> None:
    points = [charts.Point("start", {"b": 0.2, "d": 0.5}), charts.Point("x", {"b": 0.1, "d": 0.6})]
    picture = ElementTree.fromstring(charts.history(charts.BeliefCurve(points, "probability", True, kinds=[1, 7])).spec)
    assert [(mark.get("class"), mark.text) for mark in picture[0]] == [("s1", charts.SIGNS[1]), ("s7", charts.SIGNS[7])]
    shown = [mark for mark in picture[1] if mark.get("class", "").startswith("point")]
    assert [mark.get("class") for mark in shown] == ["point s1"] * 2 + ["point s7"] * 2
    assert "b from 20% to 10%; d from 50% to 60%" in picture.get("aria-label", "")
    assert len(set(charts.SIGNS)) == len(charts.SIGNS) == 10


@pytest.mark.parametrize("steps", [1, 5, 14])
def test_a_history_of_numbers_names_its_steps_as_long_as_there_is_room(steps: int) -> None:
    points = [charts.Point(f"test {i}", {"median": 120.0 + i}) for i in range(steps)]
    picture = ElementTree.fromstring(
        charts.history(charts.BeliefCurve(points, "pressure (mmHg)", probability=False)).spec
    )
    named = [mark.text for mark in picture[1] if mark.get("class") == "step"]
    assert named == ([f"test {i}" for i in range(steps)] if steps < 10 else [str(i) for i in range(steps)])
    assert picture[0].text == "pressure (mmHg)" and len(ticks_of(picture)) >= 2


def test_the_map_of_what_is_recorded_says_what_its_shades_mean_and_how_many_rows_it_shows() -> None:
    for rows, words in ((400, "250 of 400 rows"), (100, "100 rows")):
        chart = charts.recorded_map(np.ones((rows, 3), dtype=bool), FEATURES)
        title = chart.spec["layout"]["xaxis"]["title"]["text"]
        assert words in title and "dark: recorded, light: missing" in title and words in chart.alt


def test_a_large_prediction_is_told_with_its_digits_where_two_are_compared() -> None:
    path = charts.Path("Bed 4", [0, 1], [12_345.0, 23_456.0], ["start", "scan"])
    chart = charts.two_histories([path], "cost", "charges", False)
    assert "12,345 to 23,456" in chart.alt
    assert "%{y:,.4~r}" in chart.spec["data"][0]["hovertemplate"], "of 12,345 Plotly's .4g makes 1.235e+4"
