"""From a table to a schema and arrays: what was stated holds, the rest is inferred, every liberty is a warning."""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from l2m_core.errors import CohortError, InputError, OutcomeError, SchemaError
from l2m_core.schema import MOST_CLASSES, MOST_LEVELS, Feature, Outcome, Overrides, Schema, did_you_mean
from l2m_core.tables.allowed_numbers import is_outside, of_merged_codes, of_rounding
from l2m_core.tables.cell_parsing import are_numbers, parse_both, parse_number
from l2m_core.tables.column_parsing import (
    DEFAULT_RULES,
    LONGEST_LEVEL,
    PAIRS,
    Reading,
    Rules,
    read_column,
    read_columns,
)
from l2m_core.tables.decimal_signs import first_in_doubt
from l2m_core.tables.entered_values import codes_of
from l2m_core.tables.outcome_checks import doubts_about
from l2m_core.tables.strict_yaml import LARGEST_TEXT
from l2m_core.tables.table import Column, Table, TextColumn

FEWEST_ROWS = 10
# Of two levels or classes, the one that means "no" comes first; alphabetical order already puts no < yes, false < true.
NEGATIVE = frozenset(
    (
        "-",
        "\u2212",
        "\u2013",
        "(-)",
        "0",
        "no",
        "n",
        "false",
        "negative",
        "neg",
        "absent",
        "none",
        "normal",
        "low",
        "never",
        "off",
        "alive",
        "survived",
        "survivor",
        "recovered",
        "control",
        "healthy",
        "censored",
        "benign",
        "stable",
        "nil",
    )
)
BOOLEANS = frozenset(
    (
        "no",
        "n",
        "false",
        "f",
        "yes",
        "y",
        "true",
        "t",
        "m",
        "male",
        "female",
        "positive",
        "negative",
        "pos",
        "neg",
        "absent",
        "present",
        "normal",
        "abnormal",
    )
)
_ID_NAME = re.compile(
    r"(?i)(?:.*[ _.-])?(?:id|ids|mrn|uuid|guid|identifier|(?:patient|record|row|case)[ _]?(?:nr|no|number))"
    r"|index|subject|patient|rownames?|unnamed: ?\d+|column 1"
)
_CAMEL_ID = re.compile(r".*[a-z](?:ID|Id)")


@dataclass(frozen=True)
class Content:
    """What inference makes of a table. x: (N, d) float32 of the used features; kept: (N,) rows of the table;
    decimals: column → its decimal sign, where the cells told it."""

    schema: Schema
    x: np.ndarray
    y: np.ndarray
    kept: np.ndarray
    warnings: tuple[str, ...]
    decimals: Mapping[str, str]


def infer(table: Table, stated: Overrides, rules: Rules = DEFAULT_RULES) -> Content:
    """stated.outcome needs a name. Rows whose outcome is missing are left out."""
    if "name" not in stated.outcome:
        raise CohortError(f"State the outcome: the column to predict.{did_you_mean('', table.names)}")
    _check_names(table, stated)
    kinds = {name: how_to_read(settings) for name, settings in stated.features.items()}
    outcome_name, rows = stated.outcome["name"], table.row_numbers
    kinds[outcome_name] = how_to_read(stated.outcome)
    by_name = dict(zip(table.names, table.columns, strict=True))
    outcome_column = by_name.pop(outcome_name)
    levels = levels_of(stated)
    reading = read_column(
        outcome_name, outcome_column, rows, rules, kinds.get(outcome_name), levels.get(outcome_name, ())
    )
    kept = np.flatnonzero(reading.present)
    outcome, y, warnings = _infer_outcome(reading, kept, stated, table)
    decimals = {outcome_name: reading.decimal}
    features: dict[str, Feature] = {}
    notes: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    x = np.empty((len(kept), len(by_name)), dtype=np.float32)
    place = {name: i for i, name in enumerate(by_name)}
    # Column by column, so that only one at a time is held as 64-bit numbers.
    for name, reading in read_columns(by_name, by_name.values(), rows, kinds, rules, levels):
        settings = stated.features.get(name, {})
        decimals[name] = reading.decimal
        if settings.get("role") == "ignored":
            features[name] = Feature(**{"name": name, **settings})
        elif reading.problem is not None:
            problems[name] = reading.problem
        else:
            features[name], values, notes[name] = infer_feature(_take(reading, kept), stated, rows[kept])
            if features[name].used:
                x[:, place[name]] = values
    if problems:
        raise CohortError(_join([problems[name] for name in place if name in problems]))
    ordered = [features[name] for name in place]
    used = [place[feature.name] for feature in ordered if feature.used]
    if not used:
        raise CohortError("No feature is left to use: every other column is constant, empty, an identifier or ignored.")
    x = x if len(used) == x.shape[1] else x[:, used]
    x.flags.writeable = False
    warnings = [*table.warnings, *warnings, *(note for name in place for note in notes.get(name, ()))]
    return Content(
        Schema(tuple(ordered), outcome),
        x,
        y,
        kept,
        tuple(warnings),
        decimals_of_texts(table.names, table.columns, decimals),
    )


