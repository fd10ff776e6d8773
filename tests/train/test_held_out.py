"""The command that judges models on held-out tasks: all on the same ones, and what it prints is what they lose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.learn import held_out
from l2m_core.learn.losses import GainLoss, context_of
from l2m_core.learn.stages import Stage
from l2m_core.model.density import predictive
from tests.learn.examples import fresh_model, shaken_model
from train.__main__ import main
from train.initial_model import load_initial_model
from train.priors import PriorChoice, priors_of
from train.study.held_out import BASE_RATE, LEAST, mean_and_error, page, prior_of, task_losses

SHAPES = {
    "small": Stage(steps=1, tasks=12, rows=(24,), features=(3,), continuous=0.0),
    "continuous": Stage(steps=1, tasks=3, rows=(24,), features=(3,), continuous=1.0),
}


def row(text: str, first: str) -> dict[str, str]:
    """The cells of a Markdown table's row, by the heads of its columns."""
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ]
    place = next(number for number, line in enumerate(lines) if line[0] == first)
    head = next(line for line in reversed(lines[:place]) if line[0] in ("shape", "classes"))
    return dict(zip(head, lines[place], strict=True))


@pytest.fixture(autouse=True)
def small_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_out, "SHAPES", SHAPES)


@pytest.fixture
def models(tmp_path: Path) -> list[str]:
    """An untrained model, and one whose weights are shaken: they answer differently."""
    made = []
    for name, most in (("plain", 10), ("shaken", 10), ("narrow", 2)):
        settings = {"max_classes": most, "value_bins": 0 if name == "narrow" else 4, "bins": 64}
        model = shaken_model(**settings) if name == "shaken" else fresh_model(**settings)
        save_model(tmp_path / name, model, model.config, TrainedRange(), AnswerSettings(), {})  # type: ignore[arg-type]
        made.append(str(tmp_path / name))
    return made


