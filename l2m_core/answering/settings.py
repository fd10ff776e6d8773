"""How a released model's answers are computed: settings of its `model.yaml`, chosen on held-out synthetic tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from l2m_core.errors import ConfigError
from l2m_core.settings import EARLIER_NAME

MODEL_POLICIES = ("gain", "gain head", "gain per cost", "learned", "monte carlo")
"""Names of the policies that rank by the model's answer for the patient; see l2m_core/acquire/policies.py."""

GAINS = ("head", "answers")
"""See l2m_core/acquire/policies.py: Gain."""

COLUMN, HIDDEN_LAYER, LIKE_TESTS = "column", "hidden layer", "like tests"
NEAR_TESTS, FEW_STATES = "near tests", "near tests of few states"
ALIGNED_BY = (COLUMN, HIDDEN_LAYER, LIKE_TESTS, NEAR_TESTS, FEW_STATES)
"""See l2m_core/acquire/head_alignment.py."""

POINTS, SHARED_VALUES = "points", "shared values"
RESULTS = (POINTS, SHARED_VALUES)
"""See l2m_core/model/results.py."""

ROW_ORDERS = ("position", "content")
"""See l2m_core/answering/row_order.py."""

AS_CODED, NOT_KNOWN = "as coded", "not known"
UNSEEN = (AS_CODED, NOT_KNOWN)
"""See l2m_core/answering/other_levels.py."""

CODE, FREQUENCY = "code", "frequency"
CLASS_ORDERS = (CODE, FREQUENCY)
"""See l2m_core/tasks/class_order.py."""


CHOICES = {
    "policy": MODEL_POLICIES,
    "gains": GAINS,
    "aligned_by": ALIGNED_BY,
    "results": RESULTS,
    "class_order": CLASS_ORDERS,
    "row_order": ROW_ORDERS,
    "unseen": UNSEEN,
}


@dataclass(frozen=True)
class AnswerSettings:
    """How answers are computed at test time; each setting was chosen by log loss on held-out synthetic tasks."""

    temperature: float = 1.0
    """Divides class logits."""
    views: int = 1
    """Codings of the classes that answers are averaged over; see l2m_core/answering/class_codings.py."""
    views_up_to: int = 0
    """Of a cohort of more rows one view is read, since each view costs a whole answer; 0: as many views of any."""
    class_order: str = CODE
    """In which order the model is told of the classes: that of their codes in the cohort, or from the most to the least
    frequent, so that what a class is called, or which of two is the event, changes no answer of the model alone."""
    against_rest: float = 0.0
    """Of more than two classes, the share of the answer that comes from asking of each class against the rest."""
    part_rows: int = 0
    """Most rows that are read together. Of a longer cohort several even parts are read, each by itself, and answers are averaged
    over them; see l2m_core/answering/context_rows.py. 0: all rows that are read are read together."""
    most_parts: int = 1
    """Most parts of a cohort that are read, where `part_rows` is given."""
    most_cells: int = 0
    """Most cells of a cohort that are read, its outcome's column among them, so that fewer rows are read of a wide one: time and
    memory go by the cells. 0: as many as the rows have."""
    view_rows: int = field(default=512, metadata={EARLIER_NAME: "care_rows"})
    """Most rows of a cohort that are context for every view but the first, and for each class against the rest."""
    exponent_spread: float = field(default=0.0, metadata={EARLIER_NAME: "sharpness"})
    """Of more than two classes, how far the logarithm of the cohort's own calibration exponent may lie from 0; 0 leaves
    the exponent at 1. See l2m_core/answering/calibration.py."""
    prevalence: float = 0.0
    """Share by which predictions are moved towards the cohort's class frequencies where nothing is known."""
    policy: str = "gain"
    """The default policy."""
    gains: str = "head"
    """What gains are: the gain head's alone, or computed from the model's own answers, with the head to screen by."""
    computed_gains: int = 3
    """The gains of so many tests at least, those that the head puts first, are computed from the answers to all their results."""
    estimated_gains: int = 0
    """Of so many tests beyond those whose gains are computed, at most, the gain is estimated from a few results each."""
    estimated_from: int = 2
    """Results that such an estimate is made of: 2, a low and a high one; or 3, which keep the mean and the spread of all."""
    results: str = POINTS
    """At which results a test of many different values is tried: at points of its distribution alone, or first at the values
    that many rows share."""
    aligned_states: int = 0
    """In so many states of a cohort's rows, at most, the gain head is compared with the model's own answers when the cohort
    is read, and brought in line with them (l2m_core/acquire/head_alignment.py). 0: it is left as it is."""
    aligned_by: str = COLUMN
    """What the head is corrected by, beside its own size: an offset for each column; that and a direction in the hidden layer of
    which the head makes its number; or both, and tests whose hidden layers are alike, or are nearly the same: of many states a
    few tests, or more of few states."""
    row_order: str = "position"
    """What folds, and the rows kept of a long cohort, are chosen by: position in the table, or content, so that a table
    sorted otherwise gets the same answers. Releases without this setting keep position."""
    unseen: str = AS_CODED
    """What a level that the cohort never had is to the model where no row is 'other': another code, or not known."""

    @property
    def by_frequency(self) -> bool:
        """Whether classes are coded from the most to the least frequent, for answers and in what the model goes on to learn."""
        return self.class_order == FREQUENCY

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(choices)}.")
        check_number("temperature", self.temperature, (int, float), 1e-3, 1e3)
        check_number("views", self.views, int, 1, 100)
        check_number("views_up_to", self.views_up_to, int, 0, math.inf)
        check_number("against_rest", self.against_rest, (int, float), 0, 1)
        check_number("part_rows", self.part_rows, int, 0, math.inf)
        check_number("most_parts", self.most_parts, int, 1, 100)
        check_number("most_cells", self.most_cells, int, 0, math.inf)
        check_number("view_rows", self.view_rows, int, 1, math.inf)
        check_number("exponent_spread", self.exponent_spread, (int, float), 0, 10)
        check_number("computed_gains", self.computed_gains, int, 1, 100)
        check_number("estimated_gains", self.estimated_gains, int, 0, 1000)
        check_number("estimated_from", self.estimated_from, int, 2, 3)
        check_number("aligned_states", self.aligned_states, int, 0, 1000)
        check_number("prevalence", self.prevalence, (int, float), 0, 1)
        if self.part_rows and self.against_rest == 1:
            raise ConfigError("part_rows is given, so against_rest must be below 1: parts are read with all classes.")
        if self.most_parts > 1 and not self.part_rows:
            raise ConfigError(f"most_parts is {self.most_parts}, so part_rows must say how many rows each has.")


def check_number(name: str, value: Any, kind: Any, least: float, most: float) -> None:
    """Refuses a setting that is not a number of this kind between `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        what = "whole number" if kind is int else "number"
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ConfigError(f"{name} is {value!r}; it must be a {what}, {bounds}.")
