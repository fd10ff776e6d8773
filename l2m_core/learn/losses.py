"""Losses on episodes. Each is a module, so that its parameters can be swapped for bf16 copies in one call."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.errors import ConfigError
from l2m_core.learn.picks import open_softmax
from l2m_core.learn.stages import Episode, random_orders, random_unknown
from l2m_core.model.columns import Columns
from l2m_core.model.density import Density, predictive
from l2m_core.model.interface import Context, Memory, Output
from l2m_core.model.results import results_to_try, value_loss
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


def soft_log_loss(output: Output, memory: Memory, tasks: TaskBatch, context: int) -> Tensor:
    """(B, n) expected log loss of the queries after `context`, under the prior's own p(y | what the mechanism saw).

    Its gradient has the mean of the drawn outcome's and less noise, wherever missingness does not look at the outcome.
    A task whose truth has no closed form counts by its drawn outcome.
    """
    if tasks.continuous:
        return torch.stack([log_loss(output, memory, y) for y in _outcomes(tasks, context).unbind(-1)]).mean(0)
    log_p = output.prediction.log_softmax(-1)  # (B, n, K)
    drawn = F.one_hot(tasks.y[:, context:], log_p.shape[-1]).to(log_p.dtype)
    known = tasks.truth.probabilities if tasks.truth is not None else None
    if known is not None:
        # Priors draw as many columns of classes as their widest task has; the model always has max_classes.
        p = F.pad(known[:, context:], (0, log_p.shape[-1] - known.shape[-1])).to(log_p.dtype)
        drawn = torch.where(p.isfinite().all(-1, keepdim=True), p, drawn)
    # 0 · log 0 = 0: classes that a task does not have are at -inf.
    return -(drawn * torch.where(drawn > 0, log_p, 0.0)).sum(-1)


def soft_crps(output: Output, memory: Memory, tasks: TaskBatch, context: int) -> Tensor:
    """(B, n) CRPS of the queries after `context` of a continuous outcome, as the truth expects it where it is known."""
    density = predictive(output, memory)
    assert isinstance(density, Density)
    return torch.stack([density.crps(y) for y in _outcomes(tasks, context).unbind(-1)]).mean(0)


def _outcomes(tasks: TaskBatch, context: int) -> Tensor:
    """(B, n, S) continuous outcomes of the queries: the truth's draws, or the one outcome that there is."""
    draws = None if tasks.truth is None else tasks.truth.draws
    return tasks.y[:, context:, None] if draws is None else draws[:, context:]


def query_losses(
    model: nn.Module, episode: Episode, rank: bool = False, expected: bool = False
) -> tuple[Tensor, Memory]:
    """(B, n) log loss of the episode's queries, and the memory of its context.

    rank: see Encoder; expected: as the truth expects it (soft_log_loss), not of the outcomes that were drawn.
    """
    tasks, n = episode.tasks, episode.context
    memory = model.condition(context_of(tasks, n), rank=rank)  # type: ignore[operator]
    output = model.query(memory, tasks.x[:, n:], episode.a, rank=rank)  # type: ignore[operator]
    return (soft_log_loss(output, memory, tasks, n) if expected else log_loss(output, memory, tasks.y[:, n:])), memory


class PredictorLoss(nn.Module):
    """Algorithm 1 of the study for the cells encoder: log loss of queries known in part, in random order.

    soft: classes count by the prior's probabilities instead of the drawn class; value_weight: how much the results
    that were recorded but are not yet known count, beside the outcome; crps_weight: how much the CRPS of a continuous outcome
    counts beside its log loss, which a single surprise can rule; earlier: a model whose answers are taught of all
    tasks but those whose best answers are known (l2m_core/tasks/best_answers.py), so that what it knows is not forgotten.
    """

    def __init__(
        self,
        model: nn.Module,
        soft: bool = False,
        value_weight: float = 0.0,
        earlier: nn.Module | None = None,
        crps_weight: float = 0.0,
    ):
        super().__init__()
        self.model, self.soft, self.value_weight, self.crps_weight = model, soft, value_weight, crps_weight
        # In a tuple, so that its parameters are none of this module's.
        self._earlier: tuple[nn.Module, ...] = () if earlier is None else (earlier.eval().requires_grad_(False),)

    def forward(self, episode: Episode) -> tuple[Tensor, dict[str, Tensor]]:
        tasks, n = episode.tasks, episode.context
        is_answered = tasks.truth is not None and tasks.truth.form is not None
        before = self._before(episode) if self._earlier and not is_answered else None
        x, y = tasks.x[:, n:], tasks.y[:, n:]
        # Beside an earlier model, its foresight is all that is taught of results.
        foresees = self.value_weight > 0 and not (self._earlier and is_answered)
        memory = self.model.condition(context_of(tasks, n), rank=foresees)
        output = self.model.query(memory, x, episode.a, rank=foresees)
        if before is not None:
            loss = _divergence(before.prediction, output.prediction).mean()
        else:
            loss = (soft_log_loss(output, memory, tasks, n) if self.soft else log_loss(output, memory, y)).mean()
        report = {"loss": loss.detach()}
        if self.crps_weight and tasks.continuous:
            crps = soft_crps(output, memory, tasks, n).mean()
            loss = loss + self.crps_weight * crps
            report["crps"] = crps.detach()
        if foresees:
            hidden = tasks.r[:, n:] & ~episode.a  # (B, n, d): every result that is there to be foreseen
            if before is not None:
                assert before.values is not None and output.values is not None
                each = _divergence(before.values, output.values)
            else:
                each = value_loss(output.values, memory.columns, x)
            value = (each * hidden).sum() / hidden.sum().clamp_min(1)
            loss = loss + self.value_weight * value
            report["value"] = value.detach()
        return loss, report

    @torch.no_grad()
    def _before(self, episode: Episode) -> Output:
        """What the earlier model answers to the episode's queries."""
        (earlier,) = self._earlier
        tasks, n, foresees = episode.tasks, episode.context, self.value_weight > 0
        memory = earlier.condition(context_of(tasks, n), rank=foresees)  # type: ignore[operator]
        return earlier.query(memory, tasks.x[:, n:], episode.a, rank=foresees)  # type: ignore[operator]


