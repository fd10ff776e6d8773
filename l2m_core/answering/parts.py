"""The answers of even parts of a long cohort, each read by itself, put together; see l2m_core/answering/context_rows.py.

Of classes the parts are further views (l2m_core/answering/class_codings.py). Of a continuous outcome each part has bins of its
own, which lie where its own mean and spread put them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from l2m_core.answering.class_codings import mean_values
from l2m_core.model.density import Density
from l2m_core.model.interface import Memory, Output


def averaged(outputs: Sequence[Output], memories: Sequence[Memory]) -> Output:
    """One output (B = 1) of a continuous outcome, in the bins of the first part: the mean of the log probabilities of bins, of
    policies and gains, and of the probabilities of foreseen results."""
    if len(outputs) == 1:
        return outputs[0]
    told = [
        Density(output.prediction, memory.outcome_shift, memory.outcome_scale)
        for output, memory in zip(outputs, memories, strict=True)
    ]
    logits = [one.on_scale_of(told[0]).logits.float().log_softmax(-1) for one in told]
    values = [output.values for output in outputs if output.values is not None]
    features = [output.gain_features for output in outputs if output.gain_features is not None]
    return Output(
        _mean(logits),
        _mean([output.policy for output in outputs]),
        _mean([output.gain for output in outputs]),
        mean_values(torch.cat(values), 0, len(values)) if values else None,
        _mean(features) if features else None,
    )


def _mean(parts: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(parts)).float().mean(0, keepdim=True)
