"""Cells that change an outcome by mistake: its kind, its classes, or the number of patients.

Each finding is a sentence that names the rows. After any finding the outcome is refused until its kind is stated.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from l2m_core.tables.cell_parsing import SENTINELS, number_text, parse_number
from l2m_core.tables.column_reading import PAIRS, Reading
from l2m_core.tables.how_to_state import how_to_state
from l2m_core.tables.lookalikes import both_shown, is_slip, twin_key
from l2m_core.tables.synonyms import SYNONYMS
from l2m_core.tables.table import SEPARATOR, Table, TextColumn

EDGE = 5  # rows at the beginning and the end of a table in which totals stand
FEW_CELLS = 3  # of a value that is a slip or a code, not one of an outcome's own values …
FEW_SHARE = 0.05  # … or this share of the rows
MOST_HEADERS = 0.1  # share of the rows in which a header is repeated at most
SUMMARIES = frozenset(
    (
        "total",
        "totals",
        "grand total",
        "subtotal",
        "sum",
        "mean",
        "means",
        "average",
        "averages",
        "avg",
        "median",
        "n",
        "count",
        "sd",
        "std",
        "std dev",
        "standard deviation",
        "min",
        "max",
        "minimum",
        "maximum",
        "range",
        "overall",
        "summe",
        "gesamt",
        "mittelwert",
        "mittel",
        "durchschnitt",
        "anzahl",
        "moyenne",
        "somme",
        "media",
        "promedio",
    )
)


def doubts_about(table: Table, outcome: Reading, kept: np.ndarray) -> list[str]:
    """Sentences about the outcome as it was read in the rows that were kept."""
    rows = table.row_numbers[kept]
    return [
        *_summary_rows(table, kept),
        *_repeated_headers(table, outcome.name, kept),
        *(
            _doubts_about_texts(outcome, rows)
            if outcome.numbers is None
            else _doubts_about_numbers(outcome.name, outcome.numbers, rows)
        ),
    ]


def _rows_text(rows) -> str:
    """'row 3', 'rows 3 and 9', 'rows 3, 9, 12 and 40 more'."""
    shown = [str(row) for row in rows[:3]]
    if len(rows) > 3:
        return f"rows {', '.join(shown)} and {len(rows) - 3} more"
    return f"row {shown[0]}" if len(shown) == 1 else f"rows {', '.join(shown[:-1])} and {shown[-1]}"


# Rows that are no patients


def _summary_rows(table: Table, kept: np.ndarray) -> Iterator[str]:
    """A label such as Mean at the edge of the table, in a column where it stands once."""
    usable = {*kept.tolist()}
    told: set[int] = set()
    for name, column in zip(table.names, table.columns, strict=True):
        if not isinstance(column, TextColumn):
            continue
        for row, cell in _edge(column):
            if row in usable - told and _is_summary(cell) and _stands_alone(cell, column):
                told.add(row)
                yield (
                    f"Row {table.row_numbers[row]} looks like totals or means, not like a patient: column '{name}' holds "
                    f"'{cell.strip()}'. Remove the row."
                )


def _edge(column: TextColumn) -> list[tuple[int, str]]:
    """The first and the last cells of a column, with the position of each."""
    last = column.joined.rsplit(SEPARATOR, EDGE)[-EDGE:]
    first = column.joined.split(SEPARATOR, EDGE)[: min(EDGE, column.length - len(last))]
    return [*enumerate(first), *enumerate(last, column.length - len(last))]


def _stands_alone(cell: str, column: TextColumn) -> bool:
    """A level would stand in other rows too; n is one where y is another."""
    keys = [twin_key(other) for other in column.cells()]
    return keys.count(twin_key(cell)) == 1 and not (twin_key(cell) == "n" and {"y", "yes"} & {*keys})


def _is_summary(cell: str) -> bool:
    return len(cell) < 40 and twin_key(cell).rstrip(":.= ") in SUMMARIES


def _repeated_headers(table: Table, outcome: str, kept: np.ndarray) -> Iterator[str]:
    """Rows in which at least half of the cells, the outcome's among them, are the names of their columns."""
    matches = np.zeros(table.rows, dtype=np.int64)
    of_outcome = np.zeros(table.rows, dtype=bool)
    for name, column in zip(table.names, table.columns, strict=True):
        if isinstance(column, TextColumn) and name in column.joined:
            same = np.array([cell.strip() == name for cell in column.joined.split(SEPARATOR)])
            matches += same
            of_outcome = same if name == outcome else of_outcome
    header = of_outcome & (2 * matches >= len(table.names)) & (matches >= 2)
    found = kept[header[kept]]
    if 0 < len(found) <= max(1, MOST_HEADERS * table.rows):
        repeats = "repeats" if len(found) == 1 else "repeat"
        where = _rows_text(table.row_numbers[found])
        yield f"{where[0].upper()}{where[1:]} {repeats} the header. Remove {'it' if len(found) == 1 else 'them'}."


