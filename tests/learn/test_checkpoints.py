"""A checkpoint is always the old one or the new one: after kill -9, damage, or a disk that is full."""

import json
import os
import random
import signal
import time

import pytest
import torch

from l2m_core.errors import ModelFileError
from l2m_core.learn import checkpoints
from l2m_core.learn.checkpoints import (
    find_checkpoint,
    flatten_optimiser,
    load_checkpoint,
    load_tensors,
    save_checkpoint,
    save_tensors,
    unflatten_optimiser,
)
from l2m_core.learn.optimiser import MuonAdamW
from tests.learn.examples import fresh_model


def tensors(step: int) -> dict:
    """Every number is the step, so that half a checkpoint would show."""
    return {
        "weights": {f"layer.{i}": torch.full((50, 40), float(step)) for i in range(4)},
        "optimiser": {"0/0/momentum": torch.full((100,), float(step))},
    }


def is_whole(folder) -> int:
    """The step of the newest checkpoint, all of whose numbers must be that step."""
    path, facts = load_checkpoint(folder)
    for name, group in tensors(facts["step"]).items():
        found = load_tensors(path, name)
        assert all(torch.equal(found[key], value) for key, value in group.items())
    return facts["step"]


def save_until_killed(folder, first: int, acknowledge: int) -> None:
    """In a child process: one checkpoint after another; the step of each that was acknowledged goes down a pipe."""
    try:
        for step in range(first, first + 10_000):
            save_checkpoint(folder, step, tensors(step), {})
            os.write(acknowledge, step.to_bytes(4, "big"))
    finally:
        os._exit(1)


