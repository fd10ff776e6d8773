"""Whether the first row of a file names its columns, or is a patient already."""

from __future__ import annotations

from collections.abc import Sequence

from l2m_core.errors import CohortError
from l2m_core.tables.table import SEPARATOR, TextColumn

FEWEST_NAMED = 0.5  # of the columns, by the first row: fewer are a title, not names
FEWEST_AS_CELLS = 3  # names that stand among their columns' cells, of a first row that may be a patient


def refuse_title(named: int, columns: int, row: int, where: str) -> None:
    """Of a table whose first row names few of the columns that have cells, the rest would become patients."""
    if named < FEWEST_NAMED * columns:
        raise CohortError(
            f"Row {row} of {where} names {named} of {columns} columns, so it seems to be a title. The first row must name the "
            "columns: delete what stands above and beside the table."
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


def _holds(column: TextColumn, text: str) -> bool:
    """Whether a cell is just this text; without a list of the cells, which may be many."""
    joined, inner = column.joined, f"{SEPARATOR}{text}{SEPARATOR}"
    return joined == text or joined.startswith(inner[1:]) or joined.endswith(inner[:-1]) or inner in joined


def _are_numbered(header: list[str]) -> bool:
    """Columns that are called 0, 1, 2 …, as those of an image."""
    numbers = [int(name) for name in header if name.strip().isdecimal()]
    return 2 * len(numbers) >= len(header) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
