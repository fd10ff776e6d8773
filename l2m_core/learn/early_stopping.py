"""Early stopping: keeps the best weights so far, and stops when they have not improved for a while."""

from __future__ import annotations

import math

from torch import Tensor, nn


class EarlyStopping:
    """Watches one held-out number (lower is better); `is_over` after `patience` evaluations without a new lowest."""

    def __init__(self, watch: str, patience: int):
        self.watch, self.patience = watch, patience
        self.best: dict[str, Tensor] = {}
        self.value, self.waited = math.inf, 0

    @property
    def is_over(self) -> bool:
        return self.waited >= self.patience

    def update(self, report: dict[str, float], model: nn.Module) -> None:
        """`model` holds the weights that the report is about."""
        if report[self.watch] < self.value:
            self.value, self.waited = report[self.watch], 0
            self.best = {name: p.detach().clone() for name, p in model.named_parameters()}
        else:
            self.waited += 1

    def facts(self) -> dict[str, float]:
        return {"value": self.value, "waited": self.waited}

    def restore(self, facts: dict[str, float], best: dict[str, Tensor]) -> None:
        self.value, self.waited, self.best = facts["value"], int(facts["waited"]), best
