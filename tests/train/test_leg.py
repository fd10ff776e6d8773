"""Legs on a lent machine: a state that travels, a plan that holds, and nothing needed that such a machine lacks."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from l2m_core.answering.release import save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ModelFileError
from l2m_core.learn import held_out
from l2m_core.learn.checkpoints import load_checkpoint, load_model, load_tensors, save_checkpoint
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.model.encoders import build_model
from l2m_core.settings import build_settings, read_settings
from tests.learn.examples import same, small_loop, weights
from tests.prerequisites import REPOSITORY
from train import leg, portable_state, pretraining
from train.__main__ import main
from train.predictor import PredictorJob, predictor_loss
from train.priors import priors_of

CONFIG = REPOSITORY / "train" / "configs" / "general_gpu.yaml"
# The shipped config, so small that a step takes milliseconds.
TINY = [
    *("model.layers=2", "model.width=16", "model.heads=2", "model.feedforward=24", "device=cpu", "loop.warmup=3"),
    "loop.threads=1",
    *(f"stages.{number}.cells={200 + 100 * number}" for number in range(4)),
    *(f"stages.{number}.rows=[{24 + 8 * number}]" for number in range(4)),
    *(f"stages.{number}.features=[{2 + number}]" for number in range(4)),
    "held_out_pools=1",
]


@pytest.fixture(autouse=True)
def small_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Stage(steps=1, tasks=12, rows=(24,), features=(3,), continuous=0.0)
    monkeypatch.setattr(held_out, "SHAPES", {"small": shape})
    monkeypatch.setattr(pretraining, "SHAPES", {"small": shape})
    monkeypatch.setattr(leg, "TRIAL_SHAPES", 1)


def run_leg(folder: Path, number: int, *more: str) -> dict[str, Any]:
    """Runs one leg as a person does who carries what came back to the next; returns the state's description."""
    out, state = folder / f"out-{number}", folder / "carried" / "state"
    options = ["--state", str(state), "--out", str(out), "--minutes", "0.05"]
    assert main(["leg", "--config", str(CONFIG), *options, *more, f"folder={folder / 'run'}", *TINY]) == 0
    shutil.copytree(out, folder / "carried", dirs_exist_ok=True)
    return json.loads((out / "state" / "state.json").read_text())


def test_a_leg_goes_on_where_the_last_one_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run_leg(tmp_path, 1, "--plan-minutes", "0.3")
    second = run_leg(tmp_path, 2)
    assert f"goes on from step {first['step']:,}" in capsys.readouterr().out
    assert 0 < first["step"] < second["step"]
    planned = [stage["steps"] for stage in first["job"]["stages"]]
    assert planned == [stage["steps"] for stage in second["job"]["stages"]]
    assert planned != [stage.steps for stage in build_settings(PredictorJob, read_settings(CONFIG, [])).stages]
    assert sorted(path.name for path in (tmp_path / "carried").glob("curve-*")) == ["curve-1.jsonl", "curve-2.jsonl"]
    assert "general" in (tmp_path / "out-2" / "held_out.md").read_text()


def test_a_leg_removes_no_folder_that_another_job_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "run" / "checkpoints" / "step-4"
    kept.mkdir(parents=True)
    options = ["--state", str(tmp_path / "state"), "--out", str(tmp_path / "out")]
    assert main(["leg", "--config", str(CONFIG), *options, f"folder={tmp_path / 'run'}", *TINY]) == 2
    assert "was made by no leg" in capsys.readouterr().err and kept.is_dir()


def test_what_a_leg_came_to_is_not_removed_before_a_state_holds_it(tmp_path: Path, capsys) -> None:
    run_leg(tmp_path, 1)
    said = capsys.readouterr().err
    assert f"--state {tmp_path / 'out-1' / 'state'}" in said and "--resume" not in said
    checkpoints = tmp_path / "run" / "checkpoints"
    newer = checkpoints / "step-999999999"  # as of a leg whose process was killed
    shutil.copytree(next(checkpoints.glob("step-*")), newer)
    options = ["--config", str(CONFIG), "--state", str(tmp_path / "none"), "--out", str(tmp_path / "out-2")]
    assert main(["leg", *options, "--minutes", "0.05", f"folder={tmp_path / 'run'}", *TINY]) == 2
    assert f"pack STATE {tmp_path / 'run'}" in capsys.readouterr().err and newer.is_dir()


