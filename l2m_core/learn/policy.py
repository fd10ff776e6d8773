"""Algorithm 2 of the study: the policy head learns to pick what will lower the log loss.

The policy is blocked: only what was recorded (r = 1) and is not yet known may be picked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from l2m_core.errors import ConfigError
from l2m_core.learn.losses import (
    check_target,
    choose_target,
    context_of,
    log_loss,
    reveal_each,
)
from l2m_core.learn.picks import LEAST_UNIFORM, gumbel, one_hot, open_softmax, straight_through
from l2m_core.learn.stages import Episode, random_unknown
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.settings import check_least


@dataclass(frozen=True)
class PolicyConfig:
    """The policy's objective, and how its gradient passes through a choice."""

    objective: str = "exact"
    """"greedy": the log loss after one more feature; "lookahead": after `ahead` more beyond it, picked by the policy
    itself; "exact": the mean gain of one more feature over all candidates, with no sampling noise."""
    estimator: str = "gumbel"
    """"gumbel": straight-through Gumbel-softmax; "reinforce": the score function, for reference. Not for "exact"."""
    temperature: float = 1.0
    """Of the Gumbel-softmax; lower is less biased and noisier."""
    ahead: int = 1
    """k of the lookahead."""
    samples: int = 4
    """Sampled paths for each query (N_MC); "greedy" and "lookahead"."""
    steps: int = 1
    """Acquisitions in a row from each state; later states are those that the policy itself reaches."""
    candidates: int = 0
    """"exact": when positive, at most so many randomly chosen features stay open, which bounds the cost of a step."""
    target: str = "expected"
    """"exact": what a gain is taken to be; see GainLoss."""
    weight: float = 1.0
    """Of the objective beside the log loss before picking, where the trunk is trained along: what one more feature tells is a
    hundredth of that loss, and its gradient would drown in the other's."""
    entropy: float = 0.0
    """"exact": so much gain, in nats, a nat of the policy's entropy is worth. Without it a policy that knows nothing yet
    settles on one feature for all tasks, where its gradient vanishes."""
    every_context: bool = False
    """rows, "greedy" and "lookahead": the loss is a mean over every context size from the episode's up, as in Algorithm 2 of
    the study, in place of the episode's own."""
    baseline: bool = True
    """"reinforce": whether a path's loss counts against the query's other paths (or what it began with), which lowers the
    variance. False: the plain estimator."""

    def __post_init__(self) -> None:
        if self.objective not in ("greedy", "lookahead", "exact"):
            raise ConfigError(f"policy.objective is {self.objective!r}; it must be greedy, lookahead or exact.")
        if self.estimator not in ("gumbel", "reinforce"):
            raise ConfigError(f"policy.estimator is {self.estimator!r}; it must be gumbel or reinforce.")
        if self.temperature <= 0:
            raise ConfigError(f"policy.temperature is {self.temperature}; it must be above 0.")
        if self.every_context and self.objective == "exact":
            raise ConfigError(
                'policy.every_context is for the objectives greedy and lookahead; "exact" has one context.'
            )
        if self.weight <= 0:
            raise ConfigError(f"policy.weight is {self.weight}; it must be above 0.")
        check_least(self, "policy", ahead=0, samples=1, steps=1, candidates=0, entropy=0.0)
        check_target(self.target)

    @property
    def picks(self) -> int:
        return 1 + (self.ahead if self.objective == "lookahead" else 0)


