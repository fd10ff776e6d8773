"""The cells of one sheet of a workbook, and what they need: the texts that cells share, and how numbers are shown.

Names are those of Office Open XML (ECMA-376, part 1). What a cell has is told apart by type: a float (a Percentage, where it
is shown as one), a str, or a Moment; formulas are their stored results.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field

from l2m_core.tables.cell_parsing import LARGEST_WHOLE
from l2m_core.tables.workbook_dates import BUILT_IN, PERCENT, Moment, Percentage, moment, shown_as
from l2m_core.tables.workbook_xml import Part, is_true

LAST_ROW, LAST_COLUMN = 1_048_576, 16_384  # of a sheet
MOST_MERGED = 100_000
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold

Value = float | str | Moment


@dataclass
class SheetColumn:
    """What one column has, by row: rows[i] has values[i]."""

    rows: array = field(default_factory=lambda: array("l"))
    values: list[Value] = field(default_factory=list)


@dataclass(frozen=True)
class Area:
    """A rectangle of cells, its ends included; rows and columns are counted from 1."""

    first_row: int
    first_column: int
    last_row: int
    last_column: int

    def __str__(self) -> str:
        return f"{reference(self.first_row, self.first_column)}:{reference(self.last_row, self.last_column)}"


@dataclass
class Sheet:
    """The cells that have a value, and what a look at the sheet would not show or would show otherwise."""

    columns: dict[int, SheetColumn] = field(default_factory=dict)
    merged: list[Area] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)  # first and last of each stretch
    not_computed: list[tuple[int, int]] = field(
        default_factory=list
    )  # row and column of formulas without a stored result


def reference(row: int, column: int) -> str:
    """What a spreadsheet calls a cell: B7."""
    return f"{letters(column)}{row}"


def letters(column: int) -> str:
    """1 → A, 27 → AA"""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return text


def place(text: str) -> tuple[int, int]:
    """B7 → row 7, column 2"""
    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise ValueError("a cell without a place")
    column = 0
    for letter in found[1]:
        column = 26 * column + ord(letter) - ord("A") + 1
    row = int(found[2])
    if row > LAST_ROW or column > LAST_COLUMN:
        raise ValueError("a cell outside any sheet")
    return row, column


class Formats(Part):
    """How the numbers of cells are shown, as far as it makes dates or percentages of them."""

    def __init__(self) -> None:
        self.own: dict[int, str | None] = {}
        self.of_styles: list[int] = []
        self._in_cells = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            self.own[int(attributes["numFmtId"])] = shown_as(attributes.get("formatCode", ""))
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            self.of_styles.append(int(attributes.get("numFmtId", "0")))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False

    def shown(self) -> list[str | None]:
        """Of each style: DATE, PASSED, PERCENT, or None."""
        return [self.own[number] if number in self.own else BUILT_IN.get(number) for number in self.of_styles]


class _Text(Part):
    """Gathers the text of what it is told to."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._is_wanted = False
        self._in_reading = False  # how a Japanese text is pronounced, which is no part of it

    def text(self, text: str) -> None:
        if self._is_wanted:
            self._pieces.append(text)

    def take(self) -> str:
        text = "".join(self._pieces)
        self._pieces.clear()
        return _ESCAPED.sub(_unescaped, text) if "_x" in text else text


def _unescaped(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    return found[0] if 0xD800 <= code < 0xE000 else chr(code)


class Texts(_Text):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rPh":
            self._in_reading = True
        self._is_wanted = name == "t" and not self._in_reading

    def end(self, name: str) -> None:
        self._is_wanted = False
        if name == "rPh":
            self._in_reading = False
        elif name == "si":
            self.found.append(self.take())


class Cells(_Text):
    """The cells of one sheet. A cell (c) has a value (v), which is a number, the number of a text, or a text; or a text in place
    (is); and perhaps the formula (f) that led to it."""

    def __init__(self, texts: list[str], shown: list[str | None], from_1904: bool) -> None:
        super().__init__()
        self.sheet = Sheet()
        self._texts, self._shown, self._from_1904 = texts, shown, from_1904
        self._row, self._column = 0, 0
        self._kind, self._style, self._has_formula, self._has_value = "n", 0, False, False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._start_cell(attributes)
        elif name == "v" or (name == "t" and not self._in_reading):
            self._is_wanted = True
        elif name == "f":
            self._has_formula = True
        elif name == "row":
            self._row = int(attributes["r"]) if "r" in attributes else self._row + 1
            self._column = 0
            if is_true(attributes.get("hidden")):
                self.sheet.hidden_rows.add(self._row)
        elif name == "rPh":
            self._in_reading = True
        elif name == "mergeCell":
            first, _, last = attributes["ref"].partition(":")
            self.sheet.merged.append(Area(*place(first), *place(last or first)))
            if len(self.sheet.merged) > MOST_MERGED:
                raise ValueError("more merged cells than any table has")
        elif name == "col" and is_true(attributes.get("hidden")):
            self.sheet.hidden_columns.append((int(attributes["min"]), int(attributes["max"])))

    def _start_cell(self, attributes: dict[str, str]) -> None:
        if "r" in attributes:
            row, self._column = place(attributes["r"])
            if row != self._row:
                raise ValueError("a cell outside its row")
        else:
            self._column += 1
        self._kind, self._style = attributes.get("t", "n"), int(attributes.get("s", "0"))
        self._has_formula = False

    def end(self, name: str) -> None:
        if name in ("v", "t"):
            self._is_wanted = False
        elif name == "rPh":
            self._in_reading = False
        elif name == "c":
            self._end_cell(self.take())

    def _end_cell(self, text: str) -> None:
        if not text.strip():
            # A formula may well give an empty text; a number, error or truth it cannot give without a digit or letter.
            if self._has_formula and self._kind != "str":
                self.sheet.not_computed.append((self._row, self._column))
            return
        column = self.sheet.columns.setdefault(self._column, SheetColumn())
        if self._row > LAST_ROW or (column.rows and column.rows[-1] >= self._row):
            raise ValueError("rows that are not in order")
        column.rows.append(self._row)
        column.values.append(self._value(text))

    def _value(self, text: str) -> Value:
        if self._kind == "n":
            return self._number(text.strip())
        if self._kind == "s":
            return self._texts[int(text)]
        if self._kind == "b":
            return "True" if is_true(text.strip()) else "False"
        return Moment(text.replace("T", " ")) if self._kind == "d" else text  # else a text, or an error such as #N/A

    def _number(self, text: str) -> Value:
        if not _NUMBER.fullmatch(text):
            raise ValueError("a number that is none")
        number = float(text)
        shown = self._shown[self._style] if self._style < len(self._shown) else None
        if shown == PERCENT:
            return Percentage(number)
        if shown is not None:
            return moment(number, shown, self._from_1904) or number
        # A code of 17 digits, which some programs write, is no float.
        return text if abs(number) > LARGEST_WHOLE and text.lstrip("+-").isdecimal() else number