def _divergence(before: Tensor, now: Tensor) -> Tensor:
    """(…, K) logits of both → (…) KL(before ‖ now) in nats; what is impossible to both adds nothing."""
    log_p, log_q = before.float().log_softmax(-1), now.float().log_softmax(-1)
    return torch.where(log_p > -1e9, log_p.exp() * (log_p - log_q.clamp_min(-1e9)), 0.0).sum(-1)


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


class GainLoss(nn.Module):
    """Teaches the gain head on a trained predictor: measure one more feature, and see what it told.

    For each query, `reveals` recorded but unknown features are measured in turn against the same memory. Two targets
    have the conditional mutual information as their mean when the predictor is calibrated: the realised drop in log
    loss ("realised": honest about miscalibration, very noisy), and the divergence of the new belief from the old one
    ("expected": the same drop averaged over the outcome, far less noisy). "mixed" halves the difference. "information" is
    no draw at all: the mutual information under the results that the model foresees and its own answers to them. Its
    errors count on a log scale, so that the head is right about small gains as well.
    With `policy`, the policy head learns from the same measurements, by the exact objective over the features tried.
    """

    def __init__(self, model: nn.Module, target: str = "expected", reveals: int = 2, policy: bool = False):
        super().__init__()
        check_target(target, INFORMATION)
        if target == INFORMATION and not model.config.value_bins:  # type: ignore[union-attr]
            raise ConfigError(
                'target is "information", but the model foresees no results; train them with a value_weight first.'
            )
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
        if self.target == INFORMATION:
            target = information_of_each(self.model, memory, x, a, choices, output)
        else:
            # Rare patients whose belief turns over would dominate a squared error, so targets stay within 3 nats.
            target = choose_target(self.target, expected, realised).clamp(-3.0, 3.0)
        # Gather the head's numbers for the features tried; -1 reads feature 0 and has a weight of 0.
        gain, weight = output.gain.gather(-1, choices.clamp_min(0)), (choices >= 0).float()
        # A slot with nothing left to measure counts as an error of 0, so that the mean over tasks is a plain one.
        if self.target == INFORMATION:
            loss = (((gain + LEAST_GAIN) / (target + LEAST_GAIN)).log().square() * weight).mean()
        else:
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


@torch.no_grad()
def information_of_each(
    model: nn.Module, memory: Memory, x: Tensor, a: Tensor, choices: Tensor, output: Output
) -> Tensor:
    """(B, n, m) mutual information between the outcome and each feature in `choices` (B, n, m; -1 for none), in nats.

    As l2m_core/acquire/information.py computes it for one patient: H(Σ p(v) · p(y | v)) − Σ p(v) · H(p(y | v)).
    """
    which = choices.clamp_min(0)
    # (B, n, m, V): what is foreseen of the features chosen, then (B, n, m, S) results of each to try.
    assert output.values is not None and isinstance(memory.columns, Columns)
    foreseen = output.values.gather(2, which[..., None].expand(*which.shape, output.values.shape[-1]))
    values, chances = results_to_try(foreseen, memory.columns, which)
    information = []
    for slot, j in enumerate(which.unbind(-1)):
        is_j = F.one_hot(j, a.shape[-1]).bool()
        beliefs = []
        for value in values[:, :, slot].unbind(-1):
            after = model.query(memory, torch.where(is_j, value[..., None], x), a | is_j, rank=False)
            beliefs.append(
                after.prediction.float().softmax(-1)
            )  # (B, n, K): of classes, or of a continuous outcome's bins
        p, chance = torch.stack(beliefs, 2), chances[:, :, slot]  # (B, n, S, K) and (B, n, S)
        information.append(entropy((chance[..., None] * p).sum(2)) - (chance * entropy(p)).sum(2))
    return torch.stack(information, -1).clamp_min(0) * (choices >= 0)


def entropy(p: Tensor) -> Tensor:
    """(…, K) → (…) in nats; 0 · log 0 = 0."""
    return -(p * p.clamp_min(1e-12).log()).sum(-1)


LEAST_GAIN = 5e-4  # nats; gains well below it count as alike
LEAST_SCALE = 0.02  # nats; keeps tasks in which nothing tells anything from counting for all

INFORMATION = "information"
DRAWN_TARGETS = ("expected", "realised", "mixed")  # of one result, the one that was recorded


def check_target(target: str, *more: str) -> None:
    if target not in (*DRAWN_TARGETS, *more):
        raise ConfigError(f"target is {target!r}; it must be one of {', '.join((*DRAWN_TARGETS, *more))}.")


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
