"""The training loop: resuming, faults, early stopping, its record."""

import errno
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from l2m_core.errors import ConfigError, ModelFileError, TrainingError
from l2m_core.learn import checkpoints, precision
from l2m_core.learn.early_stopping import EarlyStopping
from l2m_core.learn.logs import TrainingLog
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.losses import PredictorLoss
from l2m_core.learn.stages import Stage
from tests.learn.examples import STAGES, fresh_model, same, shaken_model, small_loop, stream, weights
from tests.prerequisites import REPOSITORY


def lines(folder) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def unbroken(request, tmp_path_factory):
    """Twenty steps at one go: the loop and its losses."""
    folder = tmp_path_factory.mktemp("unbroken")
    loop = small_loop(folder, loss=PredictorLoss(shaken_model()), dtype=request.param)
    loop.run(20)
    return loop, [line["loss"] for line in lines(folder)]


@pytest.mark.parametrize("stop", [2, 6, 13])
def test_a_resumed_job_is_bit_for_bit_the_unbroken_one(tmp_path, unbroken, stop):
    """Also across a stage's end (step 9), within a pool of draws, and for the optimiser's state and the average."""
    whole, losses = unbroken
    first = small_loop(tmp_path, loss=PredictorLoss(shaken_model()), dtype=whole.config.dtype)
    first.run(stop)
    second = small_loop(tmp_path, loss=PredictorLoss(fresh_model(5)), dtype=whole.config.dtype)
    second.resume()
    second.run(20)
    assert same(weights(whole), weights(second))
    assert same(whole.average, second.average)
    assert [line["loss"] for line in lines(tmp_path)] == losses and len(losses) == 20


@pytest.mark.parametrize("settings", [{}, {"minutes": 1e-6, "timed": True}])
def test_a_run_shorter_than_log_every_has_a_curve(tmp_path, settings):
    loop = small_loop(tmp_path, log_every=1000, **settings)
    loop.run(2)
    assert [line["step"] for line in lines(tmp_path)] == [loop.step]


def test_a_job_that_had_nothing_left_to_do_tells_no_speed(tmp_path):
    first, again = small_loop(tmp_path), small_loop(tmp_path)
    first.run(1)
    again.resume()
    again.run(1)
    assert "GFLOP/s" in first.summary() and "GFLOP/s" not in again.summary()


@pytest.mark.parametrize(("loss", "words"), [(0.5, "0.1000 nats under it"), (0.7, "0.1000 nats above it")])
def test_a_loss_above_the_base_rate_s_is_called_so(loss, words):
    loop = small_loop(None, evaluate=lambda model: {"own": loss, "own_base": 0.6})
    loop.run(1)
    assert loop.summary().endswith(f"held-out own: loss {loss:.4f}, base rate 0.6000, {words}")


@pytest.fixture
def rates(monkeypatch):
    """Operations a second of each arithmetic, as if on another machine."""
    found: dict[str, float] = {}
    monkeypatch.setattr(precision, "products_a_second", lambda dtype, threads: found[dtype])

    def set_to(float32: float, bfloat16: float) -> None:
        precision.is_bfloat16_faster.cache_clear()
        found.update(float32=float32, bfloat16=bfloat16)

    yield set_to
    precision.is_bfloat16_faster.cache_clear()


def test_the_arithmetic_is_the_faster_one_of_the_machine(rates):
    rates(float32=52, bfloat16=0.8)
    assert small_loop(None).dtype == "float32"
    assert small_loop(None, dtype="bfloat16").dtype == "bfloat16"  # what is stated stands
    rates(float32=132, bfloat16=140)  # as good as equal: no coin is tossed
    assert small_loop(None).dtype == "float32"
    rates(float32=74, bfloat16=600)
    assert small_loop(None).dtype == "bfloat16"
    assert precision.chosen_dtype("auto", "cuda:1", 1) == "bfloat16"


def test_a_resumed_job_keeps_the_arithmetic_that_it_began_with(tmp_path, rates):
    rates(float32=74, bfloat16=600)
    small_loop(tmp_path).run(2)
    rates(float32=52, bfloat16=0.8)
    resumed = small_loop(tmp_path)
    resumed.resume()
    assert resumed.dtype == "bfloat16"
    stated = small_loop(tmp_path, dtype="float32")
    stated.resume()
    assert stated.dtype == "float32"


