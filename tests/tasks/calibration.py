"""Whether a prior's probabilities are those of the outcomes that it drew."""

from __future__ import annotations

from l2m_core.tasks.batch import TaskBatch


def assert_calibrated(batch: TaskBatch) -> None:
    """Of each class, in ten parts from least to most likely: the mean said is the share seen, within 4.5 standard errors."""
    assert batch.truth is not None and batch.truth.probabilities is not None
    for k in range(batch.truth.probabilities.shape[2]):
        probability, happened = batch.truth.probabilities[..., k].flatten(), (batch.y == k).flatten().float()
        for part in probability.argsort().chunk(10):
            said, seen = probability[part], happened[part]
            error = (said * (1 - said)).sum().sqrt() / len(part)
            assert abs(said.mean() - seen.mean()) < 4.5 * error + 1e-3
