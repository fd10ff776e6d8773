"""scikit-learn estimators: `L2MClassifier().fit(X, y).predict_proba(X_new)`, NaN = not measured.

`fit` trains nothing, unless a council is wanted: it keeps the rows as context and encodes them once.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import numbers
import warnings
from collections.abc import Container, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from l2m_core.answering.devices import wanted
from l2m_core.answering.predictive import Predictive
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.schema import LONGEST_NAME, Feature, Overrides
from l2m_core.tables.column_parsing import read_column, read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, Reading, ReadingRules
from l2m_core.tables.entered_values import encode_values
from l2m_core.tables.feature_inference import infer_feature
from l2m_core.tables.frames import column_of
from l2m_core.tables.reading_notes import joined_texts, notes_of_feature
from l2m_core.tables.schema_inference import decimals_of_texts
from l2m_core.tables.table import DEFAULT_LIMITS, Column, TextColumn, clean_names, unused_name

NUMBERS = (numbers.Real, decimal.Decimal, np.bool_)
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)  # pandas' own are among them


@functools.lru_cache(maxsize=4)
def _loaded(model: str, device: str, dtype: str) -> L2M:
    return load(model, device, dtype)


class _InContext(BaseEstimator):
    """What both estimators share: columns to numbers, rows to a cohort, a cohort to a memory."""

    _outcome_kind: str | None = None

    def __init__(
        self, model: str = "general", device: str | None = None, dtype: str = "float32", council: bool = False
    ):
        self.model = model
        self.device = device
        self.dtype = dtype
        self.council = council

    memory_: CohortMemory

    def _condition(self, x: np.ndarray, y: np.ndarray, kind: str | None, classes) -> None:
        if not isinstance(self.council, bool | np.bool_):
            raise ValueError(f"council is {self.council!r}; it must be True or False.")
        model = _loaded(str(self.model), wanted(self.device), self.dtype)
        names = _names(self, x.shape[1])
        cohort = Cohort.from_arrays(
            x,
            y,
            names=names,
            kind=kind,
            categorical=self._categorical(x.shape[1]),
            levels=self._levels(names),
            classes=classes,
            outcome=unused_name("outcome", names),
            fewest_rows=1,
        )
        for note in cohort.warnings:
            warnings.warn(note, stacklevel=3)
        self.memory_ = model.condition(cohort, council=self.council)

    def _learn_columns(self, X: Any) -> Any:
        """Texts and categories of a DataFrame become numbers or codes. How is kept for later rows, by the column's
        position: scikit-learn keeps its name only where all names are texts."""
        self.columns_: dict[int, tuple[Feature, ReadingRules]] = {}
        self.order_: list[Any] | None = None
        if not isinstance(X, pd.DataFrame):
            return X
        self.order_ = list(X.columns)
        if not X.columns.is_unique:
            name = X.columns[X.columns.duplicated()][0]
            raise ValueError(f"X has two columns of the name {name!r}. Rename one, or leave it out.")
        encoded, texts = X.copy(), {}
        for position, dtype in enumerate(X.dtypes):
            # As categories, days would lose their order, and later ones would all be unseen.
            if _holds_times(X.iloc[:, position]):
                raise ValueError(
                    f"Column {X.columns[position]!r} holds dates or times. Turn it into a number, such as days since "
                    "admission or age in years, or leave it out."
                )
            if not pd.api.types.is_numeric_dtype(dtype):
                texts[position] = _plain(X.iloc[:, position])
                if _only_numbers(texts[position]) and not isinstance(dtype, pd.CategoricalDtype):
                    encoded.isetitem(position, pd.to_numeric(texts.pop(position)).to_numpy())
        stated = {position for position in texts if isinstance(X.dtypes.iloc[position], pd.CategoricalDtype)}
        for position, feature, rules, values in _read_texts(texts, stated):
            self.columns_[position] = feature, rules
            encoded.isetitem(position, values)
        return encoded

    def _encode_columns(self, X: pd.DataFrame) -> pd.DataFrame:
        """Later rows, each column as in fit; texts in a column that held numbers then are read as numbers."""
        encoded = X.copy()
        for position, dtype in enumerate(X.dtypes):
            numeric = pd.api.types.is_numeric_dtype(dtype)
            if numeric and position not in self.columns_:
                continue
            values = X.iloc[:, position] if numeric else _plain(X.iloc[:, position])
            if position not in self.columns_ and _only_numbers(values):
                encoded.isetitem(position, pd.to_numeric(values).to_numpy())
            else:
                feature, rules = self.columns_.get(position, (self.memory_.cohort.features[position], DEFAULT_RULES))
                encoded.isetitem(position, encode_values(feature, values, rules))
        return encoded

    def _categorical(self, d: int) -> np.ndarray:
        return np.array(
            [position in self.columns_ and self.columns_[position][0].kind == "category" for position in range(d)]
        )

    def _levels(self, names: list[str]) -> dict[str, tuple[str, ...]]:
        return {names[position]: feature.levels for position, (feature, _) in self.columns_.items()}

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "memory_")
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=False, skip_check_array=True)  # refuses other columns than in fit
            found = list(X.columns)
            if self.order_ is not None and found != self.order_ and {*found} == {*self.order_}:
                raise ValueError(  # scikit-learn sees it of names that are texts only
                    f"X has its columns in another order than in fit: {found[:5]} instead of {self.order_[:5]}."
                )
            X = self._encode_columns(X)
        x = validate_data(self, X, reset=False, ensure_all_finite="allow-nan", dtype=np.float64)
        return _within_float32(x).astype(np.float32)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class L2MClassifier(ClassifierMixin, _InContext):
    """Class probabilities for partly known rows; the rows given to `fit` are the context.

    model: a released model's name or a folder; device, dtype: where and how to compute, as `l2m_core.load` reads them;
    council: whether models fitted to the rows are heard beside it, as on the page, which takes several times as long to fit.
    """

    def fit(self, X: Any, y: Any) -> L2MClassifier:
        X, y = validate_data(
            self,
            self._learn_columns(X),
            _labels(y),
            ensure_all_finite="allow-nan",
            dtype=np.float64,
            ensure_min_samples=2,
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y holds one class only ({self.classes_.tolist()[0]!r}); at least two classes are needed."
            )
        kind = "binary" if len(self.classes_) == 2 else "multiclass"
        self._condition(_within_float32(X), codes, kind, [str(label) for label in self.classes_])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, classes) in the order of `classes_`."""
        check_is_fitted(self, "memory_")
        return np.asarray(self.memory_.answer(self._rows(X)).prediction)

    def predict(self, X: Any) -> np.ndarray:
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]


