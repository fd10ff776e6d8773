"""Fine-tuning on one cohort: what may be touched, what decides, and that it helps or does no harm."""

import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.answering.release import load_release
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ConfigError
from l2m_core.learn.finetune import CohortEpisodes, FinetuneConfig, finetune, split_rows, start_finetuning
from l2m_core.learn.stages import seeded
from l2m_core.memory import L2M
from tests.learn.examples import fresh_model, shaken_model

QUICK = FinetuneConfig(steps=20, lr=4e-3, tasks=3, evaluate_every=5, patience=3, dtype="float32")


def cohort(kind: str = "binary", rows: int = 60) -> Cohort:
    """One feature decides; a fifth of the values is missing."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, 3)).astype(np.float32)
    y = x[:, 1] + 0.1 * generator.normal(size=rows)
    x[generator.random(x.shape) < 0.2] = np.nan
    return Cohort.from_arrays(x, (y > 0).astype(np.int64) if kind == "binary" else y.astype(np.float32))


@pytest.mark.parametrize("encoder, kind", [("cells", "continuous"), ("rows", "binary")])
def test_it_lowers_the_loss_of_rows_it_never_trains_on(kind, encoder):
    outcome = "continuous" if kind == "continuous" else "classes"
    settings = {"encoder": "rows", "features": 3, "outcome": outcome} if encoder == "rows" else {}
    model = fresh_model(bins=32, **settings)
    longer = replace(QUICK, steps=40, evaluate_every=10)
    tuned, (before, after) = start_finetuning(model, cohort(kind), longer, seeded("cpu", 1))
    assert after < before - 0.01
    assert not tuned.training and not any(p.requires_grad for p in tuned.parameters())


def test_the_given_model_stays_as_it_is_and_a_generator_decides_everything():
    model, table = shaken_model(), cohort("continuous")
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first, again, other = (finetune(model, table, QUICK, seeded("cpu", seed)).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in before.items())
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_a_training_that_does_harm_returns_the_first_weights():
    model = fresh_model()
    wild = FinetuneConfig(steps=30, lr=3.0, evaluate_every=5, patience=2, dtype="float32")
    tuned, (before, after) = start_finetuning(model, cohort(), wild, seeded("cpu", 1))
    assert after <= before
    if after == before:
        assert all(torch.equal(value, model.state_dict()[name]) for name, value in tuned.state_dict().items())


def test_it_resumes_where_it_was_stopped(tmp_path, monkeypatch):
    model, table = shaken_model(), cohort("continuous")
    whole = finetune(model, table, QUICK, seeded("cpu", 1)).state_dict()
    draw = CohortEpisodes.draw

    def stop(episodes, step):
        if step == 7:
            os.kill(os.getpid(), signal.SIGTERM)
        return draw(episodes, step)

    monkeypatch.setattr(CohortEpisodes, "draw", stop)
    finetune(model, table, QUICK, seeded("cpu", 1), folder=tmp_path)
    assert [p.name for p in (tmp_path / "checkpoints").glob("step-*")] == ["step-000000008"]
    monkeypatch.undo()
    again = finetune(model, table, QUICK, seeded("cpu", 1), folder=tmp_path, resume=True).state_dict()
    assert all(torch.equal(whole[name], again[name]) for name in whole)
    assert any(not torch.equal(whole[name], value) for name, value in model.state_dict().items())


def test_stopping_rows_are_never_trained_on():
    episodes = CohortEpisodes(cohort(), QUICK, seed=3)
    apart = {tuple(row) for row in episodes.x[episodes.stop].tolist()}
    for step in range(5):
        assert not apart & {tuple(row) for row in episodes.draw(step).tasks.x.flatten(0, 1).tolist()}
    judged = episodes.stopping()
    assert {tuple(row) for row in judged.tasks.x[0, judged.context :].tolist()} == apart


def test_the_split_is_alike_in_the_outcome():
    y = torch.cat([torch.zeros(180, dtype=torch.long), torch.ones(20, dtype=torch.long)])
    train, stop = split_rows(y, 0.2, seeded("cpu", 0))
    assert sorted([*train.tolist(), *stop.tolist()]) == list(range(200))
    assert abs(len(stop) - 40) <= 1 and abs(int(y[stop].sum()) - 4) <= 1


def test_too_few_rows_and_impossible_settings_are_refused():
    with pytest.raises(CohortError, match="too few to fine-tune"):
        finetune(fresh_model(), cohort(rows=16), QUICK)
    with pytest.raises(ConfigError, match="finetune.held_out"):
        FinetuneConfig(held_out=1.0)


def test_what_is_no_module_or_no_cohort_is_refused_in_words():
    with pytest.raises(ConfigError, match=r"The model is an L2M, no module .* give load\(…\)\.release\.module"):
        finetune(L2M(load_release("general-1", "cpu")), cohort())
    with pytest.raises(CohortError, match="The cohort is a DataFrame. Make a Cohort of it"):
        finetune(fresh_model(), cohort().frame())


def test_nobody_is_asked_about_whose_other_rows_are_context():
    """Four visits of each of 60 patients: no patient trains and stops, and one at most lies across a task's border."""
    draw, visits = np.random.default_rng(0), np.random.default_rng(1).permutation(np.repeat(np.arange(60), 4))
    frame = pd.DataFrame(draw.normal(size=(240, 3)).round(2), columns=["a", "b", "c"])
    frame = frame.assign(died=draw.integers(0, 2, 60)[visits], patient_id=[f"P{visit}" for visit in visits])
    cohort = Cohort.from_frame(frame, outcome="died")
    episodes = CohortEpisodes(cohort, FinetuneConfig(rows=120, tasks=3), seed=0)
    patient = torch.tensor(cohort.patients)
    trained, stopped = (set(patient[rows].tolist()) for rows in (episodes.train, episodes.stop))
    assert len(episodes.train) + len(episodes.stop) == 240 and not trained & stopped and len(stopped) == 12
    rows = {tuple(row): number for number, row in enumerate(cohort.x.tolist())}
    for step in range(5):
        episode = episodes.draw(step)
        for task in episode.tasks.x.tolist():
            whose = [cohort.patients[rows[tuple(row)]] for row in task]
            assert len(set(whose[: episode.context]) & set(whose[episode.context :])) <= 1


