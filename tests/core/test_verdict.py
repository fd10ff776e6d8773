"""What to do now in one sentence, and what speaks for and against a test."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.acquire.stopping import Stopping, least_points_for
from l2m_core.step_through import verdict as verdicts
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.verdict import (
    change_without,
    effect_of,
    followed,
    reasons,
    told_together,
    typical_move,
    verdict,
)
from l2m_core.step_through.words import number, percent, percents, predicted


def patient_of(model, kind: str, classes: tuple[str, ...] = ("early", "middle", "late")) -> Patient:
    """Of a cohort in which a alone tells, b is rare and dear, and c tells nothing."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.normal(size=240).round(2) for name in "abc"})
    signal = frame.a + 0.3 * draw.normal(size=240)
    outcome = {
        "binary": np.where(signal > 0, "yes", "no"),
        "multiclass": np.array(classes)[np.digitize(signal, [-0.5, 0.5])],
        "continuous": (50 + 10 * signal).round(1),
    }[kind]
    frame.loc[12:, "b"] = np.nan
    schema = {"features": [{"name": "b", "cost": 9}], "outcome": {"name": "y", "unit": "days"}}
    return model.condition(l2m.Cohort.from_frame(frame.assign(y=outcome), outcome="y", schema=schema)).start()


@pytest.fixture(scope="module")
def patient(model) -> Patient:
    return patient_of(model, "binary")


def previewing(
    monkeypatch: pytest.MonkeyPatch, patient: Patient, after: list[float], chances: list[float] | None = None
) -> None:
    """Every test's results are a low, a usual and a high one, after which a 'yes' is as likely as given."""
    table = pd.DataFrame({"result": ["low", "typical", "high"], "value": ["1", "2", "3"], "p(yes)": after})
    if chances is not None:
        table["chance"] = chances
    monkeypatch.setattr(Patient, "preview", lambda self, name: table)


def test_the_range_is_that_of_the_results_that_the_preview_shows(patient: Patient) -> None:
    preview, now = patient.preview("a"), patient.posterior[1]
    found = verdict(patient)
    assert (found.action, found.feature) == ("measure", "a")
    assert found.sentence == (
        f"Measure a: it could move {percent(now)} to {percents(preview['p(yes)'].min(), preview['p(yes)'].max())}."
    )


def test_of_many_classes_and_of_numbers_the_range_has_a_name(model) -> None:
    classes, number = (patient_of(model, kind) for kind in ("multiclass", "continuous"))
    leading = str(classes.memory.classes[int(np.argmax(classes.answer.prediction[0]))])
    assert verdict(classes).sentence.startswith(f"Measure a: it could move {leading} from ")
    said = verdict(number).sentence
    assert said.startswith("Measure a: it could move the mean from ") and said.endswith(" days.")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (4.2714, "4.27"),
        (14.583, "14.6"),
        (0.0123456, "0.0123"),
        (99.96, "100"),
        (271.3, "271"),
        (1985.4, "1,985"),
        (-3.1416, "-3.14"),
        (4872357376.0, "4,872,357,000"),
    ],
)
def test_a_predicted_number_claims_no_more_than_a_cohort_can_tell(value: float, words: str) -> None:
    assert predicted(value) == words


@pytest.mark.parametrize("value", [9_999_999.0, 12_345_670.0, 1_561_190_000.0, -7_677_490_000.0])
def test_a_large_number_of_a_table_is_said_as_the_table_has_it(value: float) -> None:
    assert number(float(np.float32(value))) == f"{value:,.0f}"


def test_where_no_result_would_move_anything_one_is_told_to_stop(patient: Patient, monkeypatch) -> None:
    now = float(patient.posterior[1])
    previewing(monkeypatch, patient, [now - 0.009, now, now + 0.009])
    found = verdict(patient)
    assert found.action == "stop"
    assert found.sentence == "Stop: nothing left is likely to move this by more than 1 point."
    previewing(monkeypatch, patient, [now - 0.02, now, now])
    assert verdict(patient).action == "measure"


