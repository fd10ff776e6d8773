"""What a clinician-researcher should know of a cohort before trusting any answer drawn from it.

Each finding is a sentence with a severity and a code. Thresholds are named here, in one place. Tests for "being
measured tells about the outcome" are exact (rank-based for continuous outcomes) and corrected for the number of
features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from l2m_core.schema import OTHER
from l2m_core.tables.cell_parsing import SENTINELS, parse_number
from l2m_core.tables.feature_inference import looks_like_identifier
from l2m_core.tables.how_to_state import how_to_state
from l2m_core.tables.precision import in_text

if TYPE_CHECKING:
    from l2m_core.cohort import Cohort

SEVERITIES = ("critical", "warning", "info")
FEW_ROWS = 100  # below this, every answer is rough
SUPPORT_FLOOR = 30  # rows in which a feature must have been measured for advice on it
CLASS_SUPPORT_FLOOR = 5  # … and in each class
RARE_CLASS = 10  # rows of a class
SIGNIFICANCE = 0.05  # chance of any false alarm over all features together (Holm)
NOTABLE_DIFFERENCE = 0.05  # in the share measured; a smaller one is not worth a warning, however certain
LEAK_SHARE = 0.9  # of the outcome's uncertainty that one feature takes away
SUSPICIOUS_SHARE = 0.75
BINS = 20
DUPLICATE_SHARE = 0.05
RARE_LEVEL_SHARE = 0.2
SENTINEL = "sentinel"  # code of a finding


@dataclass(frozen=True)
class Finding:
    severity: str  # "critical": do not use before resolving; "warning": resolve or keep in mind; "info": good to know
    code: str
    column: str | None
    sentence: str


@dataclass(frozen=True)
class Diagnostics:
    """rows; prevalence: share of each class (empty for a continuous outcome); outcome_range: least, median, greatest
    (continuous only); findings, most severe first; features: one row for each used feature, indexed by name, with
    kind, role, measured (rows), share, `share, <group>` by class (or half of a continuous outcome), p_value (Holm) of
    "being measured is unrelated to the outcome", explained and explained by measuring (shares of the outcome's
    uncertainty that its value, or its being measured, takes away alone)
    """

    rows: int
    kind: str
    prevalence: dict[str, float]
    outcome_range: tuple[float, float, float] | None
    findings: tuple[Finding, ...]
    features: pd.DataFrame = field(repr=False, compare=False)

    @property
    def worst(self) -> str | None:
        return self.findings[0].severity if self.findings else None

    def of(self, column: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.column == column)


def diagnose(cohort: Cohort) -> Diagnostics:
    groups, labels = _outcome_groups(cohort)
    features = _describe_features(cohort, groups, labels)
    findings = [
        *_about_outcome(cohort),
        *_about_support(cohort, features, labels),
        *_about_measuring(cohort, features, labels),
        *_about_leaks(features),
        *_about_values(cohort),
        *_about_copies(cohort),
        *_about_ignored(cohort),
    ]
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    shares = cohort.class_counts / max(len(cohort), 1)
    prevalence = {name: float(share) for name, share in zip(cohort.classes, shares, strict=True)}
    spread = None
    if cohort.kind == "continuous" and len(cohort):
        spread = (float(cohort.y.min()), float(np.median(cohort.y)), float(cohort.y.max()))
    return Diagnostics(len(cohort), cohort.kind, prevalence, spread, tuple(findings), features)


def doubtful_values(cohort: Cohort) -> tuple[str, ...]:
    """Of each number that may mean 'not measured', a sentence."""
    return tuple(finding.sentence for finding in _about_values(cohort) if finding.code == SENTINEL)


def _outcome_groups(cohort) -> tuple[np.ndarray, list[str]]:
    """(N,) group of each row, and names: the classes, or the halves of a continuous outcome."""
    if cohort.kind != "continuous":
        return cohort.y, list(cohort.classes)
    median = float(np.median(cohort.y)) if len(cohort) else 0.0
    return (cohort.y > median).astype(np.int64), [f"up to {in_text(median)}", f"above {in_text(median)}"]


def _describe_features(cohort, groups, labels) -> pd.DataFrame:
    measured = cohort.r
    table = pd.DataFrame(
        {
            "kind": [feature.kind for feature in cohort.features],
            "role": [feature.role for feature in cohort.features],
            "measured": measured.sum(axis=0),
            "share": measured.sum(axis=0) / max(len(cohort), 1),
        },
        index=pd.Index(cohort.names, name="feature"),
    )
    for group, label in enumerate(labels):
        rows = groups == group
        table[f"share, {label}"] = measured[rows].mean(axis=0) if rows.any() else np.nan
    if cohort.kind == "continuous":
        p_values = [rank_sum_p(cohort.y[m], cohort.y[~m]) for m in measured.T]
    else:
        p_values = _measuring_p_values(measured, cohort.y, cohort.n_classes)
    table["p_value"] = holm(np.array(p_values))
    table["explained"] = [_explained(cohort, i) for i in range(len(cohort.features))]
    table["explained by measuring"] = [_explained_by_measuring(cohort, m) for m in measured.T]
    return table


# Does being measured tell about the outcome?


def _measuring_p_values(measured, y, n_classes) -> list[float]:
    """Exact: for each class against the rest, the chance of a split of the measured rows as rare as the one seen."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, len(y) + 1)))])
    sizes = np.bincount(y, minlength=n_classes)
    classes = [k for k in range(n_classes) if 0 < sizes[k] < len(y)]
    classes = classes[:1] if len(classes) == 2 else classes
    result = []
    for m in measured.T:
        in_class = np.bincount(y[m], minlength=n_classes)
        p_values = [hypergeometric_p(in_class[k], sizes[k], m.sum(), len(y), log_factorial) for k in classes]
        result.append(min(1.0, len(p_values) * min(p_values)) if p_values else 1.0)
    return result


