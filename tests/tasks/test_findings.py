"""The findings prior: wide tables tell more, and the healthy have no findings."""

import torch

from l2m_core.tasks.findings import FindingsConfig, FindingsPrior, draw_centres


def drawn(seed: int = 0, tasks: int = 60, rows: int = 400, features: int = 8, **settings):
    prior = FindingsPrior(FindingsConfig(**settings))
    return prior.sample(torch.Generator().manual_seed(seed), tasks, rows, features)


def test_wide_tables_tell_more_than_narrow_ones():
    def left(features: int) -> float:
        p = drawn(3, features=features).truth.probabilities
        return float(-(p * p.clamp_min(1e-12).log()).sum(-1).mean())

    assert left(32) < 0.7 * left(8)


def test_one_class_moves_nothing_where_a_task_has_healthy_patients():
    prevalence = torch.full((50, 4), 0.25)
    config = FindingsConfig(healthy_share=1.0, informative=(1.0, 1.0), raised=(1.0, 1.0))
    centres = draw_centres(torch.Generator().manual_seed(4), config, prevalence, 6)
    assert ((centres == 0).all(-1).sum(1) == 1).all()
