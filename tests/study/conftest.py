"""A model small enough to be asked in milliseconds; it has learned nothing, which these tests do not need."""

from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects
import pytest
import torch
import yaml

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from tests.study.patients import written


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
    save_model(folder, build_model(config), config, TrainedRange(), AnswerSettings(), {"note": "for tests"})
    return folder


@pytest.fixture
def folder(tmp_path) -> Path:
    """Cohorts of the layout that the real ones have."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(260, 4))
    frame = pd.DataFrame(np.round(x, 3), columns=["age", "lactate", "sodium", "note"])
    frame.loc[::7, "sodium"] = np.nan
    frame["died"] = (x[:, 1] > 0).astype(int)
    frame["score"] = x[:, 1] + 0.1 * x[:, 2]
    frame.drop(columns="score").to_csv(tmp_path / "icu.csv", index=False)
    frame.drop(columns="died").to_csv(tmp_path / "scores.csv", index=False)
    common = {"rows": 260, "baseline_columns": ["age"], "acquirable_columns": ["lactate", "sodium"]}
    entries = [
        {"name": "icu", "file": "icu.csv", "outcome": "died", "task": "binary", "positive_label": 1, **common},
        {"name": "scores", "file": "scores.csv", "outcome": "score", "task": "regression", **common},
        {"name": "raw", "file": "raw/", "task": "none"},
        {"name": "pictures", "file": "pictures.npz", "task": "multiclass", "outcome": "label", "rows": 9},
    ]
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"datasets": entries}))
    return tmp_path


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Of a cohort and of patients."""
    return written(tmp_path)