def test_products_are_timed_in_either_arithmetic():
    assert all(precision.products_a_second(dtype, 1) > 0 for dtype in precision.DTYPES)


def test_a_timed_job_follows_the_clock_and_ends_with_its_minutes(tmp_path):
    loop = small_loop(tmp_path, minutes=0.05, timed=True, warmup=1)
    rates = []
    for seconds in (0.0, 0.5, 2.9, 3.0, 9.0):
        loop.seconds = seconds
        rates.append(loop.learning_rate())
    # 49 steps are planned, nine at the full rate: after half a second of three the ninth is not over.
    assert rates[:2] == [1.0, 1.0] and rates[0] > rates[2] > rates[3] == rates[4] == pytest.approx(0.1)
    loop.seconds = 2.6  # of an earlier run
    loop.run()
    assert loop.seconds >= 3.0 and loop.step > 0 and (tmp_path / "checkpoints").is_dir()
    planned = small_loop(None, minutes=0.05, stages=(replace(STAGES[0], steps=2),), timed=True)
    planned.run()
    assert planned.step > 2  # faster than planned: it goes on until the time is up
    with pytest.raises(ConfigError, match="minutes"):
        LoopConfig(timed=True)


def test_fifty_steps_after_a_restart_are_those_of_the_unbroken_job(tmp_path):
    stages = (STAGES[0], replace(STAGES[1], steps=50))

    def loop(name: str, seed: int):
        draw = stream(0, stages).episode
        return small_loop(tmp_path / name, draw=draw, loss=PredictorLoss(fresh_model(seed)), stages=stages)

    whole, first, second = loop("whole", 0), loop("broken", 0), loop("broken", 5)
    whole.run(57)
    first.run(7)
    second.resume()
    second.run(57)
    assert second.step == 57 and same(weights(whole), weights(second))
    assert [line["loss"] for line in lines(tmp_path / "broken")] == [line["loss"] for line in lines(tmp_path / "whole")]


def test_training_lowers_the_loss(tmp_path):
    episode = stream().episode(0)
    loop = small_loop(tmp_path, draw=lambda step: episode, lr=5e-3, dtype="float32")
    loop.run(30)
    recorded = [line["loss"] for line in lines(tmp_path)]
    assert recorded[-1] < recorded[0] - 0.02


class Spoilt(PredictorLoss):
    """A loss that is NaN at some steps, told by their episodes' seeds."""

    def __init__(self, model, bad):
        super().__init__(model)
        episodes = stream()
        self.seeds = {episodes.episode(step).seed for step in range(20) if bad(step)}

    def forward(self, episode):
        loss, report = super().forward(episode)
        factor = float("nan") if episode.seed in self.seeds else 1.0
        return loss * factor, {"loss": report["loss"] * factor}


def test_a_step_with_a_nan_loss_is_skipped_and_counted(tmp_path):
    loop = small_loop(tmp_path, loss=Spoilt(fresh_model(), lambda step: step in (2, 5)), dtype="float32")
    loop.run(8)
    assert loop.skipped == 2 and loop.step == 8
    assert all(p.isfinite().all() for p in weights(loop).values())
    assert lines(tmp_path)[-1]["skipped"] == 2


def test_a_skipped_step_changes_no_weight():
    loop = small_loop(None, loss=Spoilt(fresh_model(), lambda step: True), dtype="float32", bad_steps=5)
    before = weights(loop)
    with pytest.raises(TrainingError):
        loop.run(8)
    assert same(before, weights(loop))


def test_a_run_of_nan_losses_stops_the_job_and_says_which_draws(tmp_path):
    loop = small_loop(
        tmp_path, loss=Spoilt(fresh_model(), lambda step: step >= 3), bad_steps=4, facts={"job": {"seed": 41}}
    )
    with pytest.raises(TrainingError, match=r"4 steps in a row .* at step 6.*seed \(41\)"):
        loop.run(20)


def test_the_signal_to_end_saves_and_stops(tmp_path):
    episodes = stream()

    def draw(step):
        if step == 5:
            os.kill(os.getpid(), signal.SIGTERM)
        return episodes.episode(step)

    handler = signal.getsignal(signal.SIGTERM)
    loop = small_loop(tmp_path, draw=draw)
    loop.run(20)
    assert loop.step == 6
    assert checkpoints.load_checkpoint(tmp_path / "checkpoints")[1]["step"] == 6
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_new_job_does_not_mix_with_an_earlier_one(tmp_path):
    small_loop(tmp_path).run(2)
    with pytest.raises(ConfigError, match="--resume, or name another folder"):
        small_loop(tmp_path).run(2)


