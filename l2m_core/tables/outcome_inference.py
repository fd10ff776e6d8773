"""The outcome's kind, classes and codes, from its column and what was stated."""

from __future__ import annotations

import numpy as np

from l2m_core.errors import CohortError, OutcomeError, first_few
from l2m_core.schema import MOST_CLASSES, Outcome, Overrides, did_you_mean
from l2m_core.tables.allowed_numbers import of_rounding
from l2m_core.tables.column_reading import Reading
from l2m_core.tables.entered_values import codes_of
from l2m_core.tables.level_order import merge_case, order_levels
from l2m_core.tables.outcome_checks import doubts_about

FEWEST_ROWS = 10


def infer_outcome(reading: Reading, kept, overrides: Overrides, table) -> tuple[Outcome, np.ndarray, list[str]]:
    name, stated = reading.name, overrides.outcome
    if reading.problem is not None:
        raise CohortError(f"The outcome cannot be read. {_in_kinds_of_outcomes(reading.problem)}")
    warnings = [_in_kinds_of_outcomes(warning) for warning in reading.warnings]
    if len(kept) < FEWEST_ROWS:
        raise CohortError(
            f"Only {len(kept)} of {table.rows} rows have a value of the outcome '{name}'; at least {FEWEST_ROWS} "
            "are needed."
        )
    if len(kept) < table.rows:
        warnings.append(f"{table.rows - len(kept)} of {table.rows} rows have no value of '{name}' and were left out.")
    reading = reading.rows(kept)
    if reading.distinct == 1:
        raise CohortError(f"The outcome '{name}' has one and the same value in all rows. Choose another column.")
    kind = stated.get("kind") or _outcome_kind(reading)
    if kind == "continuous":
        if reading.numbers is None:
            raise CohortError(f"The outcome '{name}' holds texts such as '{reading.texts[0]}': it is not continuous.")
        warnings.extend(_doubts_to_tell(reading, kept, stated, table))
        warnings.extend(map(_in_kinds_of_outcomes, of_rounding(name, reading.numbers)))
        return Outcome(**{**stated, "kind": kind}), reading.numbers.astype(np.float32), warnings
    if "kind" not in stated and reading.numbers is not None and reading.distinct > 2:
        warnings.append(
            f"The outcome '{name}' holds {reading.distinct} whole numbers, which are read as unordered classes. "
            "If it is a quantity, state kind: continuous."
        )
    texts = merge_case(reading.as_texts(), warnings, stated.get("classes") or ())
    if "kind" not in stated:  # what was joined is one class: Yes, yes, no and NO are two
        kind = _outcome_kind(texts if reading.numbers is None else reading)
    if texts.distinct == 1:
        raise CohortError(
            f"The outcome '{name}' has one and the same value in all rows, however it is spelled. Choose another "
            "column."
        )
    doubts = _doubts_to_tell(texts if reading.numbers is None else reading, kept, stated, table)
    classes, notes = _classes(texts, stated, overrides.positive, doubts)
    codes = _class_codes(texts, classes, reading.numbers is not None, table.row_numbers[kept])
    warnings.extend(doubts)
    outcome = Outcome(**{**stated, "kind": kind, "classes": classes})
    return outcome, codes, warnings + notes


def _in_kinds_of_outcomes(sentence: str) -> str:
    """What is said of any column, with the kinds that an outcome can have."""
    return sentence.replace("kind: category", "kind: multiclass").replace("kind: number", "kind: continuous")


def _doubts_to_tell(reading, kept, stated, table) -> list[str]:
    """What may not be meant: refused until a person states the outcome's kind or classes, and a warning from then on."""
    doubts = doubts_about(table, reading, kept)
    if doubts and "kind" not in stated and not stated.get("classes"):
        raise OutcomeError(
            first_few(doubts)
            + " If the outcome is meant as it stands, state its kind: binary, multiclass or continuous "
            "(schema='outcome: {kind: multiclass}')."
        )
    return doubts


def _outcome_kind(reading) -> str:
    if reading.distinct == 2:
        return "binary"
    if reading.numbers is None:
        return "multiclass"
    whole = np.all(reading.numbers == np.round(reading.numbers))
    few = reading.distinct <= MOST_CLASSES and len(reading.numbers) >= 5 * reading.distinct
    return "multiclass" if whole and few else "continuous"


def _classes(reading, stated, positive, doubts) -> tuple[tuple[str, ...], list[str]]:
    """Class texts in code order, and warnings."""
    found, name, warnings = reading.texts, reading.name, []
    limit = 2 if stated.get("kind") == "binary" else MOST_CLASSES
    if len(found) > limit:
        what = "at most two classes" if limit == 2 else f"at most {limit} classes"
        raise CohortError(
            f"The outcome '{name}' has {len(found):,} different values; {what} are possible. "
            f"{first_few(doubts) or 'Join rare ones, or choose a numeric column for a continuous outcome.'}"
        )
    classes, certain = tuple(stated.get("classes") or ()), True
    if not classes:
        classes, certain = order_levels(found, reading.order)
    if positive is not None:
        if len(classes) != 2 or str(positive) not in classes:
            raise CohortError(
                f"positive is '{positive}', which is not one of two classes.{did_you_mean(positive, classes)}"
            )
        classes, certain = tuple(sorted(classes, key=lambda text: text == str(positive))), True
    if len(classes) == 2 and not certain:
        warnings.append(
            f"The positive class of '{name}' is taken to be '{classes[1]}'. "
            f"If it is '{classes[0]}', state the classes in the other order."
        )
    return classes, warnings


def _class_codes(reading, classes, by_value: bool, rows) -> np.ndarray:
    """(N,) codes. by_value: cells that are numbers, of which 1.0 is the class 1."""
    known = codes_of(classes, by_value)
    for code, text in enumerate(reading.texts):
        if text not in known:
            row = rows[int(np.argmax(reading.codes == code))]
            raise CohortError(
                f"The outcome '{reading.name}' holds '{text}' in row {row}, which is not one of its stated classes."
            )
    return np.array([known[text] for text in reading.texts], dtype=np.int64)[reading.codes]