def kill_while_saving(folder, kills: int, seed: int) -> None:
    """A forked child costs milliseconds, so the moments of death fall all over the writing."""
    moments, newest = random.Random(seed), 1
    save_checkpoint(folder, newest, tensors(newest), {})
    for _ in range(kills):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            save_until_killed(folder, newest + 1, writing)
        os.close(writing)
        os.read(reading, 4)  # it is at work
        time.sleep(moments.uniform(0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as pipe:
            rest = pipe.read()
        acknowledged = newest + 1 + len(rest) // 4
        newest = is_whole(folder)
        assert acknowledged <= newest <= acknowledged + 1
    assert len(list(folder.glob(".step-*"))) <= 1  # what a killed process left goes with the next save


def test_kill_9_while_saving_leaves_the_old_checkpoint_or_the_new_one(tmp_path):
    kill_while_saving(tmp_path, kills=20, seed=0)


@pytest.mark.reliability
def test_kill_9_at_200_moments_leaves_the_old_checkpoint_or_the_new_one(tmp_path, figure):
    kill_while_saving(tmp_path, kills=200, seed=1)
    figure("kill -9 while a checkpoint is written, 200 moments", "always loads the old or the new", "200 of 200", True)


def damage(path, how: str) -> None:
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "flipped":
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    else:
        path.unlink()


@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
@pytest.mark.parametrize("file", ["weights-00.safetensors", "optimiser-00.safetensors", "state.json"])
def test_a_damaged_checkpoint_gives_way_to_the_one_before(tmp_path, how, file):
    for step in (1, 2):
        path = save_checkpoint(tmp_path, step, tensors(step), {})
    if (file, how) == ("state.json", "flipped"):
        (path / file).write_text("{}")
    else:
        damage(path / file, how)
    assert is_whole(tmp_path) == 1
    # And the damaged one can be written again.
    save_checkpoint(tmp_path, 2, tensors(2), {})
    assert is_whole(tmp_path) == 2


CHANGES = [
    lambda state: state.update(step=3),
    lambda state: state["model"].update(width=10**9),
    lambda state: state["checksums"].update({"weights-00.safetensors": "0"}),
    lambda state: state.update(more=1),
    lambda state: state.pop("seconds"),
]


def state_changed(path, change) -> None:
    state = json.loads((path / "state.json").read_text())
    change(state)
    (path / "state.json").write_text(json.dumps(state))


@pytest.mark.parametrize("change", CHANGES)
def test_a_state_that_was_changed_by_hand_is_refused_by_name(tmp_path, change):
    path = save_checkpoint(tmp_path, 1, tensors(1), {"model": {"width": 16}, "seconds": 0.1, "rates": (1.0, 0.5)})
    assert find_checkpoint(path) is not None
    state_changed(path, change)
    with pytest.raises(ModelFileError, match="step-000000001: state.json does not match its checksum"):
        load_checkpoint(tmp_path)
    with pytest.raises(ModelFileError, match="state.json of .* does not match its checksum.*copy this one again"):
        find_checkpoint(path)


def test_a_state_written_anew_with_the_same_values_is_whole(tmp_path):
    path = save_checkpoint(tmp_path, 1, tensors(1), {"loss": float("nan"), "seconds": 0.1, "by number": {3: (1, 2)}})
    state_changed(path, lambda state: None)
    assert is_whole(tmp_path) == 1


def test_a_checkpoint_from_before_states_had_a_checksum_loads(tmp_path):
    path = save_checkpoint(tmp_path, 1, tensors(1), {})
    state_changed(path, lambda state: state.pop("state_checksum"))
    assert is_whole(tmp_path) == 1 and find_checkpoint(path) is not None


def test_when_all_are_damaged_each_is_named(tmp_path):
    for step in (1, 2):
        damage(save_checkpoint(tmp_path, step, tensors(step), {}) / "weights-00.safetensors", "flipped")
    with pytest.raises(ModelFileError, match="step-000000002: weights-00.*step-000000001: weights-00"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("place", ["save_file", "write_text", "flush"])
def test_a_write_error_leaves_the_old_checkpoint(tmp_path, monkeypatch, place):
    save_checkpoint(tmp_path, 1, tensors(1), {})

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, place, fail)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, 2, tensors(2), {})
    monkeypatch.undo()
    assert is_whole(tmp_path) == 1
    assert not list(tmp_path.glob(".step-*"))


def test_a_text_that_a_full_disk_refuses_is_told_by_its_name_and_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "real.md"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "flush", fail)
    with pytest.raises(OSError, match=r"No space left on device: '.*real\.md'"):
        checkpoints.write_text(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["real.md"] and path.read_text() == "old"


def test_only_the_newest_are_kept(tmp_path):
    for step in (1, 2, 3, 10):
        save_checkpoint(tmp_path, step, tensors(step), {}, keep=2)
    assert sorted(p.name for p in tmp_path.glob("step-*")) == ["step-000000003", "step-000000010"]


def test_parts_are_bounded_in_size(tmp_path):
    group = {f"t{i}": torch.full((1000,), float(i)) for i in range(10)}
    save_tensors(tmp_path, "weights", group, part_bytes=9000)
    parts = sorted(tmp_path.glob("weights-*"))
    assert len(parts) == 5 and all(part.stat().st_size < 10_000 for part in parts)
    assert all(torch.equal(value, group[name]) for name, value in load_tensors(tmp_path, "weights").items())


def test_the_optimisers_state_survives_the_way_to_disk_and_back(tmp_path):
    model = fresh_model()
    optimiser = MuonAdamW(model)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
    optimiser.step(0.5)
    flat, rest = flatten_optimiser(optimiser.state_dict())
    save_tensors(tmp_path, "optimiser", flat)
    restored = unflatten_optimiser(load_tensors(tmp_path, "optimiser"), rest)
    for part, expected in zip(restored, optimiser.state_dict(), strict=True):
        assert part["param_groups"] == expected["param_groups"]
        for key, entry in expected["state"].items():
            assert all(
                torch.equal(torch.as_tensor(part["state"][key][n]), torch.as_tensor(v)) for n, v in entry.items()
            )