def decimals_of_texts(
    names: Iterable[str], columns: Iterable[Column], evidence: Mapping[str, str | None]
) -> dict[str, str]:
    """Column → its decimal sign, by the evidence of each reading. Columns of texts that do not tell it have that of the
    others, if these agree."""
    told = {name: sign for name, sign in evidence.items() if sign in (".", ",")}
    if len(set(told.values())) != 1:
        return told
    (sign,) = set(told.values())
    return {name: sign for name, column in zip(names, columns, strict=True) if isinstance(column, TextColumn)}


def how_to_read(settings: Mapping[str, Any]) -> str | None:
    """As `read_column` has it: 'number'; 'levels', whose texts stay as they are; 'codes', which may be numbers; None
    where the cells decide."""
    kind = settings.get("kind")
    if kind is None:
        return None
    if kind in ("number", "continuous"):
        return "number"
    if kind == "category":
        return "levels"
    stated = settings.get("levels") or settings.get("classes") or ()
    if not stated:
        return "codes"
    return None if _are_codes(stated, pair="levels" in settings) else "levels"


def _are_codes(texts: Sequence[str], pair: bool) -> bool:
    """Levels that are different numbers, so that 1.0 in a cell is the level 1. A feature's two must be such as 0 and 1."""
    pairs = [parse_both(text) for text in texts]
    values = {point for point, _ in pairs if point is not None}
    plain = len(values) == len(texts) and first_in_doubt(texts, pairs) is None
    return plain and (not pair or values in PAIRS)


def levels_of(stated: Overrides) -> dict[str, Collection[str]]:
    """Column → its stated levels or classes."""
    levels = {name: settings.get("levels") or () for name, settings in stated.features.items()}
    return {**levels, stated.outcome["name"]: stated.outcome.get("classes") or ()}


def _join(problems) -> str:
    shown = problems[:5]
    more = f" (and {len(problems) - 5} more columns with a problem)" if len(problems) > 5 else ""
    return "\n".join(shown) + more


def _check_names(table, stated):
    name = stated.outcome["name"]
    if name not in table.names:
        headless = are_numbers(table.names)
        hint = " The first row looks like data: is the header row missing?" if headless else ""
        raise CohortError(f"There is no column '{name}' for the outcome.{did_you_mean(name, table.names)}{hint}")
    if name in table.repeated:
        raise CohortError(f"Several columns are called '{name}', the outcome. Rename or remove all but one.")
    for feature, settings in stated.features.items():
        if feature == name:
            raise SchemaError(f"'{feature}' is the outcome, so it cannot be a feature as well.")
        if feature not in table.names and settings.get("role") != "ignored":
            raise SchemaError(f"There is no column '{feature}'.{did_you_mean(feature, table.names)}")


def _take(reading: Reading, rows) -> Reading:
    if reading.numbers is not None:
        return replace(reading, numbers=reading.numbers[rows])
    codes = reading.codes[rows]
    present, compact = np.unique(codes[codes >= 0], return_inverse=True)
    fresh = np.full(len(codes), -1)
    fresh[codes >= 0] = compact
    return replace(reading, codes=fresh, texts=tuple(reading.texts[i] for i in present))


# Outcome


