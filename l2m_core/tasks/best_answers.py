"""What a context tells of a query, of tasks whose form is known but for what the prior drew: weights, or middles of classes.

It is the best answer that a model can give that knows the form, and so what a model is taught. It has the mean of the truth's own
probabilities, which know what was drawn, and far less noise.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor

from l2m_core.tasks.batch import TaskBatch


class Form(Protocol):
    """A dataclass of tensors whose first axis is that of tasks."""

    def best_answers(self, tasks: TaskBatch, context: int, a: Tensor, generator: torch.Generator) -> Tensor:
        """(B, n, K) p(class) of the queries after `context`, or (B, n, S) draws of a continuous outcome; a: (B, n, d) known."""


def with_answers(tasks: TaskBatch, context: int, a: Tensor, generator: torch.Generator) -> TaskBatch:
    """The same tasks, whose truth tells of queries what the first `context` rows and what is known (a: (B, n, d)) tell of them.

    Tasks without a form stay as they are.
    """
    truth = tasks.truth
    form: Form | None = None if truth is None else truth.form
    if truth is None or form is None:
        return tasks
    answers = form.best_answers(tasks, context, a, generator)
    if tasks.n_classes is None:
        unknown = answers.new_full((*tasks.y[:, :context].shape, answers.shape[-1]), math.nan)
        return replace(tasks, truth=replace(truth, draws=torch.cat([unknown, answers], 1)))
    assert truth.probabilities is not None
    both = torch.cat([truth.probabilities[:, :context], answers], 1)
    return replace(tasks, truth=replace(truth, probabilities=both))
