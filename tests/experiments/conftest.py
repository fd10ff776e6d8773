"""A model small enough to be asked in milliseconds; it has learned nothing, which these tests do not need."""

from pathlib import Path

import plotly.graph_objects
import pytest
import torch

from l2m_core.model.interface import ModelConfig, build
from l2m_core.released import Inference, Range, save_model


@pytest.fixture(autouse=True)
def no_pictures(request, monkeypatch):
    """As on a machine without a renderer: starting a browser for each picture would take most of the time."""
    if "browser" in request.keywords:
        return

    def missing(*arguments, **settings):
        raise ValueError("no renderer")

    monkeypatch.setattr(plotly.graph_objects.Figure, "write_image", missing)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny"
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, max_classes=10, bins=16)
    torch.manual_seed(0)
    save_model(folder, build(config), config, Range(), Inference(), {"note": "for tests"})
    return folder
