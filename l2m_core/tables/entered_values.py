"""One value that a person enters, checked against its feature, and how it stands in x."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.errors import FeatureError, type_of
from l2m_core.schema import OTHER, Feature, did_you_mean
from l2m_core.tables.allowed_numbers import is_outside, is_too_large
from l2m_core.tables.cell_parsing import (
    MISSING_AMONG_NUMBERS,
    are_numbers,
    entered_text,
    is_limit,
    is_missing,
    number_and_unit,
    number_text,
    parse_both,
    parse_number,
    plain_number,
    such_cells,
    unit_key,
    unwrapped,
    whole_text,
    without_limit_sign,
)
from l2m_core.tables.column_reading import ReadingRules, without_markers
from l2m_core.tables.frames import numbers_of
from l2m_core.tables.how_to_state import how_to_state
from l2m_core.tables.result_signs import is_minus, minus_is_a_result
from l2m_core.tables.synonyms import NO, YES

DECIMALS = {None: "", ".": " with a decimal point", ",": " with a decimal comma"}
BOOLEAN_LEVELS = ((NO, YES), ({"f"}, {"t"}))  # what levels are called that mean false and true


class UnseenLevelWarning(UserWarning):
    """A category that the cohort never held; it is read as 'other'."""


def enter_value(feature: Feature, value: Any, rules: ReadingRules) -> tuple[Any, float]:
    """One value as a record keeps it (None where not measured), and as x holds it. A detection limit is refused.

    Of a text its number is kept, so that a record means the same wherever it is read again.
    """
    return _as_recorded(feature, value, encode_value(feature, value, rules))


def enter_quietly(feature: Feature, value: Any, rules: ReadingRules) -> tuple[Any, float]:
    """The same without a warning: whether a category was never seen is for the caller to say."""
    return _as_recorded(feature, value, code_of(feature, value, rules))


def _as_recorded(feature: Feature, value: Any, code: float) -> tuple[Any, float]:
    written = feature.kind == "number" and isinstance(value, str)
    if written and is_limit(value.strip()):
        raise FeatureError(
            f"'{feature.name}' = {value!r:.60} is a detection limit. Enter its number, and 'below' or 'above' as its limit."
        )
    if np.isnan(code):
        return None, code
    if written:
        return code, code
    if isinstance(value, np.generic):  # as JSON knows it
        return plain_number(value) if isinstance(value, np.floating) else value.item(), code
    return value, code


def encode_value(feature: Feature, value: Any, rules: ReadingRules) -> float:
    """One value as x holds it, NaN where not measured; warns where a category was never seen."""
    code = code_of(feature, value, rules)
    if feature.kind != "number" and code == len(feature.levels):
        warn_unseen(feature, [value])
    return code


def encode_values(feature: Feature, values: Any, rules: ReadingRules) -> np.ndarray:
    """(n,) values of one feature (a sequence, a pd.Series) as x holds them, with one warning for all unseen categories."""
    numeric = isinstance(values, pd.Series) and pd.api.types.is_numeric_dtype(values.dtype)
    if numeric and feature.kind == "number" and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = without_markers(numbers_of(values), rules)
        present = numbers[~np.isnan(numbers)]
        for value in (present.min(), present.max()) if len(present) else ():
            code_of(feature, value, rules)  # the extremes speak for all
        return numbers
    if numeric and pd.api.types.is_float_dtype(values.dtype):
        values = numbers_of(values)  # 0.1 of 32 bits is the level 0.1
    codes = np.array([code_of(feature, value, rules) for value in values], dtype=np.float32)
    if feature.kind != "number":
        warn_unseen(feature, [value for value, code in zip(values, codes, strict=True) if code == len(feature.levels)])
    return codes


def code_of(feature: Feature, value: Any, rules: ReadingRules) -> float:
    """The same without a warning. rules: those that the cohort's column was read by."""
    if _is_absent(feature, value, rules):
        return np.nan
    return _code_of_number(feature, value, rules) if feature.kind == "number" else _code_of_level(feature, value, rules)


def _is_absent(feature, value, rules) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, str):
        text = value.strip()
        if text in rules.missing or text in feature.levels:
            return text in rules.missing
        text = unwrapped(text)
        if is_minus(text) and minus_is_a_result(feature.levels):
            return False
        return is_missing(text) or (text.casefold() in MISSING_AMONG_NUMBERS and _holds_numbers(feature))
    if isinstance(value, bool | np.bool_):
        return value_text(value) in rules.missing
    if isinstance(value, int | float | Decimal | np.integer | np.floating):
        number = _float(value)
        return number != number or number in rules.missing_numbers
    return False


def _holds_numbers(feature) -> bool:
    """Whether the cohort's cells were read as numbers, be they levels."""
    return feature.kind == "number" or are_numbers(feature.levels)


