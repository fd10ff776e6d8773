"""Beside the orders: who predicts best from the same rows, what acting on it brings, and whether it holds in groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.errors import ConfigError
from l2m_core.evidence import Evidence, EvidenceSettings, ask_fold, gather, make_plan
from l2m_core.evidence.bootstrap import Estimate
from l2m_core.evidence.figures import PatientGroup
from l2m_core.evidence.fixed_order import actions_of
from l2m_core.evidence.groups import calibration_of_groups, groups_of
from l2m_core.evidence.recalibration import cross_fitted, recalibration
from l2m_core.evidence.sentences import at_threshold, formula
from l2m_core.evidence.voices import known_at
from l2m_core.metrics import ece, log_loss, net_benefit, row_losses
from l2m_core.tabular.linear import LinearModel
from l2m_core.tabular.preparation import prepare
from tests.evidence.conftest import SETTINGS


@pytest.fixture(scope="module")
def fold(model, cohort, plan):
    return ask_fold(model, cohort, plan, SETTINGS, 0)


# -- head to head -----------------------------------------------------------------------------------------------------


def test_the_general_model_is_heard_as_it_stepped_the_patients_through(fold):
    assert [str(name) for name in fold.voices] == ["model", "council", "regression", "trees"]
    np.testing.assert_allclose(fold.voice_loss[0], fold.loss[0])
    np.testing.assert_allclose(fold.voice_p[0], fold.p[0])


def test_the_regression_is_the_tuned_one_fitted_to_the_context_alone(cohort, plan, fold):
    context = prepare(cohort.rows(plan.context(0)))
    fitted = LinearModel().fit(context, np.random.default_rng([SETTINGS.seed, 6]))
    rows = plan.asked_of(0)
    known = known_at(cohort, cohort.x[rows], fold.actions[0], actions_of(cohort))
    for t in range(SETTINGS.budget + 1):
        p = fitted.predict(cohort.x[rows], known[:, t])
        np.testing.assert_allclose(fold.voice_loss[2, :, t], row_losses(p, cohort.y[rows]), rtol=1e-6)


def test_nobody_knows_more_than_was_measured(cohort, plan, fold):
    rows = plan.asked_of(0)
    known = known_at(cohort, cohort.x[rows], fold.actions[0], actions_of(cohort))
    assert not (known & np.isnan(cohort.x[rows])[:, None]).any()
    assert not known[:, 0][:, cohort.acquirable].any()
    taken = (fold.actions[0] >= 0).sum(1)
    panels = [features for features in actions_of(cohort).values()]
    assert all(sum(row[-1][features].any() for features in panels) == n for row, n in zip(known, taken, strict=True))


def test_a_council_that_is_the_model_alone_is_no_voice_of_its_own(evidence):
    assert [voice.name for voice in evidence.voices] == ["model", "regression", "trees"]
    assert evidence.shown == "model" and evidence.shown_voice.against_shown.value == 0
    assert evidence.shown_voice.overall.value == pytest.approx(np.mean([e.value for e in evidence.curve.loss]))


def test_without_others_only_the_model_is_heard(model, cohort):
    alone = gather(model, cohort, replace(SETTINGS, council=False, conventional=False))
    assert [voice.name for voice in alone.voices] == ["model"]
    assert not [sentence for sentence in alone.summary() if sentence.about == "others"]


def test_a_council_with_members_is_what_is_shown(model):
    draw = np.random.default_rng(1)
    x = draw.normal(size=(420, 3)).astype(np.float32)
    y = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(int)
    cohort = l2m.Cohort.from_arrays(x, y, names=["a", "b", "c"])
    settings = EvidenceSettings(folds=2, budget=2, most_rows=40, draws=100, conventional=False)
    plan = make_plan(cohort, settings)
    answers = ask_fold(model, cohort, plan, settings, 0)
    assert bool(answers.has_council)
    np.testing.assert_allclose(answers.voice_loss[1], answers.loss[0])
    # Stepped through by what a step-through of this cohort would ask: the model with its council.
    memory = model.condition(cohort.rows(plan.context(0)))
    shown = memory.with_council(memory.fit_council(settings.seed))
    rows = plan.asked_of(0)
    for row, asked in zip(rows[:10], answers.actions[0], strict=False):
        patient = shown.start({})
        for feature in asked:
            assert patient.suggestion == cohort.names[feature]
            patient = patient.observe(cohort.names[feature], cohort.x[row, feature])
    # The general model alone predicts from what was known by then.
    nothing = np.full((len(rows), 3), np.nan, np.float32)
    np.testing.assert_allclose(answers.voice_p[0][:, 0], memory.predictions(nothing), atol=1e-6)
    np.testing.assert_allclose(
        answers.voice_p[0][:, -1], memory.predictions(known_after(cohort, rows, answers.actions[0])), atol=1e-6
    )
    assert not np.allclose(answers.voice_loss[1], answers.voice_loss[0])


def known_after(cohort, rows: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """(n, d) of a cohort without baseline features, after all of (n, T) actions."""
    known = np.zeros((len(rows), len(cohort.names)), dtype=bool)
    np.put_along_axis(known, actions, True, 1)
    return np.where(known, cohort.x[rows], np.nan).astype(np.float32)


def test_a_setting_that_is_no_yes_or_no_is_refused():
    with pytest.raises(ConfigError, match="conventional is 'no'; it must be true or false"):
        EvidenceSettings(conventional="no")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "verdict", "words"),
    [
        (
            -0.2,
            -0.1,
            "bad",
            "Boosted trees are better than the general model alone by 0.150 nats, 95% interval 0.100 to 0.200.",
        ),
        (
            -0.2,
            0.1,
            "open",
            "alone and boosted trees are not distinguishable (boosted trees: −0.050 nats of log loss, 95% interval −0.200",
        ),
        (0.1, 0.2, "good", "alone is better than boosted trees by 0.150 nats, 95% interval 0.100 to 0.200."),
        (-0.002, -0.001, "note", "alone and boosted trees are as good as each other (−0.002 nats of log loss"),
    ],
)
def test_who_wins_is_said_only_where_the_interval_says_so(evidence, low, high, verdict, words):
    general, regression, trees = evidence.voices
    worst = replace(regression, overall=Estimate(9.0, 8.0, 9.5))
    changed = replace(trees, against_shown=Estimate((low + high) / 2, low, high))
    (found,) = (s for s in replace(evidence, voices=(general, worst, changed)).summary() if s.about == "others")
    assert found.verdict == verdict and words in found.text and "logistic regression 9.000" in found.text


# -- acting, recalibrating, groups ------------------------------------------------------------------------------------


def test_net_benefit_is_true_positives_minus_weighted_false_ones():
    p, happened = np.array([0.9, 0.6, 0.3, 0.1]), np.array([True, False, True, False])
    assert net_benefit(p, happened, np.array([0.5]))[0] == pytest.approx((1 - 1) / 4)
    assert net_benefit(p, happened, np.array([0.2]))[0] == pytest.approx((2 - 0.25) / 4)
    assert net_benefit(np.ones(4), happened, np.array([0.5]))[0] == pytest.approx(0.0)
    twice = np.array([[2.0, 0.0, 2.0, 0.0]])
    assert net_benefit(p, happened, np.array([0.2]), twice)[0, 0] == pytest.approx(1.0)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -0.1, 20.0, float("nan")])
def test_a_threshold_that_is_no_probability_is_refused(evidence, threshold):
    with pytest.raises(ConfigError, match="is no probability: choose one between 0 and 1"):
        at_threshold(evidence.decisions_at[0], threshold, "the model")
    with pytest.raises(ConfigError, match="between 0 and 1"):
        net_benefit(np.ones(2), np.ones(2), np.array([threshold]))


def test_acting_is_held_against_everybody_and_nobody(evidence):
    (curve,) = evidence.decisions_at
    assert curve.outcome == evidence.classes[1]
    share = evidence.asked_by_class[1] / evidence.asked
    assert curve.benefit["all"][49] == pytest.approx(2 * share - 1)
    for number, found in enumerate(curve.advantage):
        best = max(curve.benefit["all"][number], 0.0)
        assert found.value == pytest.approx(curve.benefit["model"][number] - best)
    said = at_threshold(curve, 0.5, "the model")
    assert "acts from 50% on" in said.text and "net benefit" in said.text


def test_recalibration_mends_what_is_too_extreme_and_leaves_what_is_right():
    draw = np.random.default_rng(0)
    odds = draw.normal(0, 1.5, 4000)
    y = (draw.random(4000) < 1 / (1 + np.exp(-odds))).astype(int)
    extreme = 1 / (1 + np.exp(-(2 * odds + 1)))
    p = np.stack([1 - extreme, extreme], 1)
    found = recalibration(p, y)
    assert found.slope == pytest.approx(0.5, abs=0.05) and found.shift[1] == pytest.approx(-0.5, abs=0.1)
    after = cross_fitted(p, y, np.arange(4000) % 5)
    assert ece(after, y) < 0.5 * ece(p, y) and log_loss(after, y) < log_loss(p, y)
    right = 1 / (1 + np.exp(-odds))
    kept = recalibration(np.stack([1 - right, right], 1), y)
    assert kept.slope == pytest.approx(1, abs=0.07) and kept.shift[1] == pytest.approx(0, abs=0.1)


def test_recalibration_of_three_classes_and_of_one_outcome_only():
    draw = np.random.default_rng(0)
    p = draw.dirichlet([1, 1, 1], 300)
    after = recalibration(p, np.zeros(300, dtype=int))(p)
    np.testing.assert_allclose(after.sum(1), 1)
    assert np.isfinite(after).all() and after[:, 0].mean() > p[:, 0].mean()


def test_a_fold_is_recalibrated_by_the_others_alone():
    draw = np.random.default_rng(0)
    p = draw.dirichlet([1, 1], 60)
    y, fold = draw.integers(0, 2, 60), np.arange(60) % 3
    other = y.copy()
    other[fold == 0] = 1 - other[fold == 0]
    before, after = cross_fitted(p, y, fold), cross_fitted(p, other, fold)
    np.testing.assert_allclose(before[fold == 0], after[fold == 0])
    assert not np.allclose(before[fold == 1], after[fold == 1])


def test_recalibration_is_offered_only_where_it_helps(evidence):
    found = evidence.recalibrated

    def said(low: float, high: float) -> list[str]:
        changed = replace(found, change=Estimate((low + high) / 2, low, high))
        sentences = replace(evidence, recalibrated=changed).summary()
        return [sentence.text for sentence in sentences if sentence.about == "recalibration"]

    assert said(-0.05, 0.01) == []
    (text,) = said(-0.05, -0.01)
    assert formula(evidence, found) in text and "Step-throughs show them as they are" in text


def test_groups_are_levels_and_thirds_of_what_is_known_at_the_start():
    draw = np.random.default_rng(0)
    x = np.stack([draw.uniform(20, 80, 300), draw.integers(0, 2, 300), draw.normal(size=300)], 1).astype(np.float32)
    x[:5, 0] = np.nan
    names, y = ["age", "sex", "lactate"], draw.integers(0, 2, 300)
    kinds = {"categorical": [False, True, False], "acquirable": [False, False, True]}
    cohort = l2m.Cohort.from_arrays(x, y, names=names, **kinds)
    found = groups_of(cohort, np.arange(300))
    assert [feature for feature, _, _ in found] == ["age"] * 3 + ["sex"] * 2
    thirds = [member for feature, _, member in found if feature == "age"]
    assert sum(thirds).tolist() == [0] * 5 + [1] * 295
    assert max(member.sum() for member in thirds) - min(member.sum() for member in thirds) <= 1
    assert groups_of(cohort, np.arange(30)) == [], "too few rows of each"


def test_ends_of_thirds_have_their_digits_and_no_power_of_ten():
    numbers = [1_234_567 + np.arange(300), np.arange(1, 301) / 10]
    x, y = np.stack(numbers, 1).astype(np.float32), np.arange(300) % 2
    cohort = l2m.Cohort.from_arrays(x, y, names=["income", "weight"], acquirable=[False, False])
    names = [name for _, name, _ in groups_of(cohort, np.arange(300))]
    assert names[0] == "1234567 to 1234666" and names[3] == "0.1 to 10"


def test_a_group_is_off_beyond_what_chance_shows_among_so_many():
    member = np.arange(200) < 100
    groups = [("sex", "f", member), ("sex", "m", ~member)]
    observed = np.where(member, 1.0, np.arange(200) % 2)
    women, men = calibration_of_groups(groups, np.full(200, 0.5), observed, np.arange(200), is_share=True)
    assert women.is_off and not men.is_off and (women.observed, men.observed) == (1.0, 0.5)
    (one,) = calibration_of_groups(groups[1:], np.full(200, 0.5), observed, np.arange(200), is_share=True)
    assert men.high - men.low > one.high - one.low, "wider among more groups"
    lengths = np.random.default_rng(0).normal(5, 1, 200)
    found = calibration_of_groups(groups, np.where(member, 5.0, 7.0), lengths, np.arange(200), is_share=False)
    assert [group.is_off for group in found] == [False, True]


# -- one word ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def good(evidence) -> Evidence:
    """All that a strong grade asks for."""
    end = replace(evidence.calibration[-1], error=0.01, by_chance=0.02)
    return replace(
        evidence,
        base=Estimate(0.69, 0.68, 0.7),
        over_base=Estimate(-0.3, -0.35, -0.25),
        asked_by_class=(150, 150),
        calibration=(*evidence.calibration[:-1], end),
        voices=tuple(replace(voice, against_shown=Estimate(0.0, -0.1, 0.1)) for voice in evidence.voices),
        groups=(),
        wishes=tuple(replace(wish, recorded=wish.wished, thin=0) for wish in evidence.wishes),
    )


def test_a_cohort_on_which_everything_holds_is_graded_strong(good):
    assert good.grade.word == "strong"
    assert "For this cohort: strong." in good.text()


@pytest.mark.parametrize(
    ("change", "word", "reason"),
    [
        ({"over_base": Estimate(0.1, 0.05, 0.2)}, "not to be relied on", "worse than the base rate"),
        ({"over_base": Estimate(-0.1, -0.2, 0.1)}, "not to be relied on", "not shown to be better than the base rate"),
        (
            {"asked_by_class": (280, 20)},
            "not to be relied on",
            "only 20 rows of the rarest outcome were asked, too few",
        ),
        ({"asked_by_class": (240, 60)}, "fair", "only 60 rows of the rarest outcome were asked"),
        ({"over_base": Estimate(-0.02, -0.03, -0.01)}, "fair", "they tell little: log loss is only 3% below"),
        ({"groups": (PatientGroup("sex", "f", 50, 0.2, 0.5, 0.4, 0.6),)}, "fair", "in 1 of 1 groups of patients"),
    ],
)
def test_a_grade_has_its_reasons(good, change, word, reason):
    found = replace(good, **change).grade
    assert found.word == word and any(reason in each for each in found.reasons)


def test_predictions_that_are_not_calibrated_are_not_to_be_relied_on(good):
    end = replace(good.calibration[-1], error=0.2, by_chance=0.02)
    found = replace(good, calibration=(*good.calibration[:-1], end)).grade
    assert found.word == "not to be relied on" and found.reasons == ("the predictions are not calibrated",)


def test_a_conventional_model_that_is_better_makes_it_fair(good):
    changed = tuple(
        replace(voice, against_shown=Estimate(-0.1, -0.15, -0.05), overall=Estimate(0.1, 0.1, 0.1))
        if voice.name == "trees"
        else voice
        for voice in good.voices
    )
    assert replace(good, voices=changed).grade.reasons == ("boosted trees predict better here",)
    # In which unit an outcome is given moves the base rate's log loss, and no difference.
    for base in (-3.0, 0.0, 9.0):
        same = replace(good, voices=changed, kind="continuous", base=Estimate(base, base, base))
        assert any(reason.endswith("predict better here") for reason in same.grade.reasons)
        small = tuple(replace(voice, against_shown=Estimate(-0.01, -0.02, -0.005)) for voice in good.voices)
        assert not any("better here" in reason for reason in replace(same, voices=small).grade.reasons)
    without_trees = tuple(
        replace(voice, against_shown=Estimate(-0.1, -0.15, -0.05)) if voice.name == "regression" else voice
        for voice in good.voices
        if voice.name != "trees"
    )
    assert replace(good, voices=without_trees).grade.reasons == ("logistic regression predicts better here",)
