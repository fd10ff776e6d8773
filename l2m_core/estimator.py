"""scikit-learn estimators: `L2MClassifier().fit(X, y).predict_proba(X_new)`, NaN = not measured.

`fit` trains nothing: it keeps the rows as context and encodes them once.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from l2m_core.cohort import Cohort
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.predictive import Predictive


@functools.lru_cache(maxsize=4)
def _loaded(model: str, device: str, dtype: str) -> L2M:
    return load(model, device, dtype)


class _InContext(BaseEstimator):
    """What both estimators share: columns to numbers, rows to a cohort, a cohort to a memory."""

    _outcome_kind: str | None = None

    def __init__(self, model: str = "general", device: str = "cpu", dtype: str = "float32"):
        self.model = model
        self.device = device
        self.dtype = dtype

    memory_: CohortMemory

    def _condition(self, x: np.ndarray, y: np.ndarray, kind: str | None, classes) -> None:
        model = _loaded(str(self.model), self.device, self.dtype)
        names = _names(self, x.shape[1])
        cohort = Cohort.from_arrays(
            x, y, names=names, kind=kind, categorical=self._categorical(x.shape[1]),
            levels=self._levels(names), classes=classes, fewest_rows=1,
        )  # fmt: skip
        self.memory_ = model.condition(cohort)

    def _learn_columns(self, X: Any) -> Any:
        """Texts and categories of a DataFrame become codes; the codes are kept for later rows, by the column's place:
        scikit-learn keeps its name only where all names are texts."""
        self.levels_: dict[int, list] = {}
        if isinstance(X, pd.DataFrame):
            for place, dtype in enumerate(X.dtypes):
                if not pd.api.types.is_numeric_dtype(dtype):
                    self.levels_[place] = sorted(X.iloc[:, place].dropna().unique(), key=str)
        return self._encode_columns(X)

    def _encode_columns(self, X: Any) -> Any:
        if not isinstance(X, pd.DataFrame) or not self.levels_:
            return X
        encoded = X.copy()
        for place, levels in self.levels_.items():
            values = X.iloc[:, place]
            codes = {level: float(code) for code, level in enumerate(levels)}
            other = float(len(levels))
            unseen = [v for v in values.dropna().unique() if v not in codes]
            if unseen:
                warnings.warn(
                    f"'{X.columns[place]}': {unseen[0]!r} was never seen in fit and is read as 'other'.", stacklevel=3
                )
            encoded.isetitem(place, [np.nan if pd.isna(v) else codes.get(v, other) for v in values])
        return encoded

    def _categorical(self, d: int) -> np.ndarray:
        return np.array([place in self.levels_ for place in range(d)])

    def _levels(self, names: list[str]) -> dict[str, list[str]]:
        return {names[place]: [str(level) for level in levels] for place, levels in self.levels_.items()}

    def _rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "memory_")
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=False, skip_check_array=True)  # columns other than in fit have no place
        x = validate_data(self, self._encode_columns(X), reset=False, ensure_all_finite="allow-nan", dtype=np.float64)
        return _to_float32(x)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class L2MClassifier(ClassifierMixin, _InContext):
    """Class probabilities for partly known rows; the rows given to `fit` are the context.

    model: a released model's name or a folder; device, dtype: where and how to compute ("float32" or "bfloat16").
    """

    def fit(self, X: Any, y: Any) -> L2MClassifier:
        X, y = validate_data(
            self, self._learn_columns(X), y, ensure_all_finite="allow-nan", dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only ({self.classes_[0]!r}); at least two classes are needed.")
        kind = "binary" if len(self.classes_) == 2 else "multiclass"
        self._condition(_to_float32(X), codes, kind, [str(label) for label in self.classes_])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, classes) in the order of `classes_`."""
        check_is_fitted(self, "memory_")
        return np.asarray(self.memory_.answer(self._rows(X)).prediction)

    def predict(self, X: Any) -> np.ndarray:
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(1)]


class L2MRegressor(RegressorMixin, _InContext):
    """The mean, and through `predict_distribution` the whole predictive distribution, of a continuous outcome."""

    def fit(self, X: Any, y: Any) -> L2MRegressor:
        X, y = validate_data(
            self, self._learn_columns(X), y, ensure_all_finite="allow-nan", dtype=np.float64, ensure_min_samples=2,
            y_numeric=True,
        )  # fmt: skip
        y = column_or_1d(y, warn=True).astype(np.float32)
        self._condition(_to_float32(X), y, "continuous", None)
        return self

    def predict_distribution(self, X: Any) -> Predictive:
        check_is_fitted(self, "memory_")
        prediction = self.memory_.answer(self._rows(X)).prediction
        assert isinstance(prediction, Predictive)
        return prediction

    def predict(self, X: Any) -> np.ndarray:
        return self.predict_distribution(X).mean


def _names(estimator: _InContext, d: int) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [str(name) for name in names] if names is not None else [f"x{i}" for i in range(d)]


def _to_float32(x: np.ndarray) -> np.ndarray:
    """Numbers beyond float32 are brought to its edge: their rank is what matters."""
    edge = np.finfo(np.float32).max
    return np.clip(x, -edge, edge).astype(np.float32)