def hypergeometric_p(seen: int, class_size: int, drawn: int, total: int, log_factorial: np.ndarray) -> float:
    """Fisher's exact two-sided p: `seen` of `class_size` rows among the `drawn`, of `total`."""
    if drawn in (0, total) or class_size in (0, total):
        return 1.0
    possible = np.arange(max(0, class_size + drawn - total), min(class_size, drawn) + 1)

    def log_choose(n, k):
        return log_factorial[n] - log_factorial[k] - log_factorial[n - k]

    log_p = log_choose(class_size, possible) + log_choose(total - class_size, drawn - possible)
    log_p -= log_choose(total, drawn)
    as_rare = log_p <= log_p[seen - possible[0]] + 1e-7
    return float(min(1.0, np.exp(log_p[as_rare]).sum()))


def rank_sum_p(first: np.ndarray, second: np.ndarray) -> float:
    """Mann-Whitney, normal approximation with ties."""
    n, m = len(first), len(second)
    if min(n, m) == 0:
        return 1.0
    pooled = pd.Series(np.concatenate([first, second]))
    ranks = pooled.rank().to_numpy()
    ties = pooled.value_counts().to_numpy().astype(float)
    total = n + m
    variance = n * m / 12 * (total + 1 - (ties**3 - ties).sum() / (total * max(total - 1, 1)))
    if variance <= 0:
        return 1.0
    deviation = max(0.0, abs(ranks[:n].sum() - n * (total + 1) / 2) - 0.5)
    return math.erfc(deviation / math.sqrt(2 * variance))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjusted so that the chance of any false alarm over all tests is what is compared with."""
    order = np.argsort(p_values)
    stepped = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


# How much does one feature say alone?


def _bins(values: np.ndarray, categorical: bool) -> np.ndarray:
    if categorical:
        return values.astype(np.int64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
    return np.searchsorted(edges, values, side="left")


def _explained(cohort, i) -> float:
    rows = cohort.r[:, i]
    if rows.sum() < SUPPORT_FLOOR:
        return math.nan
    bins = _bins(cohort.x[rows, i], cohort.features[i].kind != "number")
    return _explained_share(bins, cohort.y[rows], cohort.n_classes)


def _explained_by_measuring(cohort, measured) -> float:
    if min(measured.sum(), (~measured).sum()) < CLASS_SUPPORT_FLOOR:
        return math.nan
    return _explained_share(measured.astype(np.int64), cohort.y, cohort.n_classes)


def _explained_share(bins, y, n_classes) -> float:
    """Of the outcome's entropy (or variance of ranks), corrected for what chance explains in as many bins."""
    _, bins = np.unique(bins, return_inverse=True)
    n, used = len(y), int(bins.max()) + 1
    if n_classes == 0:
        ranks = pd.Series(y).rank().to_numpy()
        sizes = np.bincount(bins)
        within = ((ranks - (np.bincount(bins, ranks) / sizes)[bins]) ** 2).sum() / max(n - used, 1)
        total = ranks.var(ddof=1)
        return float(max(0.0, 1 - within / total)) if total > 0 else math.nan
    counts = np.bincount(bins * n_classes + y, minlength=used * n_classes).reshape(used, n_classes)
    seen = int((counts.sum(axis=0) > 0).sum())
    entropy = _entropy(counts.sum(axis=0))
    if entropy == 0:
        return math.nan
    information = entropy + _entropy(counts.sum(axis=1)) - _entropy(counts.ravel())
    return float(max(0.0, information - (used - 1) * (seen - 1) / (2 * n)) / entropy)


