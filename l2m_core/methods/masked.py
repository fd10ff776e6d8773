"""Networks trained on rows with random parts hidden: the base of MLP, GDFS, DIME, DQN, AACO and SEFA."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from l2m_core.methods.interface import block
from l2m_core.methods.networks import Head, Network, Schedule, batches, gradient_step, head_for, train
from l2m_core.tabular.predictions import CohortLike, Prediction, known_cells
from l2m_core.tabular.preparation import Context, Encoding, by_action, held_out_split, prepare, random_acquisitions

Choose = Callable[["Rows", Tensor, Tensor], Tensor]
"""(rows, a (n, d), open (n, actions): what may be picked) → scores (n, actions); the highest open one is picked."""


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
    groups: Tensor
    """(d,) the action that measures each feature: features of one panel share a number"""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: np.ndarray) -> Rows:
        rows = torch.from_numpy(index)
        return replace(self, values=self.values[rows], r=self.r[rows], target=self.target[rows])

    def repeat(self, times: int) -> Rows:
        """The rows, then the rows again, … : (times · n)"""
        values, r, target = self.values.repeat(times, 1), self.r.repeat(times, 1), self.target.repeat(times)
        return replace(self, values=values, r=r, target=target)

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

    def open_actions(self, a: Tensor) -> Tensor:
        """(n, actions) bool: those that would uncover something."""
        return torch.from_numpy(by_action(self.open(a).numpy(), self.groups.numpy()))

    def after(self, a: Tensor, action: Tensor) -> Tensor:
        """(n, d) bool: a, and what the row's action (n,) uncovers, a whole panel where it measures one."""
        return a | (self.open(a) & (self.groups == action[:, None]))


@dataclass(frozen=True)
class Walks:
    """Rows along their acquisitions, steps first."""

    states: Tensor
    """(steps + 1, n, d) bool: a before each step, and at the end"""
    actions: Tensor
    """(steps, n) the action picked"""
    moved: Tensor
    """(steps, n) bool: false where nothing was left to pick"""


@torch.no_grad()
def walk(rows: Rows, choose: Choose, steps: int) -> Walks:
    """Take the highest scored open action again and again."""
    a = rows.start
    states, actions, moved = [a], [], []
    for _ in range(steps):
        open_actions = rows.open_actions(a)
        # A row with nothing left picks action 0, which uncovers nothing; `moved` says that it stood still.
        action = choose(rows, a, open_actions).masked_fill(~open_actions, -torch.inf).argmax(-1)
        a = rows.after(a, action)
        states.append(a)
        actions.append(action)
        moved.append(open_actions.any(-1))
    return Walks(torch.stack(states), torch.stack(actions), torch.stack(moved))


class PredictorSettings(TypedDict, total=False):
    """What every method can be given that first trains a predictor with random acquisitions."""

    seed: int
    hidden: int
    dropout: float
    most_steps: int
    predictor_share: float
    pretraining: Schedule | None


