"""Two networks of one shape: one for outcomes with classes, one for continuous outcomes.

A context's outcome is of one kind, so that one network reads it and answers for it. What the other is taught cannot spoil
it, and no answer takes longer.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor, nn

from l2m_core.model.cells import Cells
from l2m_core.model.interface import Context, Memory, ModelConfig, Output, Progress, ignore_progress
from l2m_core.model.parallel import RunAll, in_turn

NETWORKS = ("for_classes", "for_numbers")


class ByOutcome(nn.Module):
    """The cells encoder, once for each kind of outcome."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        one = replace(config, continuous_apart=False)
        self.for_classes, self.for_numbers = Cells(one), Cells(one)

    @property
    def blocks(self) -> list[nn.Module]:
        """Of both, such as have kernels built for them."""
        return [*self.for_classes.blocks, *self.for_numbers.blocks]

    def condition(
        self,
        context: Context,
        chunk: int | None = None,
        rank: bool = True,
        run: RunAll = in_turn,
        progress: Progress = ignore_progress,
    ) -> Memory:
        """See Encoder."""
        return self._network(context.n_classes).condition(context, chunk, rank, run, progress)

    def query(self, memory: Memory, x: Tensor, a: Tensor, reveal: Tensor | None = None, rank: bool = True) -> Output:
        """See Encoder."""
        return self._network(memory.n_classes).query(memory, x, a, reveal, rank)

    def _network(self, n_classes: Tensor | None) -> Cells:
        return self.for_numbers if n_classes is None else self.for_classes


def networks(model: nn.Module) -> tuple[nn.Module, ...]:
    """Those that a model consists of, each with blocks and heads of its own."""
    return (model.for_classes, model.for_numbers) if isinstance(model, ByOutcome) else (model,)


def part_of(parameter: str) -> str:
    """The part of its network that a parameter belongs to, by its name in the model: gain, policy, blocks …"""
    first, _, rest = parameter.partition(".")
    return rest.partition(".")[0] if first in NETWORKS else first


def join(for_classes: nn.Module, for_numbers: nn.Module) -> ByOutcome:
    """Of two cells models of one shape; of one that is joined already, the network of that kind."""
    by_kind = networks(for_classes)[0], networks(for_numbers)[-1]
    config: ModelConfig = by_kind[0].config  # type: ignore[assignment]
    joined = ByOutcome(replace(config, continuous_apart=True))
    for network, given in zip(networks(joined), by_kind, strict=True):
        network.load_state_dict(given.state_dict())
    return joined
