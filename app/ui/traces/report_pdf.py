"""The report as PDF, on A4, in an embedded font with Latin, Greek, Cyrillic and the usual signs.

A character that the font lacks (Chinese, say) is drawn as � and counted on the last page: never dropped in silence.
"""

from __future__ import annotations

from functools import lru_cache

from fontTools.ttLib import TTFont
from fpdf import FPDF
from fpdf.enums import TableBordersLayout, XPos, YPos
from fpdf.fonts import FontFace

from app.ui import labels
from app.ui.belief_curve import BeliefCurve, Line
from app.ui.fonts import BOLD, REGULAR
from app.ui.traces.report import Grid, Report

FAMILY = "DejaVu"
REPLACEMENT = "\ufffd"
INK, FAINT, RULE = (23, 37, 43), (77, 95, 103), (200, 210, 215)
HEAD, BANNER = (238, 243, 245), (255, 246, 224)
CURVE_HEIGHT = 48.0  # millimetres
CELL_PADDING = 1.2  # millimetres on either side of a cell's text
WIDEST_NUMBER = 30.0  # millimetres; what is longer is broken, so that texts keep their room
SIGN_ROOM = 4.2  # millimetres for a line of the legend
SHORT = "Research use only, not a medical device"


@lru_cache(maxsize=1)
def characters() -> frozenset[int]:
    """Code points that both weights of the font can draw."""
    found = [set(TTFont(path, lazy=True).getBestCmap()) for path in (REGULAR, BOLD)]
    return frozenset(found[0] & found[1])


