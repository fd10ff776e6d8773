"""The rows encoder: the study's own. One token per sample, fixed in the number of features.

A row of the context reads `[x⊙r, r, y]`, a query `[x⊙a, a, 0]`; there are no positions. Who reads whom:
context ↔ context; targets (rows that join the context one after another) → context and earlier targets;
queries → context and earlier targets, never other queries.

Those rules are kept as blocks instead of one dense mask: the context's own block needs no mask at all, and targets and
queries read the same keys and values, so however many queries are asked, the rows with outcomes are encoded once.
Beyond the study: a continuous outcome comes with a flag that it is known (a query's 0 must not look like an outcome of
0), and fewer features than the model's are read as features that were never recorded.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.errors import ConfigError
from l2m_core.model.attention import FeedForward, SelfAttention
from l2m_core.model.columns import is_rounding, mean_and_std
from l2m_core.model.heads import Readout, keep_possible_classes, to_gain
from l2m_core.model.interface import Context, Memory, ModelConfig, Output, Progress, ignore_progress, outcome_scale
from l2m_core.model.parallel import RunAll, in_turn

SEGMENT = 64  # tokens


@dataclass(frozen=True)
class Scale:
    """mean, std: (B, d) of the context's observed values; 0 and 1 where values are read as they are."""

    mean: Tensor
    std: Tensor


class Embedder(nn.Module):
    """A residual MLP of `depth` linear layers."""

    def __init__(self, inputs: int, width: int, depth: int):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.inner = nn.ModuleList(nn.Linear(width, width) for _ in range(max(0, depth - 2)))
        self.last = nn.Linear(width, width)

    def forward(self, row: Tensor) -> Tensor:
        tokens = F.gelu(self.first(row))
        for layer in self.inner:
            # Residual, so that depth does not wash the single values out.
            tokens = tokens + F.gelu(layer(tokens))
        return self.last(tokens)


