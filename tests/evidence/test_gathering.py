"""Evidence against the slow way: one patient, one test at a time, by the library's own face."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import l2m_core as l2m
from l2m_core.errors import CohortError
from l2m_core.evidence import Evidence, EvidenceSettings, FoldAnswers, ask_fold, gather, make_plan, summarise
from l2m_core.evidence.cross_fitting import FoldCache
from l2m_core.evidence.fixed_order import PARTS, actions_of, best_fixed_order
from l2m_core.memory import L2M
from l2m_core.metrics import row_losses
from tests.evidence.conftest import SETTINGS, small_frame


def one_by_one(model, cohort, plan) -> tuple[np.ndarray, np.ndarray]:
    """(n, T + 1) losses and costs in the model's order, by stepping each patient through."""
    losses, costs = [], []
    for fold in range(plan.folds):
        memory = model.condition(cohort.rows(plan.context(fold)))
        for row in plan.asked_of(fold):
            recorded = {
                name: cohort.decode(name, float(value)) if feature.levels else float(value)
                for name, feature, value in zip(cohort.names, cohort.features, cohort.x[row], strict=True)
                if not np.isnan(value)
            }
            patient = memory.start({name: recorded[name] for name in ("age",) if name in recorded})
            for name in set(cohort.names) - set(recorded) - {"age"}:
                patient = patient.unavailable(name)
            mine, spent = [], []
            for _ in range(SETTINGS.budget + 1):
                mine.append(row_losses(patient.posterior[None], cohort.y[[row]])[0])
                spent.append(patient.spent)
                if (name := patient.suggestion) is not None:
                    group = cohort.feature(name).group
                    panel = [f.name for f in cohort.features if f.name == name or (group and f.group == group)]
                    patient = patient.observe({each: recorded[each] for each in panel if each in recorded})
            losses.append(mine)
            costs.append(spent)
    return np.array(losses), np.array(costs)


def test_the_curve_is_that_of_stepping_each_patient_through(model, cohort, plan, evidence):
    losses, costs = one_by_one(model, cohort, plan)
    np.testing.assert_allclose([each.value for each in evidence.curve.loss], losses.mean(0), atol=1e-4)
    known = np.array(evidence.curve.cost)
    assert known[0] == 0 and (np.diff(known) >= 0).all()
    # What was recorded of a panel in part is paid as the whole panel by both.
    np.testing.assert_allclose(known, costs.mean(0), rtol=1e-6)


def test_before_any_test_and_after_all_of_them_no_order_matters(evidence):
    assert np.ptp([curve.loss[0].value for curve in evidence.curves]) < 1e-6
    assert np.ptp([curve.loss[-1].value for curve in evidence.curves]) < 1e-5  # three actions in all, and three steps
    assert all(difference.by_step[0].value == 0 for difference in evidence.differences)


def test_a_difference_is_that_of_the_curves(evidence):
    for difference in evidence.differences:
        other = next(curve for curve in evidence.curves if curve.order == difference.order)
        gaps = [mine.value - theirs.value for mine, theirs in zip(evidence.curve.loss, other.loss, strict=True)]
        np.testing.assert_allclose([each.value for each in difference.by_step], gaps, atol=1e-9)
        assert difference.overall.value == pytest.approx(np.mean(gaps))
        assert difference.overall.low <= difference.overall.value <= difference.overall.high


def test_a_model_reads_only_the_other_folds(model, cohort, plan, monkeypatch):
    read = []
    condition = l2m.L2M.condition

    def noted(self, part, **details):
        read.append({tuple(row) for row in np.nan_to_num(part.x, nan=-1e9).tolist()})
        return condition(self, part, **details)

    monkeypatch.setattr(l2m.L2M, "condition", noted)
    ask_fold(model, cohort, plan, SETTINGS, 0)
    asked = {tuple(row) for row in np.nan_to_num(cohort.x[plan.asked_of(0)], nan=-1e9).tolist()}
    assert len(read) == 1 + PARTS  # for answering, and within it for choosing the fixed order
    assert not any(rows & asked for rows in read)


