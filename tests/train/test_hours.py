"""A job for a GPU on a computer without one: refused with an estimate, and run on the processor only when confirmed."""

import re
from dataclasses import replace

import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.stages import Stage
from l2m_core.model.interface import ModelConfig
from train.hours import for_the_processor, operations
from train.predictor import PredictorJob
from train.priors import PriorChoice

JOB = PredictorJob(
    folder="runs/x",
    stages=(Stage(steps=1000, tasks=8, rows=(256,), features=(10,)),),
    prior=PriorChoice("study_bnn"),
    loop=LoopConfig(dtype="float32"),
    device="cuda",
    model=ModelConfig("rows", layers=4, width=128, feedforward=256, features=10, outcome="classes", max_classes=2),
    orders=2,
)


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def hours_of(job) -> float:
    with pytest.raises(ConfigError, match="--yes") as refused:
        for_the_processor(job, confirmed=False)
    return float(re.search(r"about ([\d,]+) hours", str(refused.value)).group(1).replace(",", ""))


def test_a_job_for_a_gpu_says_how_long_it_would_take_and_asks():
    long = replace(JOB, stages=(replace(JOB.stages[0], steps=10_000_000),))
    assert hours_of(long) > 10


def test_a_confirmed_job_is_for_the_processor_and_else_the_same():
    assert for_the_processor(JOB, confirmed=True) == replace(JOB, device="cpu")


def test_a_job_for_the_processor_is_left_alone():
    job = replace(JOB, device="cpu")
    assert for_the_processor(job, confirmed=False) is job


def test_operations_are_about_those_that_are_counted():
    """24 GFLOP a step were counted by the trainer's own meter for this shape."""
    assert 15e9 < operations(JOB) / 1000 < 40e9


def test_a_network_that_a_step_does_not_take_costs_nothing():
    cells = replace(JOB, model=ModelConfig())
    apart = replace(cells, model=replace(cells.model, continuous_apart=True))
    assert operations(apart) == operations(cells)
