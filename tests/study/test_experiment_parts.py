"""What experiments are made of: their tasks, choices, intervals and verdicts, each looked at by itself."""

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.stages import Stage
from l2m_core.methods import make_method
from l2m_core.methods.networks import Schedule
from l2m_core.model.interface import ModelConfig
from train.prior_data import DataChoice, rows_of
from train.study.experiments import ablations, experiment, families, policy_maps
from train.study.experiments.adaptivity import MajorityVote
from train.study.experiments.comparison import summarise_groups
from train.study.experiments.datasets import FoundCohort, find_cohort
from train.study.experiments.families import Family, cohort_of, draw, stand_ins
from train.study.experiments.gradients import cosine
from train.study.experiments.policy_maps import commonest_by_chance
from train.study.experiments.uncertainty import random_trajectories
from train.study.experiments.verdicts import NOT_SEEN, NOT_TESTABLE, SEEN, ClaimVerdict, all_of, judge, pairs


def test_stand_ins_are_owned_up_to(tmp_path):
    families = (
        Family("metabric", source="cohort", data="metabric"),
        Family("pairs", source="digits"),
        Family("bnn"),
        Family("hospital", source="cohort", data="hospital_readmission"),
    )
    notes = stand_ins(families, tmp_path)
    assert len(notes) == 3
    assert any("metabric" in note and "made-up" in note for note in notes)
    assert any("MNIST" in note for note in notes)


def test_digit_pairs_have_twenty_blocks(tmp_path):
    family = Family("pairs", source="digits", settings={"pool": 4}, context=30, test_rows=10)
    trial = draw(family, 0, tmp_path)
    assert len(np.unique(trial.context.groups)) == 20
    assert len(trial.context.names) > 20
    # A method that learns from the task has a score for each block, and gives it to the block's pixels.
    once = Schedule(epochs=1)
    method = make_method("gdfs", pretraining=once, schedule=once).fit(trial.context)
    scores = method.rank(trial.x[:1], np.zeros(trial.x[:1].shape, dtype=bool))[0]
    assert len(method.policy.biases[-1]) == len(np.unique(scores)) == 20


def test_a_task_is_the_same_in_every_run_and_another_number_another_task(tmp_path):
    family = Family("bnn")
    assert (draw(family, 1, tmp_path).context.y == draw(family, 1, tmp_path).context.y).all()
    assert not np.allclose(draw(family, 1, tmp_path).context.x, draw(family, 2, tmp_path).context.x, equal_nan=True)


@pytest.mark.parametrize("source", ["cohort", "semi_synthetic"])
def test_tasks_of_a_table_keep_to_the_rows_that_the_model_never_saw(source, tmp_path, monkeypatch):
    family = Family("absent", source, data="absent", model="some", pool=1000, context=30, test_rows=20)
    table = find_cohort("absent", tmp_path).load()
    assert len(cohort_of(family, tmp_path)) == len(table), "no model was trained on a table that is made up"
    monkeypatch.setattr(families, "find_cohort", lambda name, data: FoundCohort(lambda: table))
    seen = rows_of(DataChoice(pool=1000), len(table))
    apart = cohort_of(family, tmp_path)
    assert len(apart) == len(table) - 1000
    assert not {row.tobytes() for row in table.x[seen]} & {row.tobytes() for row in apart.x}
    trial = draw(family, 0, tmp_path)
    assert len(trial.context) == 30 and len(trial.y) == 20
    assert any("outside the 1,000" in note for note in stand_ins((family,), tmp_path))
    if source == "cohort":
        assert {row.tobytes() for row in trial.context.x} <= {row.tobytes() for row in apart.x}


def test_only_a_table_has_a_pool():
    with pytest.raises(ConfigError, match="has a pool"):
        Family("bnn", pool=10)


@pytest.mark.parametrize("policy_stages", [(), (Stage(steps=2, tasks=2, rows=(24,), features=(4,), continuous=0.0),)])
def test_ablations_follow_a_policy_where_one_was_taught(policy_stages, tmp_path):
    settings = ablations.AblationsSettings(
        families=(Family("bnn", features=5, context=40, test_rows=12, tasks=1),),
        backbone=ModelConfig(
            encoder="rows", features=5, outcome="classes", layers=1, width=16, heads=2, feedforward=16, max_classes=2
        ),
        stages=(Stage(steps=2, tasks=2, rows=(24,), features=(4,), continuous=0.0),),
        loop=LoopConfig(warmup=1, evaluate_every=0),
        policy_stages=policy_stages,
        policy_loop=LoopConfig(warmup=1, evaluate_every=0),
        folder=str(tmp_path),
        steps=2,
    )
    for job in ablations.jobs(settings, tmp_path):
        records = ablations.work(job)
        orders = [record["order"] for record in records]
        assert orders == [ablations.RANDOM] * 2 + [ablations.OWN] * 2 * bool(policy_stages)
        if policy_stages:
            assert all(np.isfinite(record["log_loss"]) for record in records)


def test_contexts_of_one_task_are_cut_from_the_same_rows(tmp_path):
    family = Family("bnn", context=80)
    short, long = (draw(family, 0, tmp_path, context=n, complete=True) for n in (40, 80))
    assert np.array_equal(short.x, long.x)
    assert np.array_equal(short.context.x, long.context.x[:40], equal_nan=True)


