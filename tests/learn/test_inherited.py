"""What a model was trained from says how its answers are read, over any number of jobs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from l2m_core.answering.release import load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.learn.inherited_settings import inherited
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train import difference

CARE = AnswerSettings(temperature=0.9, views=2, policy="learned")


def checkpoint(folder: Path, **job: object) -> str:
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps({"job": {"folder": str(folder), **job}}))
    return str(folder)


@pytest.fixture
def released(tmp_path: Path) -> str:
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
    save_model(tmp_path / "released", build_model(config), config, TrainedRange(), CARE, {})
    return str(tmp_path / "released")


def test_it_is_read_as_what_it_began_with_however_far_back(tmp_path: Path, released: str) -> None:
    first = checkpoint(tmp_path / "first", init=released)
    assert inherited(released) == inherited(first) == inherited(checkpoint(tmp_path / "second", init=first)) == CARE


def test_a_job_that_taught_gains_ranks_by_them(tmp_path: Path, released: str) -> None:
    taught = checkpoint(tmp_path / "taught", init=released, reveals=2)
    assert inherited(taught) == replace(CARE, policy="gain") == inherited(checkpoint(tmp_path / "after", init=taught))


def test_fresh_weights_rank_by_trying_values(tmp_path: Path) -> None:
    fresh = checkpoint(tmp_path / "fresh", init="")
    assert inherited(fresh) == AnswerSettings(policy="monte carlo", row_order="content")
    assert inherited(checkpoint(tmp_path / "taught", init=fresh, reveals=1)) == AnswerSettings(row_order="content")


def test_where_what_it_began_with_is_gone_it_is_read_plainly(tmp_path: Path) -> None:
    assert inherited(checkpoint(tmp_path / "orphan", init=str(tmp_path / "erased"))) == AnswerSettings()


def test_a_job_that_began_with_its_own_folder_is_read_plainly(tmp_path: Path) -> None:
    assert inherited(checkpoint(tmp_path / "again", init=str(tmp_path / "again"))) == AnswerSettings()


def test_weights_kept_as_their_difference_are_read_as_what_they_differ_from(tmp_path: Path, released: str) -> None:
    difference.keep(load_release(released, "cpu").module, released, tmp_path / "kept")
    kept = str(tmp_path / "kept")
    assert inherited(kept) == inherited(checkpoint(tmp_path / "first", init=kept)) == CARE