def _code_of_number(feature, value, rules) -> float:
    number, sign = None, ""
    if isinstance(value, str):
        number, sign = _parse(feature, unwrapped(value.strip()), rules), DECIMALS[rules.decimal]
    elif isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool):
        number = _float(value)
    if number is None:
        # JSON writes true, not True.
        given = "a truth value" if isinstance(value, bool | np.bool_) else f"{value!r:.60}"
        said = f"'{feature.name}' must be a number{sign}{_range_hint(feature)}; {given} is not."
        raise FeatureError(said + (_limit_hint(value.strip()) if isinstance(value, str) else ""))
    if number in rules.missing_numbers:
        return np.nan
    if is_too_large(number):
        raise FeatureError(
            f"'{feature.name}' must be a number between -3.4e38 and 3.4e38{_range_hint(feature)}; {number:g} is not."
        )
    if is_outside(number, feature):
        raise FeatureError(
            f"'{feature.name}' = {entered_text(number)} is outside the allowed range: {feature.range_text}. Check value and unit."
        )
    return number


def _parse(feature, text, rules) -> float | None:
    """A number as the cohort's cells write it. Where they do not tell the decimal sign it may have either, but one that
    could be both, such as 1,234, is refused."""
    if rules.units == "drop" and (found := number_and_unit(text)) is not None:
        if unit_key(found[1]) != unit_key(feature.unit):
            raise FeatureError(
                f"'{feature.name}' = {text!r:.60} has another unit than the cohort ({feature.unit or 'none'})."
            )
        text = found[0]
    if rules.censored == "limit":
        text = without_limit_sign(text)
    if rules.decimal is not None:
        return parse_number(text, rules.decimal)
    readings = set(parse_both(text)) - {None} if "," in text else {parse_number(text)}
    if len(readings) > 1:
        raise FeatureError(
            f"'{feature.name}' = {text!r:.60} can be read in two ways. Write it with a point or plainly."
        )
    return readings.pop() if readings else None


def _float(value) -> float:
    try:
        return plain_number(value)
    except OverflowError:  # an int of more than 308 digits
        return np.inf


def _range_hint(feature) -> str:
    return f" ({feature.range_text})" if feature.range_text else ""


def _limit_hint(text) -> str:
    """How a detection limit is stated, where the text is one."""
    if not is_limit(text) or not set(parse_both(without_limit_sign(text))) - {None}:
        return ""
    side = "below" if text[0] in "<≤" else "above"
    return (
        f" Give a detection limit as its number, with {side!r} as its limit, or have such cells of the cohort's file read as "
        f"their limits ({how_to_state('censored', 'limit')})."
    )


def _code_of_level(feature, value, rules) -> float:
    value = str(value) if isinstance(value, pd.Interval) else value  # as the cohort's frame was read
    if not isinstance(value, str | bool | np.bool_ | int | float | Decimal | np.integer | np.floating):
        raise FeatureError(f"'{feature.name}' is {type_of(value)}; it must be one of its levels.")
    text = value_text(value)
    text = text if text in feature.levels else rules.joined.get(text, text)
    if text in feature.levels:
        return feature.levels.index(text)
    folded = [folded_text(level) for level in feature.levels]
    if folded.count(folded_text(text)) == 1:
        return folded.index(folded_text(text))
    if isinstance(value, bool | np.bool_):
        for words in BOOLEAN_LEVELS:
            sides = [[level in side for level in folded] for side in words]
            if len(folded) == 2 and all(side.count(True) == 1 for side in sides):
                return sides[int(value)].index(True)
    if isinstance(value, str) and feature.kind == "category":  # 250.10 is not 250.1: a code is no number
        return len(feature.levels)
    number = _parse(feature, text, rules) if isinstance(value, str) and _holds_numbers(feature) else None
    if number is not None and number in rules.missing_numbers:
        return np.nan
    return codes_of(feature.levels).get(text if number is None else number_text(number), len(feature.levels))


def folded_text(text: str) -> str:
    """Without capitals, and with each accent composed: ü is one character on some computers and two on others."""
    return unicodedata.normalize("NFC", text.casefold())


def codes_of(levels: Sequence[str], by_value: bool = True) -> dict[str, int]:
    """Code of each text. by_value: a stated '1.0' is also found as '1', unless two levels are the same number."""
    known = {level: code for code, level in enumerate(levels)}
    if not by_value:
        return known
    numbers = [parse_number(level) for level in levels]
    plain = {
        number_text(number): code
        for code, number in enumerate(numbers)
        if number is not None and numbers.count(number) == 1
    }
    return {**plain, **known}


def warn_unseen(feature: Feature, values: Sequence[Any]):
    """One warning for a column, however many cells are unseen."""
    if not values:
        return
    warnings.warn(unseen_words(feature, values), UnseenLevelWarning, stacklevel=5)


def unseen_words(feature: Feature, values: Sequence[Any]) -> str:
    text = value_text(values[0])
    more = f" (and {such_cells(len(values) - 1, 'more ')})" if len(values) > 1 else ""
    message = (
        f"'{feature.name}': {text[:60]!r}{more} was never seen in the cohort and is read as '{OTHER}', which tells nothing "
        f"unless some of its patients are '{OTHER}' too."
    )
    return message + did_you_mean(text, feature.levels)


def value_text(value: Any) -> str:
    """As it would stand in a CSV: 1, not 1.0."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, int | np.integer):
        return whole_text(value)
    if isinstance(value, int | float | Decimal | np.integer | np.floating):
        return number_text(_float(value))
    return str(value)