def test_the_map_of_choices_counts_every_patient_once_at_each_step(evidence):
    for shares, finished in zip(evidence.chosen, evidence.finished, strict=True):
        assert sum(shares) + finished == pytest.approx(1)
    assert evidence.actions == ("lactate", "salts", "ct")


def test_a_wish_is_counted_at_every_decision_and_recorded_ones_are_fewer(evidence):
    taken = evidence.curve.tests[-1] * evidence.asked
    assert evidence.decisions == pytest.approx(taken)
    assert all(wish.recorded <= wish.wished for wish in evidence.wishes)
    assert 0 < sum(wish.recorded for wish in evidence.wishes) < evidence.decisions


def test_the_first_of_the_fixed_order_lowers_the_loss_of_unseen_context_rows_most(model, cohort):
    generator = np.random.default_rng(5)
    order, unjudged = best_fixed_order(model, cohort, np.arange(len(cohort)), 3, generator)
    assert set(order) == set(actions_of(cohort)) and not unjudged
    assert cohort.names[order[0]] == "lactate"  # the outcome follows it alone


def test_the_same_seed_gives_the_same_evidence(model, cohort, evidence):
    assert gather(model, cohort, SETTINGS) == evidence


def test_evidence_survives_json(evidence):
    assert Evidence.from_data(json.loads(json.dumps(evidence.to_data(), allow_nan=False))) == evidence
    assert Evidence.from_data({"format": evidence.to_data()["format"], "something": "else"}) is None


def test_evidence_of_an_earlier_format_is_not_read(evidence):
    """Its fixed order may be that of the columns, and it does not say so."""
    data = evidence.to_data()
    earlier = {key: value for key, value in data.items() if key not in ("unjudged", "unfounded")}
    assert Evidence.from_data({**earlier, "format": 1}) is None
    assert Evidence.from_data({**data, "format": 1}) is None and Evidence.from_data(data) is not None


def test_evidence_whose_order_was_not_that_of_the_council_it_showed_is_gathered_anew(evidence):
    data = evidence.to_data()
    pooled = replace(evidence, areas_pooled=True)  # as the AUROC of earlier versions was
    assert data["shown"] == "model"
    assert Evidence.from_data({**data, "format": 3}) == Evidence.from_data({**data, "format": 4}) == pooled
    assert Evidence.from_data({**data, "format": 3, "shown": "council"}) is None


def test_work_goes_on_from_the_folds_that_were_kept(model, cohort, evidence):
    class Kept(FoldCache):
        def __init__(self) -> None:
            self.folds: dict[int, FoldAnswers] = {}

        def read(self, fold):
            return self.folds.get(fold)

        def write(self, fold, answers):
            self.folds[fold] = answers

    class Stopped(Exception):
        pass

    def stop_in_the_second_fold(share: float, _: str) -> None:
        if share > 0.5:
            raise Stopped

    cache, shares = Kept(), []
    with pytest.raises(Stopped):
        gather(model, cohort, SETTINGS, cache=cache, report=stop_in_the_second_fold)
    assert list(cache.folds) == [0]
    assert gather(model, cohort, SETTINGS, cache=cache, report=lambda share, _: shares.append(share)) == evidence
    assert shares == sorted(shares) and shares[1] >= 0.47  # the first fold was not asked again


