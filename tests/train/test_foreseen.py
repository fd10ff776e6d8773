"""`python -m train foreseen`: foreseen results against those that came, with a head that says no more than the column itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.answering.release import load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train.study import foreseen
from train.study.evaluation.cells import Trial
from train.study.random_states import NamedTrial, sources

SHAPE = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16}


def untrained(folder: Path, value_bins: int) -> L2M:
    """Its value head is flat: it foresees each column's own distribution."""
    torch.manual_seed(0)
    config = ModelConfig(**SHAPE, value_bins=value_bins)
    save_model(folder, build_model(config), config, TrainedRange(), AnswerSettings(), {})
    return L2M(load_release(folder))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> L2M:
    return untrained(tmp_path_factory.mktemp("models") / "flat", value_bins=8)


def twins(rows: int) -> Cohort:
    """The second test repeats the first, the third has nothing to do with them, the fourth has three levels."""
    rng = np.random.default_rng(3)
    first, alone = rng.normal(size=(2, rows))
    x = np.stack([first, first + 0.01 * rng.normal(size=rows), alone, rng.integers(0, 3, rows)], axis=1)
    return Cohort.from_arrays(x.astype(np.float32), (first > 0).astype(int), names=["a", "copy", "alone", "level"])


@pytest.fixture(scope="module")
def results(model: L2M) -> pd.DataFrame:
    cohort = twins(400)
    trial = Trial(cohort.rows(np.arange(300)), cohort.x[300:], cohort.y[300:])
    return foreseen.measure(model, [NamedTrial("twins", trial)], states=250)


def test_a_flat_head_foresees_the_column_and_is_calibrated(results: pd.DataFrame) -> None:
    np.testing.assert_allclose(results.foreseen, 0, atol=1e-4)
    found = foreseen.scores(results)
    for level in foreseen.LEVELS:  # within four standard errors
        error = np.sqrt(level * (1 - level) / found["numbers"])
        assert abs(found[f"in_{level:.0%}"] - level) < 4 * error


def test_near_rows_tell_of_a_test_that_repeats_a_known_one(results: pd.DataFrame) -> None:
    by_feature = results.groupby("feature").near.mean()
    assert by_feature["copy"] < -0.2 and by_feature["alone"] > -0.05
    assert set(results[~results.is_number].feature) == {"level"}


def test_a_head_that_is_too_sure_is_found_out(results: pd.DataFrame) -> None:
    """What it calls the middle half is where all results lie: as if its intervals were half as long as they should be."""
    narrow = results.assign(position=(results.position - 0.5).clip(-0.25, 0.25) * 2 + 0.5)
    assert foreseen.scores(narrow)["in_80%"] < 0.5


def test_the_page_holds_both_kinds_of_source(model: L2M, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [s for s in sources(tmp_path, 2) if s.name in ("wine", "generated_short", "generated_short_1")]
    assert len(chosen) == 3
    monkeypatch.setattr(foreseen, "sources", lambda *_: chosen)
    name = str(model.release.name)
    monkeypatch.setattr(foreseen, "load", lambda _: model)
    assert foreseen.main(["--model", name, "--states", "3", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "foreseen.md").read_text()
    assert page.count("| generated_short | ") == 1 and "of 2 cohorts" in page
    assert "### Tables" in page and "### Tasks of the priors" in page and "| wine | " in page
    assert "lie in the interval of 80%" in page and "Made by `python -m train foreseen" in page


def test_a_model_that_foresees_nothing_is_refused(tmp_path: Path) -> None:
    untrained(tmp_path / "silent", value_bins=0)
    with pytest.raises(ConfigError, match="'silent' foresees no results"):
        foreseen.main(["--model", str(tmp_path / "silent"), "--out", str(tmp_path)])
