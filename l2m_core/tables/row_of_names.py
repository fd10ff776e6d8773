"""Whether the first row of a file, and no other, names its columns."""

from __future__ import annotations

from collections.abc import Sequence

from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import is_missing
from l2m_core.tables.table import SEPARATOR, TextColumn

FEWEST_NAMED = 0.5  # of the columns, by the first row: fewer are a title, not names
LOOKED_AT, FEWEST_NUMBERS, MOSTLY = (
    100,
    5,
    0.8,
)  # cells at a column's start; numbers among them, and which share of them
FEWEST_AS_CELLS = 3  # names that stand among their columns' cells, of a first row that may be a patient


def refuse_title(named: int, columns: int, row: int, where: str) -> None:
    """Of a table whose first row names few of the columns that have cells, the rest would become patients."""
    if named < FEWEST_NAMED * columns:
        raise CohortError(
            f"Row {row} of {where} names {named} of {columns} columns, so it seems to be a title. The first row must name the "
            "columns: delete what stands above and beside the table."
        )


def refuse_title_above(first: str, row: Sequence[str], number: int, below: Sequence[Sequence[str]]) -> None:
    """A title with a comma, or several lines of it, would be the names: of another row the cells are as many as below it.

    first: the first row of the file, as written; row: the first one of another length, in line `number`; below: those after it.
    """
    is_names = not any(cell.strip()[:1].isdecimal() for cell in row)
    are_patients = any(cell.strip()[:1].isdecimal() for other in below for cell in other)
    if is_names and are_patients and all(len(other) == len(row) for other in below):
        raise CohortError(
            f"Row {number} seems to name the columns, and the first row of the file, '{first:.40}', to be a title. Delete what "
            f"stands above row {number}."
        )


def refuse_without_names(header: list[str], columns: Sequence[TextColumn]) -> None:
    """A file that begins with a patient would lose that one, who would name the columns."""
    found = [i for i, (name, column) in enumerate(zip(header, columns, strict=True)) if name and _holds(column, name)]
    if len(found) < FEWEST_AS_CELLS or 2 * len(found) < len(header) or _are_numbered(header):
        return
    names = [header[i].strip() for i in found]
    if len({*names}) == len(names) and not any(name.strip("'\"")[:1].isdecimal() for name in names):
        return  # 'fever' in the column 'fever', as a form writes what was ticked
    # A row of names that is written again further down has all of them in the same rows.
    rows = {tuple(row for row, cell in enumerate(columns[i].cells()) if cell == header[i]) for i in found}
    if len(rows) > 1:
        cells = f"{len(found)} of its {len(header)} cells, such as '{header[found[0]].strip():.40}',"
        raise CohortError(
            f"The first row seems to be a patient, not the names of the columns: {cells} also stand further down in their "
            "columns. Add a row of names at the top."
        )


def refuse_second_row_of_names(columns: Sequence[TextColumn], row: int, where: str) -> None:
    """Names below groups of columns, or units below names, would be taken for the first patient's results."""
    starts = [column.joined.split(SEPARATOR, LOOKED_AT)[:LOOKED_AT] for column in columns]
    numbers = [i for i, cells in enumerate(starts) if len(cells) > FEWEST_NUMBERS and _are_mostly_numbers(cells[1:])]
    texts = {
        i: text
        for i in numbers
        if (text := starts[i][0].strip()) and not _may_be_result(text) and not _holds_below_the_first(columns[i], text)
    }
    if len({*texts.values()}) >= 2 and 2 * len(texts) >= len(numbers):
        shown = ", ".join(f"'{text:.40}'" for text in [*texts.values()][:3])
        raise CohortError(
            f"Row {row} of {where} seems to be a second row of names, or of units: {shown} stand above numbers. Keep one row "
            "of names, with the units in the names or in the schema."
        )


def _are_mostly_numbers(cells: Sequence[str]) -> bool:
    written = [cell.strip() for cell in cells if not is_missing(cell)]
    return len(written) >= FEWEST_NUMBERS and sum(map(_may_be_result, written)) >= MOSTLY * len(written)


def _may_be_result(text: str) -> bool:
    return text[:1].isdecimal() or text[1:2].isdecimal() or text[2:3].isdecimal() or is_missing(text)


def _holds(column: TextColumn, text: str) -> bool:
    """Whether a cell is just this text; without a list of the cells, which may be many."""
    is_first = column.joined == text or column.joined.startswith(f"{text}{SEPARATOR}")
    return is_first or _holds_below_the_first(column, text)


def _holds_below_the_first(column: TextColumn, text: str) -> bool:
    inner = f"{SEPARATOR}{text}{SEPARATOR}"
    return inner in column.joined or column.joined.endswith(inner[:-1])


def _are_numbered(header: list[str]) -> bool:
    """Columns that are called 0, 1, 2 …, as those of an image."""
    numbers = [int(name) for name in header if name.strip().isdecimal()]
    return 2 * len(numbers) >= len(header) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
