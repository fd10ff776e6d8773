"""What was read how: notes that are taken while a table is read, and told together before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from l2m_core.tables.allowed_numbers import is_rounded, is_vanishing
from l2m_core.tables.cell_parsing import number_text
from l2m_core.tables.synonyms import spellings_of_two

if TYPE_CHECKING:
    from l2m_core.cohort import Cohort
    from l2m_core.tables.column_reading import Reading

# Kind of a note → what its cells are read as, in words. The liberties that change most come first.
KINDS: Mapping[str, str] = {
    "limit": "Detection limits, read as the limit itself",
    "unit": "Numbers with a unit, read as the number alone",
    "unusual": "Unusual forms, read plainly",
    "minus": "A minus, read as a result",
    "missing": "Texts that mean not recorded",
    "perhaps": "Texts that may mean not recorded, read as levels",
    "repeated": "Patients with several rows",
    "joined": "Spellings joined into one level",
    "lookalike": "Texts that look or mean the same, kept apart",
    "rare": "Levels read as 'other'",
    "rounded": "Numbers that 32 bits round",
    "code": "Digits read as codes, not as numbers",
    "comma": "Numbers with a decimal comma",
    "thousands": "Numbers with separated thousands",
    "unused": "Columns that are not used",
    "file": "The file",
    "number": "Plain numbers",
    "level": "Levels, as they are written",
}
BY_CELL = ("minus", "missing", "perhaps")  # kinds of which each text has a note of its own
MOST_COLUMNS = 5  # that a sentence names


@dataclass(frozen=True)
class CellNote:
    """How cells of one column were read. written: one of them; read_as: what it became."""

    kind: str
    written: str = ""
    read_as: str = ""
    cells: int = 0


@dataclass(frozen=True)
class ReadingNote:
    """How cells of a file were read."""

    kind: str
    """A key of KINDS, which has its heading."""
    columns: tuple[str, ...]
    """The columns concerned, in the file's order; none where the note is about the whole file."""
    example: str
    """A cell as it is written, and what it became: '<5 → 5'."""
    text: str
    """The note in one sentence."""


def reading_report(cohort: Cohort) -> list[ReadingNote]:
    """What was read how in a cohort's file, grouped by kind, what changes most first.

    For a table before a cohort is stored: one row for each note, with the heading of its kind.

        for note in reading_report(cohort):
            print(KINDS[note.kind], note.example, note.text, note.columns)

    The kinds 'number' and 'level' say only what was expected, and may be folded away. Empty where a cohort came from
    arrays; of a stored cohort, whose cells were understood when it was stored, little is left to tell.
    """
    if cohort.source is None:
        return []
    found: dict[tuple[str, str], list[tuple[str, CellNote]]] = {}
    for name in cohort.source.names:
        for note in cohort.notes.get(name, ()):
            key = note.written if note.kind in BY_CELL else ""
            found.setdefault((note.kind, key), []).append((name, note))
    of_file = [ReadingNote("file", (), "", sentence) for sentence in cohort.source.how_read()]
    notes = [_grouped(kind, entries) for (kind, _), entries in found.items()]
    order = list(KINDS)
    return sorted([*notes, *of_file], key=lambda note: order.index(note.kind))


def _grouped(kind: str, entries: list[tuple[str, CellNote]]) -> ReadingNote:
    columns = tuple(dict.fromkeys(name for name, _ in entries))
    first, cells = entries[0][1], sum(note.cells for _, note in entries)
    example = f"{first.written} → {first.read_as}" if first.read_as else first.written
    sentence = _SENTENCES[kind]
    text = (sentence if len(columns) > 1 else _OF_ONE.get(kind, sentence)).format(
        written=first.written, read_as=first.read_as, where=_where(columns), cells=_cells_text(cells)
    )
    return ReadingNote(kind, columns, example, text)


