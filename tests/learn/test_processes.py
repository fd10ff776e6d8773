"""Two processes that share a batch take the same steps as one process with the whole batch."""

import multiprocessing
import os
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

from l2m_core.errors import ConfigError
from l2m_core.learn.losses import GainLoss, PredictorLoss, share_of
from l2m_core.learn.policy import PolicyConfig, PolicyLoss
from l2m_core.learn.processes import joined, sum_over_processes
from l2m_core.learn.stages import Stage
from tests.learn.examples import shaken_model, small_loop, stream, weights

PATIENCE = 300  # seconds; a busy machine is slow
LOSSES = {
    "predictor": PredictorLoss,
    "gain": GainLoss,
    "exact policy": lambda model: PolicyLoss(model, PolicyConfig("exact"), keep_predicting=True),
    "sampled policy": lambda model: PolicyLoss(model, PolicyConfig("lookahead"), keep_predicting=True),
}


def train(folder, name: str, steps: int = 4):
    """Some steps of each kind; an odd number of tasks, so that the shares differ."""
    stages = (Stage(steps=20, tasks=5, rows=(24,), features=(4,), continuous=0.4),)
    loss = LOSSES[name](shaken_model())
    loop = small_loop(folder, draw=stream(0, stages).episode, loss=loss, stages=stages, dtype="float32", muon=False)
    losses = []
    one_step = loop.take_step

    def recorded():
        losses.append(one_step())
        return losses[-1]

    loop.take_step = recorded
    loop.run(steps)
    return [step["loss"] for step in losses], weights(loop)


def in_processes(tmp_path, world: int, work) -> list:
    """Forked, so that nothing is imported again; they meet by a file."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()

    def one(rank: int) -> None:
        os.environ["RANK"] = str(rank)
        torch.set_num_threads(1)  # a fork has none of the threads that an earlier test may have asked for
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=rank, world_size=world)
        answers.put((rank, work(rank)))
        dist.destroy_process_group()

    children = [context.Process(target=one, args=(rank,)) for rank in range(world)]
    for child in children:
        child.start()
    found = dict(answers.get(timeout=PATIENCE) for _ in children)
    for child in children:
        child.join(PATIENCE)
        assert child.exitcode == 0
    return [found[rank] for rank in range(world)]


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_take_the_steps_of_one(tmp_path, name):
    alone_losses, alone = train(None, name)

    def work(rank):
        losses, found = train(tmp_path / "job", name)
        return losses, {key: value.numpy() for key, value in found.items()}

    for losses, found in in_processes(tmp_path, 2, work):
        assert losses == pytest.approx(alone_losses, rel=1e-5, abs=1e-6)
        for key, value in found.items():
            torch.testing.assert_close(torch.as_tensor(value), alone[key], rtol=1e-3, atol=1e-5)
    assert (tmp_path / "job" / "log.jsonl").is_file()


def test_when_one_process_is_asked_to_stop_all_stop_at_the_same_step(tmp_path):
    def work(rank):
        episodes = stream()
        loop = small_loop(None, dtype="float32")

        def draw(step):
            if rank == 1 and step == 3:
                loop.ask_to_stop()
            return episodes.episode(step)

        loop.draw = draw
        loop.run(20)
        return loop.step

    assert in_processes(tmp_path, 2, work) == [4, 4]


def test_a_gradient_that_no_process_has_stays_away(tmp_path):
    def work(rank):
        parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in range(3)]
        parameters[0].grad = torch.full((2,), float(rank + 1))
        if rank:
            parameters[1].grad = torch.ones(2)
        values = sum_over_processes(parameters, {"loss": 1.0 + rank})
        return values["loss"], [None if p.grad is None else p.grad.tolist() for p in parameters]

    assert in_processes(tmp_path, 2, work) == [(3.0, [[3.0, 3.0], [1.0, 1.0], None])] * 2


def test_fewer_tasks_than_processes_are_refused():
    loop = small_loop(None)
    loop.world_size = 8
    with pytest.raises(ConfigError, match="4 tasks for 8 processes"):
        loop.run(1)


def test_the_shares_of_a_batch_are_the_batch_draws_included():
    whole = stream().episode(0)
    parts = [share_of(whole, rank, 3) for rank in range(3)]
    assert sum(len(part.tasks.y) for part in parts) == len(whole.tasks.y)
    for rank, part in enumerate(parts):
        assert torch.equal(part.tasks.x, whole.tasks.x[rank::3]) and torch.equal(part.a, whole.a[rank::3])
        assert torch.equal(part.uniform(5, stream=2), whole.uniform(5, stream=2)[rank::3])


def test_without_torchrun_there_is_one_process(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with joined("cpu"):
        assert not dist.is_initialized()


@pytest.mark.parametrize(("rank", "said"), [("0", "done\n"), (None, "done\ntidied up\n")])
def test_a_process_of_torchrun_ends_at_once(rank, said):
    """Its code and what it said are kept; Python's end, in which a thread of gloo can abort it, is left out."""
    program = """
import atexit
from l2m_core.learn.processes import leave
atexit.register(print, "tidied up")
print("done")
leave(3)
"""
    others = {name: value for name, value in os.environ.items() if name != "RANK"}
    environment = others if rank is None else {**others, "RANK": rank}
    ended = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ended.returncode, ended.stdout) == (3, said), ended.stderr
