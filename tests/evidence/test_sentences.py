"""Sentences say what intervals carry, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import Difference, PatientGroup


def with_difference(evidence, low: float, high: float):
    overall = Estimate((low + high) / 2, low, high)
    return replace(evidence, differences=(Difference("random", overall, evidence.differences[0].by_step),))


@pytest.mark.parametrize(
    ("low", "high", "verdict", "words"),
    [
        (-0.2, -0.1, "good", "is better than random order (−0.150 nats"),
        (-0.2, 0.1, "open", "is not distinguishable from random order (−0.050 nats"),
        (0.1, 0.3, "bad", "is worse than random order (+0.200 nats"),
        (0.0001, 0.0003, "note", "is as good as random order (+0.000 nats"),
        (-0.003, -0.0002, "note", "is as good as random order (−0.002 nats"),
    ],
)
def test_an_order_is_better_only_where_its_interval_says_so(evidence, low, high, verdict, words):
    first = with_difference(evidence, low, high).summary()[0]
    assert (first.about, first.verdict) == ("order", verdict)
    assert words in first.text


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.2, -0.1, "good"), (-0.2, 0.1, "open"), (0.1, 0.3, "bad")])
def test_the_fixed_order_is_judged_only_where_it_was_found(evidence, low, high, verdict):
    overall = Estimate((low + high) / 2, low, high)
    difference = replace(evidence.differences[1], overall=overall)
    found = replace(evidence, differences=(difference,))
    assert found.summary()[0].verdict == verdict and "judged" not in found.summary()[0].text
    few = replace(found, unjudged=(("ct",), ()), unfounded=0.05).summary()[0]
    assert few.verdict == verdict and "1 of 3 tests could not be judged" in few.text
    many = replace(found, unjudged=(("ct",), ("ct", "lactate")), unfounded=0.06).summary()[0]
    assert many.verdict == "open" and "2 of 3 tests could not be judged" in many.text
    assert "better" not in many.text and "worse" not in many.text


@pytest.mark.parametrize(("low", "high", "verdict"), [(-0.3, -0.1, "good"), (-0.3, 0.1, "open"), (0.1, 0.3, "bad")])
def test_predictions_are_held_against_the_base_rate(evidence, low, high, verdict):
    changed = replace(evidence, over_base=Estimate((low + high) / 2, low, high))
    found = [sentence for sentence in changed.summary() if sentence.about == "prediction"]
    assert [sentence.verdict for sentence in found] == [verdict]
    assert ("do not use them here" in found[0].text) == (verdict == "bad")
    assert f"95% interval {low:+.3f} to {high:+.3f}, after up to ".replace("-", "−") in found[0].text


@pytest.mark.parametrize(
    ("error", "by_chance", "words"),
    [
        (0.02, 0.018, "well calibrated"),
        (0.06, 0.02, "roughly calibrated"),
        (0.2, 0.02, "not calibrated"),
        (0.2, 0.12, "Too few rows to judge"),
    ],
)
def test_calibration_is_judged_beside_what_chance_would_show(evidence, error, by_chance, words):
    end = replace(evidence.calibration[-1], error=error, by_chance=by_chance)
    changed = replace(evidence, calibration=(*evidence.calibration[:-1], end))
    (found,) = (sentence for sentence in changed.summary() if sentence.about == "calibration")
    assert words in found.text
    assert found.text.startswith("After up to 3 tests, the ") == (by_chance < 0.05), "a cohort may have more tests"


def test_groups_of_too_few_rows_are_not_shown_to_be_well_predicted(evidence):
    groups = (PatientGroup("sex", "f", 20, 0.5, 0.5, 0.1, 0.9),)
    for by_chance, verdict, words in (
        (0.12, "open", "rows are too few to tell"),
        (0.02, "good", "In none of 1 group "),
    ):
        end = replace(evidence.calibration[-1], by_chance=by_chance)
        changed = replace(evidence, groups=groups, calibration=(*evidence.calibration[:-1], end))
        (found,) = (sentence for sentence in changed.summary() if sentence.about == "groups")
        assert found.verdict == verdict and words in found.text


def test_what_was_wished_and_never_recorded_is_said(evidence):
    most = max(evidence.wishes, key=lambda wish: wish.wished)
    parts = tuple(replace(wish, recorded=wish.wished - (wish is most)) for wish in evidence.wishes)
    (found,) = (s for s in replace(evidence, wishes=parts).summary() if s.about == "positivity")
    assert f"had not been recorded (most often '{most.action}')" in found.text
    often = tuple(replace(wish, wished=1000, recorded=1000 - (wish is most), thin=0) for wish in evidence.wishes)
    (found,) = (s for s in replace(evidence, wishes=often).summary() if s.about == "positivity")
    assert found.text.startswith("In <1% of its 3,000 decisions")
    whole = tuple(replace(wish, recorded=wish.wished) for wish in evidence.wishes)
    (found,) = (s for s in replace(evidence, wishes=whole).summary() if s.about == "positivity")
    assert found.verdict == "good"


def test_how_many_were_asked_and_that_they_are_few_is_said(evidence):
    texts = [sentence.text for sentence in evidence.summary() if sentence.about == "asked"]
    assert texts[0].startswith("24 of 60 rows were asked") and "at least 30 rows, 2 folds" in texts[0]
    assert "take every figure as rough" in texts[1]
    plenty = replace(evidence, asked_by_class=(40, 40))
    assert len([sentence for sentence in plenty.summary() if sentence.about == "asked"]) == 1


def test_the_report_has_a_line_for_each_number_of_tests(evidence):
    lines = evidence.text().splitlines()
    assert [line.split()[0] for line in lines[-5:-1]] == ["0", "1", "2", "3"]


def test_a_large_outcome_is_told_with_its_digits_and_never_by_powers_of_ten(evidence):
    scores = {"crps": (Estimate(1234.4, 1200.0, 1270.0), *[Estimate(1012.6, 990.0, 1040.0)] * 3)}
    voices = tuple(replace(voice, scores=scores) for voice in evidence.voices)
    groups = (PatientGroup("sex", "f", 60, 3456.2, 3111.7, 3001.0, 3222.0),)
    weights = replace(
        evidence, kind="continuous", unit="g", classes=(), asked_by_class=(), voices=voices, groups=groups
    )
    texts = " ".join(sentence.text for sentence in weights.summary())
    assert "CRPS from 1,234 to 1,013 g" in texts
    assert (
        "the predicted mean of died is off: sex f: 3,456 g predicted, 3,112 g observed (3,001 g to 3,222 g, 60 rows)"
        in texts
    )


def test_what_is_off_in_a_group_is_named(evidence):
    off = (PatientGroup("sex", "f", 60, 0.7, 0.5, 0.4, 0.6),)
    (told,) = (s.text for s in replace(evidence, groups=off).summary() if s.about == "groups")
    assert told.startswith("In 1 of 1 groups of patients the probability of 'yes' is off: sex f: 70% predicted, 50% ")
    several = replace(evidence, kind="multiclass", classes=("a", "b", "c"), asked_by_class=(8, 8, 8), groups=off)
    (told,) = (s.text for s in several.summary() if s.about == "groups")
    assert "the probability of the likeliest class is off" in told


def test_a_loss_that_rounds_to_nothing_has_no_minus(evidence):
    first = evidence.curves[0]
    curve = replace(first, loss=(Estimate(-0.00002, -0.0004, 0.0), *first.loss[1:]))
    text = replace(evidence, curves=(curve, *evidence.curves[1:])).text()
    assert "0.000 [0.000, 0.000]" in text and "-0.000" not in text
