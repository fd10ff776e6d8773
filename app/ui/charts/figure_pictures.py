"""The charts that Plotly draws as SVG files: what their figures say, on white, with a line below for each name.

Plotly itself makes files only inside a browser. Drawn is what the figures of this app use: lines, signs, texts and areas
with their intervals, stacked bars, heat maps, and dotted lines with a word.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

from app.streamlit_contact.chart_colours import on_paper
from app.ui import labels
from app.ui.charts.cividis import CIVIDIS, colour_of
from app.ui.charts.pictures import FAINT, INK, SIZE, WIDTH, box, picture, stroke, words

Trace = Mapping[str, Any]
Place = tuple[float, float]
Place_of = Callable[[Any, Any], Place]

TOP, RIGHT = 34.0, WIDTH - 20.0
LETTER = 0.52 * SIZE  # width of a letter on average
NARROWEST, WIDEST = 50.0, 240.0  # room for the words left of the vertical axis
AROUND = 96  # pixels of a figure's height that are not its plot
LINE_OF_LEGEND = 20
DASHES = {"dot": "2 3", "dash": "8 4", "longdash": "16 5", "dashdot": "8 3 2 3"}
HATCH = "hatch"
AREA = "#dbe6e9"


def svg_of(spec: Mapping[str, Any], alt: str) -> str:
    """spec: a Plotly figure as plain data."""
    traces, layout = spec["data"], spec["layout"]
    across = _axis(layout["xaxis"], [x for trace in traces for x in _extent(trace, "x")], layout["xaxis"].get("dtick"))
    at_level = [shape["y0"] for shape in layout.get("shapes", ()) if shape.get("xref") == "paper"]
    up = _axis(layout["yaxis"], [*(y for trace in traces for y in _extent(trace, "y")), *at_level])
    has_ticks_above = layout["xaxis"].get("side") == "top"
    left = 20.0 + min(WIDEST, max([NARROWEST, *(LETTER * len(text) for _, text in up.ticks)]))
    top = TOP + (22 if has_ticks_above else 0)
    bottom = top + max(60.0, layout["height"] - AROUND)

    def at(x: float, y: float) -> Place:
        return left + (RIGHT - left) * across.share(x), bottom - (bottom - top) * up.share(y)

    marks = [words(left, 14, up.title)]
    for tick, text in up.ticks:
        y = at(across.start, tick)[1]
        marks += [stroke(left, y, RIGHT, y, FAINT)] * up.has_grid
        marks.append(words(left - 8, y, labels.short(text, round(WIDEST / LETTER)), "end"))
    for tick, text in across.ticks:
        marks.append(words(at(tick, up.start)[0], top - 12 if has_ticks_above else bottom + 18, text, "middle"))
    marks.append(words(RIGHT, bottom + (18 if has_ticks_above else 38), across.title, "end"))
    drawn = [mark for trace in _stacked(traces) for mark in _drawn(trace, at)]
    marks.append(_clipped((left, top, RIGHT - left, bottom - top), drawn))
    for shape in layout.get("shapes", ()):
        marks.append(_shape(shape, at, (left, top, RIGHT, bottom)))
    for note in layout.get("annotations", ()):
        marks.append(words(RIGHT, at(across.start, note["y"])[1] - 9, _plain(note["text"]), "end"))
    legend = list(_legend(spec, left, bottom + 62))
    return picture(bottom + 56 + LINE_OF_LEGEND * len(legend), [*marks, *legend], alt)


# -- axes ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Axis:
    """start, end: the values at its ends, of which the first may be the larger one."""

    start: float
    end: float
    ticks: Sequence[tuple[float, str]]
    title: str
    has_grid: bool

    def share(self, value: float) -> float:
        return (value - self.start) / (self.end - self.start)


def _axis(stated: Mapping[str, Any], values: Sequence[float], apart: float | None = None) -> _Axis:
    """stated: Plotly's settings of it; values: all that is drawn; apart: what lies between two ticks."""
    form, title = stated.get("tickformat", ",g"), _plain(stated.get("title", {}).get("text", ""))
    reach = [0.0, *values] if stated.get("rangemode") == "tozero" else values
    is_exact = "tickvals" in stated or stated.get("showticklabels") is False
    start, end = stated.get("range") or reach_of(reach if is_exact else ticks(reach))
    low, high = sorted((start, end))
    if stated.get("tickmode") == "array":
        marked = [(value, _plain(text)) for value, text in zip(stated["tickvals"], stated["ticktext"], strict=True)]
    elif stated.get("showticklabels") is False or stated.get("visible") is False:
        marked = []
    else:
        found = ticks([low, high]) if apart is None else multiples(apart, low, high)
        marked = [(value, format(value, form)) for value in found if low <= value <= high]
    return _Axis(start, end, marked, title, stated.get("showgrid", stated.get("visible", True)))