def test_a_model_to_compare_with_is_looked_for_before_the_leg_begins(tmp_path: Path, capsys) -> None:
    options = ["--config", str(CONFIG), "--state", str(tmp_path / "none"), "--out", str(tmp_path / "out")]
    assert main(["leg", *options, "--beside", "nowhere", f"folder={tmp_path / 'run'}", *TINY]) == 2
    assert "--beside: 'nowhere'" in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_a_leg_may_begin_with_a_model_s_weights_and_fit_what_is_left(tmp_path: Path, capsys) -> None:
    run_leg(tmp_path, 1, "--plan-minutes", "0.3")
    begun = ["--minutes", "0.05", f"init={tmp_path / 'run'}", f"folder={tmp_path / 'next'}"]
    tiny = [setting for setting in TINY if not setting.startswith("model.")]

    def go_on(out: str, state: str, minutes: str) -> dict[str, Any]:
        places = ["--state", str(tmp_path / state / "state"), "--out", str(tmp_path / out), "--plan-minutes", minutes]
        assert main(["leg", "--config", str(CONFIG), *places, *begun, *tiny]) == 0
        return json.loads((tmp_path / out / "state" / "state.json").read_text())

    first = go_on("first", "none", "0.3")
    assert first["model"]["width"] == 16 and first["step"] > 0
    second = go_on("second", "first", "5")
    assert f"goes on from step {first['step']:,}" in capsys.readouterr().out
    planned = [sum(stage["steps"] for stage in state["job"]["stages"]) for state in (first, second)]
    assert planned[1] > 2 * planned[0], "what is left was fitted anew, to many more minutes"
    assert second["step"] > first["step"]


