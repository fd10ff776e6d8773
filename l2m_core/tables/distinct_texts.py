"""The distinct texts of a column: numbers as people write them, levels, or something that needs a person's decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import pandas as pd

from l2m_core.tables.cell_parsing import (
    ADVICE,
    DATE_ADVICE,
    DISGUISED,
    LARGEST_WHOLE,
    LONGEST_NUMBER,
    has_thousands,
    in_ascii,
    in_need_of_advice,
    is_band,
    is_code,
    is_compact_date,
    is_missing,
    is_short_date,
    is_titre,
    is_unusual,
    may_mean_missing,
    number_and_unit,
    number_text,
    parse_both,
    parse_number,
    such_cells,
    unit_key,
    unwrapped,
    without_limit_sign,
)
from l2m_core.tables.column_reading import Reading, ReadingRules, cells_of_each, with_numbers
from l2m_core.tables.decimal_signs import question
from l2m_core.tables.how_to_state import how_to_state
from l2m_core.tables.lookalikes import both_shown, in_quotes, twins
from l2m_core.tables.parsed_texts import ParsedTexts
from l2m_core.tables.reading_notes import CellNote, missing_notes
from l2m_core.tables.region_codes import are_short_codes, is_a_region
from l2m_core.tables.result_signs import is_minus, is_plus, minus_is_a_result
from l2m_core.tables.synonyms import said_twice, spellings_of_two
from l2m_core.tables.unit_guesses import as_shown

MOST_TWINS = 20  # pairs that a column's warnings show
MOST_REMARKS = 3  # different words among numbers that may be remarks, such as 'pending'


@dataclass
class DistinctTexts:
    """The distinct texts of a column and where each stands: all questions are asked once for each text."""

    name: str
    codes: np.ndarray  # (N,) into texts, -1 missing
    texts: list[str]
    rows: np.ndarray
    rules: ReadingRules
    warnings: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)  # texts read as not recorded, with their cells
    notes: list[CellNote] = field(default_factory=list)
    certain: frozenset[str] = frozenset()  # texts that were stated, or understood before, to be levels
    unit: str = ""  # that stood behind the numbers
    perhaps_missing: tuple[str, ...] = ()  # texts that may mean "not recorded"

    @classmethod
    def of(cls, name, column, rows, rules, levels=()) -> DistinctTexts:
        """levels: texts that are levels for certain, also where they could mean "not recorded"."""
        codes, cells = pd.factorize(np.array(column.cells() + [""], dtype=object)[:-1])
        written = [cell.strip() for cell in cells]
        certain = set(levels) - rules.missing
        stripped = [text if text in certain else unwrapped(text) for text in written]
        if any(map(is_minus, stripped)) and minus_is_a_result(stripped):
            certain.update(text for text in stripped if is_minus(text) and text not in rules.missing)
        region = not levels and "NA" not in rules.missing and is_a_region("NA", stripped)
        certain |= {"NA"} if region else set()
        found: dict[str, int] = {}
        mapping = np.full(len(stripped) + 1, -1, dtype=np.int64)
        for index, text in enumerate(stripped):
            if text and (text in certain or not is_missing(text, rules.missing)):
                mapping[index] = found.setdefault(text, len(found))
        counts = cells_of_each(stripped, codes)
        missing: Counter[str] = Counter()
        for text, count, code in zip(stripped, counts, mapping, strict=False):
            if text and code < 0:
                missing[text] += int(count)
        made = cls(name, mapping[codes], list(found), rows, rules, missing=missing, certain=frozenset(certain))
        made._tell_of_regions(region, stripped)
        made._tell_of_wrapped(written, stripped, counts)
        return made

    @classmethod
    def understood(cls, name, column, rows, rules) -> DistinctTexts:
        """Texts that were understood before: each is a level as it stands, and only an empty one is missing."""
        codes, cells = pd.factorize(np.array(column.cells() + [""], dtype=object)[:-1])
        texts = [cell for cell in cells if cell]
        code_of = {text: i for i, text in enumerate(texts)}
        mapping = np.array([code_of.get(cell, -1) for cell in cells] + [-1], dtype=np.int64)
        return cls(name, mapping[codes], texts, rows, rules, certain=frozenset(texts))

    def read(self, kind: str | None) -> Reading:
        if not self.texts:
            return self._reading(numbers=np.full(len(self.codes), np.nan))
        if kind is None and self._all_digits() and any(len(text) > 1 and text[0] == "0" for text in self.texts):
            self.warnings.append(
                f"Column '{self.name}' has leading zeros, so it is read as codes. "
                "If it is a number, state kind: number."
            )
            self.notes.append(CellNote("code", next(text for text in self.texts if text[0] == "0")))
            return self.levels()
        if kind is None and self._all_digits() and (alike := self._merged_by_floats()) is not None:
            self.warnings.append(
                f"Column '{self.name}' holds whole numbers so long that some, such as {alike[0]} and {alike[1]}, "
                "would become one and the same, so it is read as codes. If it is a number, state kind: number."
            )
            self.notes.append(CellNote("code", alike[0]))
            return self.levels()
        if len(self.texts) >= 5 and all(map(is_compact_date, self.texts)):
            return self._problem(f"'{self.texts[0]}' is a date. {DATE_ADVICE}", 0)
        if self.rules.units == "drop":
            return self._without_unit(kind)
        return self._written_numbers(kind)

    def _without_unit(self, kind: str | None) -> Reading:
        """Read with the unit taken off, where most cells are numbers and those with a unit have one and the same."""
        split = {i: found for i, text in enumerate(self.texts) if (found := number_and_unit(text)) is not None}
        plain = [i for i, text in enumerate(self.texts) if parse_both(without_limit_sign(text)) != (None, None)]
        counts = self._counts()
        if not split or 2 * counts[[*split, *plain]].sum() < counts.sum():
            return self._written_numbers(kind)
        first, *others = split
        unit = split[first][1]
        other = next((i for i in others if unit_key(split[i][1]) != unit_key(unit)), None)
        if other is not None:
            sentence = f"has another unit than '{self.texts[first]}'. Use one in the whole column."
            return self._problem(f"'{self.texts[other]}' {sentence}", other)
        self.unit = as_shown(unit)
        self._tell_of_unit(self.texts[first], split[first][0], int(counts[[*split]].sum()), int(counts[plain].sum()))
        # '5 mg/L' and '5' become one text.
        texts: dict[str, int] = {}
        index = [texts.setdefault(split[i][0] if i in split else text, len(texts)) for i, text in enumerate(self.texts)]
        codes = np.array([*index, -1])[self.codes]
        return replace(self, codes=codes, texts=list(texts))._written_numbers(kind)

    def _tell_of_unit(self, text: str, number: str, cells: int, without: int):
        bare = f"; {without} have no unit and are taken to have the same" if without else ""
        self.warnings.append(
            f"Column '{self.name}': {cells} cells such as '{text}' were read as the number alone, in {self.unit}{bare}."
        )
        self.notes.append(CellNote("unit", text, number, cells))

    def _cells_by_text(self) -> dict[str, int]:
        return dict(zip(self.texts, self._counts().tolist(), strict=True)) if len(self.texts) < MOST_TWINS else {}

    def _counts(self) -> np.ndarray:
        return cells_of_each(self.texts, self.codes)

    def _all_digits(self) -> bool:
        return all(text.isdecimal() for text in self.texts)

    def _merged_by_floats(self) -> tuple[str, str] | None:
        """Two of its whole numbers that are one as 64-bit floats, if there are such."""
        found: dict[float, str] = {}
        for text in self.texts if max(map(len, self.texts)) < LONGEST_NUMBER else ():
            if int(text) > LARGEST_WHOLE and (other := found.setdefault(float(text), text)) != text:
                return other, text
        return None

    def _written_numbers(self, kind) -> Reading:
        """Decimal commas, thousands separators, detection limits, and words among numbers."""
        found = ParsedTexts.of(self.texts, self.rules.decimal)
        counts = self._counts()
        mostly_numbers = counts[found.numbers].sum() >= counts[found.words].sum()
        remarks = len(found.plain) >= 10 and len(found.words) <= MOST_REMARKS  # numbers, however few, beside 'pending'
        if found.disguised:
            first = found.disguised[0]
            advice = "." if kind == "number" else ", or state kind: category."
            return self._problem(f"'{self.texts[first]}' {DISGUISED}{advice}", first)
        if kind is None and found.plain and found.words and spellings_of_two(self._cells_by_text()):
            return self.levels()
        of_other_sign = self._of_other_sign(found)
        if of_other_sign is not None:
            return of_other_sign
        if not found.plain or (kind is None and not mostly_numbers and not remarks):
            return self._words(kind, found)
        if found.words:
            return self._mixed(kind, found)
        self._tell_of_liberties(found, counts)
        if found.limits and self.rules.censored == "refuse":
            return self._problem(
                f"'{self.texts[found.limits[0]]}' is a detection limit, not a number "
                f"({such_cells(int(counts[found.limits].sum()))}). Write the number to use, leave it empty, "
                f"or take the limits themselves ({how_to_state('censored', 'limit')}).",
                found.limits[0],
            )
        if found.in_doubt is not None:
            problem = self._problem(question(self.texts[found.in_doubt]), found.in_doubt)
            return replace(problem, decimal=found.evidence)
        values = np.array([np.nan if value is None else value for value in found.values])
        reading = self._reading(decimal=found.evidence)
        return with_numbers(reading, np.append(values, np.nan)[self.codes], self.rows, self.rules)

    def _tell_of_liberties(self, found, counts):
        for indices, what in ((found.limits, "the limit itself"), (found.absent, "not measured")):
            if indices:
                self.warnings.append(
                    f"Column '{self.name}': {counts[indices].sum()} cells such as '{self.texts[indices[0]]}' "
                    f"were read as {what}."
                )
        self.missing.update({self.texts[i]: int(counts[i]) for i in found.absent})
        comma = found.prefers_comma
        grouped = [i for i in found.plain if has_thousands(self.texts[i], "," if comma else ".")]
        decimal = [i for i in found.plain if comma and "," in in_ascii(self.texts[i])]
        unusual = [i for i in found.plain if is_unusual(self.texts[i])]
        if unusual:
            self.warnings.append(
                f"Column '{self.name}': {counts[unusual].sum()} cells such as '{self.texts[unusual[0]]}' were read as "
                f"numbers ({number_text(found.values[unusual[0]])})."
            )
        liberties = (("limit", found.limits), ("unusual", unusual), ("comma", decimal), ("thousands", grouped))
        for note, indices in liberties:
            if indices:
                first = indices[0]
                cells = int(counts[indices].sum())
                self.notes.append(CellNote(note, self.texts[first], number_text(found.values[first]), cells))

    def _of_other_sign(self, found) -> Reading | None:
        """Refused where numbers have another decimal sign than the one that is stated."""
        if self.rules.decimal is None:
            return None
        other = {".": ",", ",": "."}[self.rules.decimal]
        odd = [i for i in found.words if parse_number(without_limit_sign(self.texts[i]), other) is not None]
        if not odd or 2 * len(odd) < len(found.words):
            return None
        first = odd[0]
        return self._problem(
            f"'{self.texts[first]}' is a number with decimal='{other}', but decimal='{self.rules.decimal}' is stated. "
            "State the other sign, or none where columns differ; if it is a code, state kind: category.",
            first,
        )

    def _mixed(self, kind, found) -> Reading:
        """Mostly numbers, and some cells that are not."""
        first = found.words[0]
        if all(found.values_otherwise[i] is not None for i in found.words):
            sentence = (
                f"'{self.texts[first]}' and other cells use different decimal signs. Use one in the whole column."
            )
            return self._problem(sentence, first)
        special = self._special(found.words)
        if special is not None:
            return special
        if kind is None and len(found.words) >= 3 and all(is_code(self.texts[i]) for i in found.words):
            self.warnings.append(
                f"Column '{self.name}' mixes numbers and texts such as '{self.texts[first]}', "
                "so it is read as categories."
            )
            self.notes.append(CellNote("code", self.texts[found.plain[0]]))
            return self.levels()
        wordy = [self.texts[i] for i in found.words if not any(map(str.isdecimal, self.texts[i]))]
        if len(found.words) <= MOST_REMARKS:
            self.perhaps_missing = tuple(wordy)
        word = in_quotes(self.texts[first])
        cells = int(self._counts()[first])
        return self._problem(
            f"{word} is not a number, unlike most cells of the column ({cells} such cell{'s' if cells > 1 else ''}). Correct "
            f"it, leave it empty, have it read as not recorded ({how_to_state('missing', self.texts[first])}), or state kind: "
            "category.",
            first,
        )

    def _words(self, kind, found) -> Reading:
        special = self._special(range(len(self.texts)))
        if special is not None:
            return special
        if kind == "number":
            return self._problem(f"{in_quotes(self.texts[0])} is not a number, unlike what the schema states.", 0)
        if found.limits:
            self.warnings.append(
                f"Column '{self.name}': cells such as '{self.texts[found.limits[0]]}' are read as categories, "
                "not as limits."
            )
        return self.levels()

    def _special(self, indices) -> Reading | None:
        """Dates, pairs such as 120/80, and numbers with their unit are refused with advice, if they are the rule."""
        needs = {i: need for i in indices if (need := in_need_of_advice(self.texts[i])) is not None}
        if all(is_titre(self.texts[i]) for i in needs if needs[i] == "date"):
            needs = {i: need for i, need in needs.items() if need != "date"}
        for need, advice in ADVICE.items():
            such = [i for i in needs if needs[i] == need]
            if such and len(such) * 2 >= len(indices):
                return self._problem(f"'{self.texts[such[0]]}' {advice}", such[0])
        return None

    def levels(self) -> Reading:
        """Texts as they are; those that look the same stay apart, with a warning."""
        self._tell_of_signs()
        self._tell_of_mangled_bands()
        self._tell_of_perhaps_missing()
        for twin, text in islice(twins(self.texts), MOST_TWINS):
            first, second = both_shown(twin, text)
            self.warnings.append(
                f"Column '{self.name}' holds {first} and {second}, which are read as two different levels."
            )
            self.notes.append(CellNote("lookalike", first, second))
        for first, second in said_twice(self.texts) if len(self.texts) <= MOST_TWINS else ():
            self.warnings.append(
                f"Column '{self.name}' holds '{first}' and '{second}', which may mean the same and are read as two different "
                "levels."
            )
            self.notes.append(CellNote("lookalike", first, second))
        return self._reading(codes=self.codes, texts=tuple(self.texts))

    def _tell_of_signs(self):
        """What was read as not recorded where it could be a result, and a minus that could be none."""
        signs = [text for text in self.texts if is_plus(text)]
        unstated = {text: cells for text, cells in self.missing.items() if text not in self.rules.missing}
        dropped = {text: cells for text, cells in unstated.items() if signs or is_minus(text)}
        if dropped:
            cells = ", ".join(f"'{text}' ({count})" for text, count in islice(dropped.items(), 5))
            self.warnings.append(
                f"Column '{self.name}': {sum(dropped.values())} cells were read as not recorded: {cells}. "
                "If one of these is a result, state it among the levels in the schema."
            )
        minus = [i for i, text in enumerate(self.texts) if is_minus(text)]
        for i in minus if minus_is_a_result(self.texts) else ():
            self.notes.append(CellNote("minus", self.texts[i], "a result", int((self.codes == i).sum())))
        if minus and signs and any(text.isalpha() for text in self.texts):
            self.warnings.append(
                f"Column '{self.name}': {int(np.isin(self.codes, minus).sum())} cells '{self.texts[minus[0]]}' are read "
                f"as a result, as they stand beside '{signs[0]}'. If they mean not recorded, say so "
                f"(missing=['{self.texts[minus[0]]}'])."
            )

    def _tell_of_perhaps_missing(self):
        """Levels such as 'n.d.' or 'unknown', which may mean that nothing was recorded."""
        said = self.certain | self.rules.missing
        found = [i for i, text in enumerate(self.texts) if text not in said and may_mean_missing(text)]
        self.perhaps_missing = tuple(self.texts[i] for i in found)
        for i in found:
            text, cells = self.texts[i], int((self.codes == i).sum())
            self.warnings.append(
                f"Column '{self.name}': {cells} cell{'s' if cells > 1 else ''} '{text}' {'are' if cells > 1 else 'is'} read as "
                f"a level. If '{text}' means not recorded, say so ({how_to_state('missing', text)})."
            )
            self.notes.append(CellNote("perhaps", text, "a level", cells))

    def _tell_of_regions(self, is_region: bool, texts: Collection[str]):
        if is_region:
            cells = int((self.codes == self.texts.index("NA")).sum())
            self.warnings.append(
                f"Column '{self.name}': {cells} cells 'NA' are read as a region, as they stand beside such. If they mean "
                "not recorded, say so (missing=['NA'])."
            )
        elif self.missing["NA"] and "NA" not in self.rules.missing and are_short_codes(texts):
            self.warnings.append(
                f"Column '{self.name}': {self.missing['NA']} cells 'NA' were read as not recorded, though they stand beside "
                f"codes such as '{self.texts[0]}'. If NA is one of these, state it among the levels in the schema."
            )

    def _tell_of_wrapped(self, written, texts, counts):
        wrapped = [i for i, (text, plain) in enumerate(zip(written, texts, strict=True)) if text != plain]
        if not wrapped:
            return
        cells, first = int(counts[wrapped].sum()), wrapped[0]
        shown = in_quotes(written[first])[1:-1]
        self.warnings.append(f"Column '{self.name}': {cells} cells such as {shown} were read as {texts[first]}.")
        self.notes.append(CellNote("unusual", shown, texts[first], cells))

    def _tell_of_mangled_bands(self):
        mangled = [text for text in self.texts if is_short_date(text)]
        if mangled and any(map(is_band, self.texts)):
            band = next(filter(is_band, self.texts))
            self.warnings.append(
                f"Column '{self.name}' holds '{mangled[0]}' beside '{band}': a spreadsheet may have made a date of a range. "
                "Correct it in the file."
            )

    def _reading(self, **content) -> Reading:
        notes = (*missing_notes(self.missing), *self.notes)
        return Reading(
            self.name,
            warnings=tuple(self.warnings),
            notes=notes,
            unit=self.unit,
            perhaps_missing=self.perhaps_missing,
            **content,
        )

    def _problem(self, sentence, index) -> Reading:
        row = self.rows[int(np.argmax(self.codes == index))]
        return self._reading(
            codes=self.codes, texts=tuple(self.texts), problem=f"Column '{self.name}', row {row}: {sentence}"
        )
