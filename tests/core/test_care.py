"""Care at inference: codings of the classes, and the cohort's prevalence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.care import average, codings, prevalence_shift
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M
from l2m_core.model.interface import Output
from l2m_core.released import Inference


@pytest.mark.parametrize(("classes", "views", "count"), [(2, 1, 1), (2, 2, 2), (2, 9, 2), (3, 4, 4), (10, 99, 20)])
def test_codings_are_different_orders_of_the_codes_and_the_first_is_the_cohorts(classes, views, count) -> None:
    codes = codings(classes, views)
    assert codes.shape == (count, classes) and codes[0].tolist() == list(range(classes))
    assert torch.equal(codes.sort(1).values, torch.arange(classes).expand(count, -1))
    assert len({tuple(code) for code in codes.tolist()}) == count


def test_averaging_undoes_each_coding() -> None:
    codes = codings(3, 4)
    truth = torch.randn(1, 5, 3).log_softmax(-1)
    coded = torch.zeros(4, 5, 3).scatter(-1, codes[:, None].expand(4, 5, 3), truth.expand(4, -1, -1))
    output = average(Output(coded, torch.ones(4, 5, 2), torch.arange(4.0)[:, None, None].expand(4, 5, 2)), codes)
    assert torch.allclose(output.prediction, truth, atol=1e-6)
    assert output.policy.shape == output.gain.shape == (1, 5, 2) and torch.all(output.gain == 1.5)


def test_a_whole_shift_makes_the_empty_answer_the_class_frequencies() -> None:
    empty, y = torch.tensor([2.0, 0.0, -1.0]), torch.tensor([0] * 6 + [1] * 3 + [2])
    moved = (empty.log_softmax(-1) + prevalence_shift(empty, y, 1.0)).softmax(-1)
    assert torch.allclose(moved, torch.tensor([7.0, 4.0, 2.0]) / 13, atol=1e-6)


def careful(views: int, prevalence: float) -> L2M:
    release = l2m.load().release
    return L2M(dataclasses.replace(release, inference=Inference(views=views, prevalence=prevalence)))


@pytest.mark.parametrize("classes", [2, 3])
def test_with_all_care_what_a_class_is_called_does_not_matter(classes: int) -> None:
    """The same cohort under reversed codes gives the reversed answer, and starts from the prevalence."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    y = (x[:, 0] > 0.8).astype(np.int64) + (x[:, 1] > 1) * (classes - 2)
    last = classes - 1
    model = careful(2, 1.0)
    cohort, renamed = (Cohort.from_arrays(x, codes) for codes in (y, last - y))
    own, other = (model.condition(c).predict(x[:7]) for c in (cohort, renamed))
    assert np.allclose(own, other[:, ::-1], atol=1e-5)
    empty = model.condition(cohort).predict(np.full((1, x.shape[1]), np.nan, np.float32))[0]
    frequency = (np.bincount(cohort.y, minlength=last + 1) + 1) / (len(cohort) + last + 1)
    assert np.allclose(empty, frequency, atol=1e-5)
