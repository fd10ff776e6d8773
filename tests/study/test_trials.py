"""Trials are fair: the same rows for all methods, none of a patient in both parts, the same start and floor."""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from l2m_core.acquire.rollout import Rollout
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.methods import METHODS
from l2m_core.tabular.predictions import Gaussian
from l2m_core.tasks.registry import build_prior
from train.study.evaluation.cells import Cell, draw_trial, fitting_contexts, real_cells, stratified_order, task_trial
from train.study.evaluation.scores import informative_share, score, with_floor
from train.study.evaluation.trial_runs import MethodChoice, run_trial


def make_cohort(rows: int = 300, classes: int = 2, seed: int = 0) -> Cohort:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 5)).astype(np.float32)
    y = np.digitize(x[:, 1] + 0.3 * generator.normal(size=rows), np.linspace(-0.5, 0.5, classes - 1))
    acquirable = np.array([False, True, True, True, True])
    return Cohort.from_arrays(x, y, acquirable=acquirable, classes=[f"class {k}" for k in range(classes)], name="made")


def keys_of(x: np.ndarray) -> set:
    """The baseline feature tells rows apart; it is never hidden."""
    return set(x[:, 0].tolist())


def test_context_and_test_rows_are_disjoint_and_of_the_table():
    cohort = make_cohort()
    trial = draw_trial(cohort, Cell("made", 100, 0.3, 0), test_rows=120)
    assert len(trial.context) == 100 and len(trial.y) == 120
    assert not keys_of(trial.context.x) & keys_of(trial.x)
    assert keys_of(trial.context.x) | keys_of(trial.x) <= keys_of(cohort.x)


def make_visits(patients: int = 90, continuous: bool = False) -> Cohort:
    """One to five rows of each patient, in any order; the baseline feature tells rows apart."""
    generator = np.random.default_rng(3)
    patient = generator.permutation(np.repeat(np.arange(patients), np.resize([1, 3, 5], patients)))
    x = generator.normal(size=(len(patient), 4)).astype(np.float32)
    outcome = generator.normal(size=patients) if continuous else generator.integers(0, 2, patients)
    acquirable = np.array([False, True, True, True])
    kind = "continuous" if continuous else "binary"
    cohort = Cohort.from_arrays(x, outcome[patient], kind=kind, acquirable=acquirable, name="visits")
    return replace(cohort, kept_patients=patient)


@pytest.mark.parametrize("continuous", [False, True])
def test_context_and_test_rows_are_of_different_patients(continuous):
    cohort = make_visits(continuous=continuous)
    whose = dict(zip(cohort.x[:, 0].tolist(), cohort.patients.tolist(), strict=True))
    for seed, rows in product(range(5), (50, 101)):
        trial = draw_trial(cohort, Cell("visits", rows, 0.0, seed), test_rows=100)
        learnt, tested = ({whose[key] for key in keys_of(x)} for x in (trial.context.x, trial.x))
        assert len(trial.context) == rows and len(trial.y) == 100
        assert not learnt & tested
        assert trial.context.patients.tolist() == [whose[key] for key in trial.context.x[:, 0].tolist()]


@pytest.mark.parametrize("continuous", [False, True])
def test_patients_with_one_row_are_drawn_as_rows_are(continuous):
    cohort = replace(make_visits(continuous=continuous), kept_patients=None)
    named = replace(cohort, kept_patients=np.random.default_rng(0).permutation(len(cohort)))
    order = stratified_order(cohort.y, np.random.default_rng([2, zlib.crc32(b"visits")]), continuous=continuous)
    for each in (cohort, named):
        trial = draw_trial(each, Cell("visits", 60, 0.0, 2), test_rows=50)
        assert (trial.context.x == cohort.x[order[:60]]).all() and (trial.x == cohort.x[order[::-1][:50]]).all()


