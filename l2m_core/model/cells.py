"""The cells encoder: one token per cell, attention across a row's cells, then down each column.

The outcome is one more column (index 0). Queries read context rows only, so keys and values of the context are
computed once (`condition`) and every later question costs a query (`query`). Nothing here depends on the order of
rows or features, nor on their number.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from l2m_core.model.attention import FeedForward, SelfAttention
from l2m_core.model.columns import CHANNELS, HIDDEN, Columns, embed_values, fit_columns
from l2m_core.model.heads import PairReadout, Readout, Vote, keep_possible_classes, to_gain
from l2m_core.model.interface import Context, Memory, ModelConfig, Output, Progress, ignore_progress, outcome_scale
from l2m_core.model.parallel import RunAll, in_turn

CONTEXT_UNIT = 128  # rows; the length at which attention down a column starts unscaled
LABELS = "labels"  # of the context's rows, among a memory's extras


class Block(nn.Module):
    """Attention across a row's cells, attention down a column, feed-forward; all pre-norm and residual."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        width = config.width
        self.across_norm, self.across = nn.LayerNorm(width), SelfAttention(width, config.heads)
        self.down_norm, self.down = nn.LayerNorm(width), SelfAttention(width, config.heads)
        self.feed_norm, self.feed = nn.LayerNorm(width), FeedForward(width, config.feedforward)
        # Longer contexts dilute attention; how much each layer sharpens with log(rows) is learned.
        self.sharpen = nn.Parameter(torch.zeros(width))

    def mix_cells(self, tokens: Tensor, columns: int | None = None) -> Tensor:
        """(B, R, C, width) → the same, each row's cells having read each other; or of the first `columns` only."""
        normed = self.across_norm(tokens)
        # Every cell is still read; only the cells that are needed later do the reading.
        kept, reading = (t if columns is None else t[:, :, :columns] for t in (tokens, normed))
        return kept + self.across.read(reading, *self.across.remember(normed))

    def remember(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, N, C, width) → normed tokens (B, C, N, width) and their keys and values (B, C, heads, N, h)."""
        normed = self.down_norm(tokens).transpose(1, 2).contiguous()
        k, v = self.down.remember(normed)
        # Kept as attention reads them: a step for one patient then copies nothing.
        return normed, k.contiguous(), v.contiguous()

    def read(self, tokens: Tensor, normed: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Tokens (B, n, C, width) read the context's keys and values, then pass the feed-forward."""
        # Softmax over N keys flattens as N grows. A factor on the logits of 1 + c · log(N / 128), with a learned c
        # for each channel, lets a layer stay as selective on long contexts as on short ones.
        return self.read_sharply(tokens, normed, k, v, 1 + math.log(k.shape[-2] / CONTEXT_UNIT) * self.sharpen)

    def read_sharply(self, tokens: Tensor, normed: Tensor, k: Tensor, v: Tensor, sharp: Tensor) -> Tensor:
        """`read` with the (width,) factors of its queries: apart, so that kernels are not built anew for each length."""
        tokens = tokens + self.down.read(normed, k, v, sharp=sharp).transpose(1, 2)
        return tokens + self.feed(self.feed_norm(tokens))