def test_classes_beyond_two_and_continuous_outcomes_have_their_own_scores(model):
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 3)).astype(np.float32)
    small = replace(SETTINGS, most_rows=16, budget=2)
    three = gather(model, l2m.Cohort.from_arrays(x, np.digitize(x[:, 0], [-0.5, 0.5])), small)
    assert set(three.curve.scores) == {"auroc"} and len(three.asked_by_class) == 3
    number = gather(model, l2m.Cohort.from_arrays(x, x[:, 0] * 10 + 50, kind="continuous"), small)
    assert set(number.curve.scores) == {"crps", "rmse"}
    assert len(number.calibration[0].predicted) == 9
    assert len(number.curves) == 3  # equal costs: no order by cost
    assert Evidence.from_data(json.loads(json.dumps(number.to_data()))) == number
    assert number.curve.scores["crps"][-1].value < number.curve.scores["crps"][0].value


def test_of_a_model_that_was_fine_tuned_the_evidence_says_so(model, cohort, evidence):
    def of_tuned_on(told: str) -> Evidence:
        return gather(L2M(replace(model.release, tuned_on=told)), cohort, SETTINGS)

    assert all(sentence.about != "tuned" for sentence in evidence.summary())
    here, elsewhere = of_tuned_on(cohort.content_hash), of_tuned_on("another")
    assert here.summary()[0].verdict == "bad" and "these very patients" in here.summary()[0].text
    assert here.grade.word == "not to be relied on" and "these very patients" in here.grade.reasons[0]
    assert elsewhere.summary()[0].verdict == "note" and elsewhere.grade.word != "strong"
    assert Evidence.from_data(json.loads(json.dumps(here.to_data()))) == here
    before = {key: value for key, value in here.to_data().items() if key != "tuned"}  # as it was written
    assert Evidence.from_data(json.loads(json.dumps(before))).tuned == ""


def test_scores_of_a_continuous_outcome_are_those_of_the_metrics(model):
    from l2m_core import metrics

    draw = np.random.default_rng(1)
    x = draw.normal(size=(60, 2)).astype(np.float32)
    cohort = l2m.Cohort.from_arrays(x, x[:, 0] * 3, kind="continuous")
    small = replace(SETTINGS, most_rows=20, budget=2, folds=2)
    plan = make_plan(cohort, small)
    answers = [ask_fold(model, cohort, plan, small, fold) for fold in range(2)]
    found = summarise(cohort, plan, small, answers)
    memory = model.condition(cohort.rows(plan.context(0)))
    rows = plan.asked_of(0)
    prediction = memory.predict(cohort.x[rows])
    assert answers[0].crps[0, :, -1].mean() == pytest.approx(metrics.crps(prediction, cohort.y[rows]), abs=1e-5)
    np.testing.assert_allclose(
        answers[0].voice_covered[0, :, -1].mean(0),
        metrics.coverage(prediction, cohort.y[rows], np.arange(1, 10) / 10),
        atol=1e-9,
    )
    everything = np.concatenate([answer.mean[0, :, -1] for answer in answers])
    y = np.concatenate([cohort.y[answer.rows] for answer in answers])
    assert found.curve.scores["rmse"][-1].value == pytest.approx(np.sqrt(((everything - y) ** 2).mean()), rel=1e-6)


def test_a_cohort_with_nothing_to_measure_is_refused(model):
    cohort = l2m.Cohort.from_frame(
        small_frame()[["age", "lactate", "died"]], outcome="died", baseline=["age", "lactate"]
    )
    with pytest.raises(CohortError, match="acquirable"):
        gather(model, cohort, SETTINGS)


def test_patients_of_whom_little_was_recorded_are_asked_no_more_than_that(model):
    """Two of eight tests each: after two steps nobody is asked, whatever the budget."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(60, 8))
    for row in x:
        row[draw.permutation(8)[2:]] = np.nan
    cohort = l2m.Cohort.from_arrays(x, draw.integers(0, 2, 60))
    found = gather(model, cohort, EvidenceSettings(folds=2, most_rows=20, draws=100, council=False, conventional=False))
    assert found.finished[1] < 1 and found.finished[2:] == (1.0,) * 6
    assert sum(wish.wished for wish in found.wishes) == round(found.asked * sum(1 - share for share in found.finished))
