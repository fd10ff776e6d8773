"""How good and how sure predictions are, in plain arrays. Classes: p (n, K), y (n,) codes. Continuous: any
`Distribution` over n rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from l2m_core.errors import ConfigError, InputError

SMALLEST = 1e-12
T_GRID = 200_001
"""Points at which the density of Student's t is summed."""


class Distribution(Protocol):
    """n predictive distributions of a continuous outcome."""

    @property
    def mean(self) -> np.ndarray: ...

    @property
    def std(self) -> np.ndarray: ...

    def log_prob(self, y) -> np.ndarray: ...

    def quantile(self, p: float) -> np.ndarray: ...

    def entropy(self) -> np.ndarray: ...


# -- any outcome ------------------------------------------------------------------------------------------------------


def row_losses(prediction: np.ndarray | Distribution, y) -> np.ndarray:
    """(n,) negative log likelihood of each row's outcome, in nats. y: (n,) numbers, or codes of classes."""
    y = np.asarray(y)
    if not isinstance(prediction, np.ndarray):
        _check_outcomes(y, len(prediction.mean), None)
        return -prediction.log_prob(y)
    n, classes = prediction.shape
    _check_outcomes(y, n, classes)
    # A probability of 0 would make the mean infinite for one row; SMALLEST bounds its loss instead.
    chosen = prediction[np.arange(n), y.astype(np.int64)]
    return -np.log(np.maximum(chosen, SMALLEST))


def _check_outcomes(y: np.ndarray, n: int, classes: int | None) -> None:
    """Refuses what would be taken for other outcomes: one for all rows, labels for codes, a code counted from the end."""
    if y.shape != (n,):
        raise InputError(f"y has the shape {y.shape}; it must hold one outcome for each of the {n} rows.")
    is_number = np.issubdtype(y.dtype, np.number) or y.dtype == bool
    fits = is_number and bool(np.isfinite(y).all())
    if fits and classes is not None:
        fits = bool(((y == np.floor(y)) & (y >= 0) & (y < classes)).all())
    if not fits:
        wanted = "finite numbers" if classes is None else f"codes of the classes, 0 to {classes - 1}"
        raise InputError(f"y must hold {wanted}, as `cohort.encode_outcome(…)` gives them.")


def entropies(prediction: np.ndarray | Distribution) -> np.ndarray:
    """(n,) entropy of each row's prediction, in nats."""
    if not isinstance(prediction, np.ndarray):
        return prediction.entropy()
    return -(prediction * np.log(np.maximum(prediction, SMALLEST))).sum(-1)


# -- classes ----------------------------------------------------------------------------------------------------------


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    """Mean negative log likelihood, in nats."""
    return float(row_losses(p, y).mean())


def brier(p: np.ndarray, y: np.ndarray) -> float:
    """Mean squared distance of the probabilities from what happened: 0 … 2."""
    happened = np.eye(p.shape[1])[np.asarray(y, dtype=np.int64)]
    return float(((p - happened) ** 2).sum(1).mean())


def auroc(p: np.ndarray, y: np.ndarray) -> float:
    """Binary: the chance that a positive is ranked above a negative. More classes: the mean over classes of
    one against the rest. NaN where no class has both members and others."""
    y = np.asarray(y, dtype=np.int64)
    if p.shape[1] == 2:
        return _area(p[:, 1], y == 1)
    areas = np.array([_area(p[:, k], y == k) for k in range(p.shape[1])])
    return float(np.nanmean(areas)) if np.isfinite(areas).any() else float("nan")


def ece(p: np.ndarray, y: np.ndarray, bins: int = 15, by: str = "mass") -> float:
    """Expected calibration error: |predicted − observed| averaged over bins, weighted by their share of the rows.

    Two classes: of the positive one's probability. More: of the likeliest class's. by: "mass" (bins hold equally many
    rows) or "width" (bins are equally wide).
    """
    probability, correct = confidence(p, y)
    return _binned_error(probability, correct, _bin(probability, bins, by), bins)