def test_of_a_rare_outcome_a_test_that_could_double_it_is_worth_having(model) -> None:
    """Two in a hundred have it; a result that is rarely high finds those with three times the risk."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(600, 2)).round(2)
    ill = np.zeros(600, dtype=int)
    ill[np.argsort(-(x[:, 0] + draw.normal(size=600)))[:12]] = 1
    patient = model.condition(l2m.Cohort.from_arrays(x, ill, names=["a", "b"])).start()
    least = least_points_for(patient.memory.cohort)
    assert least == 0.2 and effect_of(patient, "a").least == pytest.approx(0.002)
    table = patient.preview("a").assign(**{"p(1)": float(patient.posterior[1])})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Patient, "preview", lambda self, name: table)
        assert verdict(patient).sentence == "Stop: nothing left is likely to move this by more than 0.2 points."
        table = table.assign(**{"p(1)": float(patient.posterior[1]) + 0.004})
        assert verdict(patient).action == "measure", "by less than a point, yet by a fifth of the risk"


def test_several_rare_results_that_move_the_belief_alike_count_together(patient: Patient, monkeypatch) -> None:
    """An amount that few have, in four parts of one in a hundred each; one in a thousand alone counts nothing."""
    table = pd.DataFrame(
        {"result": ["none", "1", "2", "3", "4"], "value": list("01234"), "p(yes)": [0.45, 0.7, 0.8, 0.9, 0.9]}
    )
    for rare, highest in ((0.01, 0.9), (0.001, 0.45)):
        chances = [1 - 4 * rare, rare, rare, rare, rare]
        monkeypatch.setattr(Patient, "preview", lambda self, name, chances=chances: table.assign(chance=chances))
        assert effect_of(patient, "a").high == highest and effect_of(patient, "a").low == 0.45


def test_a_suggestion_that_is_not_the_most_telling_test_does_not_speak_for_the_others(model, monkeypatch) -> None:
    patient = patient_of(model, "binary")
    frugal = Patient(patient.memory, patient.events, policy=_Last())
    assert frugal.suggestion == "c"
    now = float(patient.posterior[1])
    previewing(monkeypatch, patient, [now, now, now])
    assert verdict(frugal).action == "measure", "'a' may still tell something"


class _Last:
    """Ranks by the order of the columns, the last one first."""

    in_nats = False

    def scores(self, memory, x, answer):
        return np.tile(np.arange(x.shape[1], dtype=float), (len(x), 1))


def test_the_rules_for_stopping_come_before_the_suggestion(patient: Patient) -> None:
    assert verdict(patient, Stopping(budget=0)).sentence == "Stop: the budget of 0 tests is used."
    assert verdict(Patient(patient.memory, patient.events, Stopping(budget=0))).action == "stop"


def test_when_nothing_is_left_or_one_has_stopped_that_is_said(patient: Patient) -> None:
    assert verdict(patient.unavailable("a", "b", "c")).sentence == "Stop: nothing is left to measure."
    assert verdict(patient.stop()).action == "stopped"


# -- how far a gain goes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "multiclass", "continuous"])
def test_the_typical_change_is_that_of_the_results_that_the_preview_shows(model, kind: str) -> None:
    patient = patient_of(model, kind)
    table, chances = patient.preview("a"), patient.outlook("a").chances
    column = "mean" if kind == "continuous" else f"p({followed(patient)})"
    changes = table[column].to_numpy() - effect_of(patient, "a").now
    assert typical_move(patient, "a") == pytest.approx(math.sqrt(chances @ changes**2), rel=1e-3)
    assert 0 < typical_move(patient, "a") <= np.abs(changes).max()


def test_of_a_skewed_number_no_test_typically_changes_more_than_its_preview_does(model) -> None:
    """Some patients stay for very long, so that the spread is large and hardly any result moves the mean by it."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(300, 3))
    days = np.exp(1 + x[:, 0] + 1.2 * draw.normal(size=300)).round(1)
    patient = model.condition(l2m.Cohort.from_arrays(x, days, names=list("abc"), kind="continuous")).start()
    for name in "abc":
        changes = np.abs(patient.preview(name)["mean"] - patient.posterior.mean[0])
        assert typical_move(patient, name) <= changes.max() * (1 + 1e-5)


