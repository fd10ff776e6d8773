"""Losses on episodes. Each is a module, so that its parameters can be swapped for bf16 copies in one call."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.errors import ConfigError
from l2m_core.learn.stages import Episode, reveal_share
from l2m_core.model.density import predictive
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.tasks.batch import TaskBatch


def context_of(tasks: TaskBatch, rows: int) -> Context:
    """The first `rows` rows of each task, as a model reads them."""
    return Context(tasks.x[:, :rows], tasks.r[:, :rows], tasks.y[:, :rows], tasks.n_classes, tasks.categorical)


def log_loss(output: Output, memory: Memory, y: Tensor) -> Tensor:
    """(B, n) negative log likelihood; of the standardised outcome where it is continuous, so tasks weigh alike."""
    if memory.n_classes is None:
        return -(predictive(output, memory).log_prob(y) + memory.outcome_scale.log())
    logits = output.prediction.flatten(0, 1)
    return F.cross_entropy(logits, y.flatten(), reduction="none").view(y.shape)


def query_losses(model: nn.Module, episode: Episode, rank: bool = False) -> tuple[Tensor, Memory]:
    """(B, n) log loss of the episode's queries, and the memory of its context; rank: see Encoder."""
    tasks, n = episode.tasks, episode.context
    memory = model.condition(context_of(tasks, n), rank=rank)  # type: ignore[operator]
    output = model.query(memory, tasks.x[:, n:], episode.a, rank=rank)  # type: ignore[operator]
    return log_loss(output, memory, tasks.y[:, n:]), memory


class PredictorLoss(nn.Module):
    """Algorithm 1 of the study for the cells encoder: log loss of queries known in part, in random order."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, episode: Episode) -> tuple[Tensor, dict[str, Tensor]]:
        loss, _ = query_losses(self.model, episode)
        return loss.mean(), {"loss": loss.detach().mean()}


class RowsPredictorLoss(nn.Module):
    """Algorithm 1 of the study for the rows encoder: log loss at every context size from `episode.context` up.

    Each row after the context is asked about in `orders` ways, at points spread evenly along random acquisition
    orders, then joins the context. The rows with outcomes are encoded once for all of it.
    """

    def __init__(self, model: nn.Module, orders: int = 4):
        super().__init__()
        self.model, self.orders = model, orders

    def forward(self, episode: Episode) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = episode.tasks, episode.context
        # Rows n … N - 1 both ask (as queries, without their outcome) and join the context (as targets, with it): the
        # study's z_qry and z_tar.
        targets = Context(tasks.x[:, n:], tasks.r[:, n:], tasks.y[:, n:], tasks.n_classes, tasks.categorical)
        output, memory = self.model.autoregress(context_of(tasks, n), targets, random_orders(episode, self.orders))
        loss = log_loss(output, memory, targets.y.repeat(1, self.orders))
        return loss.mean(), {"loss": loss.detach().mean()}


def random_orders(episode: Episode, count: int) -> Tensor:
    """(B, count, n, d): what is known of each query at `count` points of random orders of its recorded features."""
    r = episode.tasks.r[:, None, episode.context :]
    n, d = r.shape[-2:]
    order = episode.uniform(count, n, d)
    # Stratified: way i falls into the i-th of `count` equal parts of its order, so every query is seen nearly empty
    # and nearly complete at each step. The study draws one state per step; several per query cost little, as all read
    # the same keys.
    share = (torch.arange(count, device=r.device)[:, None, None] + episode.uniform(count, n, 1, stream=1)) / count
    # Half of the tasks have their baseline features known from the start, as at the bedside; the other half teach the
    # model to do without.
    keeps_baseline = episode.uniform(1, 1, 1, stream=2) < 0.5
    return reveal_share(order, share, r, keeps_baseline & ~episode.tasks.acquirable[:, None, None])


class GainLoss(nn.Module):
    """Teaches the gain head on a trained predictor: measure one more feature, and see what it told.

    For each query, `reveals` recorded but unknown features are measured in turn against the same memory. Two targets
    have the conditional mutual information as their mean when the predictor is calibrated: the realised drop in log
    loss ("realised": honest about miscalibration, very noisy), and the divergence of the new belief from the old one
    ("expected": the same drop averaged over the outcome, far less noisy). "mixed" halves the difference.
    With `policy`, the policy head learns from the same measurements, by the exact objective over the features tried.
    """

    def __init__(self, model: nn.Module, target: str = "expected", reveals: int = 2, policy: bool = False):
        super().__init__()
        check_target(target)
        self.model, self.target, self.reveals, self.policy = model, target, reveals, policy

    def forward(self, episode: Episode) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = episode.tasks, episode.context
        x, y, r, a = tasks.x[:, n:], tasks.y[:, n:], tasks.r[:, n:], episode.a
        # The predictor is frozen: only heads learn here, and the context needs no graph.
        with torch.no_grad():
            memory = self.model.condition(context_of(tasks, n))
        output = self.model.query(memory, x, a)
        # (B, n, m): blocked like the policy, since only what was recorded can be revealed.
        choices = random_unknown(r & ~a, self.reveals, episode)
        expected, realised = reveal_each(self.model, memory, x, y, a, choices, output)
        # Rare patients whose belief turns over would dominate a squared error, so targets stay within 3 nats.
        target = choose_target(self.target, expected, realised).clamp(-3.0, 3.0)
        # Gather the head's numbers for the features tried; -1 reads feature 0 and has a weight of 0.
        gain, weight = output.gain.gather(-1, choices.clamp_min(0)), (choices >= 0).float()
        # A slot with nothing left to measure counts as an error of 0, so that the mean over tasks is a plain one.
        # The larger a task's gains, the larger their scatter: unweighted, a few tasks would teach the head everything.
        scale = (target * weight).sum((1, 2)).clamp_min(0) / weight.sum((1, 2)).clamp_min(1)  # (B,)
        loss = ((gain - target).square() * weight / (scale + LEAST_SCALE)[:, None, None]).mean()
        report = {"loss": loss.detach(), **_compare(gain.detach(), target, realised, weight)}
        if self.policy:
            # The exact objective over the features tried: E_π[gain], maximised.
            chance = open_softmax(output.policy.gather(-1, choices.clamp_min(0)), choices >= 0)
            achieved = (chance * target).sum(-1)
            loss = loss - achieved.mean()
            report["achieved"] = achieved.detach().mean()
        return loss, report


@torch.no_grad()
def reveal_each(
    model: nn.Module, memory: Memory, x: Tensor, y: Tensor, a: Tensor, choices: Tensor, output: Output
) -> tuple[Tensor, Tensor]:
    """What each feature in `choices` (B, n, m; -1 for none) tells on top of a, whose answer is `output`.

    (B, n, m) divergences of the new belief from the old, and drops in log loss, in nats; 0 where the choice is -1.
    """
    before = log_loss(output, memory, y)
    expected, realised = [], []
    for j in choices.unbind(-1):
        # One feature more than `a`, the same for all else. -1 adds nothing, and so tells exactly 0.
        more = F.one_hot(j.clamp_min(0), a.shape[-1]).bool() & (j >= 0)[..., None]
        after = model.query(memory, x, a | more, rank=False)
        expected.append(divergence(after, output, memory))
        realised.append(before - log_loss(after, memory, y))
    return torch.stack(expected, -1), torch.stack(realised, -1)


LEAST_SCALE = 0.02  # nats; keeps tasks in which nothing tells anything from counting for all

TARGETS = ("expected", "realised", "mixed")


def check_target(target: str) -> None:
    if target not in TARGETS:
        raise ConfigError(f"target is {target!r}; it must be one of {', '.join(TARGETS)}.")


def choose_target(name: str, expected: Tensor, realised: Tensor) -> Tensor:
    return {"expected": expected, "realised": realised, "mixed": (expected + realised) / 2}[name]


def _compare(gain: Tensor, target: Tensor, drop: Tensor, weight: Tensor) -> dict[str, Tensor]:
    """Means over real reveals, and the share of the target's variance within them that the head explains."""
    count = weight.sum().clamp_min(1)
    # Explained variance: 1 - squared error / variance of the target.
    middle = (target * weight).sum() / count
    spread = ((target - middle).square() * weight).sum().clamp_min(1e-6)
    return {
        "gain": (gain * weight).sum() / count,
        "target": middle,
        "realised": (drop * weight).sum() / count,
        "explained": 1 - ((gain - target).square() * weight).sum() / spread,
    }


