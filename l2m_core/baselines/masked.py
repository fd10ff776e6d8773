"""Learning a network from rows of which parts are hidden: the ground of MLP, GDFS, DIME and DQN."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from l2m_core.baselines.interface import CohortLike, Prediction, block, known_cells
from l2m_core.baselines.networks import Head, Network, Schedule, batches, descend, head_for, train
from l2m_core.baselines.preparation import Context, Encoding, held_out_split, prepare, random_acquisitions

Choose = Callable[["Rows", Tensor, Tensor], Tensor]
"""(rows, a (n, d), open (n, d): what may be picked) → scores (n, d), of which the highest open one is picked."""


@dataclass(frozen=True)
class Rows:
    """Encoded rows as tensors."""

    values: Tensor
    """(n, D) float32, 0 where not recorded"""
    r: Tensor
    """(n, d) bool"""
    target: Tensor
    """(n,) as the head wants it"""
    acquirable: Tensor
    """(d,) bool"""
    owner: Tensor
    """(D,) the feature each column belongs to"""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: np.ndarray) -> Rows:
        rows = torch.from_numpy(index)
        return Rows(self.values[rows], self.r[rows], self.target[rows], self.acquirable, self.owner)

    def repeat(self, times: int) -> Rows:
        """The rows, then the rows again, … : (times · n)"""
        return Rows(
            self.values.repeat(times, 1),
            self.r.repeat(times, 1),
            self.target.repeat(times),
            self.acquirable,
            self.owner,
        )

    def inputs(self, a: Tensor) -> Tensor:
        """(n, D + d): [x⊙a, a]; a may be a relaxed mask that carries a gradient."""
        a = a.float()
        return torch.cat([self.values * a[:, self.owner], a], dim=1)

    @property
    def start(self) -> Tensor:
        """(n, d) bool: what is known before anything is acquired."""
        return self.r & ~self.acquirable

    def open(self, a: Tensor) -> Tensor:
        """(n, d) bool: recorded, acquirable and not acquired yet."""
        return self.r & self.acquirable & ~a


@dataclass(frozen=True)
class Walks:
    """Rows along their acquisitions, steps first."""

    states: Tensor
    """(steps + 1, n, d) bool: a before each step, and at the end"""
    actions: Tensor
    """(steps, n) the feature picked"""
    moved: Tensor
    """(steps, n) bool: false where nothing was left to pick"""


@torch.no_grad()
def walk(rows: Rows, choose: Choose, steps: int) -> Walks:
    """Acquire the highest scored open feature again and again."""
    a = rows.start
    states, actions, moved = [a], [], []
    for _ in range(steps):
        open_cells = rows.open(a)
        action = choose(rows, a, open_cells).masked_fill(~open_cells, -torch.inf).argmax(-1)
        could = open_cells.any(-1)
        a = a | (torch.nn.functional.one_hot(action, a.shape[1]).bool() & could[:, None])
        states.append(a)
        actions.append(action)
        moved.append(could)
    return Walks(torch.stack(states), torch.stack(actions), torch.stack(moved))


class MaskedNetworkMethod(ABC):
    """Holds the encoding, the head and the predictor network; the children add an order of acquisition."""

    def __init__(
        self,
        *,
        seed: int = 0,
        hidden: int = 128,
        dropout: float = 0.0,
        most_steps: int = 10,
        predictor_share: float = 0.1,
    ):
        self.seed = seed
        self.hidden = hidden
        self.dropout = dropout
        self.most_steps = most_steps
        """Acquisitions in a training walk, at most."""
        self.predictor_share = predictor_share
        """Part of the learning rate that a pretrained predictor gets while the order is learned: at full rate it
        overfits a hundred rows before the order is learned, and the pick by validation then keeps an untrained order.
        """

    def fit(self, cohort: CohortLike) -> MaskedNetworkMethod:
        context = prepare(cohort)
        self.random = np.random.default_rng(self.seed)
        self.generator = torch.Generator().manual_seed(self.seed)
        self.acquirable = context.acquirable
        self.costs = np.maximum(context.costs, 1e-6)
        self.encoding = Encoding(context)
        self.head: Head = head_for(context)
        self.steps = min(self.most_steps, int(context.acquirable.sum()))
        self.n_inputs = self.encoding.width + self.encoding.n_features
        self.predictor = Network(self.n_inputs, self.head.outputs, self.generator, self.hidden, self.dropout)
        rows = self._rows(context)
        training, held = held_out_split(context, self.random)
        self._learn(rows.take(training), rows.take(held))
        return self

    @abstractmethod
    def _learn(self, rows: Rows, held: Rows) -> None:
        """Train on rows, choose by held."""

    @abstractmethod
    def _scores(self, inputs: Tensor) -> Tensor:
        """(n, D + d) inputs → (n, d) scores"""

    @torch.no_grad()
    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return self.head.prediction(self.predictor(self._encoded(x, a)))

    @torch.no_grad()
    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return block(self._scores(self._encoded(x, a)).numpy(), a, self.acquirable)

    def _encoded(self, x: np.ndarray, a: np.ndarray) -> Tensor:
        return torch.from_numpy(self.encoding.masked(np.asarray(x, dtype=np.float32), a))

    def _rows(self, context: Context) -> Rows:
        return Rows(
            torch.from_numpy(self.encoding.values(context.x)),
            torch.from_numpy(known_cells(context.x, context.r)),
            self.head.target(context.y),
            torch.from_numpy(context.acquirable),
            torch.from_numpy(self.encoding.owner),
        )

    def _network(self, outputs: int) -> Network:
        return Network(self.n_inputs, outputs, self.generator, self.hidden, self.dropout)

    def _random_a(self, rows: Rows) -> Tensor:
        return torch.from_numpy(random_acquisitions(rows.r.numpy(), self.acquirable, self.random))

    def _train_predictor(self, rows: Rows, held: Rows, schedule: Schedule) -> float:
        """Random acquisitions, drawn anew in every batch; the validation rows keep theirs."""
        held_many = held.repeat(4)
        held_inputs = held_many.inputs(self._random_a(held_many))

        def epoch(optimizer: torch.optim.Optimizer) -> None:
            for index in batches(len(rows), schedule, self.random):
                some = rows.take(index)
                losses = self.head.losses(self.predictor(some.inputs(self._random_a(some))), some.target)
                descend(optimizer, losses.mean())

        def validate() -> float:
            return float(self.head.losses(self.predictor(held_inputs), held_many.target).mean())

        return train([self.predictor], epoch, validate, schedule)

    def _walk_losses(self, rows: Rows, states: Tensor) -> Tensor:
        """(T, n, d) states → (T, n) losses of the predictor"""
        times = states.shape[0]
        many = rows.repeat(times)
        return self.head.losses(self.predictor(many.inputs(states.flatten(0, 1))), many.target).view(times, len(rows))

    def _greedy_loss(self, held: Rows, choose: Choose) -> float:
        """Mean validation loss along the method's own order, from nothing acquired to all steps."""
        return float(self._walk_losses(held, walk(held, choose, self.steps).states).mean())
