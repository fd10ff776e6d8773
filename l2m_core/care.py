"""Care at inference, for outcomes with classes. Each part is a setting of the released model (`Inference`), chosen by
log loss on held-out synthetic tasks.

Views: which code stands for which class is arbitrary, yet a model learns that only nearly; answers are averaged over
several codings of the same cohort. Prevalence: of a patient of whom nothing is known, the cohort's class frequencies
are the answer; predictions are moved by a share of what the model is off there.
"""

from __future__ import annotations

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


def seen_in(context: Context, codes: Tensor) -> Context:
    """One cohort (B = 1) as V tasks, one for each coding."""
    views = len(codes)
    assert context.n_classes is not None and len(context.y) == 1

    def repeat(t: Tensor) -> Tensor:
        return t.expand(views, *t.shape[1:])

    y = codes.to(context.y.device)[:, context.y[0]]  # (V, N)
    return Context(repeat(context.x), repeat(context.r), y, repeat(context.n_classes), repeat(context.categorical))


def average(output: Output, codes: Tensor) -> Output:
    """Answers of V views as one (B = 1): log probabilities of (1, n, K) classes, gains and logits of the policy."""
    index = codes.to(output.prediction.device)[:, None].expand(-1, output.prediction.shape[1], -1)
    prediction = output.prediction.float().log_softmax(-1).gather(-1, index)  # (V, n, K)
    return Output(*(t.float().mean(0, keepdim=True) for t in (prediction, output.policy, output.gain)))


def prevalence_shift(empty: Tensor, y: Tensor, share: float) -> Tensor:
    """(K,) to add to log probabilities. empty: (K,) what the model says of a patient of whom nothing is known."""
    classes = len(empty)
    frequency = (F.one_hot(y, classes).sum(0).float() + 1) / (len(y) + classes)
    return share * (frequency.log() - empty.float().log_softmax(-1))