class Cells(nn.Module):
    """The cells encoder, with its heads."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        width = config.width
        self.cell_in = nn.Linear(CHANNELS, width)
        self.cell_out = nn.Linear(width, width)
        self.hidden = HIDDEN[config.values]
        self.outcome_class = nn.Embedding(config.max_classes, width)
        self.outcome_value = nn.Linear(3, width)
        # What a query shows in the outcome's column in place of a class or a number.
        self.outcome_unknown = nn.Parameter(torch.zeros(2, width))  # one for classes, one for continuous
        # Rows that belong to no patient: room to keep what was learned about the table as a whole.
        self.thinking = nn.Parameter(0.02 * torch.randn(config.thinking, 2, width)) if config.thinking else None
        nn.init.normal_(self.outcome_class.weight, std=0.5)
        nn.init.normal_(self.outcome_unknown, std=0.5)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.classes = Readout(width, config.max_classes)
        self.vote = Vote(width, config.heads) if config.vote else None
        self.density = Readout(width, config.bins)
        self.policy = PairReadout(width)
        self.gain = PairReadout(width)
        self.value = Readout(width, config.value_bins) if config.value_bins else None

    # -- the common face ------------------------------------------------------------------------------------------

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """Reads the context once. `chunk` bounds how many rows are worked on at a time (peak memory).

        rank, run: see Encoder. Predictions read the last block's outcome column only.
        """
        columns = fit_columns(context.x, context.r, context.categorical)
        shift, scale = outcome_scale(context)
        # (B, N, d, CHANNELS), then tokens (B, N, 1 + d, width) with the outcome's token first.
        cells = embed_values(columns, context.x, context.r)
        tokens = torch.cat([self.embed_outcome(context, shift, scale), self.embed_cells(cells)], dim=2)
        tokens = self.add_thinking(tokens)
        keys, values = [], []
        for index, block in enumerate(self.blocks):
            # Nobody reads the context's tokens after the last block, so it makes keys and values only; without
            # ranking, those of the outcome's column alone.
            last = index == len(self.blocks) - 1
            tokens, k, v = _pass_context(block, tokens, last, chunk, None if rank or not last else 1, run)
            keys.append(k)
            values.append(v)
            progress((index + 1) / len(self.blocks))
        return Memory(tuple(keys), tuple(values), columns, context.n_classes, shift, scale, self._labels(context))

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        """x: (B, n, d) with anything where a is False; a: (B, n, d) bool; reveal, rank: see Encoder."""
        return self.read_out(self.encode_query(memory, x, a, reveal, rank), memory, x.shape[-1] if rank else 0)

    # -- parts ----------------------------------------------------------------------------------------------------

    def encode_query(
        self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True
    ) -> Tensor:
        """(B, n, 1 + d, width) final tokens, the outcome's first; (B, n, 1, width), its alone, without `rank`."""
        assert isinstance(memory.columns, Columns)
        if rank and memory.keys[-1].shape[1] <= x.shape[-1]:
            raise ValueError("This memory was made for predictions only; condition with rank=True to rank features.")
        cells = self.embed_cells(embed_values(memory.columns, x, a))
        if reveal is not None:
            # A relaxed choice of features (straight-through Gumbel softmax) interpolates between the token of the
            # unknown and of the known value, so that the gradient says what knowing it more would change.
            measured = self.embed_cells(embed_values(memory.columns, x, torch.ones_like(a)))
            cells = torch.lerp(cells, measured, reveal.to(cells.dtype)[..., None])
        unknown = self.outcome_unknown[int(memory.n_classes is None)]
        unknown = unknown.to(cells.dtype).expand(*cells.shape[:2], 1, -1)
        tokens = torch.cat([unknown, cells], dim=2)
        for index, (block, k, v) in enumerate(zip(self.blocks, memory.keys, memory.values, strict=True)):
            # Predictions read the outcome's token only: in the last block the other columns would be work for
            # nothing.
            if not rank and index == len(self.blocks) - 1:
                tokens, k, v = block.mix_cells(tokens, 1), k[:, :1], v[:, :1]
            else:
                tokens = block.mix_cells(tokens)
            normed = block.down_norm(tokens).transpose(1, 2).contiguous()
            tokens = block.read(tokens, normed, k, v)
        return tokens

    def read_out(self, tokens: Tensor, memory: Memory, features: int) -> Output:
        """What the heads make of a query's tokens; features: how many have tokens of their own, 0 without `rank`."""
        # (B, n, width) decides the prediction; (B, n, d, width) gives each feature its own score, which is why the
        # model takes any number of features and does not depend on their order.
        outcome, each = tokens[:, :, 0], tokens[:, :, 1:]
        if memory.n_classes is None:
            prediction = self.density(outcome)
        else:
            logits = self.classes(outcome)
            if self.vote is not None:
                length = math.log(memory.context_rows / CONTEXT_UNIT)
                logits = logits + self.vote(outcome, memory.keys[-1][:, 0], memory.extras[LABELS], length)
            prediction = keep_possible_classes(logits, memory.n_classes)
        values = self.value(each) if self.value is not None and features else None
        gain_features = self.gain.features(each, outcome)
        gain = to_gain(self.gain.read(gain_features))
        return Output(prediction, self.policy(each, outcome), gain, values, gain_features)

    def prediction_head(self, n_classes: Tensor | None) -> Readout:
        """Of the kind of outcome, before any vote."""
        return self.density if n_classes is None else self.classes

    def outcome_token(self, tokens: Tensor) -> Tensor:
        """(B, n, width) what the prediction is read from, of `encode_query`'s tokens."""
        return tokens[:, :, 0]

    def policy_tokens(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """What the policy is read from: features, then the outcome."""
        return tokens[:, :, 1:], tokens[:, :, 0]

    def embed_cells(self, channels: Tensor) -> Tensor:
        if self.hidden:
            channels = channels.index_fill(-1, torch.tensor(self.hidden, device=channels.device), 0.0)
        return self.cell_out(F.silu(self.cell_in(channels.to(self.cell_in.weight.dtype))))

    def embed_outcome(self, context: Context, shift: Tensor, scale: Tensor) -> Tensor:
        """(B, N, 1, width)."""
        if context.n_classes is not None:
            return self.outcome_class(context.y)[:, :, None].to(self.cell_out.weight.dtype)
        # One number in three shapes: as it is, squashed (the middle), and on a log scale (the tails).
        z = ((context.y.float() - shift) / scale).clamp(-30, 30)
        channels = torch.stack([z, torch.tanh(z), z.sign() * z.abs().log1p()], dim=-1)
        return self.outcome_value(channels.to(self.outcome_value.weight.dtype))[:, :, None]

    def _labels(self, context: Context) -> dict[str, Tensor]:
        """What votes are counted from: (B, N, K) one-hot classes of the context; rows that are not patients have none."""
        if self.vote is None or context.n_classes is None:
            return {}
        labels = F.one_hot(context.y, self.config.max_classes)
        return {LABELS: F.pad(labels, (0, 0, self.config.thinking, 0)).to(self.cell_out.weight.dtype)}

    def add_thinking(self, tokens: Tensor) -> Tensor:
        """Learned rows before the context's own; one learned token for the outcome column, one for all others."""
        if self.thinking is None:
            return tokens
        rows, columns = self.thinking.shape[0], tokens.shape[2]
        # (thinking, 1 + d, width): the outcome's token, then one token repeated for every feature, so that nothing
        # depends on the number or order of features.
        extra = torch.cat([self.thinking[:, :1], self.thinking[:, 1:].expand(-1, columns - 1, -1)], dim=1)
        return torch.cat([extra.to(tokens.dtype).expand(tokens.shape[0], rows, columns, -1), tokens], dim=1)


def _pass_context(
    block, tokens: Tensor, last: bool, chunk: int | None, columns: int | None, run: RunAll
) -> tuple[Tensor, Tensor, Tensor]:
    """One Block over the context's own rows; of the last block only keys and values (of `columns`) are ever read."""
    if chunk is None or tokens.shape[1] <= chunk:
        tokens = block.mix_cells(tokens, columns)
        normed, k, v = block.remember(tokens)
        return (tokens if last else block.read(tokens, normed, k, v)), k, v
    # In chunks of rows: first everybody's keys and values, then each chunk reads them.
    tokens = torch.cat(run([partial(block.mix_cells, part, columns) for part in tokens.split(chunk, 1)]), 1)
    normed, k, v = block.remember(tokens)
    if not last:
        parts = zip(tokens.split(chunk, 1), normed.split(chunk, 2), strict=True)
        tokens = torch.cat(run([partial(block.read, part, norm, k, v) for part, norm in parts]), 1)
    return tokens, k, v
