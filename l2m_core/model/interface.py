"""What every encoder offers: `condition` a context into a Memory, `query` it for rows being decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.model.columns import HIDDEN, unit_to_square, usable_std
from l2m_core.model.parallel import RunAll, in_turn
from l2m_core.settings import check_least, check_most

BYTES = 4  # of a float32
MOST_PARAMETERS = 1_000_000_000  # two hundred times those of the largest model here; as float32, 4 GB
MOST_LAYERS = 1000

Progress = Callable[[float], None]  # is called with the share of the work that is done, from 0 to 1


def ignore_progress(share: float) -> None:
    """For work that nobody waits for."""


@dataclass(frozen=True)
class ModelConfig:
    """Everything that decides the shape of a model; stored beside its weights."""

    encoder: str = "cells"
    """"cells" (any number of features, the released model) or "rows" (the study's, fixed in width)."""
    layers: int = 6
    """Blocks of attention and feed-forward."""
    width: int = 128
    """Numbers of a token; a multiple of `heads`."""
    heads: int = 4
    """Heads of attention."""
    feedforward: int = 256
    """Width of the feed-forward layers."""
    max_classes: int = 10
    """Most classes of an outcome."""
    bins: int = 64
    """Bins of the predictive distribution of a continuous outcome (cells)."""
    thinking: int = 0
    """Learned extra context rows (cells)."""
    values: str = "size and rank"
    """How cells show a value: "size and rank" (the released model), "size" or "rank" alone."""
    vote: bool = False
    """Whether the classes of context rows that a query resembles count directly (cells)."""
    value_bins: int = 0
    """Bins of the ranks of a column over which results not yet known are foreseen (cells); 0: they are not foreseen."""
    continuous_apart: bool = False
    """Whether continuous outcomes have a network of their own, of the same shape (cells)."""
    features: int = 0
    """Number of features of a rows encoder; 0 for cells, which takes any."""
    outcome: str = "any"
    """"classes", "continuous" or "any"; rows encoders serve one kind."""
    embedder_depth: int = 4
    """Depth of the residual MLP that embeds a row (rows)."""
    standardise: bool = True
    """Whether values and a continuous outcome are brought to the context's mean and spread (rows; cells always)."""

    def __post_init__(self) -> None:
        check_least(self, "model", layers=1, width=1, heads=1, feedforward=1, max_classes=2, embedder_depth=2)
        # Two numbers are a mean and a spread (rows), so a density over bins has at least three.
        check_least(self, "model", bins=3, value_bins=0, thinking=0, features=0)
        check_most(self, "model", layers=MOST_LAYERS, embedder_depth=MOST_LAYERS)
        if self.encoder not in ("cells", "rows"):
            raise ConfigError(f"model.encoder is {self.encoder!r}; it must be 'cells' or 'rows'.")
        if self.width % self.heads:
            raise ConfigError(f"model.width ({self.width}) must be a multiple of model.heads ({self.heads}).")
        if self.outcome not in ("any", "classes", "continuous"):
            raise ConfigError(f"model.outcome is {self.outcome!r}; it must be 'any', 'classes' or 'continuous'.")
        if self.encoder == "rows" and (self.outcome == "any" or self.features < 1):
            raise ConfigError("A rows model needs model.features (at least 1) and model.outcome (classes, continuous).")
        if self.continuous_apart and (self.encoder != "cells" or self.outcome != "any"):
            raise ConfigError("model.continuous_apart is for cells models of any outcome.")
        if self.values not in HIDDEN:
            raise ConfigError(f"model.values is {self.values!r}; it must be one of {', '.join(HIDDEN)}.")
        if self.parameters > MOST_PARAMETERS:
            raise ConfigError(
                f"model.width ({self.width:,}), model.feedforward ({self.feedforward:,}) and model.layers ({self.layers:,}) "
                f"make a model of about {self.parameters:,} parameters, {BYTES * self.parameters / 1e9:,.0f} GB of memory; "
                f"the most are {MOST_PARAMETERS:,}, {BYTES * MOST_PARAMETERS / 1e9:.0f} GB. Choose smaller ones."
            )

    @property
    def parameters(self) -> int:
        """About so many numbers are learned, worked out without making any."""
        width, is_rows = self.width, self.encoder == "rows"
        attention = (1 if is_rows else 2) * 4 * width**2
        blocks = self.layers * (attention + 2 * width * self.feedforward)
        ends = (self.embedder_depth if is_rows else 1) * width**2 + 7 * width**2  # values in, and the heads
        out = 2 * self.max_classes + self.bins + self.value_bins
        tables = width * (out + 4 * max(0, self.features) + 2 * max(0, self.thinking))
        return (blocks + ends + tables) * (2 if self.continuous_apart else 1)


@dataclass(frozen=True)
class Context:
    """Rows whose outcome is known. B tasks of one shape.

    x: (B, N, d) with anything where r is False; r: (B, N, d) bool; y: (B, N) int64 codes or float;
    n_classes: (B,) int64, or None for continuous outcomes; categorical: (B, d) bool.
    """

    x: Tensor
    r: Tensor
    y: Tensor
    n_classes: Tensor | None
    categorical: Tensor

    def rows(self, index: Tensor) -> Context:
        """Some of its rows. index: (n,) int64."""
        return Context(self.x[:, index], self.r[:, index], self.y[:, index], self.n_classes, self.categorical)


@dataclass(frozen=True)
class Output:
    """Answers for n query rows of B tasks.

    prediction: (B, n, K) class logits, impossible classes at -inf; or of a continuous outcome (see density.predictive)
    (B, n, bins) logits over bins (cells), (B, n, 2) mean and raw spread (rows);
    policy: (B, n, d) logits; gain: (B, n, d) nats. Neither is blocked: that is the caller's business.
    values: (B, n, d, value_bins) logits over the ranks of each column (see results), None of a model that foresees none.
    gain_features: (B, n, d, width) the gain head's hidden layer (cells), of which `gain` is made.
    """

    prediction: Tensor
    policy: Tensor
    gain: Tensor
    values: Tensor | None = None
    gain_features: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> Output:
        """The output with `function` applied to every tensor."""
        return Output(*(None if tensor is None else function(tensor) for tensor in vars(self).values()))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Memory:
    """What a model keeps of a context, as one explicit value.

    keys, values: one (B, C, heads, N, head width) tensor per layer (C columns; 1 for the rows encoder);
    columns: statistics that bring query values to the scale of the context; n_classes as in Context;
    outcome_shift, outcome_scale: (B, 1) of a continuous outcome (0 and 1 for classes).
    """

    keys: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    columns: object
    n_classes: Tensor | None
    outcome_shift: Tensor
    outcome_scale: Tensor
    extras: dict[str, Tensor] = field(default_factory=dict)

    @property
    def context_rows(self) -> int:
        return self.keys[0].shape[-2]

    @property
    def nbytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))


class Encoder(Protocol):
    """What both encoders offer."""

    config: ModelConfig

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """run: how the chunks of rows are worked on, in turn or side by side; the numbers are the same."""
        ...

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        """reveal: (B, n, d) in 0 … 1, how far features beyond `a` are measured; then x must be finite everywhere.

        0 and 1 answer exactly as `a` does; the gradient in between is what a relaxed choice of features learns from.
        rank: without it only the prediction is worked out, which costs less; policy and gain may then be of no
        features. A memory made without it answers such queries only.
        """
        ...


def outcome_scale(context: Context) -> tuple[Tensor, Tensor]:
    """Shift and scale (B, 1) of a continuous outcome from the context's rows; (0, 1) for classes."""
    if context.n_classes is not None:
        ones = torch.ones(len(context.y), 1, device=context.y.device)
        return torch.zeros_like(ones), ones
    y = context.y.float()
    mean, unit = y.mean(1, keepdim=True), unit_to_square(y)[:, None]
    std = (y / unit).std(1, keepdim=True, correction=0) * unit
    return mean, usable_std(mean, std)