def _infer_outcome(reading: Reading, kept, overrides: Overrides, table) -> tuple[Outcome, np.ndarray, list[str]]:
    name, stated = reading.name, overrides.outcome
    if reading.problem is not None:
        problem = reading.problem.replace("state kind: category", "state kind: multiclass")
        raise CohortError(f"The outcome cannot be read. {problem}")
    warnings = list(reading.warnings)
    if len(kept) < FEWEST_ROWS:
        raise CohortError(
            f"Only {len(kept)} of {table.rows} rows have a value of the outcome '{name}'; at least {FEWEST_ROWS} "
            "are needed."
        )
    if len(kept) < table.rows:
        warnings.append(f"{table.rows - len(kept)} of {table.rows} rows have no value of '{name}' and were left out.")
    reading = _take(reading, kept)
    if reading.distinct == 1:
        raise CohortError(f"The outcome '{name}' has one and the same value in all rows. Choose another column.")
    kind = stated.get("kind") or _outcome_kind(reading)
    if kind == "continuous":
        if reading.numbers is None:
            raise CohortError(f"The outcome '{name}' holds texts such as '{reading.texts[0]}': it is not continuous.")
        warnings.extend(_doubts_to_tell(reading, kept, stated, table))
        warnings.extend(of_rounding(name, reading.numbers))
        return Outcome(**{**stated, "kind": kind}), reading.numbers.astype(np.float32), warnings
    if "kind" not in stated and reading.numbers is not None and reading.distinct > 2:
        warnings.append(
            f"The outcome '{name}' holds {reading.distinct} whole numbers, which are read as unordered classes. "
            "If it is a quantity, state kind: continuous."
        )
    texts = _merge_case(reading.as_texts(), warnings)
    doubts = _doubts_to_tell(texts if reading.numbers is None else reading, kept, stated, table)
    classes, notes = _classes(texts, stated, overrides.positive, doubts)
    codes = _class_codes(texts, classes, reading.numbers is not None, table.row_numbers[kept])
    warnings.extend(doubts)
    outcome = Outcome(**{**stated, "kind": kind, "classes": classes})
    return outcome, codes, warnings + notes


def _doubts_to_tell(reading, kept, stated, table) -> list[str]:
    """What may not be meant: refused until a person states the outcome's kind or classes, and a warning from then on."""
    doubts = doubts_about(table, reading, kept)
    if doubts and "kind" not in stated and not stated.get("classes"):
        raise OutcomeError(
            _join(doubts) + " If the outcome is meant as it stands, state its kind: binary, multiclass or continuous "
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
            f"{_join(doubts) or 'Join rare ones, or choose a numeric column for a continuous outcome.'}"
        )
    classes, certain = tuple(stated.get("classes") or ()), True
    if not classes:
        classes, certain = _order_levels(found)
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


def _order_levels(texts) -> tuple[tuple[str, ...], bool]:
    """Texts in code order, and whether we are certain which of two is the positive one."""
    numbers = [parse_number(text) for text in texts]
    if all(number is not None for number in numbers):
        return tuple(text for _, text in sorted(zip(numbers, texts, strict=True))), True
    ordered = sorted(texts, key=lambda text: (text.casefold(), text))
    if len(ordered) != 2:
        return tuple(ordered), False
    negative = [_means_no(text, ordered[1 - i]) for i, text in enumerate(ordered)]
    if negative[1] and not negative[0]:
        ordered.reverse()
    return tuple(ordered), negative[0] != negative[1]


def _means_no(text, other) -> bool:
    text, other = text.casefold(), other.casefold()
    stem = re.sub(r"^(?:not?|non|without)[ _-]*", "", text)
    return text in NEGATIVE or (stem != text and stem == other)


# Features


def infer_feature(reading: Reading, stated: Overrides, rows) -> tuple[Feature, np.ndarray, list[str]]:
    """The feature, its values as float32 with NaN where missing, and warnings."""
    name, warnings = reading.name, list(reading.warnings)
    settings = stated.features.get(name, {})
    kind = settings.get("kind") or _feature_kind(reading)
    complete = stated.complete and name in stated.features
    reason = None if complete else _reason_to_ignore(reading, kind, "kind" in settings)
    if reason is not None:
        warnings = [f"Column '{name}' {reason} and is not used."]
        return Feature(**{**settings, "name": name, "kind": kind, "role": "ignored"}), np.zeros(0), warnings
    if kind == "number":
        feature = Feature(**{**settings, "name": name, "kind": kind})
        _check_range(feature, reading.numbers, rows)
        return feature, _to_float32(reading, warnings), warnings
    if reading.numbers is not None:
        warnings.extend(of_merged_codes(name, reading.numbers))
    texts = _merge_case(reading.as_texts(), warnings)
    levels = tuple(settings.get("levels") or _choose_levels(texts, kind, warnings))
    feature = Feature(**{**settings, "name": name, "kind": kind, "levels": levels})
    return feature, _level_codes(texts, feature, warnings, reading.numbers is not None), warnings


def _feature_kind(reading) -> str:
    if reading.numbers is None:
        return "binary" if reading.distinct == 2 else "category"
    if reading.distinct != 2:
        return "number"
    return "binary" if set(reading.values) in PAIRS else "number"


def _reason_to_ignore(reading, kind, stated_kind) -> str | None:
    present, distinct = int(reading.present.sum()), reading.distinct
    if present == 0:
        return "is empty"
    if distinct == 1:
        return "holds one and the same value"
    if stated_kind:
        return None
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
            f"Column '{feature.name}', row {rows[first]}: {values[first]:g} is outside the allowed range "
            f"{feature.range_text} ({int(outside.sum())} such cells). Correct the cells, or the range in the schema."
        )


