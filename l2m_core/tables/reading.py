"""A file becomes a table of cells: exactly what is written in it, or a refusal that says where and why.

What a file is, is told by its content, never by its name. Rows that are shorter or longer than the header are refused,
because no repair of them is safe. Sizes are bounded before memory is spent.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from l2m_core.errors import CohortError, type_of
from l2m_core.tables.measurements import find_measurements, may_be_measurements
from l2m_core.tables.parquet import table_from_parquet
from l2m_core.tables.row_of_names import (
    refuse_second_row_of_names,
    refuse_title,
    refuse_title_above,
    refuse_without_names,
)
from l2m_core.tables.table import (
    DEFAULT_LIMITS,
    DELIMITERS,
    SEPARATOR,
    Limits,
    Table,
    TextColumn,
    check_width,
    clean_names,
)
from l2m_core.tables.workbook import sheets_with_cells, table_from_workbook

PARQUET = b"PAR1"  # the first bytes of such a file
BLANK = f"{SEPARATOR} \t"  # a column of nothing else has no cells
CHUNK = 20_000  # cells that are held as Python strings at a time
PIECE = 1 << 20  # bytes that are decoded at a time
MOST_TITLES, LOOKED_BELOW = 5, 20  # lines of a title that may stand above the names; rows that are looked at below
FED = 4096  # bytes of a gzip file that are unpacked at a time, into some 4 MB at most


def read_table(
    source: Any,
    delimiter: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    name: str | None = None,
    sheet: str | None = None,
) -> Table:
    """A path, bytes, or an open file that holds CSV, gzipped CSV, Parquet, or an Excel workbook, of which one `sheet` is read."""
    data, found_name = _read_bytes(source, limits)
    name = name or found_name
    data = _gunzip(data, limits) if data[:2] == b"\x1f\x8b" else data
    if _is_archive(data):
        return table_from_workbook(data, limits, name, sheet)
    if sheet is not None:
        raise CohortError(f"This is no Excel workbook, so it has no sheet '{sheet:.40}'. Leave the sheet out.")
    if data[:4] == PARQUET:
        return table_from_parquet(data, limits, name)
    _refuse_other_formats(data)
    table = _read_csv(data, delimiter, limits, name)
    if table.rows > limits.rows and find_measurements(table) is None:
        raise CohortError(_too_many(limits.rows))
    return table


def sheets_of(data: bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...]:
    """The sheets of an Excel workbook that can be seen and have cells; none of any other file."""
    return sheets_with_cells(data, limits) if _is_archive(data) else ()


def is_read_as_a_whole(start: bytes) -> bool:
    """Whether a file that starts so is a workbook or Parquet; any other is text, which can be read row after row."""
    return _is_archive(start) or start[:4] == PARQUET


def _is_archive(data: bytes) -> bool:
    return data[:4] == b"PK\x03\x04"


def _read_bytes(source, limits) -> tuple[bytes, str]:
    if isinstance(source, bytes | bytearray | memoryview):
        data, name = bytes(source), "cohort"
    elif hasattr(source, "read"):
        data = source.read(limits.size + 1)
        data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        name = Path(str(getattr(source, "name", ""))).name.split(".")[0] or "cohort"
    elif isinstance(source, str | os.PathLike):
        data, name = _read_path(source, limits)
    else:
        raise CohortError(f"The source is {type_of(source)}, which cannot be read. Give a path, bytes or an open file.")
    if len(data) > limits.size:
        raise CohortError(_too_large(limits))
    if not data.strip():
        raise CohortError("The file is empty. It needs a header row and at least ten rows.")
    return data, name


def _read_path(source, limits) -> tuple[bytes, str]:
    try:
        path = Path(source)
        if not path.is_file():
            reason = "is a folder" if path.is_dir() else "does not exist"
            raise CohortError(f"'{path}' {reason}. Give the path of a CSV, Excel or Parquet file.")
        if path.stat().st_size > limits.size:
            raise CohortError(_too_large(limits))
        return path.read_bytes(), path.name.split(".")[0] or "cohort"
    except (OSError, ValueError) as error:
        if isinstance(error, CohortError):
            raise
        reason = getattr(error, "strerror", None) or "not a path"
        raise CohortError(f"The file cannot be opened ({reason}).") from error


def _too_large(limits) -> str:
    return (
        f"The file is larger than {limits.megabytes} MB once unpacked. Keep the columns and rows that matter, "
        "or split it."
    )


_NOT_ZERO = re.compile(rb"[^\0]")


def _gunzip(data, limits) -> bytes:
    """Fed in small pieces, so that neither a member that unfolds nor very many small ones cost more than the limit."""
    pieces, size, at, members = [], 0, 0, 0
    try:
        while at < len(data):
            members += 1
            if members > limits.rows:
                raise CohortError(
                    f"The gzip file has more than {limits.rows:,} members. Unpack it and compress it anew."
                )
            unpacker = zlib.decompressobj(wbits=31)
            while not unpacker.eof:
                fed = data[at : at + FED]
                if not fed:
                    raise CohortError("The gzip file is cut off. Copy or export it again.")
                at += len(fed)
                pieces.append(unpacker.decompress(fed))
                size += len(pieces[-1])
                if size > limits.size:
                    raise CohortError(_too_large(limits))
            rest = _NOT_ZERO.search(data, at - len(unpacker.unused_data))  # zeros may stand between members
            at = rest.start() if rest else len(data)
    except zlib.error as error:
        raise CohortError("The gzip file is damaged. Copy or export it again.") from error
    return b"".join(pieces)


_FORMATS = (
    (b"PK\x03\x04", "an Excel workbook or a zip archive"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"SQLite format 3", "a database"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ", "an xz archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"\x1f\x8b", "gzip within gzip"),
    (b"\x93NUMPY", "a NumPy file"),
    (b"\x80\x04", "a Python pickle"),
    (b"{\\rtf", "a rich-text document"),
)


def _refuse_other_formats(data):
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        raise CohortError(
            "This is an old Excel or Office file (.xls), or one with a password. Save it as an Excel workbook (.xlsx) without a "
            "password, or as CSV (UTF-8)."
        )
    for magic, what in _FORMATS:
        if data.startswith(magic):
            raise CohortError(f"This is {what}, not a table of text. Save the table as CSV (UTF-8) and read that.")
    start = data[:200].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise CohortError("This is a web page or XML, not a table of text. Save the table as CSV (UTF-8).")
    if start.startswith((b"{", b"[{", b"[[")):
        raise CohortError("This is JSON, not a table of text. Save the table as CSV (UTF-8).")


# Text


ENCODINGS = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "Windows-1252"}
Opener = Callable[[], BinaryIO]  # opens the unpacked bytes, each time from their beginning


def _encoding(opener: Opener) -> tuple[str, list[str]]:
    """The encoding that the bytes are in, and warnings."""
    if next(_pieces(opener), b"").startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        _decode_check(opener, "utf-16", "UTF-16")
        return "utf-16", []
    for number, piece in enumerate(_pieces(opener)):
        if b"\0" in piece:
            position = number * PIECE + piece.index(0)
            raise CohortError(
                f"The file holds a NUL byte at position {position:,}: it is binary, or UTF-16 without its mark. "
                "Save it as CSV (UTF-8)."
            )
    if _decodes(opener, "utf-8"):
        return "utf-8-sig", []
    _decode_check(opener, "cp1252", "UTF-8 or Windows-1252")
    return "cp1252", ["The file is not UTF-8; it was read as Windows-1252. Check names with accents."]


def _pieces(opener: Opener) -> Iterator[bytes]:
    with opener() as file:
        yield from iter(partial(file.read, PIECE), b"")


def _decodes(opener: Opener, encoding) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in _pieces(opener):
            if SEPARATOR in decoder.decode(piece):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _decode_check(opener: Opener, encoding, what):
    if not _decodes(opener, encoding):
        raise CohortError(f"The file is not {what} text. Save it as CSV (UTF-8).")


@dataclass
class _Rows:
    """The records of a CSV, one after the other, with the row number that a spreadsheet shows."""

    opener: Opener
    encoding: str
    delimiter: str
    skip: int = 0  # lines before the header
    strict: bool = True
    number: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[list[str]]:
        lines = io.TextIOWrapper(self.opener(), encoding=self.encoding, newline="")
        for _ in range(self.skip):
            lines.readline()
            self.number += 1
        reader = csv.reader(lines, delimiter=self.delimiter, strict=self.strict)
        while True:
            self.number += 1
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise CohortError(f"Row {self.number} {_csv_reason(error)}") from error
            if row and (len(row) > 1 or row[0].strip()):
                yield row


def _csv_reason(error) -> str:
    if "field larger" in str(error):
        return "has a cell of more than 131,072 characters; perhaps a quotation mark is never closed."
    if "unexpected end" in str(error):
        return 'begins a quotation mark that is never closed. Close it, or write "" for the mark itself.'
    return 'has a quotation mark inside a cell. Put the cell in quotes and write "" for the mark itself.'


_NUMBER_LIKE = re.compile(r"\s*[-+]?[\d.,' \u00a0\u202f]*\d[\d.]*([eE][-+]?\d+)?\s*")


def _find_delimiter(opener: Opener, encoding, skip, limits) -> str:
    """The one under which rows are as long as the header; then the one whose cells are numbers; then the most cells."""
    samples: dict[str, list[list[str]]] = {}
    scores: dict[str, tuple[float, float, int]] = {}
    unreadable = None
    for delimiter in DELIMITERS:
        rows = iter(_Rows(opener, encoding, delimiter, skip, strict=False))
        try:
            header = next(rows, [])
            check_width(len(header), limits)
            if len(header) > 1:
                samples[delimiter] = [header, *islice(rows, 200)]
        except CohortError as error:
            unreadable = unreadable or error
    if unreadable is not None and not samples:
        raise unreadable
    if len(samples) == 1:
        return next(iter(samples))
    for delimiter, (header, *body) in samples.items():
        width = len(header)
        same = sum(len(row) == width for row in body) / max(len(body), 1)
        numbers = sum(bool(_NUMBER_LIKE.fullmatch(cell[:40])) for row in body for cell in row)
        scores[delimiter] = (round(same, 3), round(numbers / max(sum(map(len, body)), 1), 3), width)
    if not scores:
        raise CohortError(
            "The first row holds a single column. Columns are separated by comma, semicolon or tab; "
            "a cohort needs an outcome and at least one feature. If the row is a title, delete what stands above the names."
        )
    best = sorted(scores, key=lambda delimiter: scores[delimiter], reverse=True)
    if len(best) > 1 and scores[best[0]][:2] == scores[best[1]][:2] and scores[best[0]][0] == 1:
        names = " and ".join(DELIMITERS[delimiter] for delimiter in best[:2])
        raise CohortError(f"Columns could be separated by {names}: both fit every row. State delimiter=….")
    return best[0]


def _stated_delimiter(data, encoding) -> str | None:
    """Spreadsheets write 'sep=;' as a first line of its own."""
    with io.TextIOWrapper(io.BytesIO(data[:64]), encoding=encoding, errors="ignore", newline=None) as lines:
        first = lines.readline().strip('\n"')
    return first[4:] if first.lower().startswith("sep=") and first[4:] in DELIMITERS else None


def _read_csv(data, delimiter, limits, name) -> Table:
    opener = partial(io.BytesIO, data)
    encoding, warnings = _encoding(opener)
    stated = _stated_delimiter(data, encoding)
    skip = 0 if stated is None else 1
    if delimiter is not None and delimiter not in DELIMITERS:
        raise CohortError(f"delimiter is {delimiter!r}; it must be one of {', '.join(map(repr, DELIMITERS))}.")
    delimiter = delimiter or stated or _find_delimiter(opener, encoding, skip, limits)
    rows = _Rows(opener, encoding, delimiter, skip)
    header, columns, numbers = _collect(rows, limits)
    used = [bool(name.strip() or column.joined.strip(BLANK)) for name, column in zip(header, columns, strict=True)]
    refuse_title(sum(bool(name.strip()) for name in header), sum(used), skip + 1, "the file")
    refuse_without_names(header, columns)
    refuse_second_row_of_names(columns, skip + 2, "the file")
    names, repeated, header_warnings = clean_names(header)
    return Table(
        names, columns, numbers, tuple(warnings + header_warnings), name, delimiter, repeated, ENCODINGS[encoding]
    )


@dataclass(frozen=True)
class RowStream:
    """The records of a CSV or gzipped CSV of any size, decoded as `read_table` decodes them, one after the other."""

    path: Path
    encoding: str
    stated: str | None
    """The delimiter of a first line such as 'sep=;'."""

    @classmethod
    def of(cls, path: Path) -> RowStream:
        opener = partial(_open_unpacked, path)
        try:
            with opener() as file:
                start = file.read(200)
            _refuse_other_formats(start)
            encoding, _ = _encoding(opener)
        except (OSError, EOFError, zlib.error) as error:
            raise CohortError(f"The file cannot be read ({error}). Copy or export it again.") from error
        return cls(path, encoding, _stated_delimiter(start, encoding))

    def rows(self, delimiter: str = ",") -> Iterator[list[str]]:
        """The header first. Blank lines are passed over; that rows are as long as the header is left to the caller."""
        yield from _Rows(
            partial(_open_unpacked, self.path), self.encoding, self.stated or delimiter, int(self.stated is not None)
        )


def _open_unpacked(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if is_packed else path.open("rb")  # type: ignore[return-value]


def _collect(rows: _Rows, limits) -> tuple[list[str], tuple[TextColumn, ...], np.ndarray]:
    iterator = iter(rows)
    header = next(iterator, None)
    if header is None:
        raise CohortError("The file holds no row. It needs a header row and at least ten rows.")
    check_width(len(header), limits)
    pieces: list[list[str]] = [[] for _ in header]
    numbers: list[int] = []
    most = limits.measurements if may_be_measurements(header) else limits.rows
    for chunk in _chunks(iterator, rows, header, numbers, most):
        for column, cells in zip(pieces, zip(*chunk, strict=True), strict=True):
            column.append(SEPARATOR.join(cells))
    if not numbers:
        raise CohortError("The file holds a header but no rows. It needs at least ten rows.")
    columns = []
    while pieces:
        columns.append(TextColumn(SEPARATOR.join(pieces.pop(0)), len(numbers)))
    return header, tuple(columns), np.array(numbers, dtype=np.int64)


def _chunks(iterator, rows, header, numbers, most) -> Iterator[list[list[str]]]:
    chunk: list[list[str]] = []
    width = len(header)
    for row in iterator:
        if len(row) != width:
            refusal = _ragged(row, width, rows)
            if len(numbers) < MOST_TITLES:
                refuse_title_above(rows.delimiter.join(header), row, rows.number, list(islice(iterator, LOOKED_BELOW)))
            raise CohortError(refusal)
        numbers.append(rows.number)
        if len(numbers) > most:
            raise CohortError(_too_many(most))
        chunk.append(row)
        if len(chunk) * width >= CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _too_many(most: int) -> str:
    return f"The table has more than {most:,} rows. Keep those of a random sample of the patients."


def _ragged(row, width, rows) -> str:
    hint = "Is a value missing its comma, or is text with a comma not in quotes?"
    if rows.delimiter != ",":
        hint = f"Columns are separated by {DELIMITERS[rows.delimiter]}; text that holds one must be in quotes."
    return f"Row {rows.number} has {len(row)} cells, but the header has {width}. {hint} Nothing was read."
