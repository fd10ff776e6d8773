"""A long cohort may be read in even parts, each by itself, whose answers are averaged as log probabilities."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.context_rows import even_parts
from l2m_core.answering.row_order import arranged
from l2m_core.answering.settings import AnswerSettings
from l2m_core.errors import ConfigError, RangeWarning
from l2m_core.memory import L2M
from l2m_core.model.density import Density


def reading(part_rows: int, most_parts: int) -> L2M:
    """The released model under one coding of the classes, with its head left as it is."""
    release = l2m.load().release
    as_read = {"views": 1, "part_rows": part_rows, "most_parts": most_parts}
    inference = dataclasses.replace(release.inference, **as_read, aligned_states=0, prevalence=0.0)
    return L2M(dataclasses.replace(release, inference=inference))


def cohort_of(rows: int, kind: str) -> l2m.Cohort:
    random = np.random.default_rng(3)
    x = random.normal(size=(rows, 4)).astype(np.float32)
    score = x[:, 0] + random.normal(size=rows)
    y = {"binary": score > 0.5, "multiclass": np.digitize(score, [-0.5, 0.5]), "continuous": score}[kind]
    return l2m.Cohort.from_arrays(x, y if kind == "continuous" else y.astype(int), kind=kind)


ASKED = np.array([[0.5, np.nan, np.nan, 1.0], [np.nan] * 4, [-1.0, 0.0, 2.0, 0.3]], np.float32)


def log_probabilities(prediction) -> np.ndarray:
    if isinstance(prediction, np.ndarray):
        return np.log(prediction)
    return prediction.distribution.logits[0].log_softmax(-1).numpy()


def test_parts_are_even_and_together_the_whole():
    y = torch.tensor([0] * 61 + [1] * 30 + [2] * 9)[torch.randperm(100, generator=torch.Generator().manual_seed(0))]
    parts = even_parts(y, 3)
    assert sorted(torch.cat(parts).tolist()) == list(range(100)) and {len(part) for part in parts} == {33, 34}
    assert all(part.tolist() == sorted(part.tolist()) for part in parts)
    shares = torch.stack([torch.bincount(y[part], minlength=3) for part in parts])
    assert (shares.amax(0) - shares.amin(0) <= 1).all()
    (whole,) = even_parts(y, 1)
    assert whole.tolist() == list(range(100))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "continuous"])
def test_the_answer_is_the_mean_of_what_each_part_alone_says(kind):
    cohort = cohort_of(90, kind)
    memory = reading(30, 3).condition(cohort)
    ordered = arranged(cohort, "content")
    parts = [ordered.rows(rows.numpy()) for rows in even_parts(torch.from_numpy(ordered.y.copy()), 3)]
    alone = [reading(30, 1).condition(part).answer(ASKED) for part in parts]
    answer = memory.answer(ASKED)
    assert [part.context_rows for part in memory.memories][:3] == [30, 30, 30] and memory.rows_read == 90
    assert np.allclose(answer.gain, np.mean([one.gain for one in alone], 0), atol=1e-5) or kind == "multiclass"
    if kind == "binary":
        mean = np.mean([log_probabilities(one.prediction) for one in alone], 0)
        assert np.allclose(np.exp(mean) / np.exp(mean).sum(1, keepdims=True), answer.prediction, atol=1e-5)
    if kind == "continuous":
        means = [one.prediction.mean for one in alone]
        assert np.ptp(means, axis=0).max() > 0.01 and (np.abs(answer.prediction.mean - np.mean(means, 0)) < 0.15).all()
    assert answer.values is not None and np.allclose(answer.values.sum(-1), 1, atol=1e-5)


def test_a_cohort_within_one_part_is_answered_as_without_parts():
    for kind in ("binary", "multiclass", "continuous"):
        cohort = cohort_of(60, kind)
        one, other = (model.condition(cohort).answer(ASKED) for model in (reading(0, 1), reading(60, 4)))
        assert np.array_equal(log_probabilities(one.prediction), log_probabilities(other.prediction))
        assert np.array_equal(one.gain, other.gain)


def test_of_a_cohort_longer_than_all_parts_an_even_part_is_read_and_said():
    memory, cohort = reading(20, 2), cohort_of(90, "binary")
    with pytest.warns(RangeWarning, match="has 90 rows; model 'general' reads an even part of 40"):
        assert memory.condition(cohort).rows_read == 40


def test_a_density_keeps_its_chances_in_other_bins():
    density = Density(
        torch.randn(1, 5, 64, generator=torch.Generator().manual_seed(1)), torch.zeros(1, 1), torch.ones(1, 1)
    )
    y = torch.linspace(-8, 8, 400)[None]
    below = density.below(y)[0]
    assert (below.diff(dim=-1) >= -1e-12).all() and below.min() >= 0 and below.max() <= 1
    for level in (0.01, 0.3, 0.5, 0.97):
        found = density.below(density.quantile(level))[0].diagonal()
        assert torch.allclose(found, torch.full_like(found, level), atol=1e-5)
    moved = density.on_scale_of(
        dataclasses.replace(density, shift=torch.full((1, 1), 0.03), scale=torch.full((1, 1), 1.02))
    )
    assert torch.allclose(moved.mean, density.mean, atol=0.03) and torch.allclose(moved.std, density.std, atol=0.03)
    same = density.on_scale_of(density)
    assert torch.allclose(same.logits.softmax(-1), density.probabilities, atol=1e-6)


def test_parts_need_tasks_with_all_classes_and_a_length():
    with pytest.raises(ConfigError, match="against_rest must be below 1"):
        AnswerSettings(part_rows=100, against_rest=1.0)
    with pytest.raises(ConfigError, match="most_parts is 2, so part_rows must say how many rows"):
        AnswerSettings(most_parts=2)
