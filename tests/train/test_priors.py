"""A job's prior, by kind of outcome."""

import torch

from train.priors import PriorChoice, priors_of

PARTS = [{"prior": "synthetic", "weight": 1.0, "settings": {"binary_share": 1.0}}, {"prior": "findings", "weight": 3.0}]


def test_each_kind_of_outcome_has_the_parts_of_a_mixture_that_know_it():
    priors = priors_of(PriorChoice("mixture", {"parts": PARTS}))
    generator = torch.Generator().manual_seed(0)
    classes = priors["classes"].sample(generator, 40, 30, 5)
    continuous = priors["continuous"].sample(generator, 4, 30, 5)
    # Only the findings part draws more than two classes.
    assert classes.n_classes is not None and 2 < int(classes.n_classes.max())
    assert continuous.continuous


def test_a_kind_that_no_part_knows_is_left_out():
    assert list(priors_of(PriorChoice("mixture", {"parts": [PARTS[1]]}))) == ["classes"]
    only = [{"prior": "synthetic", "settings": {"outcome": "continuous"}}, PARTS[1]]
    priors = priors_of(PriorChoice("mixture", {"parts": only}))
    assert sorted(priors) == ["classes", "continuous"]
    assert len(priors["classes"].priors) == len(priors["continuous"].priors) == 1
