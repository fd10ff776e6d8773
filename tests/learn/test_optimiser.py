"""Muon and AdamW behind one face."""

import pytest
import torch

from l2m_core.learn.optimiser import MuonAdamW, orthogonalise, split_parameters
from tests.learn.examples import fresh_model


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 8, 24), (1, 40, 10)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape):
    matrices = (
        torch.randn(shape, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, shape[0])[:, None, None]
    )
    result = orthogonalise(matrices).float()
    values = torch.linalg.svdvals(result)
    assert result.shape == matrices.shape
    assert values.min() > 0.3 and values.max() < 1.6
    # The directions are those of the given matrix: U Vᵀ, not any orthogonal matrix.
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    overlap = (result * (u @ v)).sum((1, 2)) / values.sum(1)
    assert overlap.min() > 0.97


def test_a_matrix_of_zeros_stays_zero():
    assert not orthogonalise(torch.zeros(1, 4, 4)).any()


def test_matrices_inside_blocks_go_to_muon_and_frozen_parameters_nowhere():
    model = fresh_model()
    model.gain.requires_grad_(False)
    inside, outside = (dict(part) for part in split_parameters(model))
    assert all(name.startswith("blocks.") and p.ndim == 2 for name, p in inside.items())
    assert "cell_in.weight" in outside and "blocks.0.across_norm.weight" in outside
    assert not [name for name in (*inside, *outside) if name.startswith("gain")]
    assert split_parameters(model, muon=False)[0] == []


def test_each_group_keeps_its_share_of_the_rate():
    optimiser = MuonAdamW(fresh_model(), lr=0.1, rate_of=lambda name: 0.25 if name.startswith("blocks") else 1.0)
    optimiser.step(0.5)
    rates = sorted({group["lr"] for part in optimiser.parts for group in part.param_groups})
    assert rates == [pytest.approx(0.0125), pytest.approx(0.05)]