def test_classes_are_coded_by_frequency_where_the_model_is_told_of_them_so():
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    table = Cohort.from_arrays(x, np.repeat([0, 1, 2], [10, 15, 35]))
    episodes = CohortEpisodes(table, QUICK, seed=3, by_frequency=True)
    for episode in (episodes.stopping(), *map(episodes.draw, range(5))):
        counts = [torch.bincount(y[: episode.context], minlength=3).tolist() for y in episode.tasks.y]
        assert all(count == sorted(count, reverse=True) for count in counts)


def test_it_is_not_resumed_with_another_cohort_or_other_stopping_rows(tmp_path):
    model, short = shaken_model(), replace(QUICK, steps=2)
    first, _ = start_finetuning(model, cohort("continuous"), short, seeded("cpu", 1), folder=tmp_path)
    with pytest.raises(ConfigError, match=r"a job with other settings \(cohort\)"):
        start_finetuning(model, cohort(), short, seeded("cpu", 1), folder=tmp_path, resume=True)
    with pytest.raises(ConfigError, match=r"other settings \(finetune.held_out\)"):  # its stopping rows were trained on
        other = replace(short, held_out=0.4)
        start_finetuning(model, cohort("continuous"), other, seeded("cpu", 1), folder=tmp_path, resume=True)
    again, _ = start_finetuning(model, cohort("continuous"), short, seeded("cpu", 1), folder=tmp_path, resume=True)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in first.state_dict().items())


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"context": (1.5,)}, "finetune.context is"),
        ({"lr": -1.0}, "finetune.lr is"),
        ({"average": 2.0}, "finetune.average"),
    ],
)
def test_a_setting_that_means_nothing_is_refused_by_its_own_name(setting, words):
    with pytest.raises(ConfigError, match=words):
        FinetuneConfig(**setting)