def test_resuming_nothing_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match="there is none.*Start without --resume to begin anew"):
        small_loop(tmp_path).resume()
    with pytest.raises(ModelFileError, match=r"there is none: no such folder"):
        checkpoints.load_checkpoint(tmp_path / "misspelt")


def test_a_job_whose_checkpoints_are_all_damaged_is_told_to_begin_where_it_can(tmp_path):
    small_loop(tmp_path).run(2)
    next((tmp_path / "checkpoints").glob("step-*/weights-*")).write_bytes(b"")
    with pytest.raises(ModelFileError, match="Name another folder to begin anew") as refusal:
        small_loop(tmp_path).resume()
    assert "without --resume" not in str(refusal.value)  # which would be refused as well


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_stops_the_job_and_leaves_the_earlier_checkpoint(tmp_path, monkeypatch):
    small_loop(tmp_path).run(3)
    loop = small_loop(tmp_path)
    loop.resume()

    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(TrainingError, match="No space left.*free some space"):
        loop.run(5)
    monkeypatch.undo()
    assert checkpoints.load_checkpoint(tmp_path / "checkpoints")[1]["step"] == 3
    assert [p.name for p in (tmp_path / "checkpoints").iterdir() if p.name.startswith(".step")] == []


def test_a_disk_too_full_for_the_first_checkpoint_promises_none(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "save_file", full)
    with pytest.raises(TrainingError, match="There is none before it: free some space, then start") as error:
        small_loop(tmp_path).run(2)
    assert "resume" not in str(error.value)


def test_a_disk_too_full_for_the_record_stops_the_job_in_words(tmp_path, monkeypatch):
    small_loop(tmp_path).run(3)
    loop = small_loop(tmp_path)
    loop.resume()

    monkeypatch.setattr(TrainingLog, "write", full)
    with pytest.raises(TrainingError, match="record of step 4.*No space left.*free some space"):
        loop.run(5)
    assert checkpoints.load_checkpoint(tmp_path / "checkpoints")[1]["step"] == 3


def test_what_the_writer_of_tensors_calls_a_full_disk_is_an_error_of_the_disk(tmp_path):
    """The real writer on a file that may not grow, in a process of its own."""
    program = (
        "import resource, sys, torch; from pathlib import Path; from l2m_core.learn.checkpoints import save_checkpoint\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (9000, resource.RLIM_INFINITY))\n"
        "try: save_checkpoint(Path(sys.argv[1]), 1, {'weights': {'w': torch.zeros(10_000)}}, {})\n"
        "except OSError as error: print(error)"
    )
    pytest.importorskip("resource")
    command = [sys.executable, "-c", program, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert "weights-00.safetensors could not be written" in answer.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_record_forgets_what_a_resumed_job_does_again(tmp_path):
    small_loop(tmp_path).run(4)
    with (tmp_path / "log.jsonl").open("a") as log:
        log.write('{"step": 5, "loss": 9.0}\n{"step": 6, "lo')  # steps after the checkpoint, the last cut short
    loop = small_loop(tmp_path)
    loop.resume()
    loop.run(6)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3, 4, 5, 6]
    assert lines(tmp_path)[4]["loss"] != 9.0


def test_the_record_forgets_a_run_that_died_before_its_first_checkpoint(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 0, "held_out/own": 9.0}\n{"step": 1, "loss": 9.0}\n{"step": 2, "lo')
    small_loop(tmp_path).run(2)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2]
    assert lines(tmp_path)[0]["loss"] != 9.0


