"""CNP-like models: the context becomes a few summary tokens, where L2M's queries read every row of it.

Same embedding, blocks and heads as the encoder that each stands for. A context row is encoded by itself, as in conditional
neural processes; each layer pools the rows by attention from a few learned seeds, and queries read the pooled tokens only.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from l2m_core.model.cells import Block, Cells
from l2m_core.model.columns import embed_values, fit_columns
from l2m_core.model.interface import Context, Memory, ModelConfig, Progress, ignore_progress, outcome_scale
from l2m_core.model.parallel import RunAll, in_turn
from l2m_core.model.rows import RowBlock, RowQueries

SUMMARIES = 8
"""Tokens that each layer pools the rows into."""


class PooledCells(Cells):
    """`Cells` with attention pooling in place of full context attention."""

    def __init__(self, config: ModelConfig, summaries: int = SUMMARIES):
        super().__init__(config)
        # One set for the outcome's column, one for the columns of features.
        self.seeds = nn.Parameter(torch.randn(config.layers, 2, summaries, config.width))

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """`chunk` is not needed: rows never read each other, and a column's pool is small. `rank` saves little here."""
        columns = fit_columns(context.x, context.r, context.categorical)
        shift, scale = outcome_scale(context)
        cells = embed_values(columns, context.x, context.r)
        tokens = torch.cat([self.embed_outcome(context, shift, scale), self.embed_cells(cells)], dim=2)
        keys, values = [], []
        for each, seeds in zip(self.blocks, self.seeds, strict=True):
            block = cast(Block, each)
            tokens = block.mix_cells(tokens)
            _, k, v = block.remember(tokens)
            # Residual: a fresh block's read is zero, and from zeros alone no gradient would ever start.
            queries = self._seeds_of(seeds, tokens)
            pooled = queries + block.down.read(queries, k, v)  # (B, C, summaries, width)
            k, v = block.down.remember(pooled)
            keys.append(k.contiguous())
            values.append(v.contiguous())
            tokens = tokens + block.feed(block.feed_norm(tokens))
        return Memory(tuple(keys), tuple(values), columns, context.n_classes, shift, scale)

    @staticmethod
    def _seeds_of(seeds: Tensor, tokens: Tensor) -> Tensor:
        """(2, m, width) → (B, C, m, width): the outcome's column has its own."""
        B, C = tokens.shape[0], tokens.shape[2]
        each = torch.cat([seeds[:1], seeds[1:].expand(C - 1, -1, -1)])
        return each.to(tokens.dtype).expand(B, -1, -1, -1)


class PooledRows(RowQueries):
    """`Rows`, the study's own encoder, with attention pooling in place of full context attention.

    It has no pass over growing contexts: each size would need a pool of its own.
    """

    def __init__(self, config: ModelConfig, summaries: int = SUMMARIES):
        super().__init__(config)
        # Small beside a row's token: from seeds of 1 it takes hundreds of steps before the rows are heard.
        self.seeds = nn.Parameter(0.1 * torch.randn(config.layers, summaries, config.width))

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """`chunk` is not needed: rows never read each other. `rank` makes no difference."""
        columns, shift, scale = self.fit(context)
        tokens = self.embed_known(context, columns, shift, scale)  # (B, 1, N, width)
        keys, values = [], []
        for each, seeds in zip(self.blocks, self.seeds, strict=True):
            block = cast(RowBlock, each)
            queries = seeds.to(tokens.dtype).expand(*tokens.shape[:2], -1, -1)
            # Residual, as above.
            pooled = queries + block.attention.read(queries, *block.remember(tokens))  # (B, 1, summaries, width)
            k, v = block.attention.remember(pooled)
            keys.append(k)
            values.append(v)
            tokens = tokens + block.feed(block.feed_norm(tokens))
        return Memory(tuple(keys), tuple(values), columns, context.n_classes, shift, scale)
