"""The vote of context rows: by class, not by code, and silent until it has learnt something."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.model.heads import Vote
from tests.model.examples import CLASSES, draw_example, tiny_model
from train.initial_model import grow_model


def shaken_vote() -> Vote:
    torch.manual_seed(0)
    vote = Vote(width=16, heads=2)
    with torch.no_grad():
        vote.weight.copy_(torch.tensor([0.5, 1.0]))
        vote.sharpen.normal_()
    return vote


def test_a_class_gets_the_same_votes_whatever_its_code():
    vote, order = shaken_vote(), torch.tensor([2, 0, 3, 1])
    outcome, k = torch.randn(2, 5, 16), torch.randn(2, 2, 9, 8)
    labels = torch.nn.functional.one_hot(torch.randint(4, (2, 9)), 4).float()
    there, back = vote(outcome, k, labels, 0.3), vote(outcome, k, labels[..., order], 0.3)
    torch.testing.assert_close(there[..., order], back)
    assert there.std(-1).min() > 0


def test_a_class_that_nobody_has_is_the_least_likely_and_finite():
    labels = torch.zeros(1, 6, 3)
    labels[..., :2] = torch.nn.functional.one_hot(torch.arange(6) % 2, 2)
    logits = shaken_vote()(torch.randn(1, 4, 16), torch.randn(1, 2, 6, 8), labels, 0.0)
    assert logits.isfinite().all() and (logits.argmin(-1) == 2).all()


def test_a_vote_added_to_trained_weights_is_silent_and_then_counts():
    model, example = tiny_model("cells", "classes", vote=False), draw_example("classes", 1)
    grown = grow_model(model, {"vote": True}).eval()
    with torch.no_grad():
        before = model.query(model.condition(example.context), example.x, example.a)
        after = grown.query(grown.condition(example.context), example.x, example.a)
        assert torch.equal(before.prediction, after.prediction) and torch.equal(before.gain, after.gain)
        grown.vote.weight.fill_(0.5)
        counted = grown.query(grown.condition(example.context), example.x, example.a)
    moved = (counted.prediction - before.prediction)[..., :CLASSES]
    assert moved.abs().max() > 0.05 and torch.equal(counted.gain, before.gain)


@pytest.mark.parametrize("model", [tiny_model("rows", "classes"), tiny_model("cells", "classes", vote=True)])
def test_a_model_that_cannot_get_one_is_refused(model):
    with pytest.raises(ConfigError, match="grow"):
        grow_model(model, {"vote": True})


def test_learned_extra_rows_have_no_vote():
    model, example = tiny_model("cells", "classes", vote=True, thinking=3), draw_example("classes", 2)
    memory = model.condition(example.context)
    assert memory.extras["labels"].sum((1, 2)).tolist() == [12, 12] and memory.extras["labels"].shape[1] == 15
    assert model.query(memory, example.x, example.a).prediction[..., :CLASSES].isfinite().all()