def test_where_no_result_was_tried_the_gain_implies_the_change(patient: Patient) -> None:
    """A result that moves p by ±δ with equal chance gains about δ² / (2 p (1 − p)) nats."""
    p = float(patient.posterior[1])
    for delta in (0.01, 0.03):
        gain = sum(0.5 * (q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))) for q in (p - delta, p + delta))
        assert typical_move(promised(patient, gain), "a") == pytest.approx(delta, rel=0.02)
    assert typical_move(promised(patient, 0.0), "a") == typical_move(promised(patient, -0.01), "a") == 0.0
    assert math.isnan(typical_move(promised(patient, math.nan), "a"))
    assert typical_move(promised(patient, 100.0), "a") <= 1


def promised(patient: Patient, gain: float) -> Patient:
    """A patient of whose tests the ranking knows no more than a gain."""
    found = Patient(patient.memory, patient.events, policy=_Promises(gain))
    assert all(math.isnan(test.move) for test in found.tests)
    return found


class _Promises:
    """So many nats for every test, as a head that is taken at its word."""

    in_nats = True

    def __init__(self, gain: float) -> None:
        self.gain = gain

    def scores(self, memory, x, answer):
        return np.full(x.shape, self.gain)


def test_of_a_number_it_is_in_the_outcomes_unit(model) -> None:
    patient = patient_of(model, "continuous")
    std, share = float(patient.answer.prediction.std[0]), 0.6  # of the variance that is explained
    gain = -0.5 * math.log(1 - share)
    assert typical_move(promised(patient, gain), "a") == pytest.approx(std * math.sqrt(share), rel=1e-6)
    assert verdicts.typical_move_in_words(patient, "a").endswith(" days")


def test_a_driver_is_told_in_points_or_in_the_outcomes_unit(model, patient: Patient) -> None:
    points = patient.observe("a", 1.0)
    assert re.fullmatch(r"\d+ points?", change_without(points, points.driving[0]))
    days = patient_of(model, "continuous").observe("a", 1.0)
    without = patient_of(model, "continuous").posterior.mean[0]
    moved = abs(float(days.posterior.mean[0] - without))
    assert change_without(days, days.driving[0]) == f"{float(f'{moved:.2g}'):g} days"


# -- for and against ------------------------------------------------------------------------------------------------------


def test_rare_and_dear_tests_have_that_against_them(patient: Patient) -> None:
    found = reasons(patient, "b")
    assert any(words.startswith("only recorded in 12 of 240") for words in found.against)
    assert "dearer than most (9; others 1)" in found.against
    assert not any("recorded" in words for words in found.speaks_for)


def test_what_a_budget_does_not_allow_is_said(patient: Patient) -> None:
    assert "costs 9, and 5 is left of the budget" in reasons(patient, "b", Stopping(cost_budget=5)).against


def test_a_test_that_the_cost_budget_does_not_pay_for_is_passed_over_as_in_a_roll_out(model) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(200, 2)).astype(np.float32)
    frame = pd.DataFrame({"dear": x[:, 0], "cheap": x[:, 1], "y": (x[:, 0] + 0.5 * x[:, 1] > 0).astype(int)})
    schema = {"features": [{"name": "dear", "cost": 10}]}
    memory = model.condition(l2m.Cohort.from_frame(frame, outcome="y", schema=schema))
    free, poor, broke = (memory.start(stopping=Stopping(cost_budget=left)) for left in (10, 5, 0.5))
    assert [each.suggestion for each in (free, poor, broke)] == ["dear", "cheap", "dear"]
    assert (
        verdict(poor).sentence.startswith("Measure cheap")
        and poor.observe("cheap", 0.1).events[-1].suggested == "cheap"
    )
    assert verdict(free, Stopping(cost_budget=5)).feature == "cheap", "by other rules than its own"
    taken = memory.acquire(x[:1], budget=1, stopping=poor.stopping).actions
    assert memory.cohort.names[taken[0, 0]] == poor.suggestion
    said = "cheapest test left costs 1, and 0.5 is left of the cost budget."
    assert verdict(broke).sentence == f"Stop: the {said}" and broke.advice == f"The {said}"
    assert (memory.acquire(x[:1], budget=1, stopping=broke.stopping).actions < 0).all()
    assert free.observe("dear", 0.1).advice is not None  # 10 spent of 10