def ece_if_calibrated(
    p: np.ndarray,
    generator: np.random.Generator,
    bins: int = 15,
    by: str = "mass",
    draws: int = 20,
    rows: np.ndarray | None = None,
    correlation: float = 1.0,
) -> float:
    """The `ece` that perfectly calibrated probabilities would show on as many rows, by chance alone.

    rows: (n,) which patient each prediction is about; correlation: of the outcomes of one patient's predictions, which
    share one outcome by default.
    """
    rows = np.arange(len(p)) if rows is None else rows
    total = 0.0
    for _ in range(draws):
        # Inverted through each prediction's own cumulative probabilities, so that outcomes are as alike as the numbers.
        uniform = alike(rows, correlation, generator)
        y = np.minimum((p.cumsum(1) < uniform[:, None]).sum(1), p.shape[1] - 1)
        total += ece(p, y, bins, by)
    return total / draws


def alike(rows: np.ndarray, correlation: float, generator: np.random.Generator) -> np.ndarray:
    """(n,) uniform numbers, those of one patient (`rows` says of which each is) with this correlation."""
    if correlation == 0:
        return generator.random(len(rows))
    shared = generator.random(int(rows.max()) + 1)[rows]
    if correlation == 1:
        return shared
    # Two are the same number where both are the patient's, and have nothing in common otherwise.
    return np.where(generator.random(len(rows)) < correlation**0.5, shared, generator.random(len(rows)))


@dataclass(frozen=True)
class Reliability:
    """One point for each non-empty bin: predicted and observed share, and rows."""

    predicted: np.ndarray
    observed: np.ndarray
    count: np.ndarray
    point: np.ndarray
    """(n,) which of them each row counts for."""


def reliability(p: np.ndarray, y: np.ndarray, bins: int = 15, by: str = "mass") -> Reliability:
    """The curve behind `ece`."""
    probability, correct = confidence(p, y)
    index = _bin(probability, bins, by)
    # Bins by mass may hold nothing where many rows share one probability; these have no point on the curve.
    count = np.bincount(index, minlength=bins)
    filled = count > 0
    predicted = np.bincount(index, probability, bins)[filled] / count[filled]
    observed = np.bincount(index, correct, bins)[filled] / count[filled]
    return Reliability(predicted, observed, count[filled], filled.cumsum()[index] - 1)


