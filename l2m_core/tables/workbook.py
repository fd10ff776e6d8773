"""One sheet of an Excel workbook becomes the same table of columns that CSV becomes: what its cells hold, digit for digit.

What a sheet hides or shows otherwise (merged cells, formulas without a result, a number that was turned into a date, hidden rows)
is refused or said, never read as something else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import DATE_ADVICE, is_missing, number_text
from l2m_core.tables.row_of_names import refuse_second_row_of_names, refuse_title, refuse_without_names
from l2m_core.tables.table import (
    SEPARATOR,
    Column,
    Limits,
    NumberColumn,
    RefusedColumn,
    Table,
    TextColumn,
    check_size,
    check_width,
    clean_names,
)
from l2m_core.tables.workbook_cells import Sheet, Value, letters, reference
from l2m_core.tables.workbook_dates import Moment, Percentage
from l2m_core.tables.workbook_parts import Workbook, reading_workbook

ALONE = 1  # cells of a row that is a note
NARROW = 3  # columns; in a narrower table a row with one cell may well be a patient
MOST_NAMED = 5  # columns that a sentence names


def sheets_with_cells(data: bytes, limits: Limits) -> tuple[str, ...]:
    """The sheets that can be seen and have cells."""
    with reading_workbook():
        return Workbook(data, limits).sheets


def table_from_workbook(data: bytes, limits: Limits, name: str, sheet: str | None = None) -> Table:
    """Of one sheet; which one may be left out where there is one only."""
    with reading_workbook():
        workbook = Workbook(data, limits)
        sheet = _chosen(workbook, sheet)
        return _SheetTable(workbook.read(sheet), sheet, limits).table(name)


def _chosen(workbook: Workbook, sheet: str | None) -> str:
    if sheet is not None:
        if sheet not in workbook.paths:
            raise CohortError(f"The Excel workbook has no sheet '{sheet:.40}'. It has {_listed(list(workbook.paths))}.")
        return sheet
    if not workbook.sheets:
        raise CohortError("The Excel workbook has no sheet with cells. It needs a row of names and at least ten rows.")
    if len(workbook.sheets) > 1:
        raise CohortError(
            f"The Excel workbook has several sheets with cells: {_listed(workbook.sheets)}. State which one is read, such as "
            f"sheet='{workbook.sheets[0]}'."
        )
    return workbook.sheets[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"'{name:.40}'" for name in names[:20])


class _SheetTable:
    """The cells of a sheet, in rows below a row of names. Columns without any cell are left out; so are empty rows."""

    def __init__(self, sheet: Sheet, title: str, limits: Limits) -> None:
        self.sheet, self.title = sheet, title
        # (cells,) of each column the rows in which something is written; a text of blanks is nothing
        written = {
            place: np.array([row for row, value in zip(column.rows, column.values, strict=True) if _is_written(value)])
            for place, column in sorted(sheet.columns.items())
        }
        self.written = {place: rows for place, rows in written.items() if len(rows)}
        self.places = list(self.written)
        check_width(len(self.places), limits)
        found = np.unique(np.concatenate(list(self.written.values()))) if self.written else np.zeros(0, dtype=np.int64)
        if len(found) < 2:
            raise CohortError(
                f"The sheet '{title:.40}' has a row of names at most. It needs at least ten rows below them."
            )
        self.first, self.rows = int(found[0]), found[1:]  # of the names; of the patients
        check_size(len(self.rows), len(self.places), limits)

    def table(self, name: str) -> Table:
        self._refuse_title()
        self._refuse_notes()
        self._refuse_merged()
        self._refuse_not_computed()
        header = [_text(self._value_at(self.first, place)) for place in self.places]
        names, repeated, warnings = clean_names(header)
        cells = [self._cells_of(place) for place in self.places]
        texts = [TextColumn.of([_text(value) for value in column]) for column in cells]
        refuse_without_names(header, texts)
        refuse_second_row_of_names(texts, int(self.rows[0]), f"the sheet '{self.title:.40}'")
        columns = tuple(
            self._column(label, column, text) for label, column, text in zip(names, cells, texts, strict=True)
        )
        warnings = warnings + self._hidden(names) + self._percentages(names, cells, columns)
        return Table(names, columns, self.rows, tuple(warnings), name, repeated=repeated, sheet=self.title)

    # -- cells

    def _value_at(self, row: int, place: int) -> Value | None:
        column = self.sheet.columns[place]
        at = int(np.searchsorted(column.rows, row))
        return column.values[at] if at < len(column.rows) and column.rows[at] == row else None

    def _cells_of(self, place: int) -> list[Value | None]:
        """(N,) None where nothing is written."""
        cells: list[Value | None] = [None] * len(self.rows)
        column = self.sheet.columns[place]
        positions = np.searchsorted(self.rows, column.rows)
        for position, row, value in zip(positions.tolist(), column.rows, column.values, strict=True):
            if row > self.first and _is_written(value):
                cells[position] = value
        return cells

    def _column(self, name: str, cells: list[Value | None], texts: TextColumn) -> Column:
        written = [value for value in cells if value is not None]
        if any(isinstance(value, Moment) for value in written):
            return RefusedColumn(self._dates(name, cells))
        if problem := self._percentages_among_others(name, cells):
            return RefusedColumn(problem)
        if written and all(isinstance(value, float) for value in written):
            return NumberColumn(np.array([value if isinstance(value, float) else np.nan for value in cells]))
        if any(isinstance(value, str) and SEPARATOR in value for value in written):
            return RefusedColumn(f"Column '{name}' holds a NUL character. Remove it, or set its role to ignored.")
        if any(isinstance(value, float) for value in written):
            return TextColumn.of([_unmistakable(value) if isinstance(value, float) else value or "" for value in cells])
        return texts

    def _dates(self, name: str, cells: Sequence[Value | None]) -> str:
        moments = sum(isinstance(value, Moment) for value in cells)
        others = sum(not isinstance(value, Moment | None) and not is_missing(_text(value)) for value in cells)
        if moments > others:
            return f"Column '{name}' holds dates or times. {DATE_ADVICE}"
        at = next(i for i, value in enumerate(cells) if isinstance(value, Moment))
        return (
            f"Column '{name}', row {self.rows[at]}: '{cells[at]}' is a date among other values; a spreadsheet may have made it "
            "of a cell such as 1.2 or 3-4. Write what was meant, as text, or set the column's role to ignored."
        )

    def _percentages_among_others(self, name: str, cells: Sequence[Value | None]) -> str | None:
        """Of 48 and 48% in one column, a sheet holds 48 and 0.48, which look alike there. 0 is the same in both."""
        percentages = [value for value in cells if isinstance(value, Percentage)]
        others = [
            i for i, value in enumerate(cells) if value and not isinstance(value, Percentage) and _has_digit(value)
        ]
        if not percentages or not others:
            return None
        return (
            f"Column '{name}', row {self.rows[others[0]]}: '{_text(cells[others[0]])}' stands among percentages, of which a "
            f"workbook holds the hundredth part ({percentages[0]} is {number_text(percentages[0])}). Format all numbers of the "
            "column as percentages, or none, or set its role to ignored."
        )

    # -- what would be read as something else

    def _refuse_title(self) -> None:
        named = sum(self._value_at(self.first, place) is not None for place in self.places)
        refuse_title(named, len(self.places), self.first, f"the sheet '{self.title:.40}'")

    def _refuse_notes(self) -> None:
        """A note below the table, after an empty row, would become a patient."""
        if len(self.places) < NARROW or self.rows[-1] - self.first == len(self.rows):
            return
        gap = int(np.flatnonzero(np.diff(self.rows, prepend=self.first) > 1)[-1])  # the last row after an empty one
        after = self.rows[gap:]
        counts = sum(np.isin(after, rows).astype(int) for rows in self.written.values())
        if gap and np.max(counts) <= ALONE:
            raise CohortError(
                f"Row {after[0]} of the sheet '{self.title:.40}' stands below an empty row and has one cell only, so it seems to "
                "be a note. Delete what stands below the table."
            )

    def _refuse_merged(self) -> None:
        for area in self.sheet.merged:
            has_rows = area.first_row <= self.rows[-1] and area.last_row >= self.first
            has_columns = area.first_column <= self.places[-1] and area.last_column >= self.places[0]
            if has_rows and has_columns:
                raise CohortError(
                    f"The cells {area} are merged, so that only the first of them holds a value. Unmerge them, and write the "
                    "value into each cell that it holds for."
                )

    def _refuse_not_computed(self) -> None:
        inside = [(row, place) for row, place in self.sheet.not_computed if self._is_inside(row, place)]
        if inside:
            raise CohortError(
                f"The cell {reference(*inside[0])} holds a formula whose result is not stored, as do {len(inside) - 1:,} more "
                "cells. Open the workbook in a spreadsheet program and save it, or write values in place of formulas."
                if len(inside) > 1
                else f"The cell {reference(*inside[0])} holds a formula whose result is not stored. Open the workbook in a "
                "spreadsheet program and save it, or write a value in place of the formula."
            )

    def _is_inside(self, row: int, place: int) -> bool:
        return self.first <= row <= self.rows[-1] and self.places[0] <= place <= self.places[-1]

    def _percentages(
        self, names: Sequence[str], cells: Sequence[list[Value | None]], columns: Sequence[Column]
    ) -> list[str]:
        """A sentence about the columns whose cells show a hundred times what was read."""
        examples = {
            f"'{name}'": next((value for value in written if isinstance(value, Percentage)), None)
            for name, written, column in zip(names, cells, columns, strict=True)
            if not isinstance(column, RefusedColumn)
        }
        found = {name: example for name, example in examples.items() if example is not None}
        if not found:
            return []
        first = next(iter(found.values()))
        said = f"Cells that are shown as percentages were read as they are stored, {first} as {number_text(first)}"
        return [f"{said}: {_named(list(found))}."]

    def _hidden(self, names: Sequence[str]) -> list[str]:
        """Sentences about rows and columns that were read, and cannot be seen in the sheet."""
        said = []
        rows = sum(row in self.sheet.hidden_rows for row in self.rows.tolist())
        if rows:
            said.append(f"Hidden rows, such as those of a filter, were read too: {rows:,}.")
        hidden = [
            f"'{name}' ({letters(place)})"
            for name, place in zip(names, self.places, strict=True)
            if any(first <= place <= last for first, last in self.sheet.hidden_columns)
        ]
        if hidden:
            said.append(f"Hidden columns were read too: {_named(hidden)}.")
        return said


def _named(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    return f"{', '.join(columns[:MOST_NAMED])}{more}"


def _has_digit(value: Value) -> bool:
    return isinstance(value, float) or any(sign.isdecimal() for sign in value)


def _is_written(value: Value) -> bool:
    return not isinstance(value, str) or bool(value.strip())


def _text(value: Value | None) -> str:
    return "" if value is None else value if isinstance(value, str) else number_text(value)


def _unmistakable(number: float) -> str:
    """Of a number among texts: 1.125 could be taken for a thousand, where another cell has a decimal comma; 1.1250 cannot."""
    text = number_text(number)
    is_grouped = len(text) > 3 and text[-4] == "." and text[-3:].isdecimal()
    return f"{text}0" if is_grouped else text
