"""What one test may show a patient, and what its results would do to the posterior."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
import pandas as pd

from l2m_core.acquire.foreseen import FEWEST_RECORDED, chances_of, draw_results, is_too_rare, words_for
from l2m_core.acquire.information import Outlook, filled
from l2m_core.answering.engine import Answer, ConditionedModel
from l2m_core.answering.predictive import Predictive
from l2m_core.errors import InputError


def preview(memory: ConditionedModel, x: np.ndarray, name: str, outlook: Outlook | None) -> pd.DataFrame:
    """Result, value, the posterior after it; and its chance where an outlook foresees it. x: (1, d)"""
    values, labels = results_to_try(memory, name, outlook)
    rows = with_results(memory, x, name, values)
    # Results that are foreseen were queried for the gain already, so these predictions are found in the cache.
    after = memory.answer(rows).prediction if outlook is None else memory.predictions(rows)
    table = pd.DataFrame({"result": labels, "value": [memory.cohort.decode(name, v) for v in values]})
    if outlook is not None:
        table["chance"] = outlook.chances
    return pd.concat([table, _posterior_columns(memory, after)], axis=1)


def results_to_try(memory: ConditionedModel, name: str, outlook: Outlook | None) -> tuple[list[float], list[str]]:
    """Results that a preview tries, and what they are called."""
    cohort = memory.cohort
    feature = cohort.feature(name)
    values = memory.typical[:, cohort.names.index(name)].tolist()
    words = ["low (10th percentile)", "typical (median)", "high (90th percentile)"]
    if outlook is not None:
        values = outlook.results[:, 0].tolist()
        words = words_for(outlook.chances)
    elif feature.kind != "number":
        values = [float(v) for v in range(len(feature.levels))]
    if feature.kind != "number":
        return values, [str(cohort.decode(name, v)) for v in values]
    return values, words


def with_results(memory: ConditionedModel, x: np.ndarray, name: str, values: Sequence[float]) -> np.ndarray:
    """(m, d): the patient with each of (m,) results of the test."""
    return filled(x[0], [memory.cohort.names.index(name)], np.reshape(values, (-1, 1)))


def expected_results(memory: ConditionedModel, answer: Answer, name: str, levels: float | Sequence[float]) -> pd.Series:
    """Quantiles of a number at `levels`, or the chance of each level of a category."""
    feature = memory.cohort.feature(name)
    column = memory.cohort.names.index(name)
    if answer.values is None:
        raise InputError(f"The model '{memory.release.name}' does not foresee results.")
    asked = list(levels) if isinstance(levels, Iterable) else [levels]
    if not all(isinstance(level, Real) and 0 < level < 1 for level in asked):
        raise InputError(f"Levels must lie strictly between 0 and 1; given: {asked}.")
    if is_too_rare(memory, column):
        raise InputError(f"'{name}' is recorded in fewer than {FEWEST_RECORDED} rows: too rarely to say.")
    density = answer.values[0, column]
    if feature.kind == "number":
        values = draw_results(memory, density, column, np.array(asked))
        return pd.Series([float(str(value)) for value in values], index=asked, name=name)
    found = chances_of(memory, density, column)
    names = [memory.cohort.decode(name, value) for value in found.values]
    return pd.Series(found.chances, index=names, name=name)


def _posterior_columns(memory: ConditionedModel, prediction: np.ndarray | Predictive) -> pd.DataFrame:
    if isinstance(prediction, np.ndarray):
        return pd.DataFrame(prediction, columns=[f"p({name})" for name in memory.classes])
    return pd.DataFrame({"mean": prediction.mean, "std": prediction.std})
