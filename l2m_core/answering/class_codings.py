"""Care at inference, for outcomes with classes. Each part is a setting of the released model (`Inference`), chosen by
log loss on held-out synthetic tasks.

Views: which code stands for which class is arbitrary, yet a model learns that only nearly; answers are averaged over
several codings of the same cohort. One against the rest: a model knows two classes better than many; with more than
two, a part of the answer comes from asking of each class whether it is this one or another. Prevalence: of a patient of
whom nothing is known, the cohort's class frequencies are the answer; predictions are moved by a share of what the model
is off there. Sharpness, of more than two classes: see l2m_core/answering/calibration.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.model.interface import Context, Output


def codings(classes: int, views: int) -> Tensor:
    """(V, K) int64: the code of each class in each view. The first is the cohort's own; V is `views` or all there are.

    Every second view reverses the codes, the others turn them, so that two views of two classes are the two there are.
    """
    count = max(1, min(views, 2 if classes == 2 else 2 * classes))
    code = torch.arange(classes)
    found = []
    for view in range(count):
        turned = (code + view // 2) % classes
        found.append(classes - 1 - turned if view % 2 else turned)
    return torch.stack(found)


@dataclass(frozen=True)
class Questions:
    """How one cohort is put to the model: as T tasks, in each of which the classes have codes of their own.

    codes: (T, K) int64, first V codings of all classes, then, where `rest_share` is above 0, K times one class (1) against
    the rest (0). rest_share: how much of the answer comes from those.
    """

    codes: Tensor
    rest_share: float = 0.0

    @classmethod
    def of(cls, classes: int, views: int, rest_share: float) -> Questions:
        if classes == 2 or rest_share == 0:
            return cls(codings(classes, views))
        against_rest = torch.eye(classes, dtype=torch.int64)
        whole = [codings(classes, views)] if rest_share < 1 else []
        return cls(torch.cat([*whole, against_rest]), rest_share)

    @property
    def views(self) -> int:
        """V: tasks with all classes."""
        return len(self.codes) - (self.codes.shape[1] if self.rest_share else 0)

    def put(self, context: Context, most_rows: int) -> tuple[Context, ...]:
        """One cohort (B = 1) as T tasks. Of a long cohort the first task stands alone, with all rows; the others read
        `most_rows` of them."""
        assert context.n_classes is not None and len(context.y) == 1
        codes, y = self.codes.to(context.y.device), context.y[0]
        if len(y) <= most_rows or len(codes) == 1:
            return (_tasks(context, codes),)
        rows = even_rows(y.cpu(), most_rows).to(y.device)
        fewer = Context(
            context.x[:, rows], context.r[:, rows], context.y[:, rows], context.n_classes, context.categorical
        )
        return _tasks(context, codes[:1]), _tasks(fewer, codes[1:])

    def answer(self, output: Output) -> Output:
        """What T tasks say, as one (B = 1): logits of (1, n, K) classes, logits of the policy, gains."""
        logits, views = output.prediction.float().log_softmax(-1), self.views
        if not self.rest_share:
            return self._whole(output, logits)
        rest = logits[views:, :, :2]  # (K, n, 2): another class, this class
        gain = output.gain[views:].float().sum(0) * _overlap(rest)[:, None]
        against_rest = Output(rest[..., 1].T[None], output.policy[views:].float().mean(0)[None], gain[None])
        return _mixed(self._whole(output, logits), against_rest, self.rest_share) if views else against_rest

    def _whole(self, output: Output, logits: Tensor) -> Output:
        """The mean of the tasks with all classes."""
        views = self.views
        index = self.codes[:views, None].to(logits.device).expand(-1, logits.shape[1], -1)
        parts = (logits[:views].gather(-1, index), output.policy[:views], output.gain[:views])
        return Output(*(part.float().mean(0, keepdim=True) for part in parts))


def _tasks(context: Context, codes: Tensor) -> Context:
    """One cohort (B = 1) under each of (T, K) codes."""

    def repeat(t: Tensor) -> Tensor:
        return t.expand(len(codes), *t.shape[1:])

    y = codes[:, context.y[0]]  # (T, N)
    return Context(repeat(context.x), repeat(context.r), y, codes.amax(1) + 1, repeat(context.categorical))


def even_rows(y: Tensor, most: int) -> Tensor:
    """At most so many places of (N,) classes, in order; of each class its share, evenly spread."""
    if len(y) <= most:
        return torch.arange(len(y))
    by_class = y.argsort(stable=True)
    return by_class[torch.linspace(0, len(y) - 1, most, dtype=torch.float64).round().long()].sort().values


def joined(outputs: Sequence[Output]) -> Output:
    """What several lots of tasks say of the same n rows, as one lot."""
    return Output(
        *(torch.cat(parts) for parts in zip(*((o.prediction, o.policy, o.gain) for o in outputs), strict=True))
    )


def _mixed(first: Output, second: Output, share: float) -> Output:
    names = ("prediction", "policy", "gain")
    return Output(*(torch.lerp(getattr(first, name), getattr(second, name), share) for name in names))


def _overlap(rest: Tensor) -> Tensor:
    """rest: (K, n, 2) log probabilities → (n,) what all classes together are worth knowing, in nats, as a part of the sum
    over one class against the rest each: the sum counts most of what a test tells several times."""
    single = -(rest.exp() * rest).sum(-1).sum(0)
    joint = rest[..., 1].T.log_softmax(-1)
    return (-(joint.exp() * joint).sum(-1) / single.clamp_min(1e-9)).clamp_max(1.0)


def prevalence_shift(empty: Tensor, y: Tensor, share: float) -> Tensor:
    """(K,) to add to log probabilities. empty: (K,) what the model says of a patient of whom nothing is known."""
    classes = len(empty)
    frequency = (F.one_hot(y, classes).sum(0).float() + 1) / (len(y) + classes)
    return share * (frequency.log() - empty.float().log_softmax(-1))