def random_unknown(unknown: Tensor, count: int, episode: Episode, stream: int = 0) -> Tensor:
    """(B, n, count) indices of different unknown features, -1 where a query has fewer."""
    # A random key for each unknown feature and 0 for the others: the largest `count` keys are a draw without
    # replacement.
    key = episode.uniform(*unknown.shape[1:], stream=stream) * unknown
    best = key.topk(min(count, unknown.shape[-1]), dim=-1)
    return torch.where(best.values > 0, best.indices, -1)


def open_softmax(logits: Tensor, is_open: Tensor) -> Tensor:
    """The blocked policy: probabilities over what is open, all 0 where nothing is."""
    # -1e9 instead of -inf: a row with nothing open would else be NaN; the product makes it 0.
    chance = logits.masked_fill(~is_open, -1e9).softmax(-1)
    return chance * is_open


def divergence(after: Output, before: Output, memory: Memory) -> Tensor:
    """(B, n) KL(after ‖ before) in nats: how far what was measured moved the belief."""
    if memory.n_classes is None:
        return predictive(after, memory).divergence(predictive(before, memory))  # type: ignore[arg-type]
    log_p, log_q = after.prediction.log_softmax(-1), before.prediction.log_softmax(-1)
    p = log_p.exp()
    # 0 · log 0 = 0, and classes that a task does not have are at log p = -inf in both.
    return (p * torch.where(p > 0, log_p - log_q, 0.0)).sum(-1)


def share_of(episode: Episode, rank: int, world: int) -> Episode:
    """The tasks that one of several processes works on."""
    if world == 1:
        return episode
    # Every world-th task, so that the processes' shares differ by one at most; `share` lets random draws match those
    # of a single process.
    part = slice(rank, None, world)
    tasks, share = episode.tasks.map(lambda t: t[part]), (rank, world, len(episode.a))
    return replace(episode, tasks=tasks, a=episode.a[part], share=share)
