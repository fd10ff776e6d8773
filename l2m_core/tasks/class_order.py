"""Classes from the most to the least frequent: an order that does not depend on what they are called."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from l2m_core.tasks.batch import TaskBatch


def class_ranks(y: Tensor, classes: int) -> Tensor:
    """(B, K) int64: each class's place among K; of equally frequent ones, the one whose row comes first is first.

    y: (B, N) codes. Where rows come in an order that does not depend on their codes, neither do the places.
    """
    one_hot = F.one_hot(y, classes)  # (B, N, K)
    first_row = torch.where(one_hot.any(1), one_hot.argmax(1), y.shape[1])  # (B, K); no row has N
    # Two stable sorts: by the first row, and then by frequency, among equals of which the first order stays.
    order = first_row.argsort(dim=1, stable=True)
    count = one_hot.sum(1).gather(1, order)
    return order.gather(1, count.argsort(dim=1, descending=True, stable=True)).argsort(1)


def coded_by_frequency(tasks: TaskBatch, rows: int) -> TaskBatch:
    """The same tasks with codes that tell how frequent a class is among the first `rows`: 0 the most frequent.

    For models that are told of classes so (`AnswerSettings.class_order`): of all codings they need learn one only.
    """
    if tasks.n_classes is None:
        return tasks
    truth, p = tasks.truth, None if tasks.truth is None else tasks.truth.probabilities
    # Classes that a task lacks have the highest codes and no row, so they stay behind those that it has.
    ranks = class_ranks(tasks.y[:, :rows], int(tasks.n_classes.max()) if p is None else p.shape[-1])
    if truth is not None and p is not None:
        class_at = ranks.argsort(1)  # (B, K): the class that gets each code
        truth = replace(truth, probabilities=p.gather(2, class_at[:, None].expand_as(p)))
    return replace(tasks, y=ranks.gather(1, tasks.y), truth=truth)
