"""The report as one HTML file."""

from __future__ import annotations

from collections.abc import Iterable

from app.ui import labels
from app.ui.belief_curve import BeliefCurve, Line
from app.ui.html_page import page, terms, text
from app.ui.traces.report import Grid, Report

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 210, 52, 24, 16, 34


def to_html(report: Report) -> str:
    body = [
        terms(report.facts),
        _curve(report.curve) if report.curve else "",
        *map(_grid, report.grids),
        "<h2>Limits</h2>\n<ul>",
        *(f"<li>{text(limit)}</li>" for limit in report.limits),
        "</ul>\n<h2>Fingerprints</h2>",
        terms(report.fingerprints, code=True),
    ]
    title = f"{report.title} – step-through report"
    return page(title, report.title, report.banner, report.answer, [part for part in body if part])


def _grid(grid: Grid) -> str:
    def row(cells: Iterable[str], tag: str) -> str:
        marks = ' scope="col"' if tag == "th" else ""
        made = [
            f"<{tag}{marks}{' class=n' if column in grid.numeric else ''}>{text(cell)}</{tag}>"
            for column, cell in enumerate(cells)
        ]
        return f"<tr>{''.join(made)}</tr>"

    columns = "".join(f'<col style="width:{100 * width / sum(grid.widths):.1f}%">' for width in grid.widths)
    return "\n".join(
        [
            f"<h2>{text(grid.title)}</h2>\n<table>\n<colgroup>{columns}</colgroup>",
            f"<thead>{row(grid.head, 'th')}</thead>\n<tbody>",
            *(row(cells, "td") for cells in grid.rows),
            "</tbody>\n</table>",
            *([f'<p class="note">{text(grid.note)}</p>'] if grid.note else []),
        ]
    )


def _curve(curve: BeliefCurve) -> str:
    height = HEIGHT - TOP - BOTTOM
    lines = []
    for share, tick in curve.ticks:
        y = TOP + (1 - share) * height
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d4dde1"/>')
        lines.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text(tick)}</text>')
    several = len(curve.lines) > 1
    lines += [_line(curve, line, several) for line in curve.lines]
    every = max(1, -(-len(curve.learned) // 9))
    for number, (x, _) in enumerate(_points(curve, curve.lines[0])):
        if number % every == 0:
            anchor = "start" if number == 0 else "end" if number == len(curve.learned) - 1 else "middle"
            learned = text(labels.short(curve.learned[number], 16))
            lines.append(f'<text x="{x:.1f}" y="{HEIGHT - 12}" text-anchor="{anchor}">{learned}</text>')
    names = [
        f'<li><strong style="color:{line.colour}">{line.sign}</strong> {text(line.name)}</li>' for line in curve.lines
    ]
    legend = f'<ul class="legend">{"".join(names)}</ul>\n' if several else ""
    return (
        f'<h2>{text(curve.axis)}, step by step</h2>\n{legend}<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{text(curve.description)}">\n{"".join(lines)}\n</svg>'
    )


def _points(curve: BeliefCurve, line: Line) -> list[tuple[float, float]]:
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    return [(LEFT + across * width, TOP + (1 - up) * height) for across, up in curve.shares(line)]


def _line(curve: BeliefCurve, line: Line, several: bool) -> str:
    """With a sign at each point where there are several lines."""
    points = _points(curve, line)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    drawn = [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>']
    for x, y in points:
        if several:
            style = f"font-size:15px;fill:{line.colour};text-anchor:middle;dominant-baseline:central"
            drawn.append(f'<text x="{x:.1f}" y="{y:.1f}" style="{style}">{line.sign}</text>')
        else:
            drawn.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{line.colour}"/>')
    return "".join(drawn)
