"""The report as one HTML file: no script, nothing fetched, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.ui import labels
from app.ui.belief_curve import BeliefCurve, Line
from app.ui.traces.report import Grid, Report

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #17252b; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; break-after: avoid; }
.banner { border-left: 4px solid #8a5a00; background: #fff6e0; padding: .5rem .8rem; margin: 1rem 0; }
.answer { font-size: 1.2rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: #4d5f67; } dd { margin: 0; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid #d4dde1; }
th { border-bottom: 2px solid #6d7f87; font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr { break-inside: avoid; } thead { display: table-header-group; }
.note, li { color: #33454d; font-size: .88rem; }
.legend { list-style: none; padding: 0; margin: 0 0 .3rem; }
code { font: .85rem ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
svg { width: 100%; height: auto; max-height: 15rem; } svg.curve text { font-size: 11px; fill: #33454d; }
@media print { body { margin: 0; max-width: none; padding: 0; font-size: 11pt; } @page { margin: 16mm; } }
""".strip()
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 210, 52, 24, 16, 34


def to_html(report: Report) -> str:
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(report.title)} – step-through report</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>",
        f"<h1>{text(report.title)}</h1>",
        f'<p class="banner"><strong>{text(report.banner)}</strong></p>',
        f'<p class="answer">{text(report.answer)}</p>',
        _facts(report.facts),
        _curve(report.curve) if report.curve else "",
        *map(_grid, report.grids),
        "<h2>Limits</h2>\n<ul>",
        *(f"<li>{text(limit)}</li>" for limit in report.limits),
        "</ul>\n<h2>Fingerprints</h2>",
        _facts(report.fingerprints, code=True),
        "</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def text(words: object) -> str:
    """Any text as HTML that shows exactly it."""
    return escape(labels.plain(words), quote=True)


def _facts(facts: Iterable[tuple[str, str]], code: bool = False) -> str:
    start, end = ("<code>", "</code>") if code else ("", "")
    lines = [f"<dt>{text(name)}</dt><dd>{start}{text(value)}{end}</dd>" for name, value in facts]
    return "\n".join(["<dl>", *lines, "</dl>"])


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
