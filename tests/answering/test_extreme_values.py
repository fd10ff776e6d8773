"""Values of every magnitude that a 32-bit float holds: an answer of numbers, or a refusal that names the column."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.release import load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import CohortError, FeatureError
from l2m_core.memory import L2M
from l2m_core.model.columns import mean_and_std
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig

LARGEST = float(np.finfo(np.float32).max)
MAGNITUDES = [10.0**power for power in (*range(-45, 15, 6), *range(15, 39, 2), 38)] + [3.4e38, LARGEST]
SMALL = {"layers": 2, "width": 16, "heads": 2, "feedforward": 16, "bins": 12, "features": 3}
MODELS = [
    {"encoder": "cells"},
    {"encoder": "rows", "outcome": "classes"},
    {"encoder": "rows", "outcome": "classes", "standardise": False},
]


def model_of(folder, config: ModelConfig) -> L2M:
    torch.manual_seed(0)
    module = build_model(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    save_model(folder, module, config, TrainedRange(), AnswerSettings(), {})
    return L2M(load_release(folder))


@pytest.fixture(scope="module", params=MODELS, ids=["cells", "rows", "rows unscaled"])
def any_model(request, tmp_path_factory) -> L2M:
    return model_of(tmp_path_factory.mktemp("models") / "tiny", ModelConfig(**SMALL, **request.param))


def frame_of(columns: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(columns, columns=[f"x{i}" for i in range(columns.shape[1])])
    return frame.assign(died=["yes", "no"] * (len(frame) // 2))


def columns_of(size: float, seed: int = 0) -> np.ndarray:
    """(60, 3): one column of this size, one that is this size in a single row, and one as any."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(60, 3))
    x[:, 0] = size * np.clip(x[:, 0] / 2, -1, 1)
    x[:2, 0] = size, -size
    x[7, 1] = -size
    return x


def assert_finite(memory: l2m.CohortMemory, x: np.ndarray) -> None:
    prediction = np.asarray(memory.predict(x))
    assert np.isfinite(prediction).all() and np.allclose(prediction.sum(1), 1)
    answer = memory.answer(memory.encode(x))
    assert np.isfinite(answer.gain).all() and np.isfinite(answer.policy).all()


@pytest.mark.parametrize("size", MAGNITUDES)
def test_a_cohort_of_any_magnitude_gives_numbers(any_model: L2M, size: float) -> None:
    frame = frame_of(columns_of(size))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            cohort = l2m.Cohort.from_frame(frame, "died", schema={"features": [{"name": "x0", "kind": "number"}]})
            memory = any_model.condition(cohort)
    except CohortError as refusal:
        assert "x0" in str(refusal) or "x1" in str(refusal)
        return
    middle = np.full((1, len(cohort.names)), np.nan, np.float32)
    assert_finite(memory, np.concatenate([cohort.x[:9], middle]))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        patient = memory.start({cohort.names[0]: float(cohort.x[0, 0])})
        assert np.isfinite(patient.posterior).all() and patient.ranking.notna().any(axis=None)


@pytest.fixture(scope="module")
def ordinary(any_model: L2M) -> l2m.CohortMemory:
    return any_model.condition(l2m.Cohort.from_frame(frame_of(columns_of(1.0)), "died"))


@pytest.mark.parametrize("size", [sign * size for size in (*MAGNITUDES, 3.5e38, 1e39, 1e308) for sign in (1, -1)])
def test_a_patients_value_of_any_magnitude_gives_numbers(ordinary: l2m.CohortMemory, size: float) -> None:
    """Typed, in an array and in a DataFrame, which agree on what is refused."""
    ways = (
        lambda: ordinary.start({"x0": size}).posterior,
        lambda: ordinary.start({"x0": repr(size)}).posterior,
        lambda: ordinary.predict(np.array([[size, np.nan, np.nan]])),
        lambda: ordinary.predict(pd.DataFrame({"x0": [size]})),
    )
    for way in ways:
        if abs(size) > LARGEST:
            with pytest.raises(FeatureError, match="x0"):
                way()
        else:
            assert np.isfinite(way()).all()


@pytest.mark.parametrize("size", [size for size in MAGNITUDES if size > 1e-30])
def test_a_continuous_outcome_of_any_magnitude_gives_numbers_or_is_refused_by_name(tmp_path, size: float) -> None:
    model = model_of(tmp_path / "tiny", ModelConfig(**SMALL))
    frame = frame_of(columns_of(1.0)).assign(died=size * np.linspace(-1, 1, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cohort = l2m.Cohort.from_frame(frame, schema={"outcome": {"name": "died", "kind": "continuous"}})
    if size > 1.1e15:
        with pytest.raises(CohortError, match=r"Outcome 'died' holds .*up to 1e\+15.*larger unit"):
            model.condition(cohort)
        return
    predicted = model.condition(cohort).predict(cohort.x[:5])
    assert np.isfinite([predicted.mean, predicted.std, predicted.quantile(0.05), predicted.quantile(0.95)]).all()


@pytest.mark.parametrize("size", [1e-45, 1e-20, 1.0, 9e14, 2e15, 1e19, 1e30, 3.4e38, LARGEST])
def test_mean_and_spread_are_those_of_double_precision(size: float) -> None:
    x = torch.tensor(columns_of(size), dtype=torch.float32)[None]
    r = torch.rand(x.shape, generator=torch.Generator().manual_seed(1)) < 0.8
    x = torch.where(r, x, 0.0)
    mean, std = mean_and_std(x, r, r.sum(1))
    wanted = x.double().sum(1) / r.sum(1)
    spread = (torch.where(r, x.double() - wanted[:, None], 0.0).square().sum(1) / r.sum(1)).sqrt()
    torch.testing.assert_close(mean.double(), wanted, rtol=1e-4, atol=1e-7 * max(size, 1e-30))
    torch.testing.assert_close(std.double(), spread, rtol=1e-4, atol=2e-20)
    if 1e-15 <= size <= 1e15:  # as it always was, to the bit
        plain = x.sum(1) / r.sum(1)
        variance = torch.where(r, x - plain[:, None], 0.0).square().sum(1) / r.sum(1)
        assert torch.equal(mean, plain) and torch.equal(std, variance.sqrt())
