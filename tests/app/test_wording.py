"""Numbers and events in words: what somebody entered is said digit for digit."""

import pytest

from app.ui import inputs, labels, posterior_words, wording
from l2m_core.cohort import Cohort
from l2m_core.schema import Feature, Outcome, Schema
from tests.app.conftest import small_frame

SCHEMA = Schema(
    (Feature("platelets", unit="/µL", reference_low=150_000, reference_high=1_250_000, maximum=12_345_678),),
    Outcome("died", classes=("no", "yes")),
)


@pytest.mark.parametrize(
    ("entered", "shown"),
    [
        (1250000.0, "1250000 /µL"),
        (1234567.5, "1234567.5 /µL"),
        (12345.67, "12345.67 /µL"),
        (0.1 + 0.2, "0.3 /µL"),
        (71, "71 /µL"),
    ],
)
def test_a_value_is_said_digit_for_digit(entered: float, shown: str) -> None:
    assert wording.value(SCHEMA, "platelets", entered) == shown


def test_ranges_are_said_digit_for_digit() -> None:
    feature = SCHEMA.feature("platelets")
    assert wording.reference_text(feature) == "150000–1250000 /µL"
    assert feature.range_text == "at most 12345678 /µL"


def test_a_range_that_begins_below_zero_keeps_its_sign_apart_from_its_dash() -> None:
    feature = Feature("base excess", unit="mmol/L", reference_low=-2, reference_high=2)
    assert wording.reference_text(feature) == "-2 – 2 mmol/L"


def test_an_unusual_value_is_asked_about_as_it_was_entered() -> None:
    cohort = Cohort.from_frame(small_frame(), "died")
    said = inputs.unlike_the_cohort(cohort, cohort.feature("sodium"), 1234567.5)
    assert said is not None and "sodium = 1234567.5" in said


@pytest.mark.parametrize(("before", "now", "said"), [(12345.0, 13579.0, "+1,234"), (8.62, 7.855, "−0.765")])
def test_the_change_of_a_number_is_said_as_finely_as_the_number(before: float, now: float, said: str) -> None:
    outcome = Outcome("charges", kind="continuous")
    after, first = ({"mean": m, posterior_words.LOW: m - 1, posterior_words.HIGH: m + 1} for m in (now, before))
    assert posterior_words.change(outcome, after, first, "mean") == said


def test_a_sum_of_costs_has_no_digits_that_nobody_entered() -> None:
    assert [labels.entered_text(cost) for cost in (0.7 + 0.1, 1250000.0, 33.4 * 3)] == ["0.8", "1250000", "100.2"]
