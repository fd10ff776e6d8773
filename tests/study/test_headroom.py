"""What looking two tests ahead can gain, on tasks whose answer is known on paper."""

from __future__ import annotations

import numpy as np
import pytest

from l2m_core.errors import ConfigError
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family
from train.study.experiments.headroom import HeadroomSettings, headroom, table, verdict, work
from train.study.experiments.verdicts import NO_CLAIM

BINS = 8


def entropy(p: float) -> float:
    return float(-p * np.log(p) - (1 - p) * np.log(1 - p))


def drawn(told) -> tuple[np.ndarray, np.ndarray]:
    """40,000 rows of five standard normals, and `told(x)` as the probability of the second class."""
    x = np.random.default_rng(0).normal(size=(40_000, 5))
    positive = told(x)
    return x, np.stack([1 - positive, positive], axis=1)


def test_tests_that_tell_only_together_leave_the_headroom_that_paper_gives():
    """The greedy oracle asks for the third test and then finds nothing; the other asks for the pair."""
    found = headroom(*drawn(lambda x: 0.5 + 0.4 * np.sign(x[:, 0] * x[:, 1]) + 0.05 * np.sign(x[:, 2])), BINS)
    assert found["gain"] == pytest.approx(entropy(0.55) - entropy(0.9), abs=0.01)
    assert found["told_by_greedy"] == pytest.approx(np.log(2) - entropy(0.55), abs=0.005)
    assert found["told_by_planning"] - found["told_by_greedy"] == pytest.approx(found["gain"])


def test_where_each_test_tells_by_itself_there_is_none():
    found = headroom(*drawn(lambda x: 1 / (1 + np.exp(-2 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2]))), BINS)
    assert abs(found["gain"]) < 1e-3 and found["told_by_greedy"] > 0.1


def test_where_nothing_tells_the_best_of_many_is_no_better_than_the_first():
    """Noisy probabilities: judged on the rows that chose, the planner would always be ahead."""
    random = np.random.default_rng(1)
    gains = []
    for _ in range(20):
        x, positive = random.normal(size=(2000, 6)), random.uniform(0.1, 0.9, 2000)
        gains.append(headroom(x, np.stack([1 - positive, positive], axis=1), BINS)["gain"])
    assert abs(np.mean(gains)) < 3 * np.std(gains) / np.sqrt(20)


def gains_of(family: Family, rows: int = 20_000) -> np.ndarray:
    settings = HeadroomSettings((family,), rows=rows)
    return np.array([work(Job("", settings, (family, i), None))[0]["gain"] for i in range(family.tasks)])


def test_the_study_s_planning_tasks_have_more_of_it_than_its_others():
    plan = gains_of(Family("plan", prior="study_bnn_plan", tasks=8))
    plain = gains_of(Family("plain", prior="study_bnn", tasks=8))
    assert plan.mean() > 0.005 > plain.mean()


def test_its_mean_is_published_with_an_interval_and_no_verdict():
    records = [{"family": "f", "task": i, "gain": g, "told_by_greedy": 0.1} for i, g in enumerate((0.0, 0.01, 0.05))]
    found = table(records)
    (row,) = found.to_dict("records")
    assert row["headroom"] == pytest.approx(0.02) and row["headroom_low"] < 0.02 < row["headroom_high"]
    assert row["share_worth_seeing"] == pytest.approx(2 / 3) and row["tasks"] == 3
    assert verdict(records, found).status == NO_CLAIM and "f: 0.0200 [" in verdict(records, found).reason


@pytest.mark.parametrize(
    ("family", "words"),
    [
        (Family("ward", source="cohort", data="x"), "'ward' is of the source 'cohort'"),
        (Family("gp", prior="gp"), "'gp' does not say how likely each class is"),
    ],
)
def test_tasks_whose_truth_nobody_knows_are_refused(family, words):
    with pytest.raises(ConfigError, match=words):
        work(Job("", HeadroomSettings((family,), rows=50), (family, 0), None))