class RowBlock(nn.Module):
    """Attention over rows and a feed-forward, both pre-norm and residual."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(config.width), SelfAttention(config.width, config.heads)
        self.feed_norm, self.feed = nn.LayerNorm(config.width), FeedForward(config.width, config.feedforward)

    def remember(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """(…, N, width) tokens → their keys and values, (…, heads, N, h)."""
        return self.attention.remember(self.norm(tokens))

    def read(self, tokens: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = tokens + self.attention.read(self.norm(tokens), k, v, mask)
        return tokens + self.feed(self.feed_norm(tokens))


class RowQueries(nn.Module):
    """What rows models share: rows as tokens, queries that read a memory, and the heads. How a memory is made is their own."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        # A class is one-hot; a continuous outcome is its value and a flag that it is known.
        outcome = config.max_classes if config.outcome == "classes" else 2
        self.embed = Embedder(2 * config.features + outcome, config.width, config.embedder_depth)
        self.blocks = nn.ModuleList(RowBlock(config) for _ in range(config.layers))
        self.answer = Readout(config.width, outcome)
        self.policy = Readout(config.width, config.features)
        self.gain = Readout(config.width, config.features)

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        """x: (B, n, d) with anything where a is False; a: (B, n, d) bool; reveal: see Encoder."""
        return self.read_out(self.encode_query(memory, x, a, reveal), memory, x.shape[-1])

    def encode_query(
        self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True
    ) -> Tensor:
        """(B, n, width) final tokens, one for each query; `rank` makes no difference, as in `condition`."""
        tokens = self._embed_query(memory, x[:, None], a[:, None], None if reveal is None else reveal[:, None])
        for block, k, v in zip(self.blocks, memory.keys, memory.values, strict=True):
            tokens = block.read(tokens, k, v)
        return tokens[:, 0]

    def read_out(self, tokens: Tensor, memory: Memory, features: int) -> Output:
        """What the heads make of a query's tokens."""
        prediction = self.answer(tokens)
        if memory.n_classes is not None:
            prediction = keep_possible_classes(prediction, memory.n_classes)
        policy, gain = self.policy(tokens)[..., :features], to_gain(self.gain(tokens)[..., :features])
        return Output(prediction, policy, gain)

    def prediction_head(self, n_classes: Tensor | None) -> Readout:
        """The same whatever the outcome: a rows model serves one kind."""
        return self.answer

    def outcome_token(self, tokens: Tensor) -> Tensor:
        """(B, n, width) what the prediction is read from: all that there is of a query."""
        return tokens

    def policy_tokens(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """What the policy is read from."""
        return (tokens,)

    def fit(self, context: Context) -> tuple[Scale, Tensor, Tensor]:
        """The scale of values, and shift and spread of the outcome."""
        if (context.n_classes is None) != (self.config.outcome == "continuous"):
            raise ConfigError(f"This rows model serves {self.config.outcome} outcomes only; take another model.")
        if context.x.shape[-1] > self.config.features:
            raise ConfigError(
                f"This rows model reads at most {self.config.features} features, and there are "
                f"{context.x.shape[-1]}. Choose fewer, or take a cells model, which reads any number."
            )
        if not self.config.standardise:
            zeros = torch.zeros_like(context.x[:, 0], dtype=torch.float32)
            return Scale(zeros, torch.ones_like(zeros)), zeros[:, :1], torch.ones_like(zeros[:, :1])
        x, count = context.x.float(), context.r.sum(1).clamp_min(1)
        # Mean and variance of recorded values only: what is hidden must not leak into the scale.
        mean, std = mean_and_std(torch.where(context.r, x, 0.0), context.r, count)
        return Scale(mean, torch.where(is_rounding(mean, std), 1.0, std)), *outcome_scale(context)

    def embed_known(self, rows: Context, scale: Scale, shift: Tensor, spread: Tensor) -> Tensor:
        """Rows with outcomes: (B, 1, N, width)."""
        if rows.n_classes is not None:
            outcome = F.one_hot(rows.y, self.config.max_classes).float()
        else:
            z = ((rows.y.float() - shift) / spread).clamp(-30, 30)
            outcome = torch.stack([z, torch.ones_like(z)], dim=-1)
        return self._embed(scale, rows.x, rows.r.float(), rows.r, outcome)[:, None]

    def _embed_query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None) -> Tensor:
        """x, a: (B, m, n, d) → (B, m, n, width); the outcome's channels are all 0."""
        assert isinstance(memory.columns, Scale)
        scale = Scale(memory.columns.mean[:, None], memory.columns.std[:, None])
        # The study's z_qry = [x⊙a, a, 0]
        outcome = torch.zeros(*a.shape[:-1], self.answer.out.out_features, device=a.device)
        if reveal is None:
            return self._embed(scale, x, a.float(), a, outcome)
        return self._embed(scale, x, torch.where(a, 1.0, reveal.float()), torch.ones_like(a), outcome)

    def _embed(self, scale: Scale, x: Tensor, share: Tensor, seen: Tensor, outcome: Tensor) -> Tensor:
        """share: how far a value is known, 0 … 1; seen: bool, elsewhere x can be anything."""
        z = ((x.float() - scale.mean[..., None, :]) / scale.std[..., None, :]).clamp(-1e4, 1e4)
        # `where` first: x may hold NaN where it was not recorded, and NaN · 0 is NaN.
        z = torch.where(seen, z, 0.0) * share
        missing = self.config.features - x.shape[-1]
        # The study's z_ctx = [x⊙r, r, y]; features that the task lacks are columns never recorded.
        row = torch.cat([F.pad(z, (0, missing)), F.pad(share, (0, missing)), outcome], dim=-1)
        return self.embed(row.to(self.embed.first.weight.dtype))


