"""The codings of the classes under which a cohort is put to the model, and the answers put together again.

Which code stands for which class is arbitrary, but a model learns that only approximately. Settings of a release
(`AnswerSettings`) correct for it:

class_order: the model is told of the classes in an order that does not depend on their codes (l2m_core/tasks/class_order.py).
views: answers are averaged over several codings of all classes.
against_rest: a model may answer better for two classes than for many. With more than two, a share of the answer comes from
K further tasks, each of which has one class as 1 and all others as 0.
prevalence: where nothing is known of a patient, the answer should be the cohort's class frequencies. All predictions
are moved by a share of the difference there (`prevalence_shift`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.answering.context_rows import even_rows
from l2m_core.model.interface import Context, Output
from l2m_core.tasks.class_order import class_ranks


def codings(classes: int, views: int) -> Tensor:
    """(V, K) int64: the code of each class in each view. The first is the cohort's own; V is `views` or all there are.

    Codes are rotated from one pair of views to the next, and the second view of a pair reverses the first, so that two
    views of two classes are the two there are.
    """
    count = max(1, min(views, 2 if classes == 2 else 2 * classes))
    code = torch.arange(classes)
    found = []
    for view in range(count):
        # Views 0 and 1 are unrotated, 2 and 3 rotated by one code, and so on; odd views are reversed.
        rotated = (code + view // 2) % classes
        found.append(classes - 1 - rotated if view % 2 else rotated)
    return torch.stack(found)


LEAST_CHANCE = 1e-12  # of a bin of a foreseen result, so that its logarithm is finite


@dataclass(frozen=True)
class ClassCodings:
    """How one cohort is put to the model: as T tasks, each with its own coding of the classes."""

    codes: Tensor
    """(T, K) int64: first V codings of all classes, of which the first counts once for each part of the cohort; then, where
    `rest_share` is above 0, K times one class (1) against the rest (0)."""
    rest_share: float = 0.0
    """The share of the answer that comes from the tasks of one class against the rest."""

    @classmethod
    def of(
        cls, classes: int, views: int, rest_share: float, parts: int = 1, by_frequency: Tensor | None = None
    ) -> ClassCodings:
        """parts: in how many the cohort is read, each under the first coding; by_frequency: (N,) outcomes, in an order that does
        not depend on their codes, where the model is told of classes from the most to the least frequent."""
        whole, against_rest = codings(classes, views), torch.eye(classes, dtype=torch.int64)
        if by_frequency is not None:
            whole = whole[:, class_ranks(by_frequency[None], classes)[0]]
            # A class of more than half of the rows is more frequent than the rest.
            is_most = 2 * F.one_hot(by_frequency, classes).sum(0) > len(by_frequency)
            against_rest = torch.where(is_most[:, None], 1 - against_rest, against_rest)
        whole = torch.cat([whole[:1].expand(parts, -1), whole[1:]])
        if classes == 2 or rest_share == 0:
            return cls(whole)
        return cls(torch.cat([whole, against_rest] if rest_share < 1 else [against_rest]), rest_share)

    @property
    def views(self) -> int:
        """V: tasks with all classes."""
        return len(self.codes) - (self.codes.shape[1] if self.rest_share else 0)

    def encode(self, context: Context, parts: Sequence[Context], most_rows: int) -> tuple[Context, ...]:
        """One cohort (B = 1) as T tasks, in batches of equally many rows. parts: all its rows, as they are read together.

        Of a long cohort the first task of each part is a batch of its own; the others have `most_rows` of all rows.
        """
        assert context.n_classes is not None and len(context.y) == 1
        codes, y = self.codes.to(context.y.device), context.y[0]
        if len(parts) == 1 and len(y) <= most_rows:
            return (_tasks(context, codes),)
        firsts = [_tasks(part, codes[:1]) for part in parts]
        if len(codes) == len(firsts):
            return tuple(firsts)
        return *firsts, _tasks(context.rows(even_rows(y.cpu(), most_rows).to(y.device)), codes[len(firsts) :])

    def decode(self, output: Output) -> Output:
        """The answers of T tasks as one (B = 1), in the cohort's own codes.

        Class logits are averaged as log probabilities, so the mean is geometric; policy logits and gains are averaged
        over the views, and so are the probabilities of foreseen results. The gains of one class against the rest overlap
        (one test tells several classes apart), so they are summed and scaled down; see `_overlap`.
        """
        features = output.gain_features
        return replace(
            self._decoded(output), gain_features=None if features is None else features.mean(0, keepdim=True)
        )

    def _decoded(self, output: Output) -> Output:
        logits, views = output.prediction.float().log_softmax(-1), self.views
        if not self.rest_share:
            return self._mean_of_views(output, logits)
        # A class against the rest has two codes; what else the logits hold belongs to tasks with all classes.
        rest = logits[views:, :, :2]
        # (K,) whether the class itself is code 1; told of by frequency, one of most rows is code 0.
        is_one = self.codes[views:].diagonal().to(rest.device) == 1
        rest = torch.where(is_one[:, None, None], rest, rest.flip(-1))  # (K, n, 2): another class, this class
        gain = output.gain[views:].float().sum(0) * _overlap(rest)[:, None]
        policy, values = output.policy[views:].float().mean(0)[None], mean_values(output.values, views, len(logits))
        against_rest = Output(rest[..., 1].T[None], policy, gain[None], values)
        if not views:
            return against_rest
        return _interpolated(self._mean_of_views(output, logits), against_rest, self.rest_share)

    def _mean_of_views(self, output: Output, logits: Tensor) -> Output:
        """The mean of the V tasks with all classes. logits: (T, n, codes)."""
        views = self.views
        # index[v, n, k] = the code of class k in view v: brings every view's logits into the cohort's own order.
        index = self.codes[:views, None].to(logits.device).expand(-1, logits.shape[1], -1)
        parts = (logits[:views].gather(-1, index), output.policy[:views], output.gain[:views])
        prediction, policy, gain = (part.float().mean(0, keepdim=True) for part in parts)
        return Output(prediction, policy, gain, mean_values(output.values, 0, views))


def _tasks(context: Context, codes: Tensor) -> Context:
    """One cohort (B = 1) under each of (T, K) codes."""

    def repeat(t: Tensor) -> Tensor:
        return t.expand(len(codes), *t.shape[1:])

    y = codes[:, context.y[0]]  # (T, N)
    return Context(repeat(context.x), repeat(context.r), y, codes.amax(1) + 1, repeat(context.categorical))


def mean_values(values: Tensor | None, start: int, end: int) -> Tensor | None:
    """(T, n, d, V) logits of foreseen results → (1, n, d, V), of the mean of their probabilities over some tasks."""
    if values is None or start == end:
        return None
    return values[start:end].float().softmax(-1).mean(0, keepdim=True).clamp_min(LEAST_CHANCE).log()


def joined(outputs: Sequence[Output], dim: int = 0) -> Output:
    """Several outputs as one: of batches of tasks about the same rows (0), or of different rows (1)."""
    first, *others = (vars(output) for output in outputs)
    return Output(
        *(None if t is None else torch.cat([t, *(o[name] for o in others)], dim) for name, t in first.items())  # type: ignore[arg-type]
    )


def _interpolated(first: Output, second: Output, share: float) -> Output:
    values = second.values if first.values is None else first.values
    pairs = ((first.prediction, second.prediction), (first.policy, second.policy), (first.gain, second.gain))
    prediction, policy, gain = (torch.lerp(one, other, share) for one, other in pairs)
    return Output(prediction, policy, gain, values)


def _overlap(rest: Tensor) -> Tensor:
    """(n,) by how much the summed gains of one class against the rest overstate what all classes together can gain.

    rest: (K, n, 2) log probabilities. The ratio of entropies H(y) / Σ_k H(y = k), at most 1: no test can tell more than
    H(y), and the K separate entropies are what the summed gains are bounded by.
    """
    single = -(rest.exp() * rest).sum(-1).sum(0)
    # p(y) with all classes: the K probabilities of "this class", normalised.
    joint = rest[..., 1].T.log_softmax(-1)
    return (-(joint.exp() * joint).sum(-1) / single.clamp_min(1e-9)).clamp_max(1.0)


def prevalence_shift(empty: Tensor, y: Tensor, share: float) -> Tensor:
    """(K,) to add to log probabilities. empty: (K,) the model's logits for a patient of whom nothing is known."""
    classes = len(empty)
    frequency = (F.one_hot(y, classes).sum(0).float() + 1) / (len(y) + classes)  # add-one smoothing
    return share * (frequency.log() - empty.float().log_softmax(-1))