def _entropy(counts) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


# Findings


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%" if share >= 0.1 or share == 0 else f"{100 * share:.1f}%"


def _about_outcome(cohort):
    if len(cohort) < FEW_ROWS:
        yield Finding("warning", "few_rows", None, f"The cohort has only {len(cohort)} rows; answers will be rough.")
    for name, size in zip(cohort.classes, cohort.class_counts, strict=True):
        if size < RARE_CLASS:
            yield Finding(
                "warning",
                "rare_class",
                cohort.schema.outcome.name,
                f"Class '{name}' has {size} rows, {_percent(size / max(len(cohort), 1))} of the cohort: "
                "too few to learn when it happens.",
            )


def _about_support(cohort, features, labels):
    for name, row in features[features["role"] == "acquirable"].iterrows():
        measured = int(row["measured"])
        if measured < SUPPORT_FLOOR:
            yield Finding(
                "warning",
                "positivity",
                name,
                f"'{name}' was measured in {measured} of {len(cohort)} rows, fewer than {SUPPORT_FLOOR}: "
                "too rarely for advice on it.",
            )
            continue
        for label, size in zip(labels, cohort.class_counts, strict=False):
            count = round(row[f"share, {label}"] * size) if size else 0
            if count < CLASS_SUPPORT_FLOOR <= size:
                yield Finding(
                    "warning",
                    "positivity",
                    name,
                    f"'{name}' was measured in only {count} of {size} rows of class '{label}': "
                    "what it says about this class is hardly known.",
                )


def _about_measuring(cohort, features, labels):
    columns = [f"share, {label}" for label in labels]
    for name, row in features[features["p_value"] < SIGNIFICANCE].iterrows():
        shares = row[columns].astype(float)
        high, low = labels[int(np.nanargmax(shares))], labels[int(np.nanargmin(shares))]
        difference = np.nanmax(shares) - np.nanmin(shares)
        if difference < NOTABLE_DIFFERENCE:
            continue
        outcome = cohort.schema.outcome.name
        yield Finding(
            "warning",
            "measuring_predicts_outcome",
            name,
            f"'{name}' was measured in {_percent(np.nanmax(shares))} of the rows with {outcome} = {high}, but in "
            f"{_percent(np.nanmin(shares))} of those with {outcome} = {low}. Unless what decides measuring is "
            "among the recorded features, values are not missing at random and its gain can be biased.",
        )


