"""Exact tasks against brute force, and the synthetic suite from its command to its page."""

import numpy as np
import pandas as pd
import pytest

from l2m_core.acquire.rollout import Rollout
from l2m_core.errors import ConfigError
from train.study.evaluate import main
from train.study.evaluation.exact import draw_exact
from train.study.evaluation.synthetic import FAMILIES, read_heads


def test_a_belief_is_the_share_of_positives_among_what_fits():
    task = draw_exact(0, features=4)
    x = np.array([[1.0, 0.0, 0.0, 1.0]])
    a = np.array([[True, False, False, True]])
    fits = (task.combinations[:, 0] == 1) & (task.combinations[:, 3] == 1)
    expected = (task.weight * task.positive)[fits].sum() / task.weight[fits].sum()
    assert task.belief(x, a)[0] == pytest.approx(expected)
    assert task.weight.sum() == pytest.approx(1)


def test_information_is_the_mean_divergence_of_beliefs():
    """I(y; x_j | known) = E over x_j of KL(p(y | x_j, known) || p(y | known))."""
    task = draw_exact(1, features=4)
    x, a = np.zeros((1, 4)), np.array([[True, False, False, False]])
    information = task.information(x, a)[0]
    prior = task.belief(x, a)[0]
    for j in (1, 2, 3):
        fits = task.combinations[:, 0] == 0
        total = 0.0
        for value in (0, 1):
            having = fits & (task.combinations[:, j] == value)
            chance = task.weight[having].sum() / task.weight[fits].sum()
            p = (task.weight * task.positive)[having].sum() / task.weight[having].sum()
            total += chance * (p * np.log(p / prior) + (1 - p) * np.log((1 - p) / (1 - prior)))
        assert information[j] == pytest.approx(total, abs=1e-9)
    assert information[0] == 0


def test_choosing_the_most_informative_feature_has_no_regret_and_another_has_some():
    task = draw_exact(2, features=6, test_rows=20)
    x = task.trial.x
    none = np.zeros(x.shape, dtype=bool)
    information = task.information(x, none)

    def regret(actions: np.ndarray) -> float:
        return task.regret(Rollout(task.trial.context.names, actions[:, None], (), none, np.zeros((20, 2))))[0]

    assert regret(information.argmax(1)) == pytest.approx(0)
    gap = (information.max(1) - information.min(1)).mean()
    assert regret(information.argmin(1)) == pytest.approx(gap) and gap > 0


def test_features_that_do_not_matter_tell_nothing():
    task = draw_exact(3)
    assert task.trial.informative is not None
    nothing = np.zeros((1, 8), dtype=bool)
    information = task.information(np.zeros((1, 8)), nothing)[0]
    assert information[~task.trial.informative[0]] == pytest.approx(0, abs=1e-9)
    assert information[task.trial.informative[0]].max() > 0


def test_the_synthetic_suite_writes_its_page_and_repeats_nothing(tiny_model, tmp_path):
    arguments = [
        "--suite",
        "synthetic",
        "--tasks",
        "1",
        "--budget",
        "2",
        "--model",
        str(tiny_model),
        "--methods",
        "l2m",
        "l2m_random",
        "--partial",
        str(tmp_path / "p"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(arguments) == 0
    frame = pd.read_csv(tmp_path / "out" / "synthetic.csv")
    assert set(frame["family"]) == {*FAMILIES, "exact"} and set(frame["method"]) == {"l2m", "l2m_random"}
    assert frame.loc[frame["family"] == "exact", "regret"].notna().all()
    page = (tmp_path / "out" / "synthetic.md").read_text()
    assert "recall_mean" in page and "l2m against the others" in page
    before = (tmp_path / "p" / "synthetic.jsonl").read_text()
    assert main(arguments) == 0
    assert (tmp_path / "p" / "synthetic.jsonl").read_text() == before


def test_a_head_taught_otherwise_stands_beside_the_models_own(tiny_model, tmp_path):
    arguments = [
        "--suite",
        "synthetic",
        "--tasks",
        "1",
        "--budget",
        "2",
        "--model",
        str(tiny_model),
        "--methods",
        "l2m",
        "l2m_learned",
        "--heads",
        f"same={tiny_model}",
        "--partial",
        str(tmp_path / "p"),
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(arguments) == 0
    frame = pd.read_csv(tmp_path / "out" / "synthetic.csv").set_index(["family", "task"])
    own, other = (frame[frame["method"] == name]["log_loss"] for name in ("l2m_learned", "l2m_learned same"))
    assert len(own) == len(FAMILIES) + 1 and own.to_numpy() == pytest.approx(other.to_numpy())
    assert "l2m_learned same" in (tmp_path / "out" / "synthetic.md").read_text()


def test_heads_are_named():
    with pytest.raises(ConfigError, match="NAME=FOLDER"):
        read_heads(["runs/policy_greedy/model"])
    assert read_heads(["a=b=c"]) == (("a", "b=c"),)
