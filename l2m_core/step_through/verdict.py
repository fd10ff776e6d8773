"""What to do now, in one sentence, and what speaks for and against a test.

All of it is said from three things: the ranking (`Patient.tests`), what results of a test would make of the prediction
(`Patient.preview`), and the rules for stopping. Whoever computes these otherwise changes nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from l2m_core.acquire.information import Outlook
from l2m_core.acquire.stopping import Stopping, least_points_for, points_in_words
from l2m_core.acquire.support import count_near, is_thin
from l2m_core.step_through.candidates import Candidate, followed_class, followed_move
from l2m_core.step_through.explanation import Driver
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.words import number, percent, percents, points, predicted, span, with_unit
from l2m_core.tables.cell_parsing import entered_text

LEAST_SHIFT = 0.05
"""Of a continuous outcome's mean, in predictive standard deviations: results that move it by less change nothing that a person
would act on. Of a probability see `least_points_for`."""
SEPARATES = 0.05
"""How far each of two classes must move, in opposite directions, for a test to tell them apart."""
LEAST_CHANCE = 0.02
"""How far a test could move the prediction is said of results that, with all that move it as far or further the same way, have
this chance; what hardly ever comes says nothing of what the test could do for this patient."""
SMALL_GAIN = 0.01
"""Nats: where no test tells as much alone, pairs are looked at."""
SHARE_OF_LARGEST, MOST_LITTLE = 0.25, 3
"""A result changes little that moves the prediction by less than this share of the largest move, and by less than so many times
the least move that counts: what moves it further is no little change, however far another result could."""


@dataclass(frozen=True)
class Effect:
    """What the results of one test would make of the number that is followed.

    That is the probability of the positive or the likeliest class, or the mean of a continuous outcome.
    """

    feature: str
    key: str
    """The class, or 'mean'."""
    now: float
    results: tuple[str, ...]
    after: tuple[float, ...]
    chances: tuple[float, ...]
    """How likely each result is; together 1."""
    least: float
    """Moves smaller than this are none."""

    @property
    def low(self) -> float:
        return min(self.after, default=self.now)

    @property
    def high(self) -> float:
        return max(self.after, default=self.now)

    @property
    def largest(self) -> float:
        return max((abs(value - self.now) for value in self.after), default=0.0)

    @property
    def is_small(self) -> bool:
        """Whether no result would move the prediction by anything to speak of."""
        return self.largest < self.least


@dataclass(frozen=True)
class Verdict:
    """action: measure `feature`, stop, or nothing, since the step-through is stopped already."""

    action: Literal["measure", "stop", "stopped"]
    sentence: str
    feature: str | None = None
    effect: Effect | None = None


@dataclass(frozen=True)
class Reasons:
    """What speaks for a test and what against it, each in a few words."""

    speaks_for: tuple[str, ...]
    against: tuple[str, ...]


def verdict(patient: Patient, stopping: Stopping | None = None) -> Verdict:
    """What to do now. stopping: rules other than the patient's own."""
    if patient.state.stopped:
        return Verdict("stopped", "Stopped.")
    stopping = stopping or patient.stopping
    name = patient.suggestion_by(stopping)
    if name is None:
        return Verdict("stop", "Stop: nothing is left to measure.")
    advice = patient.advice_by(stopping)
    effect = effect_of(patient, name)
    if advice:
        return Verdict("stop", f"Stop: {advice[0].lower()}{advice[1:]}", name, effect)
    if effect.is_small and _is_best(patient, name):
        amount = f"more than {_least_amount(patient, effect)}"
        return Verdict("stop", f"Stop: nothing left is likely to move this by {amount}.", name, effect)
    return Verdict("measure", f"Measure {name}: it could move {_move(patient, effect)}.", name, effect)


def told_together(patient: Patient) -> str:
    """Where no test tells much alone, a sentence on two that do so together; '' where there are none."""
    if patient.state.stopped or not 0 <= patient.best_gain < SMALL_GAIN:
        return ""
    pairs = patient.together()
    if not len(pairs):
        return ""
    best = pairs.iloc[0]
    together = _typically(patient, float(best.move))
    first, second = (typical_move_in_words(patient, str(best[place])) for place in ("first", "second"))
    alone = first if first == second else f"{first} and {second}"
    return f"{best['first']} and {best['second']} together tell more: typically {together}, alone {alone}."