_SENTENCES = {
    "limit": "{cells} such as '{written}' are read as the limit itself ({read_as}), in {where}.",
    "unit": "{cells} such as '{written}' are read as the number alone ({read_as}), in {where}.",
    "unusual": "{cells} such as '{written}' are read as {read_as}, in {where}.",
    "minus": "'{written}' is read as a result in {cells} of {where}, because it stands beside a plus.",
    "missing": "'{written}' is read as not recorded, in {cells} of {where}.",
    "perhaps": "'{written}' is read as a level, in {cells} of {where}. If it means not recorded, say so.",
    "repeated": "{written} have several rows ({cells} of {where}).",
    "joined": "Spellings such as '{written}' are read as '{read_as}', in {cells} of {where}.",
    "lookalike": "Texts such as {written} and {read_as} look or mean the same and are read as different levels, in {where}.",
    "rare": "{cells} with levels such as '{written}' are read as 'other', in {where}.",
    "rounded": "{cells} such as {written} are rounded to {read_as}, in {where}.",
    "code": "'{written}' and the like are read as codes, not as numbers, in {where}.",
    "comma": "Numbers have a decimal comma ('{written}' is {read_as}), in {where}.",
    "thousands": "Numbers have separated thousands ('{written}' is {read_as}), in {where}.",
    "unused": "Not used: {where}. The first {written}.",
    "number": "Read as numbers: {where}.",
    "level": "Read as levels: {where}.",
}


_OF_ONE = {"unused": "Not used: {where}. It {written}."}


def _where(columns: tuple[str, ...]) -> str:
    shown = ", ".join(f"'{name}'" for name in columns[:MOST_COLUMNS])
    return f"{shown} and {len(columns) - MOST_COLUMNS} more columns" if len(columns) > MOST_COLUMNS else shown


def _cells_text(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells:,} cells"


def notes_of_feature(reading: Reading, levels: Sequence[str], values: np.ndarray) -> tuple[CellNote, ...]:
    """The notes of a column's reading, and how its cells became `values`: numbers, or codes of `levels`."""
    notes = [*reading.notes]
    if levels:
        kept = (*levels, *map(ascii, levels), *(f"'{level}'" for level in levels))
        notes = [note for note in notes if note.kind != "lookalike" or {note.written, note.read_as} <= {*kept}]
        rare = [text for text in reading.as_texts().texts if text not in levels]
        two = spellings_of_two(dict.fromkeys(rare, 1), levels) if len(levels) == 2 else {}
        joined = {text: two.get(text, _joined_with(text, levels)) for text in rare}
        found = int((values == len(levels)).sum())
        for text, level in joined.items():
            if level is not None:
                notes.append(CellNote("joined", text, level, _cells_of(reading, text)))
        if found:
            first = next((text for text in rare if joined[text] is None), "")
            notes.append(CellNote("rare", first, "other", found))
    elif reading.numbers is not None and (changed := is_rounded(reading.numbers) | is_vanishing(reading.numbers)).any():
        number = float(reading.numbers[int(np.argmax(changed))])
        rounded = number_text(float(np.float32(number)))
        notes.append(CellNote("rounded", number_text(number), rounded, int(changed.sum())))
    if not {"limit", "unit", "unusual", "comma", "thousands", "code"} & {note.kind for note in notes}:
        notes.append(CellNote("level" if levels else "number"))
    return tuple(notes)


def _joined_with(text: str, levels: Sequence[str]) -> str | None:
    return next((level for level in levels if level.casefold() == text.casefold()), None)


def _cells_of(reading: Reading, text: str) -> int:
    return int((reading.codes == reading.texts.index(text)).sum())


def joined_texts(notes: Iterable[CellNote]) -> dict[str, str]:
    """Text → the level that it is a spelling of."""
    return {note.written: note.read_as for note in notes if note.kind == "joined"}


def note_of_patients(patients: int, several: int, rows: int) -> CellNote:
    return CellNote("repeated", f"{several:,} of {patients:,} patients", "", rows)


def missing_notes(cells: Mapping[str, int]) -> Iterable[CellNote]:
    """cells: how often each text was read as not recorded."""
    return (CellNote("missing", text, "not recorded", count) for text, count in cells.items())
