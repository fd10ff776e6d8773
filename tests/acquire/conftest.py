"""What tests of gains share: tiny models, and a cohort of each kind of outcome with a test that hardly anybody has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.release import Release, load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.memory import L2M
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.schema import Overrides

NUMBERS, GRADE, RARE = ("lactate", "ph", "crp"), "grade", "rare"
KINDS = ("binary", "multiclass", "continuous")


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Release]:
    """Tiny models with weights drawn at random: one that foresees results, one that does not, one that answers alike
    whatever it is shown."""
    made = {}
    for name, bins in (("foresees", 6), ("plain", 0), ("silent", 6)):
        config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, max_classes=3, bins=12, value_bins=bins)
        torch.manual_seed(1)
        module = build_model(config)
        if name != "silent":
            for parameter in module.parameters():
                torch.nn.init.normal_(parameter, std=0.35)
        folder = tmp_path_factory.mktemp("models") / name
        save_model(folder, module, config, TrainedRange(), AnswerSettings(gains="answers" if bins else "head"), {})
        made[name] = load_release(folder)
    return made


def make_cohort(kind: str, panel: bool = False) -> l2m.Cohort:
    """Three numbers, a grade of four levels, and a test that five rows have."""
    generator = np.random.default_rng(5)
    frame = {name: generator.normal(size=80).round(2) for name in NUMBERS}
    frame["grade"] = generator.choice(["A", "B", "C", "D"], 80)
    frame["rare"] = np.where(np.arange(80) < 5, generator.normal(size=80), np.nan)
    signal = frame["lactate"] + 0.3 * generator.normal(size=80)
    classes = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.5, 0.5])]
    frame["y"] = {"binary": signal > 0, "multiclass": classes, "continuous": signal}[kind]
    features = {name: {"group": "gas"} for name in ("lactate", "ph")} if panel else {}
    return l2m.Cohort.from_frame(pd.DataFrame(frame), outcome="y", schema=Overrides(features, {}))


@pytest.fixture(params=KINDS)
def memory(request, releases):
    return L2M(releases["foresees"]).condition(make_cohort(request.param))
