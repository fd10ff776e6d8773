"""Missingness: which values of a task were ever recorded.

Each task draws one mechanism by the weights of `Missingness`. On top of any mechanism, panels may tie features
together so that they are recorded or missing as one. `mar_baseline` and `mar_recorded` are missing at random in the
strict sense: the chance of a mask depends on recorded values only, panels included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.checks import check_choice, check_number, check_range
from l2m_core.tasks.draws import categorical, integers, log_uniform, normal, standardise, uniform


@dataclass(frozen=True)
class Missingness:
    """Weights of the mechanisms (they need not sum to one) and their settings."""

    none: float = 0.10
    """Weight: every value is recorded."""
    mcar: float = 0.30
    """Weight: completely at random, with a rate for each feature."""
    mar_baseline: float = 0.20
    """Weight: at random given the baseline features, by a random network (the study's mechanism)."""
    mar_recorded: float = 0.22
    """Weight: features are decided in a random order, each from the recorded values before it."""
    block: float = 0.13
    """Weight: a test was done during a part of the period only."""
    mnar: float = 0.05
    """Weight: a value's own size decides whether it was recorded (stress: no method can undo this)."""
    outcome: float = 0.0
    """Weight: the outcome decides, as when the sick are tested more. Needs y."""

    rate: tuple[float, float] = (0.0, 0.9)
    """Range of the MCAR rates."""
    own_interval: bool = True
    """MCAR: a task draws its own interval inside `rate` and its features draw from that. False: features draw from `rate`
    itself, as in the study's published code."""
    complete: float = 0.2
    """MCAR: the chance that a feature is always recorded after all, as many columns of a real table are."""
    maximum: float = 0.5
    """Largest p(missing) of the mechanisms that depend on values (MAR, MNAR, outcome)."""
    scale: float = 1.0
    """Share of `maximum`, and of the MCAR rates, in use: the study's sweep over 0, 0.5, 0.75 and 1.0."""
    hidden: int = 8
    """Width of the random network of `mar_baseline`."""
    strength: tuple[float, float] = (1.0, 4.0)
    """Range of the standard deviation of the logit of p(missing): how sharply values decide."""
    parents: float = 3.0
    """`mar_recorded`: earlier features that a feature listens to, on average."""
    block_share: float = 0.6
    """`block`: share of the features that were done during a part of the period only."""
    block_length: tuple[float, float] = (0.1, 0.7)
    """`block`: range of that part's length, as a share of the period."""
    block_rate: float = 0.15
    """`block`: largest MCAR rate on top of the blocks."""
    panels: float = 0.25
    """Chance that a task has panels."""
    panel_size: tuple[int, int] = (2, 6)
    """Range of the number of features in a panel, on average over a task."""
    panel_share: float = 0.7
    """Share of the acquirable features that belong to a panel, in a task that has panels."""
    baseline_rate: float = 0.0
    """Largest MCAR rate of baseline features; each draws its own."""

    def __post_init__(self) -> None:
        for name in MECHANISMS:
            check_number(self, name, 0.0, 1e6)
        if sum(getattr(self, name) for name in MECHANISMS) <= 0:
            raise ConfigError(f"Missingness has no mechanism: give one of {', '.join(MECHANISMS)} a weight above 0.")
        for name in ("complete", "maximum", "scale", "block_share", "block_rate", "panels", "panel_share"):
            check_number(self, name, 0.0, 1.0)
        check_choice(self, "own_interval", (True, False))
        check_number(self, "baseline_rate", 0.0, 1.0)
        check_number(self, "hidden", 1, 4096)
        check_number(self, "parents", 0.0, 1e6)
        check_range(self, "rate", 0.0, 1.0)
        check_range(self, "strength", 1e-3, 100.0)
        check_range(self, "block_length", 0.0, 1.0)
        check_range(self, "panel_size", 1, 1_000_000)

    @classmethod
    def only(cls, mechanism: str, **settings) -> Missingness:
        """One mechanism for every task and no panels, unless a setting says otherwise."""
        if mechanism not in MECHANISMS:
            raise ConfigError(f"Missingness mechanism {mechanism!r} is unknown; choose one of {', '.join(MECHANISMS)}.")
        weights = {name: float(name == mechanism) for name in MECHANISMS}
        return cls(**{**weights, "panels": 0.0, **settings})


MECHANISMS = ("none", "mcar", "mar_baseline", "mar_recorded", "block", "mnar", "outcome")


def sample_missingness(
    generator: torch.Generator,
    x: Tensor,
    acquirable: Tensor,
    config: Missingness,
    y: Tensor | None = None,
    recorded: Tensor | None = None,
) -> Tensor:
    """x: (B, N, d), acquirable: (B, d) bool, y: (B, N) → r: (B, N, d) bool, True where recorded.

    recorded: (B, N, d) bool, False for values that a real table lacks: they stay missing and decide nothing.
    Without it, every feature keeps at least one recorded value in each task.
    """
    if config.outcome > 0 and y is None:
        raise ConfigError("Missingness.outcome has a weight above 0, which needs y; pass y or set it to 0.")
    B, N, d = x.shape
    # One mechanism for each task; then all tasks of one mechanism are worked on together.
    weights = torch.tensor([float(getattr(config, name)) for name in MECHANISMS], device=x.device)
    drawn = categorical(generator, weights.expand(B, -1))
    panel = _sample_panels(generator, acquirable, config)
    r = _sample_baseline(generator, acquirable, N, config)
    r = r if recorded is None else r & recorded
    for code, name in enumerate(MECHANISMS):
        tasks = (drawn == code).nonzero().squeeze(1)
        if name == "none" or len(tasks) == 0:
            continue
        view = _View(x[tasks], r[tasks], acquirable[tasks], panel[tasks], None if y is None else y[tasks])
        # A mechanism decides about acquirable features only; baseline ones miss by `baseline_rate` alone.
        r[tasks] = r[tasks] & (_SAMPLERS[name](generator, view, config) | ~view.acquirable.unsqueeze(1))
    kept = _keep_one(generator, r)
    return kept if recorded is None else kept & recorded


def graft_missingness(
    generator: torch.Generator, x: Tensor, pattern: Tensor, acquirable: Tensor, columns: Tensor
) -> Tensor:
    """x: (B, N, d), pattern: (M, D) bool, the mask of a real table → r: (B, N, d) bool whose rows are its rows.

    Rows are drawn with replacement. columns: (B, d), each feature's column of the pattern.
    Baseline features (acquirable False) stay recorded.
    """
    B, N, _ = x.shape
    pattern = pattern.to(x.device).bool()
    r = pattern[integers(generator, (B, N, 1), 0, len(pattern) - 1), columns.unsqueeze(1)]
    return _keep_one(generator, r | ~acquirable.unsqueeze(1))


@dataclass(frozen=True)
class _View:
    """The tasks of one mechanism. r: (B, N, d), what can be recorded at all; panel: (B, d), equal within a panel."""

    x: Tensor
    r: Tensor
    acquirable: Tensor
    panel: Tensor
    y: Tensor | None


def _sample_panels(generator: torch.Generator, acquirable: Tensor, config: Missingness) -> Tensor:
    """(B, d) int64: a feature outside any panel has its own position as its number."""
    B, d = acquirable.shape
    alone = torch.arange(d, device=acquirable.device).expand(B, d)
    # So many panels that each has `size` members on average.
    size = integers(generator, (B, 1), *config.panel_size)
    count = (acquirable.sum(dim=1, keepdim=True) * config.panel_share / size).ceil().clamp_min(1)
    # Panel numbers from d up cannot be mistaken for a feature's own position, below d.
    number = d + (uniform(generator, (B, d)) * count).long()
    belongs = (uniform(generator, (B, d)) < config.panel_share) & (uniform(generator, (B, 1)) < config.panels)
    return torch.where(belongs & acquirable, number, alone)


def _leaders(panel: Tensor) -> Tensor:
    """(B, d) → (B, d) int64: the position of the first feature of the same panel."""
    return (panel.unsqueeze(2) == panel.unsqueeze(1)).int().argmax(dim=2)


def _sample_baseline(generator: torch.Generator, acquirable: Tensor, rows: int, config: Missingness) -> Tensor:
    """(B, N, d): baseline features miss a little, acquirable ones are still all True."""
    B, d = acquirable.shape
    rate = uniform(generator, (B, 1, d)) * config.baseline_rate * (~acquirable).unsqueeze(1)
    return uniform(generator, (B, rows, d)) >= rate


def _record(generator: torch.Generator, missing_probability: Tensor, panel: Tensor) -> Tensor:
    """(B, N, d) → r: one draw for each panel, from the probability of its first feature."""
    leader = _leaders(panel).unsqueeze(1).expand_as(missing_probability)
    draw = uniform(generator, tuple(missing_probability.shape))
    return (draw >= missing_probability).gather(2, leader)


def _mcar(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    B, N, d = view.x.shape
    # A task has its own interval of rates: real tables differ more from each other than their columns do.
    if config.own_interval:
        ends = uniform(generator, (B, 2, 1), *config.rate).sort(dim=1).values
    else:
        ends = torch.tensor(config.rate, device=view.x.device).view(1, 2, 1)
    # (B, d) rates within the interval.
    rate = ends[:, 0] + uniform(generator, (B, d)) * (ends[:, 1] - ends[:, 0])
    rate = config.scale * torch.where(uniform(generator, (B, d)) < config.complete, torch.zeros_like(rate), rate)
    return _record(generator, rate.unsqueeze(1).expand(B, N, d), view.panel)


def _mar_baseline(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    """p(missing) = maximum · scale · sigmoid(network(recorded baseline values)); constant if there is no baseline."""
    B, N, d = view.x.shape
    # Recorded baseline values alone decide, so the mask is missing at random.
    baseline = view.r & ~view.acquirable.unsqueeze(1)
    inputs = standardise(view.x, baseline, limit=4.0)
    # A two-layer network from baseline values to a logit for each feature: p(R_j = 0 | X_baseline), as in the study.
    bias = normal(generator, (B, 1, config.hidden))
    hidden = torch.tanh(inputs @ normal(generator, (B, d, config.hidden)) + bias)
    logit = standardise(hidden @ normal(generator, (B, config.hidden, d)))
    logit = logit * _strength(generator, B, config) + normal(generator, (B, 1, d))
    return _record(generator, _ceiling(config) * torch.sigmoid(logit), view.panel)


def _mar_recorded(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    """Baseline features come first, the others in a random order; each listens to recorded values before it."""
    B, N, d = view.x.shape
    # Keys below 1 for baseline features, from 1 for the others: baseline first, both in random order.
    order = (uniform(generator, (B, d)) + view.acquirable).argsort(dim=1)
    along = order.unsqueeze(1).expand(B, N, d)
    x, possible = view.x.gather(2, along), view.r.gather(2, along)
    acquirable = view.acquirable.gather(1, order)
    leader = _leaders(view.panel.gather(1, order))
    # With j features before it, each is a parent with probability parents / j: `parents` of them on average.
    chance = config.parents / torch.arange(1, d + 1, device=x.device).clamp_min(config.parents)
    listens = uniform(generator, (B, d, d)) < chance
    # A sum over about `parents` terms has the wanted standard deviation when each is smaller by its root.
    spread = _strength(generator, B, config) / max(config.parents, 1.0) ** 0.5
    from_value = normal(generator, (B, d, d)) * listens * spread
    # A test that was not done makes the next one less likely to be done: nearly monotone patterns.
    from_absence = uniform(generator, (B, d, d), 0.0, 2.0) * listens
    logit = normal(generator, (B, 1, d)).repeat(1, N, 1)
    draw = uniform(generator, (B, N, d))
    done = torch.ones_like(possible)  # the test was done; its value is recorded if that is possible as well
    r = torch.empty_like(possible)
    # In turn, because whether feature j was recorded decides what the later ones may see of it.
    for j in range(d):
        drawn = draw[:, :, j] >= _ceiling(config) * torch.sigmoid(logit[:, :, j])
        done[:, :, j] = drawn | ~acquirable[:, None, j]
        # A panel is done when its first feature is. That one stands earlier in the order, so it is decided.
        done[:, :, j] = done.gather(2, leader[:, None, j, None].expand(B, N, 1)).squeeze(2)
        r[:, :, j] = done[:, :, j] & possible[:, :, j]
        # 0 where not recorded: a hidden value adds nothing to any logit, which is what makes this MAR.
        value = standardise(x[:, :, j], r[:, :, j], limit=4.0)
        logit[:, :, j + 1 :] += value.unsqueeze(2) * from_value[:, None, j, j + 1 :]
        logit[:, :, j + 1 :] += (~r[:, :, j]).unsqueeze(2) * from_absence[:, None, j, j + 1 :]
    return torch.empty_like(r).scatter_(2, along, r)


def _block(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    """Each row has a time in the period, unknown to all; a feature is recorded within its own interval."""
    B, N, d = view.x.shape
    time = uniform(generator, (B, N, 1))
    length = uniform(generator, (B, 1, d), *config.block_length)
    # Features outside are done throughout the period.
    limited = uniform(generator, (B, 1, d)) < config.block_share
    start = uniform(generator, (B, 1, d)) * (1 - length)
    # The row's time is never shown: holes come in stretches that the features themselves do not explain.
    outside = limited & ((time < start) | (time > start + length))
    rate = uniform(generator, (B, 1, d)) * config.block_rate
    return _record(generator, torch.where(outside, 1.0, rate), view.panel)


def _mnar(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    B, _, d = view.x.shape
    # The value decides about itself, recorded or not: not at random, on purpose.
    logit = standardise(view.x, limit=4.0) * normal(generator, (B, 1, d)) * _strength(generator, B, config)
    logit = logit + normal(generator, (B, 1, d))
    return _record(generator, _ceiling(config) * torch.sigmoid(logit), view.panel)


def _outcome(generator: torch.Generator, view: _View, config: Missingness) -> Tensor:
    """A class code is no quantity, so a random curve through y decides, not y itself."""
    B, _, d = view.x.shape
    assert view.y is not None
    # A random cosine of y: each feature is done most often around some outcome of its own.
    y = standardise(view.y.to(view.x.dtype), limit=4.0).unsqueeze(2)
    curve = torch.cos(y * uniform(generator, (B, 1, d), 0.5, 2.0) + uniform(generator, (B, 1, d), 0.0, 6.2832))
    logit = standardise(curve) * _strength(generator, B, config) + normal(generator, (B, 1, d))
    return _record(generator, _ceiling(config) * torch.sigmoid(logit), view.panel)


def _strength(generator: torch.Generator, tasks: int, config: Missingness) -> Tensor:
    return log_uniform(generator, (tasks, 1, 1), *config.strength)


def _ceiling(config: Missingness) -> float:
    return config.maximum * config.scale


def _keep_one(generator: torch.Generator, r: Tensor) -> Tensor:
    """A feature with no recorded value gets one back, in a random row."""
    B, N, d = r.shape
    row = integers(generator, (B, 1, d), 0, N - 1)
    # A column without any value has no scale, and no patient could learn from it.
    rescued = torch.zeros_like(r).scatter_(1, row, True) & ~r.any(dim=1, keepdim=True)
    return r | rescued


_SAMPLERS: dict[str, Callable[[torch.Generator, _View, Missingness], Tensor]] = {
    "mcar": _mcar,
    "mar_baseline": _mar_baseline,
    "mar_recorded": _mar_recorded,
    "block": _block,
    "mnar": _mnar,
    "outcome": _outcome,
}
