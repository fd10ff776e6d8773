"""Where continuous outcomes have a network of their own, each kind of outcome has the answers of its network alone."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.stages import Stage
from l2m_core.model.by_outcome import ByOutcome, join, networks
from l2m_core.model.interface import ModelConfig
from tests.learn.examples import small_loop, stream
from tests.model.examples import answers, draw_example, tiny_model
from train.initial_model import forget_policy, freeze_all_but

NETWORKS = {"classes": 0, "continuous": 1}


def joined() -> ByOutcome:
    return join(*(tiny_model("cells", "any", seed, vote=True, value_bins=6) for seed in (1, 2))).eval()


@pytest.mark.parametrize("outcome", NETWORKS)
def test_a_kind_of_outcome_is_answered_by_its_own_network(outcome):
    model, example = joined(), draw_example(outcome, 3)
    of_each = []
    for one in (model, *networks(model)):
        output = one.query(one.condition(example.context, chunk=4), example.x, example.a)
        of_each.append(torch.cat([answers(output), output.values.flatten(2)], dim=-1))
    whole, own = of_each[0], of_each[1 + NETWORKS[outcome]]
    assert torch.equal(whole, own) and not torch.equal(whole, of_each[2 - NETWORKS[outcome]])


@pytest.mark.parametrize("outcome", NETWORKS)
def test_what_one_network_is_taught_leaves_the_other_bit_for_bit(outcome):
    model = joined().train()
    before = [{name: p.clone() for name, p in network.named_parameters()} for network in networks(model)]
    stages = (Stage(steps=3, tasks=2, rows=(24,), features=(3,), continuous=float(outcome == "continuous")),)
    small_loop(None, draw=stream(stages=stages).episode, loss=PredictorLoss(model), stages=stages).run()
    moved = [
        any(not torch.equal(p, old[name]) for name, p in network.named_parameters())
        for network, old in zip(networks(model), before, strict=True)
    ]
    assert moved == [outcome == "classes", outcome == "continuous"]


def test_heads_are_told_apart_from_the_trunk_in_both_networks():
    def parts(names) -> set[str]:
        return {".".join(name.split(".")[:2]) for name in names}

    model = joined()
    freeze_all_but(model, "gain", "policy")
    taught = parts(name for name, p in model.named_parameters() if p.requires_grad)
    assert taught == {"for_classes.gain", "for_classes.policy", "for_numbers.gain", "for_numbers.policy"}
    before = {name: p.clone() for name, p in model.named_parameters()}
    forget_policy(model)
    forgot = parts(name for name, p in model.named_parameters() if not torch.equal(p, before[name]))
    assert forgot == {"for_classes.policy", "for_numbers.policy"}


@pytest.mark.parametrize("settings", [{"encoder": "rows", "features": 3, "outcome": "classes"}, {"outcome": "classes"}])
def test_a_model_of_one_kind_of_outcome_has_one_network(settings):
    with pytest.raises(ConfigError, match="continuous_apart"):
        ModelConfig(continuous_apart=True, **settings)