def ticks(values: Sequence[float]) -> list[float]:
    """Round numbers, about five of them, that reach from below the smallest value to above the largest."""
    known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(known), max(known)
    reach = (high - low) or abs(high) or 1.0
    size = 10 ** math.floor(math.log10(reach / 4))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor * 5 >= reach)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, max(last, first + 1) + 1)]


def multiples(apart: float, low: float, high: float) -> list[float]:
    return [apart * number for number in range(math.ceil(low / apart), math.floor(high / apart) + 1)]


def reach_of(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _extent(trace: Trace, axis: str) -> Iterator[float]:
    """All values that a trace reaches along one axis; a bar and a cell span half a unit around their position."""
    if trace["type"] == "heatmap":
        count = len(trace["z"][0]) if axis == "x" else len(trace["z"])
        positions = trace.get(axis) or range(count)
        yield from (positions[0] - 0.5, positions[-1] + 0.5)
        return
    if trace["type"] == "bar" and axis == "x":
        yield 0.0
    for number, value in enumerate(trace[axis]):
        if value is not None:
            yield value
            if axis == "y" and "error_y" in trace:
                yield value + trace["error_y"]["array"][number]
                yield value - trace["error_y"]["arrayminus"][number]


# -- traces -------------------------------------------------------------------------------------------------------------


def _stacked(traces: Sequence[Trace]) -> list[Trace]:
    """Bars with where each begins: at the end of those before it in the same row."""
    ends: dict[float, float] = {}
    placed: list[Trace] = []
    for trace in traces:
        if trace["type"] == "bar":
            begins = [ends.get(y, 0.0) for y in trace["y"]]
            ends |= {y: begin + x for y, begin, x in zip(trace["y"], begins, trace["x"], strict=True)}
            trace = {**trace, "base": begins}
        placed.append(trace)
    return placed


def _drawn(trace: Trace, at: Place_of) -> Iterator[str]:
    kind = trace["type"]
    if kind == "heatmap":
        yield from _cells(trace, at)
    elif kind == "bar":
        yield from _bars(trace, at)
    else:
        faded = f'<g opacity="{trace["opacity"]}">' if "opacity" in trace else "<g>"
        yield f"{faded}{''.join(_points(trace, at))}</g>"


def _cells(trace: Trace, at: Place_of) -> Iterator[str]:
    """Cells of one colour beside one another are one box."""
    rows, gap = trace["z"], trace.get("xgap", 0)
    columns = trace.get("x") or range(len(rows[0]))
    for y, row in zip(trace["y"], rows, strict=True):
        top, bottom = sorted((at(0, y - 0.5)[1], at(0, y + 0.5)[1]))
        cells = [(x, _colour_in(trace, value)) for x, value in zip(columns, row, strict=True)]
        alike = [[cell] for cell in cells] if gap else [list(run) for _, run in groupby(cells, lambda cell: cell[1])]
        for run in alike:
            left, right = at(run[0][0] - 0.5, y)[0], at(run[-1][0] + 0.5, y)[0]
            yield box(left + gap / 2, top + 0.5, right - left - gap, bottom - top - 1, run[0][1])


def _colour_in(trace: Trace, value: float) -> str:
    share = (value - trace["zmin"]) / ((trace["zmax"] - trace["zmin"]) or 1.0)
    scale = trace["colorscale"]
    if scale == "Cividis":
        return colour_of(min(1.0, max(0.0, share)))
    return next(colour for end, colour in reversed(scale) if share >= end)


def _bars(trace: Trace, at: Place_of) -> Iterator[str]:
    colour, half = on_paper(trace["marker"]["color"]), trace["width"] / 2
    fill = f"url(#{HATCH})" if trace["marker"]["pattern"]["shape"] else colour
    if fill != colour:
        yield _hatch(colour)
    for x, y, begin in zip(trace["x"], trace["y"], trace["base"], strict=True):
        (left, top), (right, bottom) = at(begin, y - half), at(begin + x, y + half)
        top, bottom = sorted((top, bottom))
        yield box(left, top, right - left, bottom - top, fill)
        for one, other in pairwise(((left, top), (right, top), (right, bottom), (left, bottom), (left, top))):
            yield stroke(*one, *other, colour)


def _hatch(colour: str) -> str:
    return (
        f'<defs><pattern id="{HATCH}" width="6" height="6" patternUnits="userSpaceOnUse">'
        f'<path d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2" stroke="{colour}"/></pattern></defs>'
    )


def _points(trace: Trace, at: Place_of) -> Iterator[str]:
    mode, line = trace["mode"], trace.get("line", {})
    known = [
        (number, at(x, y))
        for number, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True))
        if y is not None and math.isfinite(y)
    ]
    for part in _unbroken(known) if "lines" in mode else ():
        if trace.get("fill") == "tozeroy":
            floor = at(0, 0)[1]
            yield _path([(part[0][0], floor), *part, (part[-1][0], floor)], "none", 0, fill=AREA)
        path = _corners(part) if line.get("shape") == "hv" else part
        yield _path(path, on_paper(line.get("color", INK)), line.get("width", 2), DASHES.get(line.get("dash", ""), ""))
    if "error_y" in trace:
        yield from _intervals(trace, at, on_paper(trace["error_y"]["color"]))
    if "markers" in mode:
        yield from _signs(trace, known)
    if "text" in mode:
        colours = trace["textfont"]["color"]
        yield from (words(x, y, _plain(trace["text"][i]), "middle", colours[i]) for i, (x, y) in known)


