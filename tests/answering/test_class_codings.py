"""Care at inference: codings of the classes, and the cohort's prevalence."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.class_codings import ClassCodings, codings, prevalence_shift
from l2m_core.answering.settings import AnswerSettings
from l2m_core.cohort import Cohort
from l2m_core.memory import L2M
from l2m_core.model.interface import Context, Output


@pytest.mark.parametrize(("classes", "views", "count"), [(2, 1, 1), (2, 2, 2), (2, 9, 2), (3, 4, 4), (10, 99, 20)])
def test_codings_are_different_orders_of_the_codes_and_the_first_is_the_cohorts(classes, views, count) -> None:
    codes = codings(classes, views)
    assert codes.shape == (count, classes) and codes[0].tolist() == list(range(classes))
    assert torch.equal(codes.sort(1).values, torch.arange(classes).expand(count, -1))
    assert len({tuple(code) for code in codes.tolist()}) == count


def test_averaging_undoes_each_coding() -> None:
    class_codings = ClassCodings.of(3, 4, 0.0)
    truth = torch.randn(1, 5, 3).log_softmax(-1)
    coded = torch.zeros(4, 5, 3).scatter(-1, class_codings.codes[:, None].expand(4, 5, 3), truth.expand(4, -1, -1))
    output = class_codings.decode(Output(coded, torch.ones(4, 5, 2), torch.arange(4.0)[:, None, None].expand(4, 5, 2)))
    assert torch.allclose(output.prediction, truth, atol=1e-6)
    assert output.policy.shape == output.gain.shape == (1, 5, 2) and torch.all(output.gain == 1.5)


def one_against_rest(p: torch.Tensor) -> torch.Tensor:
    """p: (n, K) → (K, n, K) logits of K tasks, whose codes beyond 1 are impossible."""
    single = torch.stack([1 - p, p], -1).log().transpose(0, 1)
    return torch.cat([single, torch.full((p.shape[1], len(p), p.shape[1] - 2), float("-inf"))], -1)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_classes_against_the_rest_agree_with_the_whole(share: float) -> None:
    class_codings = ClassCodings.of(4, 2, share)
    assert len(class_codings.codes) == (6 if share < 1 else 4)
    p = torch.rand(5, 4)
    p = p / p.sum(1, keepdim=True)
    whole = torch.zeros(2, 5, 4).scatter(-1, class_codings.codes[:2, None].expand(2, 5, 4), p.log().expand(2, -1, -1))
    logits = torch.cat([*([whole] if share < 1 else []), one_against_rest(p)])
    rest = torch.zeros(len(logits), 5, 3)
    output = class_codings.decode(Output(logits, rest, rest))
    assert torch.allclose(output.prediction[0].softmax(-1), p, atol=1e-5)


def test_a_test_that_tells_the_class_for_certain_is_worth_the_whole_entropy() -> None:
    """Against the rest, each class gains its own entropy; those add up to more than there is to know."""
    p = torch.tensor([[0.5, 0.3, 0.2]])
    single = -(p * p.log() + (1 - p) * (1 - p).log())  # (1, K)
    class_codings = ClassCodings.of(3, 1, 1.0)
    gain = single.T[..., None]  # (K, 1, 1 test)
    output = class_codings.decode(Output(one_against_rest(p), torch.zeros(3, 1, 1), gain))
    assert float(single.sum()) > 1.3 * float(-(p * p.log()).sum())
    assert torch.allclose(output.gain.squeeze(), -(p * p.log()).sum(), atol=1e-5)


def test_two_classes_need_no_rest_and_the_cohort_is_put_as_the_codes_say() -> None:
    assert ClassCodings.of(2, 2, 0.7).codes.tolist() == codings(2, 2).tolist()
    y = torch.tensor([[2, 0, 1, 2]])
    context = Context(
        torch.zeros(1, 4, 3),
        torch.ones(1, 4, 3, dtype=torch.bool),
        y,
        torch.tensor([3]),
        torch.zeros(1, 3, dtype=torch.bool),
    )
    (put,) = ClassCodings.of(3, 1, 0.5).encode(context, [context], 100)
    assert put.y.tolist() == [[2, 0, 1, 2], [0, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]
    assert put.n_classes.tolist() == [3, 2, 2, 2] and put.x.shape == (4, 4, 3)


def test_of_a_long_cohort_all_codings_but_the_first_read_an_even_part() -> None:
    y = torch.tensor([0] * 60 + [1] * 30 + [2] * 10)[torch.randperm(100)]
    x = torch.arange(100.0)[None, :, None]
    context = Context(x, torch.ones(1, 100, 1, dtype=torch.bool), y[None], torch.tensor([3]), torch.zeros(1, 1).bool())
    first, others = ClassCodings.of(3, 2, 0.5).encode(context, [context], 20)
    assert first.y.tolist() == [y.tolist()] and first.x.shape == (1, 100, 1)
    assert others.x.shape == (4, 20, 1) and others.n_classes.tolist() == [3, 2, 2, 2]
    rows = others.x[0, :, 0].long()
    assert rows.tolist() == sorted(set(rows.tolist())) and torch.bincount(y[rows]).tolist() == [12, 6, 2]
    assert others.y[1].tolist() == (y[rows] == 0).long().tolist()


def test_fewer_rows_for_the_other_codings_change_little() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(300, 4)).astype(np.float32)
    cohort = Cohort.from_arrays(x, np.digitize(x[:, 0] + 0.5 * generator.normal(size=300), [-0.5, 0.5]))
    release = l2m.load().release
    settings = dataclasses.replace(release.inference, against_rest=0.75, exponent_spread=0.0)
    whole, part = (
        L2M(dataclasses.replace(release, inference=dataclasses.replace(settings, view_rows=rows)))
        .condition(cohort)
        .predict(x[:40])
        for rows in (300, 150)
    )
    assert 0 < np.abs(whole - part).max() < 0.2 and np.abs(whole - part).mean() < 0.03


def test_a_whole_shift_makes_the_empty_answer_the_class_frequencies() -> None:
    empty, y = torch.tensor([2.0, 0.0, -1.0]), torch.tensor([0] * 6 + [1] * 3 + [2])
    moved = (empty.log_softmax(-1) + prevalence_shift(empty, y, 1.0)).softmax(-1)
    assert torch.allclose(moved, torch.tensor([7.0, 4.0, 2.0]) / 13, atol=1e-6)


def coded(views: int, prevalence: float, against_rest: float = 0.0) -> L2M:
    release = l2m.load().release
    inference = AnswerSettings(views=views, prevalence=prevalence, against_rest=against_rest)
    return L2M(dataclasses.replace(release, inference=inference))


@pytest.mark.parametrize(("classes", "against_rest"), [(2, 0.0), (3, 0.0), (3, 0.6), (3, 1.0)])
def test_with_all_corrections_what_a_class_is_called_does_not_matter(classes: int, against_rest: float) -> None:
    """The same cohort under reversed codes gives the reversed answer, and starts from the prevalence."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    y = (x[:, 0] > 0.8).astype(np.int64) + (x[:, 1] > 1) * (classes - 2)
    last = classes - 1
    model = coded(2, 1.0, against_rest)
    cohort, renamed = (Cohort.from_arrays(x, codes) for codes in (y, last - y))
    own, other = (model.condition(c).predict(x[:7]) for c in (cohort, renamed))
    assert np.allclose(own, other[:, ::-1], atol=1e-5)
    empty = model.condition(cohort).predict(np.full((1, x.shape[1]), np.nan, np.float32))[0]
    frequency = (np.bincount(cohort.y, minlength=last + 1) + 1) / (len(cohort) + last + 1)
    assert np.allclose(empty, frequency, atol=1e-5)


