"""The charts that are HTML as SVG files, for a paper or a slide: white, with fonts that every program has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from app.ui import labels
from app.ui.belief_curve import PAPER_COLOURS, BeliefCurve

WIDTH = 720  # pixels, as are all lengths here
INK, FAINT, ACCENT, EMPTY = "#17252b", "#d4dde1", PAPER_COLOURS[0], PAPER_COLOURS[1]
SIZE = 13  # of letters
ROW = 24  # height of a row
LONGEST = 30  # characters of a name or a result beside a row


def picture(height: float, marks: Iterable[str], alt: str, width: float = WIDTH) -> str:
    """marks: SVG, escaped already."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="{SIZE}" '
        f'fill="{INK}" role="img"><title>{escape(labels.plain(alt))}</title>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(marks)}</svg>\n'
    )


def words(x: float, y: float, text: object, anchor: str = "start", colour: str = INK) -> str:
    """y: of the middle of the letters."""
    return (
        f'<text x="{x:.1f}" y="{y + SIZE * 0.35:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(labels.plain(text))}</text>"
    )


def box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{colour}"/>'


def stroke(x: float, y: float, to_x: float, to_y: float, colour: str, width: float = 1, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"{dashed}/>'
    )


def dot(x: float, y: float, radius: float, colour: str, filled: bool = True) -> str:
    look = f'fill="{colour}"' if filled else f'fill="#fff" stroke="{colour}" stroke-width="1.5"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {look}/>'


# -- the charts of a step -----------------------------------------------------------------------------------------------


def icons(count: int, alt: str) -> str:
    """A hundred circles, five rows of twenty."""
    marks = (
        dot(20 + 22 * (i % 20), 20 + 22 * (i // 20), 8, ACCENT if i < count else EMPTY, i < count) for i in range(100)
    )
    return picture(152, [*marks, words(12, 134, alt)], alt, 460)


def bars(rows: Sequence[tuple[str, float, float | None, tuple[float, float] | None]], legend: str, alt: str) -> str:
    """rows: name, probability, probability a step ago, band."""
    left, right = 220.0, WIDTH - 60.0
    marks = []
    names = labels.short_apart([name for name, *_ in rows], LONGEST)
    for number, (_, value, before, band) in enumerate(rows):
        y = 10 + ROW * number + ROW / 2
        marks += [
            words(left - 10, y, names[number], "end"),
            box(left, y - 8, right - left, 16, "#eef2f4"),
            box(left, y - 8, (right - left) * value, 16, ACCENT),
            words(WIDTH - 10, y, labels.percent(value), "end"),
        ]
        if band:
            low, high = (left + (right - left) * end for end in band)
            marks += [stroke(low, y, high, y, INK, 2), *(stroke(end, y - 5, end, y + 5, INK, 2) for end in (low, high))]
        if before is not None:
            marks.append(dot(left + (right - left) * before, y, 4, INK, filled=False))
    bottom = 20 + ROW * len(rows)
    return picture(bottom + 26, [*marks, words(left, bottom + 8, legend)], alt)


def moves(rows: Sequence[tuple[str, float, str]], now: float, now_words: str, axis: str, alt: str) -> str:
    """rows: the result, the value after it, and that value in words."""
    left, right = 220.0, WIDTH - 90.0
    values = [now, *(value for _, value, _ in rows)]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0

    def across(value: float) -> float:
        return left + 60 + (right - left - 60) * (value - low) / reach

    bottom = 20.0 + ROW * len(rows)
    marks = [stroke(across(now), 10, across(now), bottom, INK, 1, "2 3")]
    for number, (result, value, said) in enumerate(rows):
        y, x = 10 + ROW * number + ROW / 2, across(value)
        is_up = value >= now
        marks += [
            words(left - 10, y, labels.short(result, LONGEST), "end"),
            stroke(across(now), y, x, y, ACCENT, 3),
            dot(x, y, 5, ACCENT),
            words(x + (10 if is_up else -10), y, said, "start" if is_up else "end"),
        ]
    marks += [words(across(now) + 5, bottom + 8, f"now {now_words}"), words(left, bottom + 30, axis)]
    return picture(bottom + 46, marks, alt)


def grid(
    heads: Sequence[str],
    rows: Sequence[tuple[str, Sequence[tuple[str, str, str]]]],
    foot: Sequence[str],
    legend: str,
    alt: str,
) -> str:
    """rows: name, and of each cell its colour ('' for none), sign, and the sign's colour."""
    left = 220.0
    cell = min(60.0, (WIDTH - left - 10) / max(len(heads), 4))
    middles = [left + cell * (number + 0.5) for number in range(len(heads))]
    marks = [
        words(left - 10, 16, "step", "end"),
        *(words(x, 16, head, "middle") for x, head in zip(middles, heads, strict=True)),
    ]
    names = labels.short_apart([name for name, _ in rows], LONGEST)
    for number, (_, cells) in enumerate(rows):
        y = 30 + ROW * number
        marks.append(words(left - 10, y + ROW / 2, names[number], "end"))
        for x, (colour, sign, ink) in zip(middles, cells, strict=True):
            if colour:
                marks.append(box(x - cell / 2 + 1, y + 1, cell - 2, ROW - 2, colour))
            if sign:
                marks.append(words(x, y + ROW / 2, sign, "middle", ink))
    bottom = 30.0 + ROW * len(rows)
    marks += [words(left - 10, bottom + 12, "largest gain (nats)", "end")]
    marks += [words(x, bottom + 12, text, "middle") for x, text in zip(middles, foot, strict=True)]
    return picture(bottom + 60, [*marks, words(10, bottom + 40, legend)], alt)


def lines(curve: BeliefCurve, ends: tuple[float, float], ticks: Sequence[tuple[float, str]]) -> str:
    """ends: of the vertical axis."""
    left, right, top, bottom = 70.0, WIDTH - 30.0, 40.0, 240.0
    low, high = ends
    count = len(curve.points)

    def up(value: float) -> float:
        return top + (bottom - top) * (high - value) / (high - low)

    def along(step: int) -> float:
        return left + (right - left) * (step + 0.5) / max(count, 1)

    marks = [words(left, 18, curve.axis)]
    for tick, text in ticks:
        marks += [stroke(left, up(tick), right, up(tick), FAINT), words(left - 8, up(tick), text, "end")]
    every = max(1, -(-count // 8))
    for step, (number, learned) in enumerate(zip(curve.step_numbers, curve.learned, strict=True)):
        if step % every == 0:
            marks.append(words(along(step), bottom + 18, labels.short(learned if count <= 8 else number, 14), "middle"))
    for line in curve.lines:
        points = [(along(step), up(value)) for step, value in enumerate(line.values)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        marks.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>')
        for (x, y), point in zip(points, curve.points, strict=True):
            if point.low and point.high and line.name in point.low:
                marks.append(stroke(x, up(point.low[line.name]), x, up(point.high[line.name]), line.colour))
            marks.append(words(x, y, line.sign, "middle", line.colour))
    legend = bottom + 46
    for number, line in enumerate(curve.lines if len(curve.lines) > 1 else ()):
        marks.append(words(left, legend + 20 * number, f"{line.sign} {line.name}", colour=line.colour))
    return picture(legend + 20 * max(1, len(curve.lines)), marks, curve.description)
