"""How a released model's answers are computed: settings of its `model.yaml`, chosen on held-out synthetic tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from l2m_core.errors import ConfigError

MODEL_POLICIES = ("gain", "gain per cost", "learned", "monte carlo")
"""Names of the policies that rank by the model's answer for the patient; see l2m_core/acquire/policies.py."""


@dataclass(frozen=True)
class AnswerSettings:
    """How answers are computed at test time; each setting was chosen by log loss on held-out synthetic tasks."""

    temperature: float = 1.0
    """Divides class logits."""
    views: int = 1
    """Codings of the classes that answers are averaged over; see l2m_core/answering/class_codings.py."""
    against_rest: float = 0.0
    """Of more than two classes, the share of the answer that comes from asking of each class against the rest."""
    care_rows: int = 512
    """Most rows of a cohort that are context for every view but the first, and for each class against the rest."""
    sharpness: float = 0.0
    """Of more than two classes, how far the logarithm of the cohort's own calibration exponent may lie from 0; 0 leaves
    the exponent at 1. See l2m_core/answering/calibration.py."""
    prevalence: float = 0.0
    """Share by which predictions are moved towards the cohort's class frequencies where nothing is known."""
    policy: str = "gain"
    """The default policy."""

    def __post_init__(self) -> None:
        check_number("temperature", self.temperature, (int, float), 1e-3, 1e3)
        check_number("views", self.views, int, 1, 100)
        check_number("against_rest", self.against_rest, (int, float), 0, 1)
        check_number("care_rows", self.care_rows, int, 1, math.inf)
        check_number("sharpness", self.sharpness, (int, float), 0, 10)
        check_number("prevalence", self.prevalence, (int, float), 0, 1)
        if self.policy not in MODEL_POLICIES:
            raise ConfigError(f"policy is {self.policy!r}; it must be one of {', '.join(MODEL_POLICIES)}.")


def check_number(name: str, value: Any, kind: Any, least: float, most: float) -> None:
    """Refuses a setting that is not a number of this kind between `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        what = "whole number" if kind is int else "number"
        bounds = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ConfigError(f"{name} is {value!r}; it must be a {what}, {bounds}.")