class L2MRegressor(RegressorMixin, _InContext):
    """The mean, and through `predict_distribution` the whole predictive distribution, of a continuous outcome.

    model, device, dtype, council: as of L2MClassifier.
    """

    def fit(self, X: Any, y: Any) -> L2MRegressor:
        X, y = validate_data(
            self,
            self._learn_columns(X),
            y,
            ensure_all_finite="allow-nan",
            dtype=np.float64,
            ensure_min_samples=2,
            y_numeric=True,
        )
        self._condition(_within_float32(X), column_or_1d(y, warn=True), "continuous", None)
        return self

    def predict_distribution(self, X: Any) -> Predictive:
        check_is_fitted(self, "memory_")
        prediction = self.memory_.answer(self._rows(X)).prediction
        assert isinstance(prediction, Predictive)
        return prediction

    def predict(self, X: Any) -> np.ndarray:
        return self.predict_distribution(X).mean


def _labels(y: Any) -> Any:
    """Classes as scikit-learn takes them, of a series or array of objects: truth values as such, and no blanks."""
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # of pandas' types that know NA
    if plain is not None and plain.kind in "biu":
        if missing := int(pd.isna(y).sum()):
            raise ValueError(f"y is missing in {missing} of {len(y)} rows. Leave these rows out of the fit.")
        return np.asarray(y, dtype=plain)  # scikit-learn would make 1.0 of True
    if y is None or not (pd.api.types.is_object_dtype(y) or isinstance(getattr(y, "dtype", None), pd.StringDtype)):
        return y
    labels = np.asarray(y, dtype=object)
    if missing := int(pd.isna(labels).sum()):
        raise ValueError(f"y is missing in {missing} of {labels.size} rows. Leave these rows out of the fit.")
    if labels.size and all(isinstance(label, bool | np.bool_) for label in labels.flat):
        return labels.astype(bool)
    others = [label for label in labels.flat if not isinstance(label, str)]
    if 0 < len(others) < labels.size:
        other = others[0]
        raise ValueError(f"y holds texts and others, such as {other!r}. Give all classes as texts: y.astype(str).")
    return y