def test_a_longer_cohort_is_read_under_one_coding() -> None:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(71, 3)).astype(np.float32)
    y = (x[:, 0] + generator.normal(size=71) > 0).astype(np.int64)
    release = l2m.load().release

    def answers(rows: int, **settings) -> np.ndarray:
        model = L2M(dataclasses.replace(release, inference=AnswerSettings(**settings)))
        return model.read(Cohort.from_arrays(x[:rows], y[:rows])).predict_array(x[:9])

    for rows, views in ((70, 2), (71, 1)):
        np.testing.assert_array_equal(answers(rows, views=2, views_up_to=70), answers(rows, views=views))
    assert np.abs(answers(70, views=2) - answers(70, views=1)).max() > 1e-4


@pytest.mark.parametrize(
    ("renamed", "counts"),
    [((1, 0), (30, 30)), ((1, 0), (15, 45)), ((0, 2, 1), (30, 15, 15)), ((2, 0, 1), (10, 40, 10))],
)
def test_told_of_classes_by_frequency_the_model_answers_alike_whatever_their_codes(
    renamed: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    """Under one coding; of classes that are equally frequent, too, and of one that is more frequent than all others."""
    generator = np.random.default_rng(2)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    y = np.repeat(np.arange(len(counts)), counts)
    x[:, 0] += y
    asked = np.where(generator.random((7, 4)) < 0.4, np.nan, x[:7]).astype(np.float32)
    release = l2m.load().release
    codes = np.array(renamed)

    def answer(y: np.ndarray, class_order: str, rows: np.ndarray | slice = slice(None)):
        inference = dataclasses.replace(release.inference, class_order=class_order)
        return L2M(dataclasses.replace(release, inference=inference)).read(Cohort.from_arrays(x[rows], y)).answer(asked)

    for shuffled in (np.arange(60), *(generator.permutation(60) for _ in range(4))):
        own, other = (answer(codes_[shuffled], "frequency", shuffled) for codes_ in (y, codes[y]))
        np.testing.assert_allclose(own.prediction, other.prediction[:, codes], atol=1e-5)
        np.testing.assert_allclose(own.gain, other.gain, atol=1e-5)
    own, other = (answer(codes_, "code") for codes_ in (y, codes[y]))
    assert np.abs(own.prediction - other.prediction[:, codes]).max() > 1e-3