def _to_float32(reading, warnings) -> np.ndarray:
    values = reading.numbers.astype(np.float32)
    present = reading.numbers[reading.present]
    warnings.extend(of_rounding(reading.name, reading.numbers))
    spread = np.ptp(present)
    if spread > 0 and np.max(np.abs(present)) > 1e4 * spread:
        lost = np.max(np.abs(values[reading.present].astype(np.float64) - present))
        if lost > 1e-4 * spread:
            warnings.append(
                f"Column '{reading.name}' varies little around large numbers, so its values are rounded "
                f"(by up to {lost:.3g}). Subtract a constant from it."
            )
    return values


def _choose_levels(reading, kind, warnings) -> tuple[str, ...]:
    if kind == "binary" and len(reading.texts) != 2:
        raise CohortError(
            f"Column '{reading.name}' holds {len(reading.texts)} different values, but the schema states kind: binary. "
            "State kind: category."
        )
    if len(reading.texts) <= MOST_LEVELS:
        return _order_levels(reading.texts)[0]
    counts = np.bincount(reading.codes[reading.codes >= 0], minlength=len(reading.texts))
    order = heapq.nsmallest(MOST_LEVELS, range(len(counts)), key=lambda i: (-counts[i], reading.texts[i]))
    rest = int(counts.sum() - counts[order].sum())
    warnings.append(
        f"Column '{reading.name}' has {len(reading.texts):,} levels. The {MOST_LEVELS} most frequent are kept; "
        f"{rest:,} cells with rarer ones are read as 'other'."
    )
    return _order_levels([reading.texts[i] for i in order])[0]


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


def _merge_case(reading: Reading, warnings) -> Reading:
    """'Yes' and 'yes' are one level; other texts that differ by case stay apart."""
    if len({text.casefold() for text in reading.texts} - BOOLEANS) or len(reading.texts) < 2:
        return reading
    counts = np.bincount(reading.codes[reading.codes >= 0], minlength=len(reading.texts))
    spelling: dict[str, int] = {}
    for i in sorted(range(len(counts)), key=lambda i: (-counts[i], reading.texts[i])):
        spelling.setdefault(reading.texts[i].casefold(), i)
    if len(spelling) == len(reading.texts):
        return reading
    kept = sorted(spelling.values())
    warnings[:] = [w for w in warnings if "two different levels" not in w]
    warnings.append(f"Column '{reading.name}': spellings that differ by case were joined into one level each.")
    lookup = np.array([kept.index(spelling[text.casefold()]) for text in reading.texts] + [-1])
    return replace(reading, codes=lookup[reading.codes], texts=tuple(reading.texts[i] for i in kept))


def combine(schema: Any, outcome: str | None, positive: str | None, baseline, costs) -> Overrides:
    """One set of stated settings; the arguments win over the schema."""
    stated = as_overrides(schema)
    features = {name: dict(settings) for name, settings in stated.features.items()}
    target = dict(stated.outcome)
    if outcome is not None:
        if not isinstance(outcome, str):
            raise CohortError("outcome must be the name of a column.")
        if target.get("name", outcome) != outcome:
            raise SchemaError(f"The outcome is '{outcome}', but the schema states '{target['name']}'. Make them equal.")
        target["name"] = outcome
    for name in [baseline] if isinstance(baseline, str) else baseline:
        features.setdefault(name, {"name": name})["role"] = "baseline"
    if not isinstance(costs, Mapping):
        raise CohortError("costs must map names of features to numbers, such as {'lactate': 12.0}.")
    for name, cost in costs.items():
        features.setdefault(name, {"name": name})["cost"] = cost
        Feature(name, cost=cost)
    return replace(stated, features=features, outcome=target, positive=positive)


def as_overrides(schema: Any) -> Overrides:
    """From None, a Schema, YAML text, a path to YAML, or nested dicts."""
    if schema is None:
        return Overrides.none()
    if isinstance(schema, Overrides):
        return schema
    if isinstance(schema, Schema):
        return Overrides.from_schema(schema)
    if isinstance(schema, Mapping):
        return Overrides.from_data(schema)
    if isinstance(schema, str) and ("\n" in schema or ": " in schema):
        return Overrides.from_yaml(schema)
    if not isinstance(schema, str | os.PathLike):
        raise SchemaError(
            f"A {type(schema).__name__} is no schema. Give a Schema, YAML text, a path to YAML, or a dict."
        )
    try:
        with open(schema, encoding="utf-8") as file:
            return Overrides.from_yaml(file.read(LARGEST_TEXT + 1))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise SchemaError("The schema file cannot be opened. Give a path to YAML, or the YAML text itself.") from error