def _names(estimator: _InContext, d: int) -> list[str]:
    given = getattr(estimator, "feature_names_in_", None)
    return _usable(given) if given is not None else [f"x{i}" for i in range(d)]


def _usable(given: Iterable[Any]) -> list[str]:
    """Names that a cohort's columns can have. Nothing is lost by a repair, since later rows go by position."""
    short = LONGEST_NAME - 8  # leaves room for a number behind names that are alike once they are cut
    return list(clean_names([str(name)[:short] for name in given])[0])


def _holds_times(values: pd.Series) -> bool:
    """Dates, times or spans, whether pandas knows them as such or keeps Python's own objects."""
    if values.dtype.kind in "mM":
        return True
    if values.dtype != object:
        return False
    return any(isinstance(value, TIMES) and value is not pd.NaT for value in values)


def _plain(values: pd.Series) -> pd.Series:
    """Numbers and texts; what is neither, such as the intervals of `pd.cut`, goes by its text."""
    kept = (str, *NUMBERS, type(None), type(pd.NA), type(pd.NaT))

    def plain(cells: Iterable[Any]) -> list[Any]:
        return [cell if isinstance(cell, kept) else str(cell) for cell in cells]

    if not getattr(values.dtype, "ordered", False):
        return pd.Series(plain(values), dtype=object, name=values.name)
    in_order = list(dict.fromkeys(plain(values.cat.categories)))
    return pd.Series(pd.Categorical(plain(values), in_order, ordered=True), name=values.name)


def _only_numbers(values: pd.Series) -> bool:
    """Numbers as pandas holds them beside None. A truth value is 0 or 1, as in a column of truth values alone."""
    present = values.dropna()
    return len(present) > 0 and all(isinstance(value, NUMBERS) for value in present)


def _read_texts(
    texts: dict[int, pd.Series], stated: Container[int]
) -> Iterator[tuple[int, Feature, ReadingRules, np.ndarray]]:
    """Columns by their position, read as `Cohort.from_frame` reads them, with the rules for later values.

    stated: positions of columns that are categories, even where their texts are numbers.
    """
    names = _usable(values.name for values in texts.values())
    columns = [
        column_of(values, name, DEFAULT_LIMITS, DEFAULT_LIMITS.size)
        for name, values in zip(names, texts.values(), strict=True)
    ]
    rows = np.arange(max(map(len, texts.values()), default=0))
    kinds = {name: "levels" for name, position in zip(names, texts, strict=True) if position in stated}
    readings = dict(read_columns(names, columns, rows, kinds, DEFAULT_RULES))
    stated_decimals = {name: reading.decimal for name, reading in readings.items() if reading.decimal in (".", ",")}
    decimals = decimals_of_texts(names, columns, stated_decimals)
    for position, name, column in zip(texts, names, columns, strict=True):
        reading = readings[name]
        if reading.problem is not None:
            reading = _as_categories(reading, column, rows)
        number = reading.numbers is not None and reading.distinct > 0 and position not in stated
        settings = Overrides({name: {"kind": "number" if number else "category"}}, {}, complete=True)
        feature, values, notes = infer_feature(reading, settings, rows)
        for note in notes:
            warnings.warn(note, stacklevel=4)
        joined = joined_texts(notes_of_feature(reading, feature.levels, values))
        yield position, feature, ReadingRules(decimals.get(name), joined=joined), values


def _as_categories(reading: Reading, column: Column, rows: np.ndarray) -> Reading:
    """A column that is neither all numbers nor plainly words, with a warning; a number in doubt is an error."""
    if reading.decimal == "either":
        raise CohortError(f"{reading.problem} An estimator takes none: give the column as numbers.")
    if reading.numbers is not None or not isinstance(column, TextColumn):
        raise CohortError(str(reading.problem))
    warnings.warn(f"{reading.problem} Here it is read as categories.", stacklevel=5)
    return read_column(reading.name, column, rows, DEFAULT_RULES, "levels")


def _within_float32(x: np.ndarray) -> np.ndarray:
    """Numbers beyond float32 are brought to its edge: their rank is what matters. Still float64, so that a cohort sees
    which of the others 32 bits change."""
    edge = np.float64(np.finfo(np.float32).max)
    return np.clip(x, -edge, edge)
