"""A grown model answers as the one it grew from, and only what can grow does."""

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.model.by_outcome import networks
from tests.model.examples import draw_example, tiny_model
from train.initial_model import grow_model


@pytest.mark.parametrize("layers", [2, 3, 5])
def test_a_deeper_model_answers_as_before_and_can_learn(layers):
    model, example = tiny_model("cells", "classes", vote=True), draw_example("classes", 1)
    grown = grow_model(model, {"layers": layers, "value_bins": 6})
    with torch.no_grad():
        before = model.query(model.condition(example.context), example.x, example.a)
        after = grown.eval().query(grown.condition(example.context), example.x, example.a)
    assert grown.config.layers == layers and grown.config.value_bins == 6
    assert torch.equal(before.prediction, after.prediction) and torch.equal(before.gain, after.gain)
    assert after.values.shape[-1] == 6 and not after.values.any()
    grown.query(grown.condition(example.context), example.x, example.a).prediction[..., 0].sum().backward()
    assert all(block.feed.out.weight.grad.abs().sum() > 0 for block in grown.blocks)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"width": 256}, "cannot grow 'width'"), ({"layers": 1}, "has 2 already"), ({"layers": "3"}, "layers")],
)
def test_what_cannot_grow_is_refused(changes, words):
    with pytest.raises(ConfigError, match=words):
        grow_model(tiny_model("cells", "classes"), changes)


@pytest.mark.parametrize("outcome", ["classes", "continuous"])
def test_a_model_whose_continuous_outcomes_get_a_network_of_their_own_answers_as_before(outcome):
    model, example = tiny_model("cells", "any"), draw_example(outcome, 1)
    grown = grow_model(model, {"continuous_apart": True, "value_bins": 6}).eval()
    assert grown.config.continuous_apart and grown.config.value_bins == 6
    deeper = grow_model(grown, {"layers": 3}).eval()
    assert deeper.config.layers == 3 and [len(network.blocks) for network in networks(deeper)] == [3, 3]
    with torch.no_grad():
        asked = [one.query(one.condition(example.context), example.x, example.a) for one in (model, grown, deeper)]
    for one in asked[1:]:
        assert torch.equal(asked[0].prediction, one.prediction) and torch.equal(asked[0].gain, one.gain)
    with pytest.raises(ConfigError, match="has continuous_apart of its own already"):
        grow_model(grown, {"continuous_apart": True})
