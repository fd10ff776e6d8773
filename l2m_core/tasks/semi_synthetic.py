"""Tasks on the rows of a real table: labels drawn or the real ones, and missingness on top of the table's.

Every task draws its own rows (without replacement) and, where it is narrower than the table, its own columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from l2m_core.errors import ConfigError
from l2m_core.tasks.batch import TaskBatch
from l2m_core.tasks.bnn import BNNConfig, label
from l2m_core.tasks.checks import check_choice, check_number
from l2m_core.tasks.draws import coin, normal, standardise, uniform
from l2m_core.tasks.missingness import Missingness, graft_missingness, sample_missingness
from l2m_core.tasks.study import StudyBNNConfig, study_label


@dataclass(frozen=True)
class SemiSyntheticConfig:
    """What is drawn and what is the table's own."""

    labels: str = "prior"
    """"prior": outcomes from `mechanism`; "study": from `study`; "real": the table's outcome."""
    mechanism: BNNConfig = field(default_factory=BNNConfig)
    """The label mechanism of "prior"; its baseline and missingness settings are not used here."""
    study: StudyBNNConfig = field(default_factory=StudyBNNConfig)
    """The label mechanism of "study", the study's own; of its settings, those of labels are used here."""
    normalised: bool = False
    """Whether features are given with mean 0 and variance 1 over the recorded values of the task's rows, all as numbers,
    as the study trains."""
    keep_missing: bool = True
    """What the table lacks stays missing. False: it counts as recorded, with a value of another row filled in."""
    graft: float = 0.0
    """Share of tasks whose missingness is the mask of other rows of the table, in place of `missingness`."""
    missingness: Missingness = field(default_factory=Missingness)
    """How values come to be missing."""

    def __post_init__(self) -> None:
        check_choice(self, "labels", ("prior", "study", "real"))
        check_choice(self, "normalised", (True, False))
        check_choice(self, "keep_missing", (True, False))
        check_number(self, "graft", 0.0, 1.0)