def _unbroken(known: Sequence[tuple[int, Place]]) -> list[list[Place]]:
    """The runs of points with none missing between them."""
    runs = groupby(enumerate(known), lambda each: each[1][0] - each[0])
    return [[place for _, (_, place) in run] for _, run in runs]


def _corners(places: Sequence[Place]) -> list[Place]:
    """A stair: first along, then up or down."""
    return [places[0], *(corner for (_, y), (x, to) in pairwise(places) for corner in ((x, y), (x, to)))]


def _path(places: Sequence[Place], colour: str, width: float, dashes: str = "", fill: str = "none") -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{points}" fill="{fill}" stroke="{colour}" stroke-width="{width}"{dashed}/>'


def _intervals(trace: Trace, at: Place_of, colour: str) -> Iterator[str]:
    found = trace["error_y"]
    for x, y, above, below in zip(trace["x"], trace["y"], found["array"], found["arrayminus"], strict=True):
        if y is not None:
            (middle, top), (_, bottom) = at(x, y + above), at(x, y - below)
            yield stroke(middle, top, middle, bottom, colour)
            yield from (stroke(middle - 3, end, middle + 3, end, colour) for end in (top, bottom))


def _signs(trace: Trace, known: Sequence[tuple[int, Place]]) -> Iterator[str]:
    marker = trace.get("marker", {})
    colour = on_paper(marker.get("color") or trace.get("line", {}).get("color", INK))
    size = marker.get("size", 6)
    for number, place in known:
        yield _sign(place, marker.get("symbol", "circle"), colour, size[number] if isinstance(size, list) else size)


