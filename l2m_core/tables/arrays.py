"""Arrays as a cohort's columns: checked and described, with no column dropped and no row left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from l2m_core.errors import CohortError
from l2m_core.schema import MOST_CLASSES, Feature, Outcome, Schema, did_you_mean
from l2m_core.tables.allowed_numbers import LARGEST_EXACT, is_too_large, is_vanishing, lost_by_rounding, of_rounding
from l2m_core.tables.entered_values import value_text

MOST_ARRAY_COLUMNS = 10_000
NO_NUMBERS = frozenset("mMc")
"""Kinds of dtype that NumPy makes floats of all the same: dates and spans as counts of their unit, complex numbers in part."""


@dataclass(frozen=True)
class ArrayContent:
    """x: (N, d) float32; y: (N,) class codes, or float32."""

    schema: Schema
    x: np.ndarray
    y: np.ndarray
    warnings: tuple[str, ...]


def read_arrays(
    x,
    y,
    names: Sequence[str] | None,
    kind: str | None,
    acquirable,
    categorical,
    levels: Mapping[str, Sequence[str]],
    classes: Sequence[str] | None,
    costs,
    groups: Sequence[str | None] | None,
    outcome: str,
    fewest_rows: int,
) -> ArrayContent:
    """As `Cohort.from_arrays` has them."""
    names = _names_of_frame(x) if names is None else names
    exact = _matrix(x)
    x = exact.astype(np.float32)
    if len(x) < fewest_rows:
        raise CohortError(f"The arrays have {len(x)} rows; at least {fewest_rows} are needed.")
    d = x.shape[1]
    names = [f"x{i}" for i in range(d)] if names is None else list(names)
    groups = [None] * d if groups is None else list(groups)
    if len(names) != d or len(groups) != d:
        raise CohortError(f"x has {d} columns, but {len(names)} names and {len(groups)} groups are given.")
    acquirable = _flags(acquirable, names, True, "acquirable")
    categorical = _flags(categorical, names, False, "categorical")
    costs = _per_feature(costs, d, 1.0, "costs")
    for name in levels:
        if name not in names:
            raise CohortError(f"levels are given for '{name}', which is no feature.{did_you_mean(name, names)}")
    features = []
    for i, feature_name in enumerate(names):
        texts = _code_texts(x[:, i], feature_name, levels.get(feature_name)) if categorical[i] else ()
        features.append(
            Feature(
                feature_name,
                kind="category" if categorical[i] else "number",
                role="acquirable" if acquirable[i] else "baseline",
                cost=float(costs[i]),
                group=groups[i],
                levels=texts,
            )
        )
    target, y = _read_outcome(y, len(x), kind, classes, outcome)
    # Few columns hold numbers that 32 bits change, so only these are looked at one by one.
    changed = (np.nanmax(np.abs(exact), axis=0, initial=0) > LARGEST_EXACT) | is_vanishing(exact).any(0)
    changed |= lost_by_rounding(exact)[1]
    warnings = [note for i in np.flatnonzero(changed) for note in of_rounding(names[i], exact[:, i])]
    if target.kind == "continuous":
        warnings.extend(of_rounding(outcome, y))
        y = y.astype(np.float32)
    return ArrayContent(Schema(tuple(features), target), x, y, tuple(warnings))


def _names_of_frame(x) -> list[str] | None:
    """What a frame calls its columns, where it calls them anything; an array has none."""
    columns = list(getattr(x, "columns", ()))
    return columns if columns and all(isinstance(column, str) for column in columns) else None


def _matrix(x) -> np.ndarray:
    dtype = getattr(x, "dtype", None)  # of an array; lists and frames have none
    if dtype is not None and dtype.kind in NO_NUMBERS:
        raise CohortError(f"x holds {dtype}; it must hold numbers. Turn dates into days since admission or the like.")
    try:
        x = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CohortError("x must hold numbers (NaN where not recorded). For texts, use Cohort.from_frame.") from error
    if x.ndim != 2 or x.shape[1] == 0:
        raise CohortError(f"x has the shape {x.shape}; it must be (rows, features).")
    if x.shape[1] > MOST_ARRAY_COLUMNS:
        raise CohortError(f"x has {x.shape[1]:,} columns; at most {MOST_ARRAY_COLUMNS:,} are read. Keep what matters.")
    bad = is_too_large(x)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise CohortError(f"x[{row}, {column}] is infinite or too large. Correct it, or make it NaN.")
    return x


def _flags(values, names: Sequence[str], default: bool, what: str) -> np.ndarray:
    """(d,) bool, of truth values for all features or of the names of some."""
    given = None if values is None else np.asarray(values)
    if given is not None and given.ndim == 1 and all(isinstance(value, str) for value in given):
        for name in given:
            if name not in names:
                raise CohortError(f"{what} names '{name}', which is no feature.{did_you_mean(name, names)}")
        return np.isin(names, given)
    flags = _per_feature(given, len(names), default, what)
    if flags.dtype != bool and not np.isin(flags, (0, 1)).all():
        raise CohortError(f"{what} must hold a truth value for each feature, or the names of those that it holds for.")
    return flags.astype(bool)


def _per_feature(values, d, default, what) -> np.ndarray:
    values = np.full(d, default) if values is None else np.asarray(values)
    if values.shape != (d,):
        raise CohortError(f"{what} has the shape {values.shape}; it must be ({d},), one for each feature.")
    return values


def _code_texts(column, name, texts) -> tuple[str, ...]:
    codes = column[~np.isnan(column)]
    if np.any(codes != np.round(codes)) or np.any(codes < 0):
        raise CohortError(f"Column '{name}' is categorical, so it must hold the codes 0, 1, 2 ….")
    most = int(codes.max()) if len(codes) else 0
    if texts is None:
        return tuple(str(code) for code in range(most + 1))
    if most > len(texts):
        raise CohortError(f"Column '{name}' holds code {most}, but has {len(texts)} levels.")
    return tuple(texts)


def _read_outcome(y, n, kind, classes, name) -> tuple[Outcome, np.ndarray]:
    """With (n,) class codes, or the numbers as float64."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise CohortError(f"y has the shape {y.shape}; it must be ({n},), one for each row of x.")
    if y.dtype.kind in NO_NUMBERS:
        raise CohortError(f"y holds {y.dtype}; it must hold numbers or labels.")
    if y.dtype.kind == "O" and (missing := int(pd.isna(y).sum())):
        raise CohortError(f"y is missing in {missing} of {n} rows. Leave these rows out.")
    if kind == "continuous" or (kind is None and classes is None and y.dtype.kind == "f"):
        return Outcome(name, "continuous"), finite_vector(y, name)
    if classes is not None:
        texts = tuple(str(text) for text in classes)
        if y.dtype.kind not in "biuf" or not np.isfinite(y).all() or (y != np.floor(y)).any():
            raise CohortError(f"y must hold codes from 0 to {len(texts) - 1}, since classes are given.")
        codes = y.astype(np.int64)
        if len(y) and (codes.min() < 0 or codes.max() >= len(texts)):
            raise CohortError(f"y holds codes from {codes.min()} to {codes.max()}, but {len(texts)} classes are given.")
    else:
        values, codes = np.unique(y, return_inverse=True)
        texts = tuple(value_text(value.item() if hasattr(value, "item") else value) for value in values)
    if not 2 <= len(texts) <= MOST_CLASSES:
        raise CohortError(
            f"y has {len(texts)} classes; 2 to {MOST_CLASSES} are possible. For numbers: kind='continuous', or L2MRegressor."
        )
    kind = kind or ("binary" if len(texts) == 2 else "multiclass")
    return Outcome(name, kind, texts), codes.astype(np.int64)


def finite_vector(values, name) -> np.ndarray:
    """(n,) float64, of numbers that 32 bits hold."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise CohortError(f"'{name}' must hold numbers.") from error
    if np.any(is_too_large(vector) | np.isnan(vector)):
        raise CohortError(f"'{name}' holds a number that is missing, infinite or too large.")
    return vector