class SemiSyntheticPrior:
    """`sample` draws tasks from a table.

    x: (M, D) numbers, NaN where not recorded, categories as codes; y: (M,) class codes if of a whole-number type, else
    a continuous outcome (only "real" labels need it); acquirable, categorical: (D,) bool; n_classes: where the table
    might lack the last class.
    """

    def __init__(
        self,
        config: SemiSyntheticConfig | None = None,
        *,
        x: np.ndarray | Tensor,
        y: np.ndarray | Tensor | None = None,
        acquirable: np.ndarray | Tensor | None = None,
        categorical: np.ndarray | Tensor | None = None,
        n_classes: int | None = None,
    ):
        self.config = config or SemiSyntheticConfig()
        table = torch.tensor(x, dtype=torch.float32) if isinstance(x, np.ndarray) else x.float()
        if table.ndim != 2:
            raise ConfigError(f"The table x has shape {tuple(table.shape)}; give (rows, columns).")
        M, D = table.shape
        self._recorded = ~table.isnan()
        if not self._recorded.any(dim=0).all():
            empty = (~self._recorded.any(dim=0)).nonzero().flatten().tolist()
            raise ConfigError(f"Columns {empty} of the table have no recorded value; leave them out.")
        self._x = table.nan_to_num()
        self._y = None if y is None else _as_outcome(y, M)
        self._n_classes = _count_classes(self._y, n_classes)
        if self.config.labels == "real" and self._y is None:
            raise ConfigError('SemiSyntheticConfig.labels is "real", which needs the table\'s outcome; pass y.')
        self._acquirable = _as_mask(acquirable, D, True, "acquirable")
        self._categorical = _as_mask(categorical, D, False, "categorical")
        if not self._acquirable.any():
            raise ConfigError("No column of the table is acquirable; at least one must be.")
        # Row numbers with the recorded ones of each column first: donors of values for the cells the table lacks.
        self._donors = (~self._recorded).to(torch.int8).argsort(dim=0, stable=True)
        self._donor_count = self._recorded.sum(dim=0)

    @property
    def features(self) -> int:
        """Columns of the table: the most that `sample` can give."""
        return self._x.shape[1]

    def sample(self, generator: torch.Generator, tasks: int, rows: int, features: int) -> TaskBatch:
        self._move(generator.device)
        M, D = self._x.shape
        if rows > M or features > D:
            raise ConfigError(
                f"The table has {M} rows and {D} columns, fewer than the {rows} rows and {features} features asked for."
            )
        # Rows without replacement: no patient is both in the context and among the queries.
        row = uniform(generator, (tasks, M)).argsort(dim=1)[:, :rows].unsqueeze(2)
        column = self._sample_columns(generator, tasks, features).unsqueeze(1)
        # (B, N, 1) row numbers against (B, 1, d) column numbers: each task's own part of the table.
        recorded = self._recorded[row, column]
        x = torch.where(recorded, self._x[row, column], self._sample_donors(generator, column, rows))
        acquirable = self._acquirable[column.squeeze(1)]
        categorical = self._categorical[column.squeeze(1)]
        if self.config.labels == "real":
            assert self._y is not None
            y, truth = self._y[row.squeeze(2)], None
            n_classes = None if self._n_classes is None else torch.full((tasks,), self._n_classes, device=x.device)
        elif self.config.labels == "study":
            y, n_classes, truth = study_label(generator, _latent(generator, x, categorical), self.config.study)
        else:
            y, n_classes, truth = label(generator, _latent(generator, x, categorical), self.config.mechanism)
        had = recorded if self.config.keep_missing else None
        r = sample_missingness(generator, x, acquirable, self.config.missingness, y, had)
        if self.config.graft > 0:
            grafted = graft_missingness(generator, x, self._recorded, acquirable, column.squeeze(1))
            # Whole tasks take the table's own mask, the others the drawn mechanism.
            r = torch.where(coin(generator, (tasks, 1, 1), self.config.graft), grafted, r)
        if self.config.keep_missing:
            r = r & recorded
        if self.config.normalised:
            # What is standardised is a number, and no longer a category's code.
            x, categorical = standardise(x, r), torch.zeros_like(categorical)
        return TaskBatch(x, r, y, n_classes, acquirable, categorical, truth)

    def _move(self, device: torch.device) -> None:
        """The table follows the generator once, so that a batch on the GPU copies nothing from the CPU."""
        if self._x.device != device:
            for name in ("_x", "_y", "_recorded", "_acquirable", "_categorical", "_donors", "_donor_count"):
                value = getattr(self, name)
                setattr(self, name, value if value is None else value.to(device))

    def _sample_columns(self, generator: torch.Generator, tasks: int, features: int) -> Tensor:
        """(B, d) column numbers in the table's order, one of them acquirable for certain."""
        D = self._x.shape[1]
        key = uniform(generator, (tasks, D))
        first = torch.where(self._acquirable, key, 2.0).argmin(dim=1, keepdim=True)
        # The acquirable column with the smallest key is moved to the front, so it is certainly among those kept.
        key = key.scatter(1, first, -1.0)
        return key.argsort(dim=1)[:, :features].sort(dim=1).values

    def _sample_donors(self, generator: torch.Generator, column: Tensor, rows: int) -> Tensor:
        """(B, N, d): for every cell a recorded value of the same column, from any row of the table."""
        # A random rank among the recorded rows of the column, looked up in the list that has them first.
        count = self._donor_count[column]
        draw = uniform(generator, (column.shape[0], rows, column.shape[2]))
        rank = (draw * count).long().clamp_max(count - 1)
        return self._x[self._donors[rank, column], column]


def _latent(generator: torch.Generator, x: Tensor, categorical: Tensor) -> Tensor:
    """(B, N, d) what the label mechanism reads: numbers standardised, each category's code a random number."""
    B, N, d = x.shape
    code = torch.where(categorical.unsqueeze(1), x, torch.zeros_like(x)).long().clamp_min(0)
    # A table of random effects for each task and column, looked up by code.
    effect = normal(generator, (B, int(code.max()) + 1, d)).gather(1, code)
    return standardise(torch.where(categorical.unsqueeze(1), effect, standardise(x)), limit=4.0)


def _as_outcome(y: np.ndarray | Tensor, rows: int) -> Tensor:
    outcome = torch.as_tensor(y)
    if outcome.shape != (rows,):
        raise ConfigError(f"The outcome y has shape {tuple(outcome.shape)}; give one value for each of {rows} rows.")
    if outcome.is_floating_point():
        outcome = outcome.float()
        if not outcome.isfinite().all():
            raise ConfigError("The outcome of the table has missing or infinite values; leave those rows out.")
        return outcome
    return outcome.long()


def _count_classes(y: Tensor | None, stated: int | None) -> int | None:
    if y is None or y.is_floating_point():
        return None
    return max(int(y.max()) + 1, stated or 2)


def _as_mask(mask: np.ndarray | Tensor | None, columns: int, default: bool, name: str) -> Tensor:
    if mask is None:
        return torch.full((columns,), default)
    mask = torch.tensor(mask).bool() if isinstance(mask, np.ndarray) else mask.bool()
    if mask.shape != (columns,):
        raise ConfigError(f"`{name}` has shape {tuple(mask.shape)}; give one value for each of {columns} columns.")
    return mask
