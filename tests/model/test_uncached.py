"""What is cached equals what is not: the cells encoder held against one pass over context and queries together."""

import math

import pytest
import torch
from torch import Tensor

from l2m_core.model.cells import CONTEXT_UNIT, Cells
from l2m_core.model.columns import embed_values, fit_columns
from l2m_core.model.interface import outcome_scale
from tests.model.examples import Example, draw_example, tiny_model


def one_pass(model: Cells, example: Example) -> Tensor:
    """(B, n, 1 + d, width) final tokens of the queries; a dense mask lets every row read the context's rows only."""
    c, queries = example.context, example.x.shape[1]
    columns = fit_columns(c.x, c.r, c.categorical)
    x, known = torch.cat([c.x, example.x], 1), torch.cat([c.r, example.a], 1)
    outcome = model.embed_outcome(c, *outcome_scale(c))
    unknown = model.outcome_unknown[int(c.n_classes is None)].to(outcome.dtype).expand(len(c.x), queries, 1, -1)
    cells = model.embed_cells(embed_values(columns, x, known))
    tokens = model.add_thinking(torch.cat([torch.cat([outcome, unknown], 1), cells], 2))
    rows = tokens.shape[1]
    reads = torch.arange(rows) < rows - queries
    mask = reads.expand(rows, rows)
    for block in model.blocks:
        tokens = block.mix_cells(tokens)
        normed = block.down_norm(tokens).transpose(1, 2)
        sharp = 1 + math.log(int(reads.sum()) / CONTEXT_UNIT) * block.sharpen
        read = block.down.read(normed, *block.down.remember(normed), mask, sharp)
        tokens = tokens + read.transpose(1, 2)
        tokens = tokens + block.feed(block.feed_norm(tokens))
    return tokens[:, -queries:]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-5), (torch.bfloat16, 0.1)])
@pytest.mark.parametrize("thinking", [0, 3])
@pytest.mark.parametrize("outcome", ["classes", "continuous"])
@pytest.mark.parametrize("seed", range(3))
def test_cached_cells_are_those_of_one_pass_over_all_rows(outcome, thinking, seed, dtype, tolerance):
    model = tiny_model("cells", outcome, seed, thinking=thinking).to(dtype)
    example = draw_example(outcome, seed)
    with torch.no_grad():
        cached = model.encode_query(model.condition(example.context), example.x, example.a)
        torch.testing.assert_close(cached, one_pass(model, example), rtol=tolerance, atol=tolerance)