def test_scaling_missingness_changes_the_record_and_not_the_patients(tmp_path):
    absent = dict.fromkeys(("none", "mcar", "mar_recorded", "block", "mnar", "panels"), 0)
    family = Family("bnn", settings={"missingness": {**absent, "mar_baseline": 1}})
    whole = draw(family.with_missingness_scale(0.0), 0, tmp_path, complete=True)
    holed = draw(family.with_missingness_scale(1.0), 0, tmp_path, complete=True)
    assert np.array_equal(whole.x, holed.x) and (whole.context.y == holed.context.y).all()
    assert not np.isnan(whole.context.x).any() and np.isnan(holed.context.x).any()


def test_random_trajectories_grow_by_one_and_keep_to_what_is_recorded(tmp_path):
    trial = draw(Family("bnn", settings={"missingness": {"none": 0.0}}), 0, tmp_path)
    states = list(random_trajectories(trial, 4, np.random.default_rng(0)))
    recorded = ~np.isnan(trial.x)
    for before, after in zip(states, states[1:], strict=False):
        assert (before <= after).all() and (after <= recorded).all()
        assert ((after.sum(1) - before.sum(1)) <= 1).all()


def test_the_commonest_choice_by_chance_is_among_what_is_still_open():
    """Five features of which everybody's first was the first: four are open then, and the commonest of few random choices is
    above one in four; of many it comes near it."""
    generator = np.random.default_rng(0)
    for patients, above in ((10, 0.25), (10_000, 0.012)):
        actions = np.column_stack([np.zeros(patients, int), 1 + np.arange(patients) % 4, np.full(patients, -1)])
        first, second, nobody = commonest_by_chance(actions, np.ones((patients, 5), bool), generator)
        assert 0.20 < first < 0.20 + above and 0.25 < second < 0.25 + above and nobody == 0
    only_one = np.eye(5, dtype=bool)[[2] * 10]
    assert commonest_by_chance(np.full((10, 1), 2), only_one, generator) == [1.0]


def test_maps_say_how_common_the_commonest_choice_is_by_chance():
    record = {"method": "l2m", "shares": {"a": [0.9, 0.4, 0.5], "b": [0.1, 0.6, 0.5]}}
    with_chance = policy_maps.verdict([{**record, "chance": [0.55, 0.56, 1.0]}], pd.DataFrame())
    assert (
        "90% of patients at the first step (by chance: 55%) and for 60% of patients at the middle one (by chance: 56%)"
        in (with_chance.reason)
    )
    assert "(by chance:" not in policy_maps.verdict([record], pd.DataFrame()).reason


def test_the_majority_s_choice_is_made_for_everybody():
    class Scores:
        def rank(self, x, a):
            return np.array([[3.0, 1, 0], [3, 1, 0], [0, 3, 1], [np.nan, 2, 3]])

    x = np.zeros((4, 3))
    x[3, 0] = np.nan
    scores = np.where(np.isnan(Scores().rank(x, None)), -np.inf, Scores().rank(x, None))
    method = type("M", (), {"rank": lambda self, x, a: scores})()
    chosen = MajorityVote(method).rank(x, np.zeros((4, 3), bool)).argmax(1)
    assert chosen[:3].tolist() == [0, 0, 0]
    assert chosen[3] in (1, 2)


def test_a_verdict_needs_its_interval_above_zero():
    assert judge(np.full(20, 0.1), "gain").status == SEEN
    assert judge(np.tile([-0.1, 0.1], 20), "gain").status == NOT_TESTABLE, "it may be too small to be seen with 40"
    assert judge(np.tile([-0.001, 0.001], 20), "gain").status == NOT_SEEN
    alone = judge(np.array([0.1]), "gain")
    assert alone.status == NOT_TESTABLE and "splits of one table are one" in alone.reason
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(NOT_SEEN, "b")]).status == NOT_SEEN


def test_a_part_that_could_not_be_tested_leaves_the_whole_untested():
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(NOT_TESTABLE, "b")]).status == NOT_TESTABLE
    assert all_of([ClaimVerdict(NOT_SEEN, "a"), ClaimVerdict(NOT_TESTABLE, "b")]).status == NOT_SEEN
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(SEEN, "b")]).status == SEEN


def test_a_mean_over_tasks_has_the_interval_of_student_s_t_and_that_of_one_task_none():
    table = pd.DataFrame({"method": ["l2m", "l2m", "l2m", "gdfs"], "loss": [0.1, 0.2, 0.6, 0.5]})
    l2m, gdfs = summarise_groups(table, ["method"], "loss").to_dict("records")
    assert (l2m["loss_low"], l2m["loss_high"]) == pytest.approx(
        (0.3 - 4.3027 * 0.152753, 0.3 + 4.3027 * 0.152753), abs=1e-3
    )
    assert gdfs["loss"] == 0.5 and np.isnan([gdfs["loss_low"], gdfs["loss_high"]]).all()


def test_what_failed_is_named_on_the_page():
    records = [
        {"method": "gdfs", "task": 0, "error": "CohortError: too few rows\nmore"},
        {"method": "gdfs", "task": 1, "error": "CohortError: another"},
        {"method": "l2m", "task": 0, "log_loss": 0.5},
    ]
    assert experiment.failures(records) == [
        "GDFS failed on 2 tasks, which its numbers leave out: CohortError: too few rows"
    ]


def test_pairs_are_made_on_the_same_task_only():
    records = [
        {"method": "a", "task": 0, "loss": 0.5},
        {"method": "b", "task": 0, "loss": 0.7},
        {"method": "a", "task": 1, "loss": 0.1},
        {"method": "b", "task": 2, "loss": 0.1},
        {"method": "b", "task": 1, "loss": 0.1, "error": "failed"},
    ]
    assert pairs(records, "loss", "a", "b", ("task",)) == pytest.approx([0.2])


def test_cosine_of_opposite_gradients_is_minus_one():
    assert cosine(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])) == pytest.approx(-1)