# Values that are no outcomes


def _few(rows: int) -> float:
    return max(FEW_CELLS, FEW_SHARE * rows)


def _doubts_about_numbers(name: str, numbers: np.ndarray, rows) -> Iterator[str]:
    """0 and 1 with a few others; a class of one row."""
    values, counts = np.unique(numbers, return_counts=True)
    pair = next((pair for pair in PAIRS if pair <= set(values)), None)
    others = [value for value in values if pair is not None and value not in pair]
    if pair is not None and others:
        cells = int(np.isin(numbers, others).sum())
        strange = len(others) == 1 and (others[0] in SENTINELS or others[0] != round(others[0]))
        if strange or (len(others) <= 2 and cells <= _few(len(rows))):
            low, high = (number_text(value) for value in sorted(pair))
            where = _rows_text(rows[np.isin(numbers, others)])
            texts = " and ".join(number_text(value) for value in others)
            yield (
                f"The outcome '{name}' holds {low} and {high}, but {texts} in {where}. Correct it, or say that it "
                f"means not recorded ({how_to_state('missing', number_text(others[0]))})."
            )
            return
    if np.all(values == np.round(values)) and 2 < len(values) <= 10 and len(rows) >= 5 * len(values):
        for value in values[counts == 1]:
            yield _alone(name, number_text(value), rows[numbers == value][0])


def _alone(name: str, text: str, row) -> str:
    return (
        f"The outcome '{name}' holds '{text}' in row {row} alone, which would be a class of its own. Correct it, or say "
        f"that it means not recorded ({how_to_state('missing', text)})."
    )


def _doubts_about_texts(outcome: Reading, rows) -> Iterator[str]:
    name, texts = outcome.name, outcome.texts
    if len(texts) > 20:  # refused for their number
        return
    counts = outcome.counts
    first = {text: rows[int(np.argmax(outcome.codes == i))] for i, text in enumerate(texts)}
    told: set[str] = set()
    mixed = _mixed_codings(texts)
    if mixed:
        told.update(texts)
        where = ", ".join(f"'{text}' (first in row {first[text]})" for text in mixed)
        yield f"The outcome '{name}' mixes ways to write the same: {where}. Use one of them in the whole column."
    for a, b in _near_pairs(texts):
        rarer, other = sorted((a, b), key=lambda text: counts[texts.index(text)])
        if rarer in told:
            continue
        told.add(rarer)
        shown, beside = both_shown(rarer, other)
        where = _rows_text(rows[outcome.codes == texts.index(rarer)])
        yield (
            f"The outcome '{name}' holds {shown} in {where}, which is nearly the same as {beside}. If it is a slip, "
            "correct it."
        )
    if len(texts) > 2:
        for text in (text for text in texts if counts[texts.index(text)] == 1 and text not in told):
            yield _alone(name, text, first[text])


def _near_pairs(texts) -> Iterator[tuple[str, str]]:
    for i, a in enumerate(texts):
        for b in texts[i + 1 :]:
            if twin_key(a) == twin_key(b) or (len(texts) > 2 and is_slip(a, b)):
                yield a, b


def _mixed_codings(texts) -> list[str]:
    """Texts that say the same, or numbers beside words that have a number of their own; empty where there are none."""
    if len(texts) < 3:
        return []
    same = [[text for text in texts if twin_key(text) in words] for words in SYNONYMS]
    repeated = [text for found in same if len(found) > 1 for text in found]
    numbers = [text for text in texts if parse_number(text) is not None]
    words = [text for found in same for text in found if text not in numbers]
    return repeated or ([numbers[0], words[0]] if numbers and words else [])