def _sign(place: Place, symbol: str, colour: str, size: float) -> str:
    x, y = place
    half = size / 2
    if symbol in ("circle", "circle-open"):
        fill = "#fff" if symbol == "circle-open" else colour
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{half:.1f}" fill="{fill}" stroke="{colour}"/>'
    corners = {
        "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
        "diamond": ((0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)),
        "triangle-up": ((0, -1.2), (1.1, 0.9), (-1.1, 0.9)),
    }[symbol]
    points = " ".join(f"{x + half * across:.1f},{y + half * down:.1f}" for across, down in corners)
    return f'<polygon points="{points}" fill="{colour}"/>'


# -- what stands around ---------------------------------------------------------------------------------------------------


def _clipped(area: tuple[float, float, float, float], marks: Sequence[str]) -> str:
    """An inner picture hides what lies outside of it; some room is left for signs on the edge."""
    x, y, width, height = area
    room = 8
    box_of = (x - room, y - room, width + 2 * room, height + 2 * room)
    place = 'x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"'.format(*box_of)
    view = "{:.1f} {:.1f} {:.1f} {:.1f}".format(*box_of)
    return f'<svg {place} viewBox="{view}" overflow="hidden">{"".join(marks)}</svg>'


def _shape(shape: Mapping[str, Any], at: Place_of, area: tuple[float, float, float, float]) -> str:
    """A line through the whole plot, along it or up."""
    left, top, right, bottom = area
    look = (on_paper(shape["line"]["color"]), shape["line"]["width"], DASHES[shape["line"]["dash"]])
    if shape.get("xref") == "paper":
        y = at(0, shape["y0"])[1]
        return stroke(left, y, right, y, *look)
    x = at(shape["x0"], 0)[0]
    return stroke(x, top, x, bottom, *look)


def _legend(spec: Mapping[str, Any], left: float, y: float) -> Iterator[str]:
    """One line for each name, and one for the colours of a heat map."""
    for trace in spec["data"]:
        if "colorbar" in trace:
            yield _colours(trace, left, y)
            y += LINE_OF_LEGEND
    named = [trace for trace in spec["data"] if trace.get("name")] if spec["layout"].get("showlegend") else []
    for trace in named:
        yield f"<g>{''.join(_sample(trace, left, y))}{words(left + 42, y, _plain(trace['name']))}</g>"
        y += LINE_OF_LEGEND


def _sample(trace: Trace, left: float, y: float) -> Iterator[str]:
    if trace["type"] == "bar":
        colour = on_paper(trace["marker"]["color"])
        yield box(left, y - 6, 32, 12, f"url(#{HATCH})" if trace["marker"]["pattern"]["shape"] else colour)
        return
    line = trace["line"]
    dashes = DASHES.get(line.get("dash", ""), "")
    yield stroke(left, y, left + 32, y, on_paper(line["color"]), line.get("width", 2), dashes)
    if "markers" in trace["mode"]:
        yield from _signs({**trace, "marker": {**trace.get("marker", {}), "size": 7}}, [(0, (left + 16, y))])


def _colours(trace: Trace, left: float, y: float) -> str:
    bar, width = trace["colorbar"], 18.0
    form = bar.get("tickformat", ",g")
    boxes = [box(left + 40 + width * i, y - 6, width + 0.5, 12, colour) for i, colour in enumerate(CIVIDIS)]
    end = left + 46 + width * len(CIVIDIS)
    title = _plain(bar["title"]["text"])
    ends = (format(trace["zmin"], form), f"{format(trace['zmax'], form)} of {title}")
    return f"<g>{words(left + 34, y, ends[0], 'end')}{''.join(boxes)}{words(end, y, ends[1])}</g>"


def _plain(text: object) -> str:
    """What Plotly shows of a text: tags and entities undone (see `labels.chart`)."""
    return html.unescape(str(text).replace("<br>", "; ")).replace(labels.JOINER, "")
