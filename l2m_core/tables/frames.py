"""DataFrames become the same table of columns that CSV becomes."""

from __future__ import annotations

import datetime
import decimal
import numbers
from typing import Any

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError, type_of
from l2m_core.tables.cell_parsing import (
    DATE_ADVICE,
    LARGEST_WHOLE,
    LONGEST_NUMBER,
    number_text,
    plain_number,
    whole_text,
)
from l2m_core.tables.precision import in_double
from l2m_core.tables.table import (
    DEFAULT_LIMITS,
    SEPARATOR,
    Column,
    Limits,
    NumberColumn,
    RefusedColumn,
    Table,
    TextColumn,
    check_size,
    clean_names,
)


def table_from_frame(frame: pd.DataFrame, limits: Limits = DEFAULT_LIMITS, name: str = "cohort") -> Table:
    """The index is not read. Messages count rows from 0, as `frame.iloc` does."""
    if not isinstance(frame, pd.DataFrame):
        raise CohortError(f"The table is {type_of(frame)}; it must be a DataFrame.")
    if frame.columns.nlevels > 1:
        raise CohortError("The DataFrame has column names of several levels. Join them into one.")
    check_size(len(frame), frame.shape[1], limits)
    names, repeated, warnings = names_of_frame(frame)
    columns = tuple(column_of(frame.iloc[:, i], label, limits, limits.size) for i, label in enumerate(names))
    return Table(names, columns, np.arange(len(frame)), tuple(warnings), name, repeated=repeated)


def names_of_frame(frame: pd.DataFrame) -> tuple[tuple[str, ...], frozenset[str], list[str]]:
    """As `clean_names` has them: what a cohort calls the frame's columns."""
    return clean_names([_name_text(label) for label in frame.columns])


def _name_text(label: Any) -> str:
    return "" if label is None or label != label else str(label)


def column_of(series: pd.Series, name: str, limits: Limits, left: int) -> Column:
    """left: characters of text that it may hold."""
    kind = series.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return RefusedColumn(f"Column '{name}' holds dates or times. {DATE_ADVICE}")
    if pd.api.types.is_complex_dtype(kind):
        return RefusedColumn(f"Column '{name}' holds complex numbers. Split it into two columns.")
    if _is_beyond_floats(series):
        return _text_column(series, name, limits, left)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        return NumberColumn(numbers_of(series))
    try:
        return _text_column(series, name, limits, left)
    except CohortError as error:
        return RefusedColumn(str(error))


def numbers_of(series: pd.Series) -> np.ndarray:
    """(n,) float64 of a column of numbers, NaN where missing."""
    kept = getattr(series.dtype, "numpy_dtype", series.dtype)  # the first: of types that know NA
    is_narrow = kept in (np.float16, np.float32)
    values = series.to_numpy(dtype=kept if is_narrow else np.float64, na_value=np.nan)
    return in_double(values) if is_narrow else values


def _is_beyond_floats(series: pd.Series) -> bool:
    """Whole numbers that a 64-bit float may not tell apart: codes of 17 digits, which stay as they are written."""
    if not pd.api.types.is_integer_dtype(series.dtype) or series.count() == 0:
        return False
    return int(series.max()) > LARGEST_WHOLE or int(series.min()) < -LARGEST_WHOLE


def _text_column(series, name, limits, left) -> TextColumn:
    if isinstance(series.dtype, pd.IntervalDtype):  # of pd.cut with the categories taken off: intervals have an order
        series = series.astype("category").cat.as_ordered()
    is_categorical = isinstance(series.dtype, pd.CategoricalDtype)
    if is_categorical:  # a few long texts can stand in many rows
        texts = [*(cell_text(value, name) for value in series.cat.categories), ""]
        codes = series.cat.codes.to_numpy()
        size = int(np.array([len(text) for text in texts])[codes].sum())
    else:
        texts = [cell_text(value, name) for value in series.astype(object)]
        codes = range(len(texts))
        size = sum(map(len, texts))
    if size > left:
        raise CohortError(f"With column '{name}' there are more than {limits.megabytes} MB of text. Leave it out.")
    cells = [texts[code] for code in codes]
    if any(SEPARATOR in cell for cell in cells):
        raise CohortError(f"Column '{name}' holds a NUL character. Remove it, or set its role to ignored.")
    order = texts[:-1] if is_categorical and series.cat.ordered else ()
    return TextColumn.of(cells, order, is_categorical and pd.api.types.is_numeric_dtype(series.cat.categories.dtype))


def cell_text(value: Any, name: str) -> str:
    """One Python value as it would stand in a CSV; '' where missing."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, bool | np.bool_):
        return "True" if value else "False"
    if isinstance(value, numbers.Integral):
        return whole_text(value)
    if isinstance(value, decimal.Decimal):
        return _decimal_text(value)
    if isinstance(value, numbers.Real):
        return number_text(plain_number(value))
    if isinstance(value, datetime.date | datetime.time | pd.Timestamp | np.datetime64):
        return str(value)
    if isinstance(value, pd.Interval):  # a level of pd.cut, as a CSV has it
        return str(value)
    raise CohortError(f"Column '{name}' holds {type_of(value)}; cells must be numbers or texts.")


def _decimal_text(value: decimal.Decimal) -> str:
    """As a float of the same value is written; digit for digit where no float has that value."""
    text = number_text(float(value))
    exact = not value.is_finite() or not text or decimal.Decimal(text) == value
    return text if exact or abs(value.adjusted()) > LONGEST_NUMBER else f"{value:f}"