def test_tensorboard_forgets_what_a_resumed_job_does_again(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    small_loop(tmp_path / "killed").run(4)
    small_loop(tmp_path / "job").run(2)
    # As if the killed run had been the job's own, and its newest checkpoint of step 2.
    (events,) = (tmp_path / "killed" / "tensorboard").iterdir()
    for kept in (tmp_path / "job" / "tensorboard").iterdir():
        kept.unlink()
    events.rename(tmp_path / "job" / "tensorboard" / events.name)
    loop = small_loop(tmp_path / "job")
    loop.resume()
    loop.run(6)
    board = reader.EventAccumulator(str(tmp_path / "job" / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("loss")] == [1, 2, 3, 4, 5, 6]


def test_early_stopping_keeps_the_best_weights_and_survives_a_restart(tmp_path):
    values = iter([3.0, 2.0, 1.0, 1.5, 1.2, 1.1, 0.0])

    def evaluate(_):
        return {"loss": next(values)}

    loop = small_loop(tmp_path, evaluate=evaluate, stopping=EarlyStopping("loss", 3), evaluate_every=2)
    loop.run(5)
    resumed = small_loop(tmp_path, evaluate=evaluate, stopping=EarlyStopping("loss", 3), evaluate_every=2)
    resumed.resume()
    assert resumed.stopping.value == loop.stopping.value == 1.0
    assert same(loop.stopping.best, resumed.stopping.best)
    resumed.run(40)
    assert resumed.step == 8 and resumed.stopping.is_over
    assert same(loop.stopping.best, resumed.stopping.best)


def test_frozen_parameters_stay_and_slow_ones_move_less():
    model = shaken_model()
    model.policy.requires_grad_(False)
    loop = small_loop(
        None,
        loss=PredictorLoss(model),
        dtype="float32",
        muon=False,
        weight_decay=0.0,
        rate_of=lambda name: 0.01 if name.startswith("blocks") else 1.0,
    )
    before = weights(loop)
    loop.run(3)
    moved = {name: float((value - before[name]).abs().max()) for name, value in weights(loop).items()}
    assert all(value == 0 for name, value in moved.items() if name.startswith("policy"))
    slow = [value for name, value in moved.items() if name.startswith("blocks")]
    assert 0 < max(slow) < 0.05 * moved["cell_in.weight"]  # at 0.01 of the rate


def test_everything_frozen_is_refused():
    model = fresh_model().requires_grad_(False)
    with pytest.raises(ConfigError, match="everything is frozen"):
        small_loop(None, loss=PredictorLoss(model))


def test_operations_are_counted():
    loop = small_loop(None)
    loop.run(6)
    assert loop.meter.total > 1e6 and loop.meter.seconds > 0
    assert "GFLOP/s" in loop.summary()


@pytest.mark.parametrize("settings", [{"dtype": "float8"}, {"lr": 0.0}, {"threads": 0}, {"bad_steps": 0}])
def test_settings_out_of_range_are_refused_by_name(settings):
    with pytest.raises(ConfigError, match=f"loop.{next(iter(settings))}"):
        small_loop(None, **settings)


@pytest.mark.slow
def test_compiled_steps_learn_as_plain_ones_do():
    plain, compiled = small_loop(None, dtype="float32"), small_loop(None, dtype="float32", compile=True)
    plain.run(8)
    compiled.run(8)
    for name, value in weights(plain).items():
        torch.testing.assert_close(weights(compiled)[name], value, rtol=1e-2, atol=1e-3)


def test_the_rate_falls_as_a_cosine_or_in_a_line():
    stage = (Stage(steps=100, lr=(1.0, 0.0)),)
    rates = {}
    for decay in ("cosine", "linear"):
        loop = small_loop(None, stages=stage, warmup=1, decay=decay)
        rates[decay] = []
        for loop.step in (25, 50, 75):
            rates[decay].append(round(loop.learning_rate(), 4))
    assert rates == {"cosine": [0.8536, 0.5, 0.1464], "linear": [0.75, 0.5, 0.25]}
    with pytest.raises(ConfigError, match="decay"):
        LoopConfig(decay="step")


def test_gradients_are_not_clipped_where_the_largest_norm_is_zero(monkeypatch):
    norms = {}
    for clip in (0.0, 1e-6):
        loop = small_loop(None, clip=clip, muon=False, warmup=1, beta2=0.999)
        monkeypatch.setattr(loop.optimiser, "step", lambda _, loop=loop, clip=clip: norms.update({clip: norm_of(loop)}))
        loop.run(1)
        assert all(group["betas"] == (0.9, 0.999) for group in loop.optimiser.parts[0].param_groups)
    assert norms[1e-6] < 2e-6 < 1e-3 < norms[0.0]


def norm_of(loop) -> float:
    gradients = [p.grad for p in loop.model.parameters() if p.grad is not None]
    return float(torch.stack([gradient.norm() for gradient in gradients]).norm())