def test_a_timed_leg_spends_its_minutes_on_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped config of the next lease, on a CPU with tiny settings."""

    def no_trial(*_: object) -> None:
        raise AssertionError("a timed leg tries nothing")

    run_leg(tmp_path, 1)
    monkeypatch.setattr(leg, "fastest", no_trial)
    tiny = [
        setting for setting in TINY if not setting.startswith("model.") and setting[:8] not in ("stages.2", "stages.3")
    ]
    begun = [f"init={tmp_path / 'run'}", f"folder={tmp_path / 'next'}", "loop.compile=false", "loop.log_every=1", *tiny]
    places = ["--state", str(tmp_path / "none"), "--out", str(tmp_path / "out"), "--minutes", "0.05"]
    config = REPOSITORY / "train" / "configs" / "general_gpu_6.yaml"
    assert main(["leg", "--config", str(config), *places, *begun]) == 0
    state = json.loads((tmp_path / "out" / "state" / "state.json").read_text())
    curve = [json.loads(line) for line in (tmp_path / "out" / "curve-1.jsonl").read_text().splitlines()]
    assert state["step"] > 0 and 3.0 <= state["seconds"] < 60.0 and curve
    assert "general" in (tmp_path / "out" / "held_out.md").read_text()


def test_calls_of_a_limited_length_bring_home_what_there_is(tmp_path: Path) -> None:
    """As on a machine that is lent: the first call ends before the leg does, the same command later finds all of it."""
    environment = {**os.environ, "RUNS": str(tmp_path / "runs"), "PYTHON": sys.executable}

    def call(wait: int) -> subprocess.CompletedProcess[str]:
        command = [str(REPOSITORY / "scripts" / "leg"), str(CONFIG), "0.4", str(wait), str(tmp_path / "home")]
        settings = [
            *TINY,
            "loop.timed=true",
            "loop.dtype=float32",
            "loop.compile=false",
            "loop.checkpoint_minutes=0.02",
        ]
        settings += ["loop.minutes=0.4", "held_out=[own]"]
        return subprocess.run([*command, *settings], env=environment, capture_output=True, text=True, timeout=300)

    state = tmp_path / "home" / "state" / "state.json"
    first = call(0)
    assert first.returncode == 3, first.stdout + first.stderr
    while (again := call(0)).returncode == 3 and not state.exists():
        pass
    assert again.returncode == 3 and json.loads(state.read_text())["step"] > 0, again.stdout + again.stderr
    last = call(250)
    assert last.returncode == 0, last.stdout + last.stderr
    assert json.loads(state.read_text())["seconds"] >= 24
    assert "general" in (tmp_path / "home" / "held_out.md").read_text()


@pytest.mark.parametrize("name", ["gp", "bnn", "l2m_syn"])
def test_the_study_s_own_predictors_are_trained_in_legs_too(name: str, tmp_path: Path, capsys) -> None:
    """With its shipped config, made tiny; it is compared on tasks of its own shape, which are as wide as it reads."""
    config = REPOSITORY / "train" / "configs" / f"{name}_study.yaml"
    tiny = ["model.layers=1", "model.width=16", "model.heads=2", "model.feedforward=16", "device=cpu", "loop.warmup=3"]
    tiny += ["stages.0.rows=[24]", "stages.0.tasks=2", "orders=2", "held_out_pools=1", f"folder={tmp_path / 'run'}"]
    for number in (1, 2):
        places = ["--state", str(tmp_path / "carried" / "state"), "--out", str(tmp_path / f"out-{number}")]
        assert main(["leg", "--config", str(config), *places, "--minutes", "0.03", "--plan-minutes", "0.2", *tiny]) == 0
        shutil.copytree(tmp_path / f"out-{number}", tmp_path / "carried", dirs_exist_ok=True)
    steps = json.loads((tmp_path / "out-1" / "state" / "state.json").read_text())["step"]
    assert f"goes on from step {steps:,}" in capsys.readouterr().out
    compared = (tmp_path / "out-2" / "held_out.md").read_text()
    assert "own" in compared and "general" in compared


def test_what_comes_back_fits_what_may_come_back(tmp_path: Path) -> None:
    run_leg(tmp_path, 1)
    files = [path for path in (tmp_path / "out-1").rglob("*") if path.is_file()]
    assert len(files) <= 8
    assert max(path.stat().st_size for path in files) <= 16 * 2**20


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    loop = small_loop(tmp_path / "run", dtype="float32")
    loop.facts["model"] = asdict(loop.model.config)  # type: ignore[call-overload]
    loop.run(6)
    return tmp_path / "run" / "checkpoints"


def test_a_resumed_leg_continues_the_kept_state(checkpoints: Path, tmp_path: Path) -> None:
    unbroken = small_loop(tmp_path / "run", dtype="float32")
    unbroken.resume()
    portable_state.pack(checkpoints, tmp_path / "state")
    step = portable_state.unpack(
        tmp_path / "state", tmp_path / "elsewhere" / "checkpoints", unbroken_model(checkpoints)
    )
    carried = small_loop(tmp_path / "elsewhere", dtype="float32")
    carried.resume()
    assert step == carried.step == 6
    assert same(weights(carried), weights(unbroken))
    for name, value in unbroken.average.items():
        torch.testing.assert_close(carried.average[name], value, rtol=1e-2, atol=1e-4)
    unbroken.run(12)
    carried.run(12)
    for name, value in weights(unbroken).items():
        torch.testing.assert_close(weights(carried)[name], value, rtol=0.05, atol=5e-3)


def test_the_optimiser_travels_in_half_the_bytes(checkpoints: Path, tmp_path: Path) -> None:
    portable_state.pack(checkpoints, tmp_path / "state")
    kept = load_tensors(tmp_path / "state", portable_state.TENSORS)
    full = load_tensors(load_checkpoint(checkpoints)[0], "optimiser")
    momentum = next(name for name in full if name.endswith("momentum"))
    assert kept[portable_state.OPTIMISER + momentum].nbytes == full[momentum].nbytes / 2


def test_a_state_of_another_shape_is_refused_by_name(checkpoints: Path, tmp_path: Path) -> None:
    portable_state.pack(checkpoints, tmp_path / "state")
    other = {**unbroken_model(checkpoints), "width": 32}
    with pytest.raises(ModelFileError, match="width is 16, not 32"):
        portable_state.unpack(tmp_path / "state", tmp_path / "new", other)
    assert not (tmp_path / "new").exists()


def test_a_state_of_another_version_is_refused_by_name(checkpoints: Path, tmp_path: Path) -> None:
    portable_state.pack(checkpoints, tmp_path / "state")
    description = tmp_path / "state" / portable_state.STATE
    description.write_text(description.read_text().replace('"version": 1', '"version": 7'))
    with pytest.raises(ModelFileError, match="version 7"):
        portable_state.unpack(tmp_path / "state", tmp_path / "new", unbroken_model(checkpoints))


def test_a_damaged_state_is_refused_by_name(checkpoints: Path, tmp_path: Path) -> None:
    portable_state.pack(checkpoints, tmp_path / "state")
    part = next((tmp_path / "state").glob("*.safetensors"))
    content = part.read_bytes()
    part.write_bytes(content[:-1] + bytes([content[-1] ^ 255]))
    with pytest.raises(ModelFileError, match=part.name):
        portable_state.unpack(tmp_path / "state", tmp_path / "new", unbroken_model(checkpoints))


def test_a_state_that_could_not_travel_is_not_written(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    portable_state.pack(checkpoints, tmp_path / "state")
    before = (tmp_path / "state" / portable_state.STATE).read_text()
    monkeypatch.setattr(portable_state, "LARGEST_FILE", 100)
    with pytest.raises(ModelFileError, match="MiB travel"):
        portable_state.pack(checkpoints, tmp_path / "state")
    assert (tmp_path / "state" / portable_state.STATE).read_text() == before


@pytest.mark.parametrize("kept", ["notes.txt", "runs/job/log.jsonl"])
def test_a_state_takes_the_place_of_no_other_folder(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    file = tmp_path / "mine" / kept
    file.parent.mkdir(parents=True)
    file.write_text("months of work")
    for place in (tmp_path / "mine", file):
        assert portable_state.main(["pack", str(place), str(checkpoints.parent)]) == 2
    assert file.read_text() == "months of work"
    assert "is no part of a state" in capsys.readouterr().err


def test_a_disk_that_is_too_full_for_a_state_is_told_and_keeps_the_one_before(
    checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = ["pack", str(tmp_path / "state"), str(checkpoints.parent)]
    assert portable_state.main(pack) == 0
    before = (tmp_path / "state" / portable_state.STATE).read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(portable_state, "save_tensors", full)
    assert portable_state.main(pack) == 2
    assert "No space left" in capsys.readouterr().err
    assert not list(tmp_path.glob(".*"))
    assert (tmp_path / "state" / portable_state.STATE).read_text() == before


def test_a_run_stops_after_its_minutes_with_a_checkpoint(tmp_path: Path) -> None:
    loop = small_loop(tmp_path, minutes=1e-6)
    loop.run()
    assert 0 < loop.step < loop.steps
    assert load_checkpoint(tmp_path / "checkpoints")[1]["step"] == loop.step


def test_a_leg_needs_few_packages(tmp_path: Path) -> None:
    """As on a machine that has PyTorch and little else: every other package of this environment is hidden."""
    (tmp_path / "hidden.py").write_text(HIDDEN)
    options = ["--state", str(tmp_path / "none"), "--out", str(tmp_path / "out"), "--minutes", "0.01"]
    words = ["leg", "--config", str(CONFIG), *options, f"folder={tmp_path / 'run'}", *TINY]
    code = f"import hidden; from train.__main__ import main; raise SystemExit(main({words!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{tmp_path}:{REPOSITORY}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert portable_state.has_state(tmp_path / "out" / "state")


HIDDEN = '''
import re, sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

def hide_all_but(wanted):
    """What the named packages need stays; every other top-level module of an installed package cannot be imported."""
    known = set()
    while wanted - known:
        name = (wanted - known).pop()
        known.add(name)
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue
        wanted |= {re.match(r"[\\w.-]+", need)[0].lower() for need in needs if "extra ==" not in need}
    kept = {name.replace("_", "-") for name in known}
    own = {"learning-to-measure"}
    for module, owners in packages_distributions().items():
        if not any(owner.lower().replace("_", "-") in kept | own for owner in owners):
            sys.modules[module] = None

hide_all_but({"torch", "numpy", "pandas", "pyyaml", "safetensors", "tqdm"})
from l2m_core.learn import held_out
held_out.SHAPES = {"small": held_out.Stage(steps=1, tasks=12, rows=(24,), features=(3,), continuous=0.0)}
'''


class DevicesNamed(TorchFunctionMode):
    """Notes every tensor that the project makes without saying on which device."""

    MAKERS = frozenset(
        getattr(torch, name)
        for name in (
            "arange",
            "zeros",
            "ones",
            "empty",
            "full",
            "tensor",
            "linspace",
            "rand",
            "randn",
            "randint",
            "eye",
        )
    )

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in self.MAKERS and "device" not in (kwargs or {}):
            own = [frame for frame in traceback.extract_stack() if "l2m_core" in frame.filename]
            self.found |= {f"{Path(own[-1].filename).name}: {own[-1].line}"} if own else set()
        return function(*args, **(kwargs or {}))


@contextmanager
def devices_watched() -> Iterator[set[str]]:
    with DevicesNamed() as mode:
        yield mode.found


def test_a_step_makes_every_tensor_on_its_own_device() -> None:
    """Without a GPU at hand: what is made without naming a device would be made on the CPU, and fail beside others."""
    job = build_settings(PredictorJob, read_settings(CONFIG, TINY))
    model = build_model(job.model)
    loss, priors = predictor_loss(model, job), priors_of(job.prior)
    with devices_watched() as found:
        for stage in job.stages:
            for seed in range(3):
                value, _ = loss(EpisodeStream(priors, (stage,), seed).episode(0))
                value.backward()
    # Both are turned into numbers, or moved, where they are used.
    allowed = ("log_low, log_high", "share = torch.arange(1, bins")
    assert [line for line in found if not any(text in line for text in allowed)] == []


def unbroken_model(checkpoints: Path) -> dict[str, Any]:
    return load_checkpoint(checkpoints)[1]["model"]


def test_a_state_may_rest_on_a_released_model(checkpoints: Path, tmp_path: Path, capsys) -> None:
    path, facts = load_checkpoint(checkpoints)
    groups = {name: load_tensors(path, name) for name in ("weights", "optimiser", "random")}
    groups["average"] = groups["weights"]
    kept = {name: value for name, value in facts.items() if name not in ("checksums", "step")}
    save_checkpoint(checkpoints, facts["step"] + 1, groups, kept)
    module = load_model(path, facts)
    module.load_state_dict(groups["weights"])
    changed = next(iter(groups["weights"]))
    module.state_dict()[changed].add_(1.0)  # all but this the checkpoint has of the release
    released, other = tmp_path / "released", tmp_path / "other"
    for folder, temperature in ((released, 1.0), (other, 2.0)):
        save_model(folder, module, module.config, TrainedRange(), AnswerSettings(temperature), {})  # type: ignore[arg-type]

    state, job = str(tmp_path / "state"), tmp_path / "job"
    assert portable_state.main(["pack", state, str(checkpoints.parent), "--base", str(released)]) == 0
    written = load_tensors(tmp_path / "state", portable_state.TENSORS)
    assert [name for name in written if name.startswith(portable_state.WEIGHTS)] == [portable_state.WEIGHTS + changed]
    assert portable_state.main(["unpack", state, str(job)]) == 0
    unpacked, _ = load_checkpoint(job / "checkpoints")
    assert all(same(load_tensors(unpacked, name), groups[name]) for name in ("weights", "average"))
    assert portable_state.main(["unpack", state, str(tmp_path / "elsewhere"), "--base", str(other)]) == 2
    assert "rests on a model of fingerprint" in capsys.readouterr().err


def test_a_kept_state_becomes_a_jobs_checkpoint(
    checkpoints: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, job = str(tmp_path / "state"), tmp_path / "job"
    assert portable_state.main(["pack", state, str(checkpoints.parent)]) == 0
    assert portable_state.main(["unpack", state, str(job)]) == 0
    curve = (checkpoints.parent / "log.jsonl").read_text()
    assert curve and (job / "log.jsonl").read_text() == curve
    assert capsys.readouterr().out.count("step 6") == 2
    assert load_checkpoint(job / "checkpoints")[1]["step"] == 6
    assert portable_state.main(["unpack", state, str(job)]) == 2
    assert "holds checkpoints already" in capsys.readouterr().err
    assert portable_state.main(["unpack", str(tmp_path / "none"), str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()
    assert portable_state.main(["pack", str(tmp_path / "other"), str(tmp_path / "none")]) == 2


def test_a_long_curve_is_thinned_until_it_fits_whatever_it_holds():
    measured, plain = '{"step": 1, "held_out": 0.5}', '{"step": 1, "loss": 0.5}'
    for lines in ([plain] * 20_000, [measured] * 20_000, [*[plain] * 20_000, measured]):
        kept = leg.fitting_lines(lines)
        assert 0 < sum(map(len, kept)) <= leg.LONGEST_LOG and kept[-1] == lines[-1]
    assert leg.fitting_lines([plain, measured]) == [plain, measured]
