"""A feature's kind and levels, its values, and why a column is of no use as one."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence

import numpy as np

from l2m_core.errors import CohortError
from l2m_core.schema import MOST_LEVELS, Feature, Overrides
from l2m_core.tables.allowed_numbers import is_outside, of_merged_codes, of_rounding
from l2m_core.tables.cell_parsing import entered_text, such_cells, unit_key
from l2m_core.tables.column_reading import PAIRS, Reading
from l2m_core.tables.entered_values import codes_of
from l2m_core.tables.level_order import join_spellings, merge_case, order_levels
from l2m_core.tables.outcome_inference import FEWEST_ROWS
from l2m_core.tables.patient_ids import patients_with_several_rows

LONGEST_LEVEL = 200  # characters; a column with longer texts holds free text
_ID_NAME = re.compile(
    r"(?i)(?:.*[ _.-])?(?:id|ids|mrn|uuid|guid|identifier|(?:patient|record|row|case)[ _]?(?:nr|no|number))"
    r"|index|subject|patient|rownames?|unnamed: ?\d+|column 1"
)
_CAMEL_ID = re.compile(r".*[a-z](?:ID|Id)")


def infer_feature(reading: Reading, stated: Overrides, rows) -> tuple[Feature, np.ndarray, list[str]]:
    """The feature, its values as float32 with NaN where missing, and warnings."""
    name, warnings = reading.name, list(reading.warnings)
    settings = stated.features.get(name, {})
    reading = join_spellings(reading, settings, warnings)
    kind = settings.get("kind") or feature_kind(reading)
    complete = stated.complete and name in stated.features
    reason = None if complete else reason_to_ignore(reading, kind, "kind" in settings)
    if reason is not None:
        warnings = [f"Column '{name}' {reason} and is not used."]
        return Feature(**{**settings, "name": name, "kind": kind, "role": "ignored"}), np.zeros(0), warnings
    if kind == "number":
        feature = Feature(**{"unit": reading.unit, **settings, "name": name, "kind": kind})
        if reading.unit and unit_key(feature.unit) != unit_key(reading.unit):
            warnings.append(f"Column '{name}' is in {reading.unit} by its cells, and in '{feature.unit}' as stated.")
        _check_range(feature, reading.numbers, rows)
        return feature, _to_float32(reading, warnings), warnings
    if reading.numbers is not None:
        warnings.extend(of_merged_codes(name, reading.numbers))
    texts = merge_case(reading.as_texts(), warnings, settings.get("levels") or ())
    levels = tuple(settings.get("levels") or _choose_levels(texts, kind, warnings))
    feature = Feature(**{**settings, "name": name, "kind": kind, "levels": levels})
    if not complete:
        _refuse_if_all_are_other(texts, feature, reading.numbers is not None)
    return feature, _level_codes(texts, feature, warnings, reading.numbers is not None), warnings


def feature_kind(reading: Reading) -> str:
    if reading.numbers is None:
        return "binary" if reading.distinct == 2 else "category"
    if reading.distinct != 2:
        return "number"
    return "binary" if set(reading.values) in PAIRS else "number"


def reason_to_ignore(reading: Reading, kind: str | None = None, stated_kind: bool = False) -> str | None:
    """Why a column is of no use, in words that follow its name. kind: as stated or inferred."""
    kind = kind or feature_kind(reading)
    present, distinct = int(reading.present.sum()), reading.distinct
    if present == 0:
        return "is empty"
    if distinct == 1:
        return "holds one and the same value"
    if stated_kind:
        return None
    if patients_with_several_rows(reading) is not None:
        return f"tells patients apart, who have several rows ({distinct:,} patients in {present:,} rows)"
    if looks_like_identifier(reading.name, reading.numbers, present, distinct, len(reading.present)):
        return f"looks like an identifier ({distinct:,} different values in {present:,} rows)"
    if kind == "category" and any(len(text) > LONGEST_LEVEL for text in reading.texts):
        return f"holds free text (longer than {LONGEST_LEVEL} characters)"
    return None


def looks_like_identifier(name: str, numbers: np.ndarray | None, present: int, distinct: int, rows: int) -> bool:
    """Texts that are nearly all different; whole numbers that count the rows, or whose name says so."""
    named = bool(_ID_NAME.fullmatch(name) or _CAMEL_ID.fullmatch(name))
    if numbers is None:
        return distinct > 20 and distinct >= (0.5 if named else 0.9) * present
    values = numbers[~np.isnan(numbers)]
    if not np.all(values == np.round(values)):
        return False
    counts_rows = present == rows == distinct and bool(np.all(np.abs(np.diff(values)) == 1))
    return (rows >= FEWEST_ROWS and counts_rows) or (named and distinct > 20 and distinct >= 0.5 * present)


def _check_range(feature, values, rows):
    outside = is_outside(values, feature)
    if outside.any():
        first = int(np.argmax(outside))
        raise CohortError(
            f"Column '{feature.name}', row {rows[first]}: {entered_text(values[first])} is outside the allowed range "
            f"{feature.range_text} ({such_cells(int(outside.sum()))}). Correct the cells, or the range in the schema."
        )


def _to_float32(reading, warnings) -> np.ndarray:
    warnings.extend(of_rounding(reading.name, reading.numbers))
    return reading.numbers.astype(np.float32)


def _choose_levels(reading, kind, warnings) -> tuple[str, ...]:
    if kind == "binary" and len(reading.texts) != 2:
        raise CohortError(
            f"Column '{reading.name}' holds {len(reading.texts)} different values, but the schema states kind: binary. "
            "State kind: category."
        )
    if len(reading.texts) <= MOST_LEVELS:
        return order_levels(reading.texts, reading.order)[0]
    counts = reading.counts
    order = heapq.nsmallest(MOST_LEVELS, range(len(counts)), key=lambda i: (-counts[i], reading.texts[i]))
    rest = int(counts.sum() - counts[order].sum())
    warnings.append(
        f"Column '{reading.name}' has {len(reading.texts):,} levels. The {MOST_LEVELS} most frequent are kept; "
        f"{rest:,} cells with rarer ones are read as 'other'."
    )
    return order_levels([reading.texts[i] for i in order], reading.order)[0]


def _refuse_if_all_are_other(reading, feature, by_value: bool) -> None:
    """A column of which every cell would be 'other' tells nothing: its levels were stated as no cell writes them."""
    known = codes_of(feature.levels, by_value)
    if feature.kind == "category" and not any(text in known for text in reading.texts):
        raise CohortError(
            f"Column '{feature.name}' holds none of its stated levels ({_listed(feature.levels)}), but {_listed(reading.texts)}. "
            "State the levels as the cells write them, or leave them out to have them found."
        )


def _listed(texts: Sequence[str], most: int = 4) -> str:
    return ", ".join(repr(text[:40]) for text in texts[:most]) + (" …" if len(texts) > most else "")


def _level_codes(reading, feature, warnings, by_value: bool) -> np.ndarray:
    """Codes as float32; a text that is no level is 'other', whose code is len(levels). by_value: cells that are numbers,
    of which 1.0 is the level 1; a text is a level only as it stands."""
    known = codes_of(feature.levels, by_value)
    foreign = [text for text in reading.texts if text not in known]
    if foreign and feature.kind == "binary":
        raise CohortError(
            f"Column '{feature.name}' holds '{foreign[0]}', but its levels are "
            f"{' and '.join(map(repr, feature.levels))}. Correct the cells, or state kind: category."
        )
    if foreign and not any("'other'" in warning for warning in warnings):
        warnings.append(
            f"Column '{feature.name}' holds {len(foreign)} texts that are none of its levels, such as '{foreign[0]}'; "
            "they are read as 'other'."
        )
    lookup = np.array([known.get(text, len(known)) for text in reading.texts] + [np.nan], dtype=np.float32)
    return lookup[reading.codes]