def test_a_test_that_separates_two_classes_is_said_to(model) -> None:
    found = reasons(patient_of(model, "multiclass"), "a")
    assert re.fullmatch("would separate (early|middle|late) from (early|middle|late)", found.speaks_for[0])
    assert "recorded in 240 of 240" in found.speaks_for


def test_a_class_with_a_comma_is_set_apart_in_a_sentence(model) -> None:
    found = reasons(patient_of(model, "multiclass", classes=("early, sure", "middle, sure", "late, sure")), "a")
    assert re.fullmatch("would separate '[a-z]+, sure' from '[a-z]+, sure'", found.speaks_for[0])


def test_that_most_results_change_little_speaks_against(patient: Patient, monkeypatch) -> None:
    now, little = float(patient.posterior[1]), "most of its results change little"
    previewing(monkeypatch, patient, [now - 0.2, now + 0.001, now + 0.1])
    assert little in reasons(patient, "a").against
    previewing(monkeypatch, patient, [now - 0.2, now + 0.15, now + 0.1])
    assert little not in reasons(patient, "a").against
    previewing(monkeypatch, patient, [now - 0.4, now + 0.04, now + 0.1])
    assert little not in reasons(patient, "a").against, "4 points are no little change"
    previewing(monkeypatch, patient, [now, now, now])
    assert "no result is likely to change this by more than 1 point" in reasons(patient, "a").against
    assert effect_of(patient, "a").is_small


@pytest.mark.parametrize(("typical", "is_said"), [(0.2, False), (0.6, True)])
def test_a_middle_result_is_not_most_of_them(patient: Patient, monkeypatch, typical: float, is_said: bool) -> None:
    """Where low results speak against and high ones for it, one in the middle always changes little."""
    now, rest = float(patient.posterior[1]), (1 - typical) / 2
    previewing(monkeypatch, patient, [now - 0.2, now + 0.001, now + 0.2], chances=[rest, typical, rest])
    assert ("most of its results change little" in reasons(patient, "a").against) == is_said


def test_tests_that_tell_only_together_are_said(model) -> None:
    """Whether two results lie on the same side of their middle decides; each alone says nothing."""
    draw = np.random.default_rng(0)
    values = draw.normal(size=(4, 600)).T
    same = (values[:, 0] > 0) ^ (values[:, 1] > 0) ^ (draw.random(600) < 0.05)
    names = ["albumin", "ast", "crp", "sodium"]
    memory = model.condition(l2m.Cohort.from_arrays(values.astype(np.float32), same.astype(int), names=names))
    patient = memory.start()
    pair = patient.together().iloc[0]
    assert {pair["first"], pair["second"]} == {"albumin", "ast"}
    assert pair.together > 2 * (pair.first_alone + pair.second_alone)
    said = told_together(patient)
    assert re.fullmatch(
        r"(albumin and ast|ast and albumin) together tell more: typically ±\d+ points, alone ±\d+ points?( and .+)?\.",
        said,
    )
    assert told_together(patient.observe(dict.fromkeys(names, 1.0))) == ""
    assert told_together(patient.stop()) == "", "who has stopped measures no more"


def test_no_pair_is_said_where_one_test_tells_enough_alone(model) -> None:
    values = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    patient = model.condition(l2m.Cohort.from_arrays(values, (values[:, 0] > 0).astype(int))).start()
    assert patient.best_gain > verdicts.SMALL_GAIN
    assert told_together(patient) == ""