def effect_of(patient: Patient, name: str) -> Effect:
    """What the results that `Patient.preview` tries would make of the prediction."""
    table, prediction = patient.preview(name), patient.answer.prediction
    if isinstance(prediction, np.ndarray):
        key, column = followed(patient), f"p({followed(patient)})"
        now, least = float(prediction[0, _code(patient, key)]), least_points_for(patient.memory.cohort) / 100
    else:
        key = column = "mean"
        now, least = float(prediction.mean[0]), LEAST_SHIFT * float(prediction.std[0])
    if "chance" in table:
        table = table[_is_likely(table[column].to_numpy() - now, table.chance.to_numpy())]
    results = tuple(str(result) for result in table.result)
    return Effect(name, key, now, results, tuple(map(float, table[column])), _chances(patient, name, table), least)


def _is_likely(moves: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """(m,) which results count as what a test could do. moves: (m,) by each; chances: (m,)."""
    # Row i: the results that move it as far as result i or further, the same way.
    as_far = (moves * moves[:, None] >= 0) & (np.abs(moves) >= np.abs(moves)[:, None])
    return (as_far @ chances >= LEAST_CHANCE) | (chances == chances.max())


def followed(patient: Patient) -> str:
    """The class whose probability is followed: the positive one of two, else the likeliest."""
    probabilities = np.asarray(patient.answer.prediction)[0]
    return str(patient.memory.classes[followed_class(probabilities)])


def typical_move(patient: Patient, name: str) -> float:
    """By how much a test's result typically moves the number that is followed, up or down; NaN where that cannot be said.

    As its preview shows it, each result as often as it is likely. Where the ranking tried no results, what its gain implies.
    """
    test = next(test for test in patient.tests if test.feature == name)
    return _implied_by(patient, test.gain) if math.isnan(test.move) else test.move


def _implied_by(patient: Patient, gain: float) -> float:
    """The move that a gain (nats) implies.

    A gain g is what is learned of the outcome. Of a class with probability p it means, to second order, a standard
    deviation of sqrt(2 p (1 − p) g) of its probability after the result; of a normal outcome with standard deviation s
    one of s · sqrt(1 − exp(−2 g)) of its mean.
    """
    if not gain > 0:
        return math.nan if math.isnan(gain) else 0.0
    prediction = patient.answer.prediction
    if isinstance(prediction, np.ndarray):
        p = float(prediction[0, _code(patient, followed(patient))])
        return min(math.sqrt(2 * p * (1 - p) * gain), max(p, 1 - p))
    return float(prediction.std[0]) * math.sqrt(-math.expm1(-2 * gain))


def typical_move_in_words(patient: Patient, name: str) -> str:
    """'±6 points', '±12 mg/dl', 'less than 1 point'; '' where it cannot be said."""
    return _typically(patient, typical_move(patient, name))


def move_in_words(patient: Patient, outlook: Outlook) -> str:
    """The same by the results of one outlook, which the ranking may only have estimated."""
    return _typically(patient, followed_move(outlook.typical, patient.answer.prediction))


def _typically(patient: Patient, move: float) -> str:
    if math.isnan(move):
        return ""
    amount = _amount(patient, move)
    return amount if amount.startswith("less") else f"±{amount}"


def change_without(patient: Patient, driver: Driver) -> str:
    """How far the prediction would change had this value not been known: '6 points', '12 mg/dl'."""
    prediction = patient.answer.prediction
    return _amount(patient, driver.change * (1 if isinstance(prediction, np.ndarray) else float(prediction.std[0])))


def reasons(patient: Patient, name: str, stopping: Stopping | None = None) -> Reasons:
    """What speaks for and against measuring this test now."""
    test = next(test for test in patient.tests if test.feature == name)
    others = [other for other in patient.tests if other.status == "open" and other.feature != name]
    effect = effect_of(patient, name)
    speaks_for, against = _by_effect(patient, name, effect)
    for said, other in (_by_support(patient, test), _by_cost(patient, test, others, stopping or patient.stopping)):
        speaks_for += said
        against += other
    return Reasons(tuple(speaks_for), tuple(against))


# -- parts ------------------------------------------------------------------------------------------------------------


def _by_effect(patient: Patient, name: str, effect: Effect) -> tuple[list[str], list[str]]:
    if effect.is_small:
        return [], [f"no result is likely to change this by more than {_least_amount(patient, effect)}"]
    separated = _separated(patient, name)
    said = f"would separate {separated[0]} from {separated[1]}" if separated else f"could move {_move(patient, effect)}"
    little = max(effect.least, min(SHARE_OF_LARGEST * effect.largest, MOST_LITTLE * effect.least))
    moves = zip(effect.after, effect.chances, strict=True)
    chance_of_little = math.fsum(chance for after, chance in moves if abs(after - effect.now) < little)
    return [said], ["most of its results change little"] if chance_of_little > 0.5 else []


def _separated(patient: Patient, name: str) -> tuple[str, str] | None:
    """Of more than two classes, the two that the test's results move furthest in opposite directions."""
    classes = patient.memory.classes
    if len(classes) < 3:
        return None
    after = patient.preview(name)[[f"p({label})" for label in classes]].to_numpy()
    moved = after - np.asarray(patient.answer.prediction)[0]
    best, pair = SEPARATES, None
    for row in moved:
        up, down = int(row.argmax()), int(row.argmin())
        reach = min(row[up], -row[down])
        if reach >= best:
            best, pair = reach, (_one_name(classes[up]), _one_name(classes[down]))
    return pair


def _one_name(label: object) -> str:
    """In a sentence; 'infection, other' would be read as two."""
    return f"'{label}'" if "," in str(label) else str(label)


def _by_support(patient: Patient, test: Candidate) -> tuple[list[str], list[str]]:
    rows, near = len(patient.memory.cohort), count_near(len(patient.memory.cohort))
    recorded = f"recorded in {test.support:,} of {rows:,}"
    if not is_thin(test.support, test.support_near):
        return [recorded], []
    return [], [f"only {recorded}, and in {test.support_near:,} of the {near:,} most like this one"]


def _by_cost(
    patient: Patient, test: Candidate, others: Sequence[Candidate], stopping: Stopping
) -> tuple[list[str], list[str]]:
    speaks_for, against = [], []
    if not stopping.pays_for(test.cost, patient.spent):
        left = stopping.cost_left(patient.spent)
        against.append(f"costs {entered_text(test.cost)}, and {entered_text(left)} is left of the budget")
    elif others:
        middle = float(np.median([other.cost for other in others]))
        if test.cost < middle:
            speaks_for.append(f"cheap ({entered_text(test.cost)}; others {entered_text(middle)})")
        elif test.cost > middle:
            against.append(f"dearer than most ({entered_text(test.cost)}; others {entered_text(middle)})")
    together = [other for other in others if test.group is not None and other.group == test.group]
    if together:
        speaks_for.append(f"brings {len(together) + 1} results at once")
    return speaks_for, against


def _is_best(patient: Patient, name: str) -> bool:
    """Whether no open test has a larger gain. Rules that rank otherwise may suggest one that tells less."""
    return patient.open_gains.get(name, math.nan) >= patient.best_gain


def _chances(patient: Patient, name: str, table: pd.DataFrame) -> tuple[float, ...]:
    """How likely each result is that is tried. Of a model that foresees none: a number is its median, levels are as frequent as
    in the cohort."""
    cohort = patient.memory.cohort
    feature = cohort.feature(name)
    if "chance" in table:
        chances = table.chance.to_numpy()
    elif feature.kind == "number":
        chances = np.array([0.0, 1.0, 0.0])
    else:
        column = cohort.x[:, cohort.names.index(name)]
        codes = column[~np.isnan(column)].astype(int)
        chances = np.bincount(codes[codes < len(table)], minlength=len(table))
    return tuple((chances / max(chances.sum(), 1e-9)).tolist())


def _move(patient: Patient, effect: Effect) -> str:
    """'76% to 65–83%'; of many classes and of numbers with their name."""
    if effect.key == "mean":
        unit = patient.memory.cohort.schema.outcome.unit
        ends = span(predicted(effect.low), predicted(effect.high))
        return f"the mean from {predicted(effect.now)} to {with_unit(ends, unit)}"
    whose = f"{effect.key} from " if len(patient.memory.classes) > 2 else ""
    return f"{whose}{percent(effect.now)} to {percents(effect.low, effect.high)}"


def _amount(patient: Patient, amount: float) -> str:
    """'6 points', or a number with the outcome's unit."""
    if isinstance(patient.answer.prediction, np.ndarray):
        return points(amount)
    return with_unit(number(float(f"{amount:.2g}")), patient.memory.cohort.schema.outcome.unit)


def _least_amount(patient: Patient, effect: Effect) -> str:
    return _amount(patient, effect.least) if effect.key == "mean" else points_in_words(round(100 * effect.least, 9))


def _code(patient: Patient, label: str) -> int:
    return [str(name) for name in patient.memory.classes].index(label)