class _Pages(FPDF):
    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self.replaced = 0
        self.set_margins(16, 16)
        self.set_auto_page_break(True, margin=18)
        self.add_font(FAMILY, "", REGULAR)
        self.add_font(FAMILY, "B", BOLD)
        self.c_margin = 0  # texts, tables and banner share one left edge
        self.set_title(self.words(title))
        self.replaced = 0  # what is counted is what is seen
        self.set_creator("Learning to Measure")
        self.set_lang("en")
        self.add_page()

    def words(self, text: object) -> str:
        """One line of text with only characters that can be drawn."""
        known, bare = characters(), labels.bare(text)
        self.replaced += sum(ord(c) not in known for c in bare)
        return "".join(c if ord(c) in known else REPLACEMENT for c in bare)

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font(FAMILY, "", 7.5)
        self.set_text_color(FAINT)
        self.cell(0, 5, SHORT, new_x=XPos.LMARGIN, new_y=YPos.TOP)
        self.cell(0, 5, f"Page {self.page_no()} of {{nb}}", align="R")

    def say(
        self, text: object, size: float = 9.0, style: str = "", colour: tuple[int, int, int] = INK, space: float = 0.0
    ) -> None:
        self.set_font(FAMILY, style, size)
        self.set_text_color(colour)
        self.multi_cell(0, 0.46 * size, self.words(text), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
        self.ln(space)

    def heading(self, text: object) -> None:
        if self.will_page_break(30):
            self.add_page()
        self.ln(4)
        self.say(text, 11.5, "B", space=1.2)


def to_pdf(report: Report) -> bytes:
    pdf = _Pages(report.title)
    pdf.say(report.title, 18, "B", space=1.5)
    _banner(pdf, report.banner)
    pdf.say(report.answer, 12, space=2.5)
    _facts(pdf, report.facts, 30)
    if report.curve:
        _curve(pdf, report.curve)
    for grid in report.grids:
        _grid(pdf, grid)
    pdf.heading("Limits")
    for limit in report.limits:
        pdf.say(f"– {limit}", 8.5, space=0.8)
    pdf.heading("Fingerprints")
    _facts(pdf, report.fingerprints, 34)
    if pdf.replaced:
        pdf.ln(3)
        pdf.say(
            f"{pdf.replaced} characters that this PDF's font does not have are drawn as {REPLACEMENT}; the report as "
            "HTML shows them.",
            8.5,
            "B",
        )
    return bytes(pdf.output())


def _banner(pdf: _Pages, banner: str) -> None:
    pdf.set_fill_color(BANNER)
    pdf.set_font(FAMILY, "B", 9)
    pdf.set_text_color(INK)
    pdf.multi_cell(0, 5, pdf.words(banner), align="L", fill=True, new_x=XPos.LMARGIN, new_y=YPos.NEXT, padding=(1, 2))
    pdf.ln(3)


def _facts(pdf: _Pages, facts: tuple[tuple[str, str], ...], width: float) -> None:
    for name, value in facts:
        pdf.set_font(FAMILY, "", 8.5)
        if pdf.will_page_break(5):
            pdf.add_page()
        pdf.set_text_color(FAINT)
        pdf.cell(width, 4.6, pdf.words(name))
        pdf.set_text_color(INK)
        pdf.multi_cell(0, 4.6, pdf.words(value), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _grid(pdf: _Pages, grid: Grid) -> None:
    pdf.heading(grid.title)
    pdf.set_font(FAMILY, "", 8)
    pdf.set_text_color(INK)
    pdf.set_draw_color(RULE)
    pdf.set_fill_color(255)
    alignment = tuple("RIGHT" if column in grid.numeric else "LEFT" for column in range(len(grid.head)))
    with pdf.table(
        col_widths=_widths(pdf, grid),
        text_align=alignment,
        line_height=4.0,
        padding=(0.7, CELL_PADDING),
        borders_layout=TableBordersLayout.HORIZONTAL_LINES,
        headings_style=FontFace(emphasis="BOLD", fill_color=HEAD),
    ) as table:
        for cells in (grid.head, *grid.rows):
            row = table.row()
            for cell in cells:
                row.cell(pdf.words(cell))
    if grid.note:
        pdf.ln(1)
        pdf.say(grid.note, 7.5, colour=FAINT)


def _widths(pdf: _Pages, grid: Grid) -> tuple[float, ...]:
    """In millimetres. A column of numbers is as wide as its longest one, since half a number reads as another; the widest
    column of texts gives the room."""
    widths = [pdf.epw * width / sum(grid.widths) for width in grid.widths]
    for column in grid.numeric:
        parts = [part for row in grid.rows for part in pdf.words(row[column]).split()]
        needed = max((pdf.get_string_width(part) for part in parts), default=0.0) + 2 * CELL_PADDING + 0.1
        more = min(needed, WIDEST_NUMBER) - widths[column]
        if more > 0:
            giver = max((other for other in range(len(widths)) if other not in grid.numeric), key=widths.__getitem__)
            widths[column] += more
            widths[giver] -= more
    return tuple(widths)


def _curve(pdf: _Pages, curve: BeliefCurve) -> None:
    several = len(curve.lines) > 1
    if pdf.will_page_break(CURVE_HEIGHT + 22 + (SIGN_ROOM * len(curve.lines) if several else 0)):
        pdf.add_page()
    pdf.heading(f"{curve.axis}, step by step")
    if several:
        _legend(pdf, curve.lines)
    left, top = pdf.l_margin + 14, pdf.get_y() + 2
    width, height = pdf.epw - 18, CURVE_HEIGHT - 10
    pdf.set_font(FAMILY, "", 7.5)
    pdf.set_line_width(0.2)
    for share, tick in curve.ticks:
        y = top + (1 - share) * height
        pdf.set_draw_color(RULE)
        pdf.line(left, y, left + width, y)
        pdf.set_text_color(FAINT)
        pdf.set_xy(left - 15, y - 2)
        pdf.cell(13, 4, pdf.words(tick), align="R")
    for line in curve.lines:
        points = [(left + across * width, top + (1 - up) * height) for across, up in curve.shares(line)]
        _line(pdf, line, points, several)
    pdf.set_text_color(FAINT)
    pdf.set_font(FAMILY, "", 7.5)
    every = max(1, -(-len(points) // 8))
    for number, (x, _) in enumerate(points):
        if number % every == 0:
            align = "L" if number == 0 else "R" if number == len(points) - 1 else "C"
            pdf.set_xy(x - {"L": 1, "R": 23, "C": 12}[align], top + height + 1.5)
            pdf.cell(24, 4, pdf.words(labels.short(curve.learned[number], 15)), align=align)
    pdf.set_line_width(0.2)
    pdf.set_xy(pdf.l_margin, top + height + 7)


def _legend(pdf: _Pages, lines: tuple[Line, ...]) -> None:
    pdf.set_font(FAMILY, "", 8)
    for line in lines:
        pdf.set_text_color(line.colour)
        pdf.cell(5, SIGN_ROOM, line.sign)
        pdf.set_text_color(INK)
        pdf.multi_cell(0, SIGN_ROOM, pdf.words(line.name), align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(1.5)


def _line(pdf: _Pages, line: Line, points: list[tuple[float, float]], several: bool) -> None:
    """With a sign at each point where there are several lines."""
    pdf.set_draw_color(line.colour)
    pdf.set_fill_color(line.colour)
    pdf.set_text_color(line.colour)
    pdf.set_line_width(0.6)
    pdf.polyline(points)
    pdf.set_font(FAMILY, "", 9)
    aside, below = (
        pdf.get_string_width(line.sign) / 2,
        0.12 * 9,
    )  # a sign's middle lies a third of its size above the line
    for x, y in points:
        if several:
            pdf.text(x - aside, y + below, line.sign)
        else:
            pdf.circle(x=x, y=y, radius=0.9, style="F")
