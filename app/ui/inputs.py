"""Widgets for the values of a feature, and the check of a value before it is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import streamlit as st

from app.cache import once_for_each
from app.ui import labels, state, wording
from l2m_core.cohort import Cohort
from l2m_core.schema import Feature
from l2m_core.step_through.detection_limits import used_as_the_limit
from l2m_core.tables.entered_values import code_of
from l2m_core.tables.precision import number_shown, recorded_decimals, sensible_step, shown_decimals, usual_range

EXACT = "exact"
UNUSUAL = "l2m.unusual"
ROWS_TO_LOOK_AT = 5_000  # for the usual range and precision of a feature; of more rows, as many evenly spaced ones
MOST_GRADES = 11  # of a score: pain is told from 0 to 10
# One sign each: a tablet has no room for more.
LIMITS = {EXACT: "=", "below": labels.markdown("<"), "above": labels.markdown(">")}


def help_text(feature: Feature, usual: str = "") -> str | None:
    """The tooltip of a field: description, usual range in the cohort, reference range, allowed range."""
    parts = [feature.description, f"In this cohort {usual}" if usual else ""]
    if reference := wording.reference_text(feature):
        parts.append(f"Reference {reference}")
    if feature.range_text:
        parts.append(f"Allowed {feature.range_text}")
    return ". ".join(labels.markdown(part) for part in parts if part) or None


def ask(feature: Feature, cohort: Cohort, key: str, value: Any = None, expected: str = "") -> None:
    """The widget of one feature; empty is allowed. Its value is in the session state under `key`.

    expected: what the result is likely to be for this patient, in place of the cohort's usual range.
    """
    label = labels.markdown(labels.name_with_unit(feature.name, feature.unit))
    if value is not None:
        st.session_state.setdefault(key, _in_field(feature, cohort, value))
    if feature.kind == "number":
        st.number_input(
            label,
            value=None,
            step=written(cohort, feature.name).step,
            format="%g",
            key=key,
            help=help_text(feature, written(cohort, feature.name).usual),
            placeholder=expected or written(cohort, feature.name).usual or "not known",
            required=False,
        )
    else:
        st.selectbox(
            label,
            list(feature.levels),
            index=None,
            key=key,
            help=help_text(feature),
            placeholder="not known",
            format_func=labels.plain,
        )


def _in_field(feature: Feature, cohort: Cohort, value: Any) -> Any:
    """Of a level that was brought in another spelling, the one that its field offers; None where it offers none."""
    if feature.kind == "number":
        return value
    return dict(enumerate(feature.levels)).get(int(code_of(feature, value, cohort.rules_of(feature.name))))


def ask_limit(key: str, of: Feature | None = None, limit: str | None = None) -> None:
    """Asks whether the number is the result or a detection limit. of: the feature, where several are asked.

    limit: what the number was recorded as, 'below' or 'above', where it is corrected.
    """
    st.segmented_control(
        f"Result of {labels.markdown(of.name)}" if of else "Result",
        list(LIMITS),
        default=limit or EXACT,
        required=True,
        format_func=LIMITS.__getitem__,
        key=key,
        label_visibility="collapsed" if of else "visible",
        help="Below or above detection: enter the limit and choose < or >",
    )


def entered_limit(key: str) -> str | None:
    """'below' or 'above'; None where the number is the result itself."""
    limit = st.session_state.get(key, EXACT)
    return str(limit) if limit in ("below", "above") else None


def entered(key: str) -> Any:
    value = st.session_state.get(key)
    return None if isinstance(value, str) and not value.strip() else value


def unlike_the_cohort(cohort: Cohort, feature: Feature, value: Any) -> str | None:
    """A sentence if a number lies outside every value of the cohort, or between a score's: a typing error or a rare patient."""
    if feature.kind != "number" or not isinstance(value, int | float):
        return None
    low, high = recorded_range(cohort, feature.name)
    # The cohort holds 32-bit numbers, which may differ in the last digit from the number typed.
    slack = 1e-6 * max(abs(low), abs(high))
    entered = labels.with_unit(labels.entered_text(value), feature.unit)
    if low - slack <= value <= high + slack:
        grades = written(cohort, feature.name).grades
        if not grades or value == int(value):
            return None
        return (
            f"{labels.plain(feature.name)} = {entered} lies between two whole numbers, and in the cohort there are only "
            f"{grades} different values, all of them whole. Check the number."
        )
    side, bound = ("above", high) if value > high else ("below", low)
    extreme = "highest" if value > high else "lowest"
    shown = number_shown(bound, written(cohort, feature.name).recorded)
    return (
        f"{labels.plain(feature.name)} = {entered} is {side} every value in the "
        f"cohort ({extreme}: {labels.with_unit(shown, feature.unit)}). Check the number and its unit."
    )


