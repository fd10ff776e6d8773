"""The command that measures inference settings: plain answers save nothing, and the best is the best of those tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from train.__main__ import main
from train.study import answer_settings


def test_every_setting_is_judged_on_the_same_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(answer_settings, "FAMILIES", answer_settings.FAMILIES[:1])
    assert main(["care", "--tasks", "2", "--out", str(tmp_path)]) == 0
    page = (tmp_path / "answer_settings.md").read_text()
    assert page in capsys.readouterr().out and "inference: {views: " in page
    plain = next(line for line in page.splitlines() if line.startswith("| 1 | 0.0000 | 0.0000 | 0.0000 | 1 |"))
    assert plain.endswith("| — |")
    assert main(["answer_settings", "--tasks", "1", "--one-view", "--out", str(tmp_path)]) == 0
    quick = (tmp_path / "answer_settings.md").read_text()
    assert "--tasks 1 --one-view" in quick and "| 2 | " in page and "| 2 | " not in quick


def test_a_temperature_sharpens_and_no_setting_is_the_plain_answer() -> None:
    rows = list(answer_settings.judge(answer_settings.load("general"), answer_settings.FAMILIES[0], 0))
    plain = len(answer_settings.VIEWS) * len(answer_settings.AGAINST_REST) * len(answer_settings.PREVALENCE)
    sharpened = len(answer_settings.WITH_EXPONENT) * (len(answer_settings.EXPONENT_SPREAD) - 1)
    assert len(rows) == (plain + sharpened) * len(answer_settings.TEMPERATURE)
    by = {tuple(row[name] for name in answer_settings.SETTINGS): row["log_loss"] for row in rows}
    trial = answer_settings.draw(answer_settings.FAMILIES[0], 0, Path())
    assert all(np.isfinite(value) for value in by.values()) and len(trial.x) == 60
    assert by[1, 0.0, 0.0, 0.0, 0.85] != by[1, 0.0, 0.0, 0.0, 1.0] != by[2, 0.0, 0.0, 0.0, 1.0]


def test_of_more_than_two_classes_each_against_the_rest_is_another_answer() -> None:
    family = answer_settings.FAMILIES[0]
    index = next(i for i in range(50) if answer_settings.draw(family, i, Path()).context.n_classes > 2)
    rows = list(answer_settings.judge(answer_settings.load("general"), family, index))
    by = {tuple(row[name] for name in answer_settings.SETTINGS): row["log_loss"] for row in rows}
    assert len({by[1, share, 0.0, 0.0, 1.0] for share in answer_settings.AGAINST_REST}) == len(
        answer_settings.AGAINST_REST
    )
    assert len({by[1, 0.75, 0.0, spread, 1.0] for spread in answer_settings.EXPONENT_SPREAD}) > 1
