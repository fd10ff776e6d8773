"""What the policy's objectives teach where the right choice is known; and that a blocked policy is blocked."""

import pytest
import torch
from torch import nn

from l2m_core.errors import ConfigError
from l2m_core.learn.losses import GainLoss, RowsPredictorLoss, context_of, divergence, log_loss
from l2m_core.learn.picks import open_softmax, straight_through
from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.learn.stages import Episode, Stage, random_orders, random_unknown
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.tasks.batch import TaskBatch
from tests.learn.examples import fresh_model, stream
from tests.model.examples import KINDS, draw_example, tiny_model

D = 4
EVERYTHING = [
    ("exact", "gumbel"),
    ("greedy", "gumbel"),
    ("greedy", "reinforce"),
    ("lookahead", "gumbel"),
    ("lookahead", "reinforce"),
]


class Table(nn.Module):
    """A predictor that is a formula of what is known, and a policy that is one logit for each feature and state.

    tells(known): how sure the prediction gets, from (…, d) known shares.
    """

    def __init__(self, tells):
        super().__init__()
        self.tells = tells
        self.logits = nn.Parameter(torch.zeros(D + 1, D))  # by the number of features known

    def condition(self, context):
        ones = torch.ones(len(context.y), 1)
        return Memory((), (), None, context.n_classes, 0 * ones, ones)

    def query(self, memory, x, a, reveal=None, rank=True):
        known = a.float() if reveal is None else torch.where(a, 1.0, reveal)
        sure = self.tells(known)
        policy = self.logits[known.detach().sum(-1).round().long()]
        return Output(torch.stack([-sure, sure], -1), policy, torch.zeros_like(x))


def episode(seed: int = 0, missing: float = 0.0) -> Episode:
    """Everybody has outcome 1; nothing is known; some values were never recorded."""
    r = torch.rand(2, 20, D, generator=torch.Generator().manual_seed(seed)) >= missing
    y, classes = torch.ones(2, 20, dtype=torch.long), torch.full((2,), 2)
    tasks = TaskBatch(torch.zeros(2, 20, D), r, y, classes, torch.ones(2, D).bool(), torch.zeros(2, D).bool())
    return Episode(tasks, 4, torch.zeros(2, 16, D, dtype=torch.bool), seed)


def learn(tells, config: PolicyConfig, steps: int = 60) -> torch.Tensor:
    """The policy's probabilities before anything is known."""
    model = Table(tells)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for step in range(steps):
        optimiser.zero_grad()
        PolicyLoss(model, config)(episode(step))[0].backward()
        optimiser.step()
    return model.logits[0].detach().softmax(-1)


@pytest.mark.parametrize("objective, estimator", EVERYTHING)
def test_the_feature_that_tells_most_is_picked(objective, estimator):
    weight = torch.tensor([0.0, 0.3, 1.5, 0.0])
    config = PolicyConfig(objective, estimator, ahead=0, target="realised")
    assert learn(lambda known: (known * weight).sum(-1), config)[2] > 0.7


def test_entropy_that_is_worth_more_than_any_gain_keeps_every_choice_open():
    weight = torch.tensor([0.0, 0.3, 1.5, 0.0])
    undecided = PolicyConfig("exact", target="realised", entropy=100.0)
    assert learn(lambda known: (known * weight).sum(-1), undecided).tolist() == pytest.approx([0.25] * D, abs=0.02)


@pytest.mark.parametrize("objective, estimator", EVERYTHING)
def test_the_weight_is_the_policy_s_and_not_the_predictor_s(objective, estimator):
    """loss(weight) = weight · (the policy's part) + the log loss before."""
    model = Table(lambda known: (known * torch.tensor([0.1, 0.3, 1.5, 0.0])).sum(-1))

    def loss(weight: float, keep_predicting: bool) -> float:
        config = PolicyConfig(objective, estimator, weight=weight)
        return float(PolicyLoss(model, config, keep_predicting)(episode(3))[0].detach())

    before = loss(1.0, True) - loss(1.0, False)
    assert before == pytest.approx(0.6931, abs=1e-3)  # nothing is known, and two classes
    assert loss(30.0, True) == pytest.approx(30 * loss(1.0, False) + before, rel=1e-4)


