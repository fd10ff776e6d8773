"""The parts of an Excel workbook (.xlsx): XML files in a zip archive, read as a stream and within bounds.

Names are those of Office Open XML (ECMA-376, part 1): the workbook names its sheets, its styles tell which numbers are shown as
dates, its shared strings are the texts, and a sheet has cells. What a cell has is told apart by type: a float, a str, or a
Moment; formulas are their stored results. Nothing is computed, no macro and no link is followed.
"""

from __future__ import annotations

import io
import posixpath
import re
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import LARGEST_WHOLE
from l2m_core.tables.table import Limits

MOST_PARTS = 10_000
MOST_MERGED = 100_000
UNPACKED = 2  # times what a file may be: XML takes more room than the same cells in a CSV
LAST_ROW, LAST_COLUMN = 1_048_576, 16_384  # of a sheet
LAST_DAY = 2_958_465  # the number of 9999-12-31
SECONDS = 86_400  # of a day
DAMAGED = "The Excel workbook is damaged or of an unknown kind. Save it again as .xlsx, or as CSV."

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_REFERENCE = re.compile(r"([A-Z]{1,3})([1-9]\d{0,6})")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # a character that XML cannot hold
_HAS_CELL = re.compile(rb"<(?:\w+:)?c[ />]")
# Of a format: texts in quotes, characters behind a sign, and what stands in brackets, but for the time that has passed.
_NOT_OF_DATES = re.compile(r'"[^"]*"|[\\_*].|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DATE_SIGNS = re.compile(r"[dmyhs]", re.IGNORECASE)
_PASSED = re.compile(r"\[[hms]+\]", re.IGNORECASE)
DATE, PASSED = "date", "passed"  # how a number is shown: a date or a time of day, or how much time has passed
BUILT_IN = {number: DATE for number in (*range(14, 23), *range(27, 37), 45, 47, *range(50, 59))} | {46: PASSED}


class Moment(str):
    """The text of a cell that shows a date or a time."""

    __slots__ = ()


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


@contextmanager
def reading_workbook() -> Iterator[None]:
    """Turns whatever a damaged file leads to into one refusal."""
    try:
        yield
    except CohortError:
        raise
    except (
        expat.ExpatError,
        BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        ValueError,
        LookupError,
        ArithmeticError,
    ) as error:
        raise CohortError(DAMAGED) from error
    except (
        RuntimeError,
        MemoryError,
    ) as error:  # a part behind a password, or compressed in a way that zipfile does not know
        raise CohortError(DAMAGED) from error


class Workbook:
    """The archive, with what its parts say of sheets, styles and texts."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        # Each entry of the archive's directory begins with these bytes; as objects a million of them take a gigabyte.
        if data.count(b"PK\x01\x02") > MOST_PARTS:
            raise CohortError("The Excel workbook has too many parts. Save the sheet as CSV.")
        self.archive = ZipFile(io.BytesIO(data))
        # zipfile unpacks no more of a part than its entry says.
        if sum(part.file_size for part in self.archive.infolist()) > UNPACKED * limits.size:
            raise CohortError(
                f"The Excel workbook unpacks to more than {UNPACKED * limits.megabytes} MB. Keep the sheet, columns and rows "
                "that matter, or save the sheet as CSV."
            )
        path = self._find()
        related = _Relations.read(self.archive, path)
        self._strings, self._styles = related.of_kind("sharedStrings"), related.of_kind("styles")
        listed = _SheetList()
        _parse(self.archive, path, listed)
        self._from_1904 = listed.from_1904
        of_sheets = {identifier: related.targets[identifier] for identifier in related.of_kind("worksheet")}
        self.paths = {name: of_sheets[identifier] for name, identifier, _ in listed.found if identifier in of_sheets}
        visible = {name for name, _, is_visible in listed.found if is_visible}
        self.sheets = tuple(name for name, path in self.paths.items() if name in visible and self._has_cells(path))
        """The names of those that can be seen and have cells."""
        self._targets = related.targets

    def _find(self) -> str:
        names = set(self.archive.namelist())
        if "mimetype" in names and b"opendocument" in self.archive.open("mimetype").read(100):
            raise CohortError("This is an OpenDocument file. Save it as an Excel workbook (.xlsx), or as CSV (UTF-8).")
        office = _Relations.read(self.archive, "") if "_rels/.rels" in names else _Relations()
        documents = [office.targets[identifier] for identifier in office.of_kind("officeDocument")]
        path = documents[0] if documents else "xl/workbook.xml"
        if path not in names or not path.startswith("xl/"):
            raise CohortError(
                "This is a zip archive, but no Excel workbook (.xlsx). Unpack it, or save the table as CSV."
            )
        if path.endswith(".bin"):
            raise CohortError("This is a binary Excel workbook (.xlsb). Save it as .xlsx, or as CSV (UTF-8).")
        return path

    def read(self, sheet: str) -> Sheet:
        texts, formats = _Texts(), _Formats()
        for identifiers, part in ((self._strings, texts), (self._styles, formats)):
            for identifier in identifiers[:1]:
                _parse(self.archive, self._targets[identifier], part)
        cells = _Cells(texts.found, formats.shown(), self._from_1904)
        _parse(self.archive, self.paths[sheet], cells)
        return cells.sheet

    def _has_cells(self, path: str) -> bool:
        with self.archive.open(path) as file:
            before = b""
            while piece := file.read(1 << 16):
                if _HAS_CELL.search(before + piece):
                    return True
                before = piece[-32:]
        return False


# -- XML --------------------------------------------------------------------------------------------------------------


class _Part:
    """Takes the elements of one XML file as they come, by their names without the namespace."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, text: str) -> None: ...


def _parse(archive: ZipFile, path: str, part: _Part) -> None:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    names: dict[str, str] = {}  # with their namespace → without

    def local(name: str) -> str:
        found = names.get(name)
        if found is None:
            found = names[name] = name.rpartition(" ")[2]
        return found

    def start(name: str, attributes: dict[str, str]) -> None:
        part.start(local(name), attributes)

    def end(name: str) -> None:
        part.end(local(name))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = part.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    with archive.open(path) as file:
        parser.ParseFile(file)


def _refuse_doctype(*_: object) -> None:
    """A workbook has none; entities that unfold, and files that are fetched, begin with one."""
    raise ValueError("a document type")


class _Relations(_Part):
    """Which other parts a part needs: identifier → path, and → kind."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder
        self.targets: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    @classmethod
    def read(cls, archive: ZipFile, path: str) -> _Relations:
        folder, name = posixpath.split(path)
        relations = cls(folder)
        _parse(archive, posixpath.join(folder, "_rels", f"{name}.rels"), relations)
        return relations

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join("/", self.folder, attributes["Target"])).lstrip("/")
            self.targets[attributes["Id"]] = target
            self.kinds[attributes["Id"]] = attributes["Type"].rpartition("/")[2]

    def of_kind(self, kind: str) -> list[str]:
        return [identifier for identifier, found in self.kinds.items() if found == kind]


class _SheetList(_Part):
    def __init__(self) -> None:
        self.found: list[tuple[str, str, bool]] = []  # name, identifier, whether it can be seen
        self.from_1904 = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            identifier = next((value for key, value in attributes.items() if key.endswith(" id")), "")
            self.found.append((attributes["name"], identifier, attributes.get("state", "visible") == "visible"))
        elif name == "workbookPr":
            self.from_1904 = _is_true(attributes.get("date1904"))


class _Formats(_Part):
    """How the numbers of cells are shown, as far as it makes dates of them."""

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
        """Of each style: DATE, PASSED, or None."""
        return [self.own[number] if number in self.own else BUILT_IN.get(number) for number in self.of_styles]


def shown_as(code: str) -> str | None:
    """What a format such as dd.mm.yyyy makes of a number: DATE, PASSED ([h]:mm), or None (0.00)."""
    signs = _NOT_OF_DATES.sub("", code).partition(";")[0]
    if not _DATE_SIGNS.search(signs) or signs.lower() == "general":
        return None
    return PASSED if _PASSED.search(signs) else DATE


class _Text(_Part):
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


class _Texts(_Text):
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


class _Cells(_Text):
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
            if _is_true(attributes.get("hidden")):
                self.sheet.hidden_rows.add(self._row)
        elif name == "rPh":
            self._in_reading = True
        elif name == "mergeCell":
            first, _, last = attributes["ref"].partition(":")
            self.sheet.merged.append(Area(*place(first), *place(last or first)))
            if len(self.sheet.merged) > MOST_MERGED:
                raise ValueError("more merged cells than any table has")
        elif name == "col" and _is_true(attributes.get("hidden")):
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
            return "True" if _is_true(text.strip()) else "False"
        return Moment(text.replace("T", " ")) if self._kind == "d" else text  # else a text, or an error such as #N/A

    def _number(self, text: str) -> Value:
        if not _NUMBER.fullmatch(text):
            raise ValueError("a number that is none")
        number = float(text)
        shown = self._shown[self._style] if self._style < len(self._shown) else None
        if shown is not None:
            return moment(number, shown, self._from_1904) or number
        # A code of 17 digits, which some programs write, is no float.
        return text if abs(number) > LARGEST_WHOLE and text.lstrip("+-").isdecimal() else number


def moment(number: float, shown: str, from_1904: bool) -> Moment | None:
    """What a spreadsheet shows of a number of days; None where it shows none."""
    if not 0 <= number <= LAST_DAY:
        return None
    days, seconds = divmod(round(number * SECONDS), SECONDS)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if shown == PASSED:
        return Moment(f"{24 * days + seconds // 3600}{clock[2:]}")
    if days == 0:
        return Moment(clock)
    # Day 1 is the first of 1900; or the second of 1904. Day 60 is taken for a 29 February 1900, which there was not.
    start = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 31 if days < 60 else 30)
    date = f"{start + timedelta(days):%Y-%m-%d}"
    return Moment(f"{date} {clock}" if seconds else date)


def _is_true(text: str | None) -> bool:
    return text in ("1", "true")
