"""What every prior owes: shapes, types, ranges, seeds, and no use of global random state."""

import pytest
import torch

from l2m_core.tasks.registry import PRIORS, build_prior

B, N, D = 7, 60, 6

TABLE = torch.randn(80, D, generator=torch.Generator().manual_seed(9))
IMAGES = torch.rand(400, 2, 3, generator=torch.Generator().manual_seed(9))
LABELS = torch.arange(400) % 10

CASES = {
    "gp": ("gp", {}, {}),
    "gp matern": ("gp", {"kernel": "matern"}, {}),
    "bnn": ("bnn", {}, {}),
    "bnn of many classes": ("bnn", {"classes": [2, 6]}, {}),
    "bnn continuous": ("bnn", {"outcome": "continuous"}, {}),
    "bnn_plan": ("bnn_plan", {}, {}),
    "study_bnn": ("study_bnn", {"normalised": False, "baseline": [0, 2]}, {}),
    "study_bnn of many classes": ("study_bnn", {"classes": [2, 6]}, {}),
    "study_bnn of correlated covariates": ("study_bnn", {"covariates": "gaussian"}, {}),
    "study_bnn_plan": ("study_bnn_plan", {}, {}),
    "synthetic": ("synthetic", {}, {}),
    "synthetic continuous": ("synthetic", {"outcome": "continuous"}, {}),
    "additive": ("additive", {}, {}),
    "additive continuous": ("additive", {"outcome": "continuous"}, {}),
    "discriminant": ("discriminant", {}, {}),
    "categories": ("categories", {}, {}),
    "categories continuous": ("categories", {"outcome": "continuous"}, {}),
    "findings": ("findings", {}, {}),
    "signs": ("signs", {}, {}),
    "patterns": ("patterns", {}, {}),
    "semi_synthetic": ("semi_synthetic", {"graft": 0.5}, {"x": TABLE}),
    "semi_synthetic real": ("semi_synthetic", {"labels": "real"}, {"x": TABLE, "y": torch.arange(80) % 3}),
    "digits": (
        "digits",
        {"layout": "single", "pool": 1, "blocks": [2, 3], "used": [3, 10]},
        {"images": IMAGES, "labels": LABELS},
    ),
    "semi_synthetic of the study's labels": ("semi_synthetic", {"labels": "study", "normalised": True}, {"x": TABLE}),
    "study_digits": (
        "study_digits",
        {"blocks": [f"block_0_{k}" for k in range(D)]},
        {"images": torch.rand(400, 7, 14, generator=torch.Generator().manual_seed(9)), "labels": LABELS},
    ),
    "gp of the study's published code": (
        "gp",
        {"covariates": "uniform", "scale_of": "variance", "informative": [1, 10]},
        {},
    ),
    "mixture": ("mixture", {"parts": [{"prior": "bnn"}, {"prior": "synthetic"}]}, {}),
}


def build(case: str):
    name, settings, data = CASES[case]
    return build_prior(name, settings, **data)


def tensors(batch) -> list[torch.Tensor]:
    collected: list[torch.Tensor] = []
    batch.map(lambda tensor: collected.append(tensor) or tensor)
    return collected


def test_every_registered_prior_is_tested_here():
    assert {name for name, _, _ in CASES.values()} == set(PRIORS)


@pytest.mark.parametrize("case", CASES)
def test_a_batch_has_the_shapes_and_types_of_the_contract(case):
    batch = build(case).sample(torch.Generator().manual_seed(0), B, N, D)
    assert batch.x.shape == batch.r.shape == (B, N, D) and batch.y.shape == (B, N)
    assert batch.x.dtype == torch.float32 and batch.r.dtype == torch.bool and batch.x.isfinite().all()
    assert batch.acquirable.shape == batch.categorical.shape == (B, D)
    assert batch.acquirable.dtype == batch.categorical.dtype == torch.bool and batch.acquirable.any(dim=1).all()
    if batch.continuous:
        assert batch.y.dtype == torch.float32 and batch.y.isfinite().all()
    else:
        assert batch.y.dtype == torch.int64 and batch.n_classes.dtype == torch.int64
        assert batch.n_classes.shape == (B,) and (batch.n_classes >= 2).all()
        assert (batch.y >= 0).all() and (batch.y < batch.n_classes[:, None]).all()


@pytest.mark.parametrize("case", CASES)
def test_the_truth_has_the_shapes_of_the_contract(case):
    batch = build(case).sample(torch.Generator().manual_seed(0), B, N, D)
    truth = batch.truth
    if truth is None:
        assert case in ("semi_synthetic real", "study_digits", "digits"), "only real labels come without a truth"
        return
    assert truth.informative.shape == (B, N, D) and truth.informative.dtype == torch.bool
    if batch.continuous:
        assert truth.mean.shape == truth.std.shape == (B, N)
    else:
        assert truth.probabilities.shape[:2] == (B, N)
        assert torch.allclose(truth.probabilities.sum(dim=2), torch.ones(B, N), atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_the_generator_alone_decides_what_is_drawn(case):
    prior = build(case)
    global_state = torch.random.get_rng_state()
    first = tensors(prior.sample(torch.Generator().manual_seed(1), B, N, D))
    assert torch.equal(global_state, torch.random.get_rng_state())
    torch.rand(5)  # global draws in between must not matter
    second = tensors(build(case).sample(torch.Generator().manual_seed(1), B, N, D))
    other = tensors(prior.sample(torch.Generator().manual_seed(2), B, N, D))
    assert all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, second, strict=True))
    assert not torch.equal(first[0], other[0])


@pytest.mark.parametrize("case", CASES)
def test_a_batch_can_be_one_small_task(case):
    batch = build(case).sample(torch.Generator().manual_seed(0), 1, 10, D)
    assert batch.x.shape == (1, 10, D)


@pytest.mark.parametrize("case", [case for case in CASES if "digits" not in case])
def test_a_batch_can_have_one_feature(case):
    batch = build(case).sample(torch.Generator().manual_seed(0), 3, 20, 1)
    assert batch.x.shape == (3, 20, 1) and batch.acquirable.all()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", CASES)
def test_a_batch_lives_on_the_device_of_its_generator(case):
    batch = build(case).sample(torch.Generator("cuda").manual_seed(0), B, N, D)
    assert all(tensor.is_cuda for tensor in tensors(batch))