class PolicyLoss(nn.Module):
    """The loss of the policy, for both encoders.

    keep_predicting: adds the log loss before picking, so that a trunk that is trained along stays a predictor.
    """

    def __init__(self, model: nn.Module, config: PolicyConfig | None = None, keep_predicting: bool = False):
        super().__init__()
        self.model, self.config, self.keep_predicting = model, config or PolicyConfig(), keep_predicting

    def forward(self, episode: Episode) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = episode.tasks, episode.context
        r, y, a = tasks.r[:, n:], tasks.y[:, n:], episode.a
        x = torch.where(r, tasks.x[:, n:], 0.0)  # a relaxed choice touches every value
        context = context_of(tasks, n)
        if self.config.every_context:
            reader: _Reader = _Growing(self.model, context, Context(x, r, y, tasks.n_classes, tasks.categorical))
        else:
            reader = _Fixed(self.model, context)
        improve = self._by_trying_all if self.config.objective == "exact" else self._by_sampling
        total, reports = x.new_zeros(()), []
        for step in range(self.config.steps):
            # Each step draws its random numbers from streams of its own: 100 apart, more than a step takes.
            loss, picked, report = improve(reader, x, y, r, a, episode, 100 * step)
            total = total + loss / self.config.steps
            reports.append(report)
            a = a | picked
        return total, {name: sum(r[name] for r in reports) / len(reports) for name in reports[0]}

    def _by_trying_all(self, reader, x, y, r, a, episode, stream):
        """Maximises Σ π(j) gain(j) over the open features j."""
        config = self.config
        output, memory = reader.query(x, a)
        # All open features, or a random part of them where trying all would cost too much.
        most = min(config.candidates or x.shape[-1], x.shape[-1])
        choices = random_unknown(r & ~a, most, episode, stream)  # (B, n, m)
        expected, realised = reveal_each(self.model, memory, x, y, a, choices, output)
        gain, is_open = choose_target(config.target, expected, realised), choices >= 0
        logits = output.policy.gather(-1, choices.clamp_min(0))
        chance = open_softmax(logits, is_open)
        # The exact expectation over the policy's next pick, Σ_j π(j) · I(Y; X_j | x, D): no sampled action, so no
        # relaxation and no noise of sampling in the gradient.
        achieved = (chance * gain).sum(-1)
        before = log_loss(output, memory, y)
        loss = -config.weight * (achieved + config.entropy * entropy_of(chance)).mean()
        if self.keep_predicting:
            loss = loss + before.mean()
        # How much less than the best candidate's gain the policy expects to get.
        best = torch.where(is_open, gain, float("-inf")).amax(-1)
        regret = torch.where(is_open.any(-1), best - achieved, 0.0)
        noise = gumbel(episode.uniform(*logits.shape[1:], stream=stream + 1))
        # Gumbel-max: the argmax of logits plus Gumbel noise is a draw from the softmax. It only decides which state
        # comes next, so it needs no gradient.
        index = (logits + noise).masked_fill(~is_open, float("-inf")).argmax(-1, keepdim=True)
        picked = one_hot(choices.gather(-1, index)[..., 0], x.shape[-1])
        means = {"loss": before - achieved, "before": before, "gain": achieved, "regret": regret}
        return loss, picked.bool(), _report(means, chance)

    def _by_sampling(self, reader, x, y, r, a, episode, stream):
        """Minimises the log loss at the end of sampled paths of `picks` acquisitions."""
        config = self.config
        output, memory = reader.query(x, a)
        before = log_loss(output, memory, y)
        # (B, samples · n, …): every query walks `samples` paths.
        # N_MC independent noise samples for each query (the Monte Carlo pathwise gradient of the study) walk side by
        # side, as further queries on the same memory.
        x, y, r, a = (t.repeat(1, config.samples, *[1] * (t.ndim - 2)) for t in (x, y, r, a))
        logits = output.policy.repeat(1, config.samples, 1)
        reveal, score = torch.zeros_like(x), x.new_zeros(())
        first = chance = torch.empty(0)
        for pick in range(config.picks):
            if pick:
                logits = reader.query(x, a, reveal)[0].policy
            # The blocked policy: recorded, not known at the start, and not picked earlier on this path.
            is_open = r & ~a & (reveal.detach() < 0.5)
            noise = gumbel(episode.uniform(*logits.shape[1:], stream=stream + 1 + pick))
            # Straight-through Gumbel softmax g_θ(ε; S, D): a hard pick forward, the softmax's gradient backward.
            chosen = straight_through(logits + noise, is_open, config.temperature)
            if pick == 0:
                first, chance = chosen, open_softmax(logits, is_open)
            if config.estimator == "reinforce":
                chosen = chosen.detach()
                # REINFORCE needs log π of what was picked, and no path through the pick itself.
                score = score + (open_softmax(logits, is_open).clamp_min(LEAST_UNIFORM).log() * chosen).sum(-1)
            reveal = reveal + chosen
        # J: the predictor's log loss once the picked features are known. `reveal` carries the gradient into the
        # predictor's input and so back to the policy.
        answer, memory = reader.query(x, a, reveal, rank=False)
        after = log_loss(answer, memory, y)
        loss = after.mean()
        if config.estimator == "reinforce":
            loss = loss + (score * self._advantage(after.detach(), before.detach())).mean()
        loss = config.weight * loss
        if self.keep_predicting:
            loss = loss + before.mean()
        # The first path's first pick moves the state on.
        picked = first[:, : before.shape[1]].detach() > 0.5
        return loss, picked, _report({"loss": after, "before": before, "gain": before.mean() - after}, chance)

    def _advantage(self, after: Tensor, before: Tensor) -> Tensor:
        """A path's log loss: as it is, or against the mean of the query's other paths, or against where it began."""
        samples = self.config.samples
        if not self.config.baseline:
            return after
        if samples == 1:
            return after - before
        paths = after.unflatten(1, (samples, -1))
        # Leave-one-out baseline: unbiased, since it does not depend on the path itself, and of less variance.
        others = (paths.sum(1, keepdim=True) - paths) / (samples - 1)
        return (paths - others).flatten(1, 2)


class _Reader(Protocol):
    """Answers for the queries of an episode, as (output, the memory that it was read from)."""

    def query(self, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> tuple[Output, Memory]: ...


class _Fixed:
    """All queries read the episode's context."""

    def __init__(self, model: nn.Module, context: Context):
        self.model, self.memory = model, model.condition(context)  # type: ignore[operator]

    def query(self, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> tuple[Output, Memory]:
        return self.model.query(self.memory, x, a, reveal, rank=rank), self.memory  # type: ignore[operator]


class _Growing:
    """Each query reads the context and the queries before it, with their outcomes: one of every context size.

    queries: T rows. What is asked comes as (B, m·T, d), m ways of each one after the other.
    """

    def __init__(self, model: nn.Module, context: Context, queries: Context):
        if not hasattr(model, "autoregress"):
            raise ConfigError(
                "policy.every_context needs a rows model; a cells model reads one context for all queries."
            )
        self.model, self.context, self.queries = model, context, queries

    def query(self, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> tuple[Output, Memory]:
        ways = (-1, self.queries.x.shape[1])
        shown = None if reveal is None else reveal.unflatten(1, ways)
        return self.model.autoregress(self.context, self.queries, a.unflatten(1, ways), shown)  # type: ignore[operator]


def _report(values: dict[str, Tensor], chance: Tensor) -> dict[str, Tensor]:
    """Means, and the mean entropy of the policy in nats."""
    return {name: value.detach().mean() for name, value in {**values, "entropy": entropy_of(chance)}.items()}


def entropy_of(chance: Tensor) -> Tensor:
    """(…, d) → (…) in nats: log d for a policy that knows nothing, 0 for one that is sure."""
    return -(chance * chance.clamp_min(LEAST_UNIFORM).log()).sum(-1)