def test_a_context_with_rows_of_every_patient_is_refused():
    cohort = make_visits()
    few = replace(cohort, kept_patients=cohort.patients % 2)
    with pytest.raises(ConfigError, match="'visits': a context of 200 rows.*smaller --contexts"):
        draw_trial(few, Cell("visits", 200, 0.0, 0))


def test_smaller_contexts_lie_within_larger_ones_and_test_rows_stay():
    cohort = make_cohort()
    small = draw_trial(cohort, Cell("made", 50, 0.0, 0), test_rows=100)
    large = draw_trial(cohort, Cell("made", 150, 0.0, 0), test_rows=100)
    assert keys_of(small.context.x) < keys_of(large.context.x)
    assert (small.x == large.x).all()


def test_extra_missingness_hides_acquirable_values_of_both_parts_only():
    trial = draw_trial(make_cohort(), Cell("made", 150, 0.3, 0), test_rows=150)
    for x in (trial.context.x, trial.x):
        assert not np.isnan(x[:, 0]).any()
        assert np.isnan(x[:, 1:]).mean() == pytest.approx(0.3, abs=0.05)


def test_hidden_values_cannot_be_found_in_the_context():
    trial = draw_trial(make_cohort(), Cell("made", 150, 0.3, 0))
    assert (
        np.isnan(trial.context.frame()["x1"].to_numpy(dtype=float)).sum() == np.isnan(trial.context.x[:, 1]).sum() > 0
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_class_occurs_in_the_context(seed):
    cohort = make_cohort(classes=3)
    y = np.zeros(300, dtype=np.int64)
    y[:150], y[[7, 200]] = 1, 2
    cohort = Cohort.from_arrays(cohort.x, y, classes=["a", "b", "c"])
    trial = draw_trial(cohort, Cell("made", 50, 0.0, seed), test_rows=300)
    assert (trial.context.y == 2).any() and (trial.y == 2).any()


def test_every_stretch_of_a_stratified_order_has_the_outcome_s_distribution():
    y = np.repeat([0, 1], [900, 100])
    order = stratified_order(y, np.random.default_rng(0))
    shares = [y[order[start : start + 100]].mean() for start in range(0, 1000, 100)]
    assert np.abs(np.array(shares) - 0.1).max() <= 0.03


def test_a_context_that_leaves_too_few_rows_becomes_the_small_one():
    assert fitting_contexts(5000, [100, 400]) == [100, 400]
    assert fitting_contexts(300, [100, 400]) == [50, 100]
    assert fitting_contexts(129, [100, 400]) == [50]
    assert fitting_contexts(300, [100, 400, 1000, 2000]) == [50, 100], "a long context is for long tables alone"
    assert fitting_contexts(1500, [100, 1000, 2000]) == [100, 1000]


def test_the_first_seed_of_all_cells_comes_first():
    seeds = [cell.seed for cell in real_cells({"a": 600, "b": 900}, [100], [0.0, 0.3], [0, 1])]
    assert seeds == sorted(seeds) and len(seeds) == 8


def test_the_floor_keeps_probabilities_and_bounds_the_loss():
    p = with_floor(np.array([[1.0, 0.0], [0.3, 0.7]]))
    assert p.sum(1) == pytest.approx([1, 1])
    assert -np.log(p.min()) < 8


def test_the_unit_of_a_continuous_outcome_does_not_change_its_score():
    y = np.linspace(-1.0, 1.0, 40)

    def scored(unit: float) -> dict:
        p = Gaussian(np.full(40, 0.1) * unit, np.full(40, 0.8) * unit)
        rollout = Rollout(("x",), np.zeros((40, 0), dtype=int), (p,), np.ones((40, 1), bool), np.zeros((40, 1)))
        return score(rollout, unit * y, Cohort.from_arrays(y[:, None], unit * y, kind="continuous"))

    small, large = scored(1.0), scored(250.0)
    assert [small[k] for k in ("log_loss", "crps", "rmse")] == pytest.approx(
        [large[k] for k in ("log_loss", "crps", "rmse")]
    )


def test_a_score_is_the_mean_over_all_budgets():
    steps = (np.array([[0.5, 0.5]] * 4), np.array([[0.9, 0.1]] * 4))
    rollout = Rollout(("x",), np.zeros((4, 1), dtype=int), steps, np.ones((4, 1), bool), np.zeros((4, 2)))
    record = score(rollout, np.zeros(4, dtype=int), make_cohort())
    assert record["log_loss"] == pytest.approx(np.mean(record["log_loss_by_budget"]))
    assert record["log_loss_end"] == pytest.approx(-np.log(0.9 * 0.999 + 0.0005))


def test_precision_and_recall_of_a_known_order():
    actions = np.array([[0, 1, 2]])
    rollout = Rollout(("a", "b", "c"), actions, (), np.ones((1, 3), bool), np.zeros((1, 4)))
    share = informative_share(rollout, np.array([[True, False, True]]), np.ones((1, 3), bool))
    assert share["precision"] == pytest.approx([1, 1 / 2, 2 / 3])
    assert share["recall"] == pytest.approx([1 / 2, 1 / 2, 1])


def test_what_could_not_be_had_is_not_missed():
    rollout = Rollout(("a", "b"), np.array([[0]]), (), np.ones((1, 2), bool), np.zeros((1, 2)))
    share = informative_share(rollout, np.array([[True, True]]), np.array([[True, False]]))
    assert share["recall"] == [1.0]


def test_a_task_becomes_a_trial_of_what_was_recorded():
    batch = build_prior("bnn", {"missingness": {"scale": 1.0}}).sample(torch.Generator().manual_seed(0), 2, 120, 6)
    trial = task_trial(batch, 1, 80, 40)
    assert trial.x.shape == (40, 6) and len(trial.context) == 80
    assert (np.isnan(trial.x) == ~batch.r[1, 80:].numpy()).all()
    assert (trial.informative == batch.truth.informative[1, 80:].numpy()).all()


def test_methods_are_compared_on_the_same_rows_and_a_failure_does_not_stop_the_others():
    trial = draw_trial(make_cohort(), Cell("made", 100, 0.0, 0), test_rows=50)
    good, bad = run_trial(trial, [MethodChoice("base_rate"), MethodChoice("base_rate", {"depth": 3})], budget=3)
    assert good.rollout is not None and len(good.rollout.predictions) == 4
    assert bad.rollout is None and "depth" in bad.error


@pytest.mark.parametrize("error", [KeyError("lactate"), TypeError("no number"), AttributeError("no rule")])
def test_whatever_another_package_s_method_ends_in_is_reported(error, monkeypatch):
    class Failing:
        def fit(self, cohort):
            raise error

        predict = rank = fit

    monkeypatch.setitem(METHODS, "failing", lambda seed: Failing())
    trial = draw_trial(make_cohort(), Cell("made", 100, 0.0, 0), test_rows=50)
    bad, good = run_trial(trial, [MethodChoice("failing"), MethodChoice("base_rate")], budget=1)
    assert type(error).__name__ in bad.error and good.rollout is not None


def test_a_council_is_a_method_with_the_policies_of_the_model_alone():
    named = {
        name: MethodChoice(name) for name in ("l2m", "l2m_monte_carlo", "l2m_council", "l2m_council_random", "gdfs")
    }
    assert [name for name, choice in named.items() if choice.council] == ["l2m_council", "l2m_council_random"]
    assert [choice.policy for choice in named.values() if choice.pretrained] == [None, "monte carlo", None, "random"]
    trial = draw_trial(make_cohort(), Cell("made", 200, 0.0, 0), test_rows=20)
    alone, council = run_trial(trial, [MethodChoice("l2m_random"), MethodChoice("l2m_council_random")], budget=1)
    assert alone.error == "" and council.error == ""
    assert (alone.rollout.actions == council.rollout.actions).all() and council.fit_seconds > alone.fit_seconds