class MaskedNetworkMethod(ABC):
    """Holds the encoding, the head and the predictor network; subclasses add an order of acquisition.

    An action measures one feature, or all of a panel: walks take actions, networks score them, and random acquisitions
    draw them, while predictor and states stay with features.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        hidden: int = 128,
        dropout: float = 0.3,
        most_steps: int = 10,
        predictor_share: float = 0.1,
        pretraining: Schedule | None = None,
    ):
        self.seed = seed
        self.hidden = hidden
        self.dropout = dropout
        self.most_steps = most_steps
        """Actions in a training walk, at most."""
        self.predictor_share = predictor_share
        """Part of the learning rate that a pretrained predictor gets while the order is learned: at the full rate it
        overfits a hundred rows before the order is learned, and early stopping then keeps an untrained order.
        """
        self.pretraining = pretraining or Schedule(epochs=150, plateau=5, patience=15, least_steps=8)
        """Of the predictor, before an order is learned."""

    def fit(self, cohort: CohortLike) -> MaskedNetworkMethod:
        context = prepare(cohort)
        self.random = np.random.default_rng(self.seed)
        self.generator = torch.Generator().manual_seed(self.seed)
        self.acquirable = context.acquirable
        self.groups = context.groups
        self.n_actions = int(self.groups.max()) + 1
        """Those of baseline features among them, which are never open."""
        self.costs = np.maximum(context.costs, 1e-6)
        self.encoding = Encoding(context)
        self.head: Head = head_for(context)
        self.steps = min(self.most_steps, len(context.actions))
        self.n_inputs = self.encoding.width + self.encoding.n_features
        self.continuous = context.continuous
        self.predictor = self._new_predictor()
        rows = self.encode(context)
        training, held = held_out_split(context, self.random)
        self._learn(rows.take(training), rows.take(held))
        return self

    def _new_predictor(self) -> nn.Module:
        """(n, D + d) inputs → (n, outputs) as the head reads them"""
        return self._network(self.head.outputs)

    def _predictor_loss(self, inputs: Tensor, target: Tensor) -> Tensor:
        """What the predictor learns by."""
        return self.head.losses(self.predictor(inputs), target).mean()

    @abstractmethod
    def _learn(self, rows: Rows, held: Rows) -> None:
        """Train on rows, choose by held."""

    @torch.no_grad()
    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        return self.head.prediction(self.predictor(self._encoded(x, a)))

    @abstractmethod
    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        """(n, d) scores, higher first; -inf where blocked."""

    def _by_feature(self, scores: Tensor, a: np.ndarray) -> np.ndarray:
        """(n, actions) → (n, d): every feature has the score of the action that measures it; -inf where blocked."""
        return block(scores.numpy()[:, self.groups], a, self.acquirable)

    def _encoded(self, x: np.ndarray, a: np.ndarray) -> Tensor:
        return torch.from_numpy(self.encoding.masked(np.asarray(x, dtype=np.float32), a))

    def encode(self, context: Context) -> Rows:
        """The rows of a prepared cohort as tensors."""
        return Rows(
            torch.from_numpy(self.encoding.values(context.x)),
            torch.from_numpy(known_cells(context.x, context.r)),
            self.head.target(context.y),
            torch.from_numpy(context.acquirable.copy()),
            torch.from_numpy(self.encoding.owner),
            torch.from_numpy(self.groups.copy()),
        )

    def _network(self, outputs: int, inputs: int | None = None) -> Network:
        return Network(inputs or self.n_inputs, outputs, self.generator, self.hidden, self.dropout)

    def _random_a(self, rows: Rows) -> Tensor:
        return torch.from_numpy(random_acquisitions(rows.r.numpy(), self.acquirable, self.groups, self.random))

    def _train_predictor(self, rows: Rows, held: Rows, schedule: Schedule) -> float:
        """Random acquisitions, drawn anew in every batch; the validation rows keep theirs."""
        # Few rows are held out, so each is judged under four masks; they stay the same, or the losses of epochs could not be
        # compared.
        held_many = held.repeat(4)
        held_inputs = held_many.inputs(self._random_a(held_many))

        def epoch(optimizer: torch.optim.Optimizer) -> None:
            for index in batches(len(rows), schedule, self.random):
                some = rows.take(index)
                gradient_step(optimizer, self._predictor_loss(some.inputs(self._random_a(some)), some.target))

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


class RankingNetworkMethod(MaskedNetworkMethod):
    """One that ranks by what a network says of the same inputs."""

    @abstractmethod
    def _scores(self, inputs: Tensor) -> Tensor:
        """(n, D + d) inputs → (n, actions) scores"""

    @torch.no_grad()
    def rank(self, x: np.ndarray, a: np.ndarray) -> np.ndarray:
        return self._by_feature(self._scores(self._encoded(x, a)), a)
