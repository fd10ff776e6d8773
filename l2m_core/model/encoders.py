"""The encoders by name, and the one function that makes a config a module."""

from __future__ import annotations

from torch import nn

from l2m_core.model.by_outcome import ByOutcome
from l2m_core.model.cells import Cells
from l2m_core.model.interface import ModelConfig
from l2m_core.model.rows import Rows

ENCODERS: dict[str, type[nn.Module]] = {"cells": Cells, "rows": Rows}


def build_model(config: ModelConfig) -> nn.Module:
    """A module with fresh weights, drawn from torch's global generator (seed it first)."""
    return ByOutcome(config) if config.continuous_apart else ENCODERS[config.encoder](config)