def test_models_are_judged_side_by_side_on_the_same_tasks(
    models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plain, shaken, _ = models
    assert main(["held_out", "--model", plain, "--model", shaken, "--pools", "2"]) == 0
    text = capsys.readouterr().out
    drawn = held_out.draw_held_out(priors_of(prior_of(None)), pools=2)
    expected = {name: held_out.evaluate(held_out_model(name), drawn) for name in (plain, shaken)}
    for shape, tasks in (("small", 24), ("continuous", 6)):
        found = row(text, shape)
        assert int(found["tasks"]) == tasks
        base = expected[plain][f"{shape}_base"]
        assert float(found[BASE_RATE]) == pytest.approx(base, abs=1e-4)
        for name in (plain, shaken):
            assert float(found[name]) == pytest.approx(expected[name][shape], abs=1e-4)
            assert float(found[f"{name}, under base rate"]) == pytest.approx(base - expected[name][shape], abs=2e-4)
        difference, error = found[f"{shaken} − {plain}"].split(" ± ")
        assert float(difference) == pytest.approx(expected[shaken][shape] - expected[plain][shape], abs=2e-4)
        assert float(error) > 0


def held_out_model(name: str):
    return load_initial_model(name).eval()


def test_tasks_are_also_told_apart_by_their_number_of_classes(models: list[str]) -> None:
    losses = task_losses(models[:1], held_out.draw_held_out(priors_of(prior_of(None)), pools=2))
    text = page(losses)
    binary, several = losses[losses.classes == 2], losses[losses.classes.between(3, 5)]
    assert len(binary) and len(several)
    assert int(row(text, "2")["tasks"]) == len(binary)
    assert float(row(text, "3–5")[models[0]]) == pytest.approx(several[models[0]].mean(), abs=1e-4)
    counted = [line for line in text.splitlines() if line.startswith(("| 2 ", "| 3–5 ", "| 6–10 "))]
    assert sum(int(line.split("|")[2]) for line in counted) == (losses.classes > 0).sum() == 24


def test_losses_that_the_truth_expects_are_those_drawn_on_average_and_never_below_the_least(
    models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    shaken = models[1]
    drawn = held_out.draw_held_out(priors_of(PriorChoice("additive")), pools=20)
    outcomes, expected = (task_losses([shaken], drawn, expected=is_expected) for is_expected in (False, True))
    of_classes = expected.classes > 0
    assert expected[LEAST].isna().equals(~of_classes)
    assert (expected[shaken] > expected[LEAST])[of_classes].all()
    off = (outcomes[shaken] - expected[shaken])[of_classes]
    assert abs(off.mean()) < 4 * off.std() / len(off) ** 0.5 and off.std() > 0.01
    assert main(["held_out", "--expected", "--prior", "additive", "--pools", "1", "--model", shaken]) == 0
    text = capsys.readouterr().out
    assert "no lower" in text and float(row(text, "small")[LEAST]) < float(row(text, "small")[shaken])
    assert "nan" not in row(text, "2")[LEAST]


def test_the_standard_error_is_that_of_the_mean_of_differences() -> None:
    assert mean_and_error(np.array([1.0, 3.0])) == "+2.0000 ± 1.0000"
    assert mean_and_error(np.array([0.5])) == "+0.5000"


def test_a_jobs_config_says_which_tasks(models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "job.yaml"
    config.write_text(yaml.safe_dump({"stages": [], "prior": {"settings": {"max_classes": 2}}}))
    assert main(["held_out", "--model", models[2], "--pools", "1", "--config", str(config)]) == 0
    assert int(row(capsys.readouterr().out, "2")["tasks"]) == 12


def test_a_jobs_config_says_how_classes_are_coded(models: list[str], tmp_path: Path, capsys) -> None:
    def told(settings: dict[str, Any], *more: str) -> str:
        config = tmp_path / "job.yaml"
        config.write_text(yaml.safe_dump({"stages": [], "prior": {"settings": {"max_classes": 2}}, **settings}))
        assert main(["held_out", "--model", models[1], "--pools", "1", "--config", str(config), *more]) == 0
        return capsys.readouterr().out

    by_frequency = told({"classes_by_frequency": True})
    assert by_frequency == told({}, "--classes-by-frequency") != told({})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere"], "--model: 'nowhere' is neither a job's folder"),
        (["--config", "nowhere.yaml"], "no config file"),
    ],
)
def test_what_is_not_there_is_refused_by_name(arguments: list[str], message: str, capsys) -> None:
    assert main(["held_out", "--pools", "1", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_model_for_fewer_classes_is_refused_before_it_answers(models: list[str], capsys) -> None:
    assert main(["held_out", "--model", models[2], "--pools", "2"]) == 2
    assert "answers at most 2 classes" in capsys.readouterr().err


def test_gain_heads_are_held_against_what_each_models_own_answers_give(
    models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plain, shaken, _ = models
    drawn = held_out.draw_held_out(priors_of(prior_of(None)), pools=1)
    assert main(["held_out", "--gains", "--model", plain, shaken, "--pools", "1"]) == 0
    text = capsys.readouterr().out
    for group in drawn:
        found = row(text, group.name)
        assert int(found["tasks"]) == len(group.episodes[0].tasks.x)
        for name in (plain, shaken):
            loss, _ = GainLoss(held_out_model(name), "information", held_out.REVEALS)(group.episodes[0])
            assert float(found[name]) == pytest.approx(float(loss.detach()), rel=1e-3)
        assert float(found[f"{shaken} − {plain}"].split(" ± ")[1]) > 0
    assert int(row(text, "all")["tasks"]) == 15


def test_a_model_that_foresees_no_results_has_no_gains_to_be_held_against(
    models: list[str], tmp_path: Path, capsys
) -> None:
    config = tmp_path / "job.yaml"
    config.write_text(yaml.safe_dump({"stages": [], "prior": {"settings": {"max_classes": 2}}}))
    assert main(["held_out", "--gains", "--model", models[2], "--pools", "1", "--config", str(config)]) == 2
    assert "foresees no results" in capsys.readouterr().err


def test_the_crps_of_continuous_outcomes_is_that_of_the_models_quantiles(
    models: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    plain, shaken, narrow = models
    assert main(["held_out", "--crps", "--model", plain, shaken, "--pools", "2"]) == 0
    text = capsys.readouterr().out
    (drawn,) = (
        group for group in held_out.draw_held_out(priors_of(prior_of(None)), pools=2) if group.name == "continuous"
    )
    for name in (plain, shaken):
        model, scores = held_out_model(name), []
        for episode in drawn.episodes:
            tasks, n = episode.tasks, episode.context
            memory = model.condition(context_of(tasks, n))
            density = predictive(model.query(memory, tasks.x[:, n:], episode.a), memory)
            quantiles = torch.stack([density.quantile((level + 0.5) / 400) for level in range(400)], -1)  # (B, n, 400)
            levels, over = (torch.arange(400) + 0.5) / 400, tasks.y[:, n:, None] - quantiles
            pinball = torch.where(over > 0, levels * over, (levels - 1) * over).mean(-1)
            scores.append((2 * pinball / memory.outcome_scale).mean(1).detach())
        assert float(row(text, "continuous")[name]) == pytest.approx(float(torch.cat(scores).mean()), abs=0.01)
    assert int(row(text, "all")["tasks"]) == 6 and "small" not in text
    assert main(["held_out", "--crps", "--prior", "discriminant", "--model", narrow, "--pools", "1"]) == 2
    assert "no continuous outcomes" in capsys.readouterr().err