def confidence(p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) a probability, and whether what it is about happened: the positive one of two classes, the likeliest of more."""
    if p.shape[1] == 2:
        return p[:, 1], (np.asarray(y) == 1).astype(np.float64)
    top = p.argmax(1)
    return p[np.arange(len(p)), top], (top == np.asarray(y)).astype(np.float64)


def net_benefit(
    p: np.ndarray, happened: np.ndarray, thresholds: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """(S,) of acting on all whose probability p (n,) is at least each threshold: true positives of each row, minus false ones
    weighted by the odds of the threshold, at which a needless act and a missed one are held equally bad.

    weights: (m, n) how often each row counts, for (m, S) figures.
    """
    thresholds = np.asarray(thresholds, dtype=np.float64)
    if not ((thresholds > 0) & (thresholds < 1)).all():
        raise ConfigError("A threshold of a decision must lie between 0 and 1, both left out.")
    odds = thresholds / (1 - thresholds)
    acts = np.asarray(p, dtype=np.float64)[:, None] >= thresholds  # (n, S)
    value = acts * np.where(np.asarray(happened, dtype=bool)[:, None], 1.0, -odds)
    return value.mean(0) if weights is None else weights @ value / weights.sum(1, keepdims=True)


# -- continuous outcomes ----------------------------------------------------------------------------------------------


def crps(prediction: Distribution, y: np.ndarray, levels: int = 100) -> float:
    """Continuous ranked probability score, in the unit of the outcome: twice the mean pinball loss over quantiles."""
    return float(row_crps(prediction, y, levels).mean())


def row_crps(prediction: Distribution, y: np.ndarray, levels: int = 100) -> np.ndarray:
    """(n,) the same for each row."""
    y = np.asarray(y, dtype=np.float64)
    # CRPS = 2 ∫ pinball loss at level p dp, by the midpoint rule over the levels.
    probabilities = (np.arange(levels) + 0.5) / levels
    total = np.zeros(len(y))
    for level in probabilities:
        short = y - np.asarray(prediction.quantile(float(level)), dtype=np.float64)
        total += np.maximum(level * short, (level - 1) * short)
    return 2 * total / levels


def coverage(prediction: Distribution, y: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """(m,) share of outcomes within the central interval of each nominal level."""
    y = np.asarray(y)
    return np.array(
        [
            np.mean((y >= prediction.quantile((1 - level) / 2)) & (y <= prediction.quantile((1 + level) / 2)))
            for level in levels
        ]
    )


def rmse(prediction, y: np.ndarray) -> float:
    """Root mean squared error of the predictive mean."""
    return float(np.sqrt(np.mean((np.asarray(prediction.mean, dtype=np.float64) - y) ** 2)))


# -- comparisons ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A mean with its interval, which reaches from -inf to inf where there is too little to tell."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return format(self)

    def __format__(self, form: str) -> str:
        """form: of each number, four decimals by default."""
        mean, low, high = (format(number, form or ".4f") for number in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]" if self.is_bounded else f"{mean} (too few for an interval)"

    @property
    def is_bounded(self) -> bool:
        return not math.isinf(self.low)

    @property
    def ends(self) -> tuple[float, float]:
        """Low and high as a table has them: NaN where there is no interval."""
        return (self.low, self.high) if self.is_bounded else (math.nan, math.nan)


def paired_interval(differences: np.ndarray, level: float = 0.95, groups: np.ndarray | None = None) -> Interval:
    """Student's t of the mean of paired differences: (n,).

    groups: (n,) of what belongs together (cells of one cohort, say). Each group then counts as one independent unit, which gives
    the wider, safer interval. One unit alone says nothing of its scatter: its interval reaches from -inf to inf.
    """
    differences = np.asarray(differences, dtype=np.float64)
    n = len(differences)
    if n == 0:
        raise ConfigError("There are no pairs to compare.")
    _, member = np.unique(np.arange(n) if groups is None else np.asarray(groups), return_inverse=True)
    mean, share = float(differences.mean()), np.bincount(member) / n  # share: (G,) of the pairs
    if len(share) < 2:
        return Interval(mean, -math.inf, math.inf)
    # Bell and McCaffrey (2002): the squared pull of each group on the mean. A group also pulls the mean towards itself, which
    # takes its own share from its pull; dividing by what is left gives that back (CR2). Groups of one give s² / n.
    pull = np.bincount(member, differences - mean) / n
    error = math.sqrt((pull**2 / (1 - share)).sum())
    half = student_quantile((1 + level) / 2, _degrees_of_freedom(share)) * error
    return Interval(mean, mean - half, mean + half)


@lru_cache(maxsize=1024)
def student_quantile(probability: float, degrees: float) -> float:
    """Of Student's t. With t = √ν tan θ its density is proportional to cos θ to the power ν - 1."""
    angle = np.linspace(-np.pi / 2, np.pi / 2, T_GRID)
    density = np.cos(angle).clip(0) ** (degrees - 1)
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(degrees) * math.tan(float(np.interp(probability, cumulative / cumulative[-1], angle)))


# -- parts ------------------------------------------------------------------------------------------------------------


def _degrees_of_freedom(share: np.ndarray) -> float:
    """Satterthwaite's, of that variance, were all pairs independent: n - 1 for groups of one, fewer where a few groups are most
    of the pairs. share: (G,)"""
    itself = share**2 / (1 - share)
    return round(float(1 / ((share**2).sum() + itself.sum() ** 2 - (itself**2).sum())), 6)


def _area(score: np.ndarray, positive: np.ndarray) -> float:
    """Mann–Whitney with midranks for ties."""
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    # AUROC = (R − n₊(n₊ + 1) / 2) / (n₊ n₋), R the sum of the positives' ranks; equal scores share their mean rank.
    _, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    midrank = last - (counts - 1) / 2
    total = midrank[inverse][positive].sum()
    return float((total - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def _bin(confidence: np.ndarray, bins: int, by: str) -> np.ndarray:
    if by == "width":
        return np.minimum((confidence * bins).astype(np.int64), bins - 1)
    if by != "mass":
        raise ConfigError(f"Bins are by 'mass' or by 'width', not by {by!r}.")
    # Equal probabilities share a bin, whichever row they belong to.
    edges = np.quantile(confidence, np.arange(1, bins) / bins)
    return np.searchsorted(edges, confidence, side="left")


def _binned_error(confidence: np.ndarray, correct: np.ndarray, index: np.ndarray, bins: int) -> float:
    # |Σ predicted − Σ observed| of a bin over all n rows: the bin's gap times its share of the rows.
    gap = np.bincount(index, confidence - correct, bins)
    return float(np.abs(gap).sum() / len(confidence))