class Rows(RowQueries):
    """The rows encoder: every row of the context reads every other."""

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """Reads the context once. `chunk` bounds how many rows are worked on at a time (peak memory).

        A row is one token here, so ranking costs nothing more: `rank` makes no difference.
        """
        scale, shift, spread = self.fit(context)
        tokens = self.embed_known(context, scale, shift, spread)
        keys, values = [], []
        for index, block in enumerate(self.blocks):
            # Keys and values of all rows come first: every row of a context reads every other (no mask), chunk by
            # chunk, so that the N × N scores are never held at once.
            parts = tokens.split(chunk or tokens.shape[-2], dim=-2)
            remembered = run([partial(block.remember, part) for part in parts])  # type: ignore[arg-type, misc]
            k, v = (torch.cat(pieces, dim=-2) for pieces in zip(*remembered, strict=True))
            keys.append(k)
            values.append(v)
            if index < len(self.blocks) - 1:  # of the last block only keys and values are ever read
                read = run([partial(block.read, part, k, v) for part in parts])  # type: ignore[arg-type, misc]
                tokens = torch.cat(read, dim=-2)
            progress((index + 1) / len(self.blocks))
        return Memory(tuple(keys), tuple(values), scale, context.n_classes, shift, spread)

    # -- training over many context sizes in one pass --------------------------------------------------------------

    def autoregress(
        self, context: Context, targets: Context, a: Tensor, reveal: Tensor | None = None
    ) -> tuple[Output, Memory]:
        """Targets join the context one after another; each is asked about, known in part, just before it joins.

        targets: T rows; a: (B, m, T, d) bool, m ways in which each is known; reveal: of the same shape, see Encoder. The
        output's (B, m·T, …) answers read the context and the targets before their own. The memory holds context and
        targets, each as it was read.
        """
        scale, shift, spread = self.fit(context)
        own, joining = (self.embed_known(rows, scale, shift, spread) for rows in (context, targets))
        memory = Memory((), (), scale, context.n_classes, shift, spread)
        m, joined = a.shape[1], own.shape[-2]
        # Queries one after another by target, its m ways side by side: whoever reads the same keys stays together.
        # Two orders of the same queries: in memory by target, in the result by way.
        ways = a.transpose(1, 2).flatten(1, 2)[:, None]  # (B, 1, T·m, d)
        shown = None if reveal is None else reveal.transpose(1, 2).flatten(1, 2)[:, None]
        queries = self._embed_query(memory, targets.x.repeat_interleave(m, 1)[:, None], ways, shown)
        keys, values = [], []
        for index, block in enumerate(self.blocks):
            (own_k, own_v), (joining_k, joining_v) = block.remember(own), block.remember(joining)
            k, v = torch.cat([own_k, joining_k], -2), torch.cat([own_v, joining_v], -2)
            # A query of target t reads the context and targets before t: `joined + t` keys. The mask of the study
            # (its figure of the attention mask) in blocks, without the (2N - m)² matrix.
            queries = _read_in_order(block, queries, k, v, joined, m)
            keys.append(k)
            values.append(v)
            if index < len(self.blocks) - 1:
                # Context reads context alone; a target reads the context, earlier targets and itself: hence joined +
                # 1.
                own, joining = block.read(own, own_k, own_v), _read_in_order(block, joining, k, v, joined + 1)
        memory = Memory(tuple(keys), tuple(values), scale, context.n_classes, shift, spread)
        queries = queries[:, 0].unflatten(1, (-1, m)).transpose(1, 2).flatten(1, 2)
        return self.read_out(queries, memory, a.shape[-1]), memory


def _read_in_order(block: nn.Module, tokens: Tensor, k: Tensor, v: Tensor, first: int, ways: int = 1) -> Tensor:
    """Token i reads the first `first + i // ways` keys.

    In segments, so that most of what a mask would hide is not computed.
    """
    parts = []
    for begin in range(0, tokens.shape[-2], SEGMENT * ways):
        part = tokens[..., begin : begin + SEGMENT * ways, :]
        steps = part.shape[-2] // ways
        # Keys beyond this are hidden from every token of the segment, so they are not even multiplied.
        reach = first + begin // ways + steps - 1  # of the segment's last token
        mask = _staircase(steps, reach, ways, tokens.device)
        parts.append(block.read(part, k[..., :reach, :], v[..., :reach, :], mask))
    return torch.cat(parts, dim=-2)


@functools.lru_cache(maxsize=256)
def _staircase(steps: int, reach: int, ways: int, device: torch.device) -> Tensor:
    """(steps · ways, reach) bool: the last step reads all, each one above one less. Kept from step to step."""
    stairs = torch.ones(steps, reach, dtype=torch.bool, device=device).tril(reach - steps)
    return stairs.repeat_interleave(ways, 0)