def _about_leaks(features):
    for name, row in features.iterrows():
        if row["explained"] >= SUSPICIOUS_SHARE:
            certain = row["explained"] >= LEAK_SHARE
            nearly = "nearly determines" if certain else "says very much about"
            yield Finding(
                "critical" if certain else "warning",
                "leak",
                name,
                f"'{name}' alone {nearly} the outcome (it takes away {_percent(row['explained'])} of the uncertainty). "
                "Was it recorded after the outcome, or because of it? If so, ignore it.",
            )
        if row["explained by measuring"] >= SUSPICIOUS_SHARE / 2:
            yield Finding(
                "critical",
                "leak_by_measuring",
                name,
                f"Whether '{name}' was measured says very much about the outcome. "
                "Was it measured because of the outcome? If so, ignore it.",
            )


def _about_values(cohort):
    for i, feature in enumerate(cohort.features):
        values = cohort.x[cohort.r[:, i], i].astype(np.float64)
        if not len(values):
            continue
        if feature.kind == "number":
            distinct = np.unique(values)
            if looks_like_identifier(feature.name, cohort.x[:, i], len(values), len(distinct), len(cohort)):
                yield Finding(
                    "warning",
                    "identifier",
                    feature.name,
                    f"'{feature.name}' looks like an identifier: it tells rows apart, not patients' states. Ignore it.",
                )
            yield from _about_sentinels(feature, values, distinct)
            continue
        yield from _about_sentinel_levels(feature, values)
        if (rare := float(np.mean(values == len(feature.levels)))) >= RARE_LEVEL_SHARE:
            yield Finding(
                "info",
                "rare_levels",
                feature.name,
                f"{_percent(rare)} of the values of '{feature.name}' are rare levels, read as '{OTHER}'. "
                "Group them before use, if they differ in meaning.",
            )


def _about_sentinels(feature, values, distinct):
    """A repeated extreme such as -999, far from all else, usually stands for 'not measured'."""
    if len(distinct) < 4:
        return
    for value, rest in ((distinct[0], distinct[1:]), (distinct[-1], distinct[:-1])):
        far = min(abs(value - rest[0]), abs(value - rest[-1])) > rest[-1] - rest[0]
        only_negative = value < 0 <= rest[0]
        count = int((values == value).sum())
        if value in SENTINELS and (far or only_negative) and count >= 2:
            yield _sentinel(feature, f"{value:g}", count, ", far from its other values")


def _about_sentinel_levels(feature, values):
    """-999 among words, or beside 0 and 1."""
    numbers = [parse_number(level) for level in feature.levels]
    for code, (level, number) in enumerate(zip(feature.levels, numbers, strict=True)):
        others = [other for other in numbers if other is not None and other != number]
        if number is not None and number in SENTINELS and (number < 0 or not others) and min(others, default=0) >= 0:
            yield _sentinel(feature, level, int((values == code).sum()), "")


def _sentinel(feature, text, count, how):
    return Finding(
        "warning",
        SENTINEL,
        feature.name,
        f"'{feature.name}' is {text} in {count} rows{how}. If that means 'not measured', say so "
        f"({how_to_state('missing', text)}).",
    )


def _about_copies(cohort):
    clean = np.where(cohort.r, cohort.x, np.float32(np.nan))
    rows = [row.tobytes() for row in np.column_stack([clean, cohort.y.astype(np.float32)])]
    repeated = len(rows) - len(set(rows))
    if repeated:
        share = repeated / len(rows)
        yield Finding(
            "warning" if share >= DUPLICATE_SHARE else "info",
            "duplicate_rows",
            None,
            f"{repeated} rows ({_percent(share)}) repeat another row in every value and the outcome. "
            "If they are the same patients, keep one of each.",
        )
    first: dict[bytes, str] = {}
    for i, name in enumerate(cohort.names):
        if not cohort.r[:, i].any():
            continue
        original = first.setdefault(clean[:, i].tobytes(), name)
        if original != name:
            yield Finding(
                "info", "copy", name, f"'{name}' equals '{original}' in every row. One of them can be ignored."
            )


def _about_ignored(cohort):
    for feature in cohort.schema.features:
        if not feature.used:
            yield Finding("info", "ignored", feature.name, f"Column '{feature.name}' is not used.")