@pytest.mark.parametrize("wrong", [{"weight": 0.0}, {"weight": -1.0}, {"entropy": -0.1}])
def test_a_weight_must_be_positive_and_entropy_cannot_cost(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        PolicyConfig("exact", **wrong)


@pytest.mark.parametrize("estimator", ["gumbel", "reinforce"])
def test_looking_ahead_finds_a_pair_that_tells_only_together(estimator):
    def pair(known):
        return 2.0 * known[..., 1] * known[..., 3] + 0.15 * known[..., 0]

    ahead = learn(pair, PolicyConfig("lookahead", estimator, ahead=1), steps=120)
    assert ahead[1] + ahead[3] > 0.7
    greedy = learn(pair, PolicyConfig("exact", target="realised"), steps=120)
    assert greedy[0] > 0.7  # the best single feature, and a trap


@pytest.mark.parametrize("objective, estimator", EVERYTHING)
@pytest.mark.parametrize("encoder, outcome", KINDS)
def test_every_objective_works_with_both_encoders_and_moves_the_policy(objective, estimator, encoder, outcome):
    features = 4 if encoder == "rows" else 0
    model = tiny_model(encoder, outcome, **({"features": 4} if features else {}))
    given = next(e for e in map(stream(3).episode, range(100)) if e.tasks.continuous == (outcome == "continuous"))
    loss, report = PolicyLoss(model, PolicyConfig(objective, estimator, steps=2))(given)
    loss.backward()
    moved = [p.grad for name, p in model.named_parameters() if name.startswith("policy")]
    assert any(g.abs().max() > 0 for g in moved if g is not None)
    assert all(torch.tensor(float(value)).isfinite() for value in report.values())


@pytest.mark.parametrize("objective, estimator", EVERYTHING)
def test_a_blocked_feature_is_never_picked(objective, estimator, monkeypatch):
    given = episode(1, missing=0.4)
    asked = []

    class Watched(Table):
        def query(self, memory, x, a, reveal=None, rank=True):
            asked.append(a.float() if reveal is None else a.float() + reveal.detach())
            return super().query(memory, x, a, reveal, rank)

    model = Watched(lambda known: known.sum(-1))
    config = PolicyConfig(objective, estimator, steps=3, ahead=1)
    PolicyLoss(model, config)(given)[0].backward()
    recorded = given.tasks.r[:, 4:].float()
    assert max(known.sum(-1).max() for known in asked) >= 2
    for known in asked:
        allowed = recorded.repeat(1, known.shape[1] // recorded.shape[1], 1)
        assert (known <= allowed + 1e-6).all() and (known <= 1 + 1e-6).all()


def test_when_nothing_is_open_nothing_is_picked():
    logits, is_open = torch.randn(3, D, requires_grad=True), torch.zeros(3, D, dtype=torch.bool)
    assert not open_softmax(logits, is_open).any()
    chosen = straight_through(logits, is_open, 1.0)
    chosen.sum().backward()
    assert not chosen.any() and logits.grad.isfinite().all()


def test_a_choice_is_one_hot_forward_and_soft_backward():
    logits, is_open = torch.randn(6, D, requires_grad=True), torch.tensor([True, True, False, True]).expand(6, D)
    chosen = straight_through(logits, is_open, 0.5)
    assert torch.equal(chosen.detach().sum(-1), torch.ones(6)) and not chosen[:, 2].any()
    (chosen * torch.arange(D)).sum().backward()
    assert (logits.grad[:, [0, 1, 3]].abs() > 0).all() and not logits.grad[:, 2].any()


@pytest.mark.parametrize(
    "settings", [{"objective": "best"}, {"estimator": "magic"}, {"temperature": 0.0}, {"samples": 0}, {"ahead": -1}]
)
def test_settings_out_of_range_are_refused_by_name(settings):
    with pytest.raises(ConfigError, match=f"policy.{next(iter(settings))}"):
        PolicyConfig(**settings)


# -- the gain head and the rows encoder's loss


def test_the_gain_head_learns_what_a_reveal_tells():
    class Scaled(Table):
        def __init__(self):
            super().__init__(lambda known: known @ torch.tensor([0.0, 0.5, 1.5, 0.0]))
            self.gains = nn.Parameter(torch.full((D,), 0.2))

        def query(self, memory, x, a, reveal=None, rank=True):
            output = super().query(memory, x, a, reveal, rank)
            return Output(output.prediction, output.policy, self.gains.expand_as(x))

    model = Scaled()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(150):
        optimiser.zero_grad()
        loss, report = GainLoss(model, "realised")(episode(step))
        loss.backward()
        optimiser.step()
    p = torch.sigmoid(2 * torch.tensor([0.0, 0.5, 1.5, 0.0]))
    torch.testing.assert_close(model.gains.detach(), p.log() - torch.tensor(0.5).log(), atol=0.03, rtol=0.1)
    assert float(report["explained"]) > 0.9


def test_an_unknown_target_is_refused():
    with pytest.raises(ConfigError, match="expected, realised, mixed"):
        GainLoss(fresh_model(), "hoped")


def test_random_reveals_are_different_unknown_features():
    given = episode(2, missing=0.5)
    unknown = given.tasks.r[:, 4:]
    picks = random_unknown(unknown, 3, given)
    for row, chosen in zip(unknown.flatten(0, 1), picks.flatten(0, 1).tolist(), strict=True):
        real = [j for j in chosen if j >= 0]
        assert len(real) == len(set(real)) == min(3, int(row.sum())) and all(row[j] for j in real)


def test_random_orders_are_parts_of_what_was_recorded_and_grow_along_the_way():
    given = stream(Stage(steps=1).steps).episode(0)
    a = random_orders(given, 4)
    assert not (a & ~given.tasks.r[:, None, given.context :]).any()
    share = a.float().mean((0, 2, 3))
    assert (share[1:] > share[:-1]).all()


def test_the_rows_loss_is_the_mean_over_context_sizes():
    model = tiny_model("rows", "classes", features=4)
    given = next(e for e in map(stream(3).episode, range(100)) if not e.tasks.continuous)
    loss, _ = RowsPredictorLoss(model, orders=2)(given)
    loss.backward()
    assert loss.isfinite() and all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


def test_divergence_is_zero_for_one_belief_and_positive_for_two():
    memory = Memory((), (), None, torch.tensor([3, 3]), torch.zeros(2, 1), torch.ones(2, 1))
    logits = torch.randn(2, 2, 5, 3, generator=torch.Generator().manual_seed(0))
    logits[..., 2] = float("-inf")
    one, two = (Output(each, each, each) for each in logits)
    assert not divergence(one, one, memory).any() and (divergence(one, two, memory) > 0).all()


@pytest.mark.parametrize("objective", ["greedy", "lookahead"])
@pytest.mark.parametrize("outcome", ["classes", "continuous"])
def test_a_loss_over_every_context_size_is_the_mean_of_those_of_each(objective, outcome):
    """Where what is open is all taken, nothing is random: each query is asked after the context and the queries before it."""
    model = tiny_model("rows", outcome, 3, standardise=False)
    example = draw_example(outcome, 5, rows=14)
    x, y = example.context.x, example.context.y
    r = torch.zeros_like(example.context.r)
    r[..., :3] = True
    acquirable = torch.ones(2, x.shape[-1], dtype=torch.bool)
    tasks = TaskBatch(x, r, y, example.context.n_classes, acquirable, ~acquirable)
    known = torch.zeros(2, 5, x.shape[-1], dtype=torch.bool)
    known[..., : 2 if objective == "greedy" else 1] = True  # a lookahead takes both of the two open ones, in some order
    whole = PolicyLoss(model, PolicyConfig(objective, samples=2, every_context=True))(Episode(tasks, 9, known))[1]
    targets = Context(x[:, 9:], r[:, 9:], y[:, 9:], tasks.n_classes, ~acquirable)
    for name, a in (("before", known), ("loss", r[:, 9:])):
        expected = log_loss(*model.autoregress(context_of(tasks, 9), targets, a[:, None]), targets.y).mean()
        assert whole[name].item() == pytest.approx(expected.item(), rel=1e-5)
    rows = [
        PolicyLoss(model, PolicyConfig(objective, samples=2, every_context=every))(
            Episode(tasks.map(lambda t: t[:, :10] if t.ndim > 1 and t.shape[1] == 14 else t), 9, known[:, :1])
        )[1]["loss"].item()
        for every in (True, False)
    ]
    assert rows[0] == pytest.approx(rows[1], rel=1e-5), "with one query there is one context size"


def test_a_loss_over_every_context_size_needs_rows_and_sampled_picks():
    with pytest.raises(ConfigError, match="rows model"):
        PolicyLoss(fresh_model(), PolicyConfig("greedy", every_context=True))(stream().episode(0))
    with pytest.raises(ConfigError, match="every_context"):
        PolicyConfig("exact", every_context=True)


def test_plain_reinforce_weighs_a_path_by_its_loss_and_a_baseline_by_how_it_differs():
    """Where every choice leaves the same loss, a path against the query's others says nothing; alone it says its loss."""
    gradient = {}
    for baseline in (True, False):
        model = Table(lambda known: 0.0 * known.sum(-1) - 1.0)
        config = PolicyConfig("greedy", "reinforce", samples=3, baseline=baseline)
        PolicyLoss(model, config)(episode())[0].backward()
        gradient[baseline] = model.logits.grad.abs().max().item()
    assert gradient[True] < 1e-6 < 1e-3 < gradient[False]