def far_from_its_limit(cohort: Cohort, feature: Feature, value: Any, limit: str) -> str | None:
    """A sentence if a result beyond a limit may lie far from it: see `used_as_the_limit`."""
    if feature.kind != "number" or not isinstance(value, int | float):
        return None
    said = used_as_the_limit(cohort, feature.name, value, limit)
    return said and f"{labels.plain(feature.name)} {said}"


class Unconfirmed(Exception):
    """A value lies outside everything in the cohort, or far from its limit, and was not confirmed yet."""


def ask_about_unusual(
    cohort: Cohort, values: Mapping[str, Any], limits: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raises Unconfirmed for values outside everything in the cohort, and for limits that many of the cohort lie beyond;
    asked again with the same values, they are confirmed."""
    sentences = [
        far_from_its_limit(cohort, cohort.feature(name), value, limits[name])
        if name in limits
        else unlike_the_cohort(cohort, cohort.feature(name), value)
        for name, value in values.items()
    ]
    found = [sentence for sentence in sentences if sentence]
    if found:
        cohort.encode(dict(values))  # what is refused anyway needs no question
    asked = repr((values, dict(limits)))
    if found and st.session_state.get(UNUSUAL) != asked:
        st.session_state[UNUSUAL] = asked
        raise Unconfirmed("\n".join(found))


def say_unconfirmed(question: Unconfirmed, button: str, section: str) -> None:
    """The question beside the button that confirms. A double click confirms nothing: see `is_just_asked`."""
    state.acted(UNUSUAL)
    state.notify("warning", f"{question}\nPress {button} again to keep it as it is.", section)


def is_just_asked() -> bool:
    """Whether the question is so fresh that a press was not meant to answer it."""
    return state.is_echo(UNUSUAL)


def forget_unusual() -> None:
    st.session_state.pop(UNUSUAL, None)


def recorded_range(cohort: Cohort, name: str) -> tuple[float, float]:
    return _ranges(cohort)[name]


def typical_values(cohort: Cohort, names: tuple[str, ...]) -> dict[str, Any]:
    """The median of a number, the most frequent level of a category: an example patient."""
    values: dict[str, Any] = {}
    for name in names:
        column = cohort.x[:, cohort.names.index(name)]
        column = column[~np.isnan(column)]
        if not len(column):
            continue
        feature = cohort.feature(name)
        if feature.kind == "number":
            values[name] = float(f"{np.quantile(column, 0.5, method='nearest'):.6g}")
        else:
            code = int(np.bincount(column.astype(int)).argmax())
            if code < len(feature.levels):
                values[name] = feature.levels[code]
    return values


@once_for_each
def _ranges(cohort: Cohort) -> dict[str, tuple[float, float]]:
    ranges = {}
    for index, name in enumerate(cohort.names):
        column = cohort.x[cohort.r[:, index], index]
        low, high = (column.min(), column.max()) if len(column) else (-np.inf, np.inf)
        ranges[name] = float(f"{low:.6g}"), float(f"{high:.6g}")
    return ranges


@dataclass(frozen=True)
class Written:
    """How numbers of a feature are written. step: of its field; usual: its usual range in words, without the unit;
    recorded: decimals in the cohort; shown: decimals of a quantile; grades: of a score, how many values it takes, else 0."""

    step: float
    usual: str
    recorded: int
    shown: int
    grades: int


def written(cohort: Cohort, name: str) -> Written:
    return _written(cohort)[name]


def in_precision(cohort: Cohort, name: str, value: float) -> str:
    """A quantile of a feature, or another number that nobody entered, as finely as it is worth showing."""
    return number_shown(value, written(cohort, name).shown)


@once_for_each
def _written(cohort: Cohort) -> dict[str, Written]:
    rows = cohort.x[:: max(1, len(cohort) // ROWS_TO_LOOK_AT)]
    return {
        feature.name: _of_numbers(rows[:, i]) for i, feature in enumerate(cohort.features) if feature.kind == "number"
    }


def _of_numbers(values: np.ndarray) -> Written:
    found, decimals = usual_range(values), shown_decimals(values)
    usual = "" if found is None else "usually " + " to ".join(number_shown(end, decimals) for end in found)
    return Written(sensible_step(values), usual, recorded_decimals(values), decimals, _grades(values))


def _grades(values: np.ndarray) -> int:
    """How many different values a score takes, which is a column of few whole numbers; 0 of any other column."""
    recorded = values[~np.isnan(values)]
    found = np.unique(recorded)
    enough = len(recorded) >= 2 * MOST_GRADES  # few rows hold few values of anything
    is_score = enough and len(found) <= MOST_GRADES and bool((found == np.floor(found)).all())
    return len(found) if is_score else 0
