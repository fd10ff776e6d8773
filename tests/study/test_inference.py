"""Intervals of verdicts: Student's t over independent units, corrected for the number of claims, with gates before them."""

from types import SimpleNamespace

import numpy as np
import pytest

from l2m_core.metrics import paired_interval
from train.study.experiments.experiment import EXPERIMENTS, find
from train.study.experiments.families import Family
from train.study.experiments.inference import (
    CLAIMS,
    LEVEL,
    averages_outside,
    rank_interval,
    units_needed,
    units_needed_by_rank,
)
from train.study.experiments.verdicts import (
    NOT_SEEN,
    NOT_TESTABLE,
    SEEN,
    ClaimVerdict,
    gated,
    judge,
    pairs,
    tidy,
    with_units,
)


@pytest.mark.parametrize("units", [12, 60])
def test_the_interval_of_the_middle_misses_it_as_rarely_as_it_says_even_where_there_is_no_mean(units):
    draws = np.random.default_rng(0).standard_cauchy((2000, units))
    missed = np.mean([not (found.low <= 0 <= found.high) for found in map(lambda v: rank_interval(v, 0.95), draws)])
    assert 0.035 < missed < 0.065


@pytest.mark.parametrize(("units", "level", "table"), [(10, 0.95, 9), (12, 0.95, 14), (20, 0.99, 38), (5, 0.95, 0)])
def test_the_interval_of_the_middle_ends_where_the_printed_table_of_signed_ranks_says(units, level, table):
    """The table has the largest statistic that is refused; the interval ends one further in."""
    assert averages_outside(units, level) == table


def test_one_task_however_far_out_does_not_decide_the_middle():
    values = np.random.default_rng(0).normal(0.1, 0.05, 50)
    wild = np.append(values, -1e6)
    assert judge(wild, "Gain", by_rank=True).status == SEEN
    assert judge(wild, "Gain").status == NOT_TESTABLE
    assert judge(values[:4], "Gain", by_rank=True).status == NOT_TESTABLE  # so few refuse nothing
    assert units_needed_by_rank(values[:2], 0.005) == units_needed(values[:2], 0.005)
    normal = np.random.default_rng(1).normal(0, 0.02, 500)
    assert units_needed_by_rank(normal, 0.005) == pytest.approx(units_needed(normal, 0.005), rel=0.2)


def test_the_level_is_corrected_for_the_experiments_that_test_a_claim():
    assert sum(bool(find(name).CLAIM) for name in EXPERIMENTS) == CLAIMS
    assert pytest.approx(0.05) == CLAIMS * (1 - LEVEL)


def test_as_many_units_as_are_needed_show_the_effect_four_times_in_five():
    generator = np.random.default_rng(1)
    needed = units_needed(generator.normal(0, 0.02, 5000), 0.005)
    draws = generator.normal(0.005, 0.02, (400, needed))
    assert 0.72 < np.mean([paired_interval(values, LEVEL).low > 0 for values in draws]) < 0.88


def test_what_may_be_too_small_to_be_seen_with_so_few_is_open_and_says_how_many_it_would_take():
    generator = np.random.default_rng(0)
    few = judge(generator.normal(0.005, 0.02, 10), "Gain")
    assert few.status == NOT_TESTABLE and "would take about" in few.reason
    assert judge(generator.normal(0.0, 0.02, 5000), "Gain").status == NOT_SEEN
    assert judge(generator.normal(0.005, 0.02, 5000), "Gain").status == SEEN
    assert judge(np.array([0.1]), "Gain").status == NOT_TESTABLE


def rows(family: str, tasks: int, gain: float) -> list[dict]:
    return [
        {"family": family, "task": i, "method": method, "log_loss": 0.5 - gain * (method == "l2m") + 0.01 * (i % 3)}
        for method in ("l2m", "gdfs")
        for i in range(tasks)
    ]


def test_splits_of_one_real_table_are_one_unit_and_drawn_tasks_one_each():
    settings = SimpleNamespace(
        families=(Family("metabric", source="cohort", data="metabric"), Family("bnn", prior="bnn"))
    )
    found = with_units([*rows("metabric", 6, 0.1), *rows("bnn", 4, 0.2)], settings)
    differences = pairs(found, "log_loss", "l2m", "gdfs", ("family", "task"))
    assert sorted(differences.round(6)) == [0.1, 0.2, 0.2, 0.2, 0.2]
    assert {r["real"] for r in found if r["family"] == "metabric"} == {True}


@pytest.mark.parametrize(
    ("losses", "base", "passes"),
    [([0.6, 0.4], 0.7, True), ([0.6, 0.4], 0.5, False), ([0.4, 0.6], 0.7, False)],
)
def test_a_model_that_is_not_under_the_base_rate_or_learns_nothing_of_more_features_has_no_verdict(
    losses, base, passes
):
    record = {
        "family": "f",
        "task": 0,
        "method": "l2m",
        "log_loss": 0.5,
        "base_rate": base,
        "log_loss_by_budget": losses,
    }
    found = gated(ClaimVerdict(SEEN, "So it is."), [record], "l2m")
    assert (found.status == SEEN) == passes
    assert passes or ("on f its log loss" in found.reason and found.reason.endswith("So it is."))
    assert gated(ClaimVerdict(SEEN, ""), [record], "").status == SEEN


def test_the_gates_read_experiments_that_have_a_record_for_each_step():
    steps = [
        {"family": "f", "task": 0, "method": "l2m", "step": s, "log_loss": loss} for s, loss in ((1, 0.4), (2, 0.6))
    ]
    assert gated(ClaimVerdict(SEEN, ""), steps, "l2m").status == NOT_TESTABLE


def test_published_records_have_one_row_for_each_task_step_and_score():
    record = {
        "family": "f",
        "task": 3,
        "unit": "f/3",
        "method": "l2m",
        "log_loss": 0.5,
        "log_loss_by_budget": [0.6, 0.4],
    }
    table = tidy([record, {"family": "f", "task": 4, "method": "l2m", "error": "it failed"}])
    assert table[["score", "step", "value"]].values.tolist() == [
        ["log_loss", "", 0.5],
        ["log_loss", 0, 0.6],
        ["log_loss", 1, 0.4],
    ]


def test_published_records_keep_the_names_of_what_was_scored():
    records = [{"family": "f", "task": 0, "estimator": name, "l2_error": 0.1} for name in ("pathwise", "ipw")]
    assert tidy(records).estimator.tolist() == ["pathwise", "ipw"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_page_quotes_the_study_and_states_an_effect(name):
    module = find(name)
    assert '"' in module.CLAIM or not module.CLAIM
    assert module.RULE and module.EFFECT and isinstance(module.GATED, str)
