"""The jobs from the command line: from fresh weights to a released model, resumed, and refused with a reason."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from l2m_core.answering import release as release_files
from l2m_core.answering.release import load_release
from l2m_core.cohort import Cohort
from l2m_core.learn.checkpoints import load_checkpoint, load_tensors
from l2m_core.settings import build_settings, read_settings
from train.__main__ import main, settings_of
from train.initial_model import load_initial_model
from train.release import without_places

CONFIGS = Path(__file__).resolve().parents[2] / "train" / "configs"
STAGE = {"steps": 6, "tasks": 4, "rows": [24], "features": [3]}


def write(tmp_path, **settings) -> str:
    loop = {"warmup": 2, "threads": 1, "evaluate_every": 3, "log_every": 1}
    common = {
        "stages": [STAGE],
        "loop": loop,
        "held_out": ["own"],
        "held_out_pools": 1,
        "prior": {"name": "bnn"},
    }
    path = tmp_path / f"{len(list(tmp_path.glob('*.yaml')))}.yaml"
    path.write_text(yaml.safe_dump({**common, **settings}))
    return str(path)


TINY = {"layers": 2, "width": 16, "heads": 2, "feedforward": 24, "max_classes": 2, "bins": 8}
ROWS = {**TINY, "encoder": "rows", "features": 4, "outcome": "classes"}


def log(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def newest(folder: Path, name: str = "weights") -> dict[str, torch.Tensor]:
    return load_tensors(load_checkpoint(folder / "checkpoints")[0], name)


@pytest.fixture(scope="module")
def predictor(tmp_path_factory) -> Path:
    tmp_path = tmp_path_factory.mktemp("predictor")
    assert main(["predictor", "--config", write(tmp_path, folder=str(tmp_path / "job"), model=TINY)]) == 0
    return tmp_path / "job"


def test_a_predictor_is_trained_and_its_held_out_loss_printed(tmp_path, capsys):
    config = write(tmp_path, folder=str(tmp_path / "job"), model=TINY, prior={"name": "bnn"})
    assert main(["predictor", "--config", config, "seed=3"]) == 0
    summary = capsys.readouterr().out.splitlines()
    assert summary[1].startswith("held-out own: loss")
    assert main(["predictor", "--config", config, "seed=3", "--resume"]) == 0  # there is nothing left to train
    assert capsys.readouterr().out.splitlines()[1:] == summary[1:]
    steps = [line["step"] for line in log(tmp_path / "job") if "loss" in line]
    assert steps == [1, 2, 3, 4, 5, 6]


def test_the_record_also_goes_to_tensorboard_where_that_is_installed(predictor):
    pytest.importorskip("tensorboard")
    assert list((predictor / "tensorboard").glob("events.*"))


def test_a_rows_predictor_is_trained(tmp_path):
    config = write(
        tmp_path, folder=str(tmp_path / "job"), model=ROWS, prior={"name": "bnn", "settings": {"outcome": "classes"}}
    )
    assert main(["predictor", "--config", config]) == 0
    assert "embed.first.weight" in newest(tmp_path / "job")


def test_a_stopped_job_resumes_to_the_unbroken_ones_weights(tmp_path, predictor):
    config = write(tmp_path, folder=str(tmp_path / "job"), model=TINY)
    assert main(["predictor", "--config", config, "stop_at=2"]) == 0
    assert main(["predictor", "--config", config, "--resume"]) == 0
    found, expected = newest(tmp_path / "job"), newest(predictor)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_a_job_stopped_by_control_c_says_where_it_is_saved_and_goes_on(tmp_path):
    folder = tmp_path / "job"
    settings = {**{"folder": str(folder), "model": TINY}, "stages": [{**STAGE, "steps": 5000}]}
    command = [
        sys.executable,
        "-P",
        "-X",
        "l2m=train",
        "-m",
        "train",
        "predictor",
        "--config",
        write(tmp_path, **settings),
    ]
    environment = {**os.environ, "PYTHONPATH": str(CONFIGS.parents[1])}
    job = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while job.poll() is None and not (folder / "log.jsonl").is_file():
        time.sleep(0.1)
    job.send_signal(signal.SIGINT)
    _, said = job.communicate(timeout=120)
    reached = load_checkpoint(folder / "checkpoints")[1]["step"]
    assert f"Stopped after step {reached:,} of 5,000, which is saved in {folder / 'checkpoints'}" in said
    assert "with --resume" in said and "Traceback" not in said
    assert main([*command[6:], "--resume", f"stop_at={reached + 1}"]) == 0
    assert load_checkpoint(folder / "checkpoints")[1]["step"] == reached + 1


def test_a_job_that_ends_by_itself_says_nothing_of_stopping(tmp_path, capsys):
    assert main(["predictor", "--config", write(tmp_path, folder=str(tmp_path / "job"), model=TINY)]) == 0
    assert "Stopped" not in capsys.readouterr().err


@pytest.mark.parametrize("beneath", ["", "job"])
def test_a_file_where_a_folder_is_wanted_is_told(tmp_path, capsys, beneath):
    (tmp_path / "taken").write_text("")
    config = write(tmp_path, folder=str(tmp_path / "taken" / beneath), model=TINY)
    assert main(["predictor", "--config", config]) == 2
    assert f"A file is in the way of a folder: {tmp_path / 'taken' / beneath}. Name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("evaluate", "What is finished is kept"),
        ("choices", "What is finished is kept"),
        ("release", "nothing was saved"),
    ],
)
def test_control_c_outside_of_steps_is_a_sentence(monkeypatch, capsys, command, words):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("train.study.evaluate.main", interrupt)
    monkeypatch.setattr("train.__main__.run_job", interrupt)
    assert main([command, "--config", "none.yaml"]) == 130
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("job, head", [("gain", "gain."), ("policy", "policy.")])
def test_a_head_is_trained_on_a_frozen_trunk(tmp_path, predictor, job, head):
    config = write(tmp_path, folder=str(tmp_path / "job"), init=str(predictor))
    assert main([job, "--config", config]) == 0
    begun, found = newest(predictor, "average"), newest(tmp_path / "job")
    moved = {name for name in begun if not torch.equal(begun[name], found[name])}
    assert moved and all(name.startswith(head) for name in moved)


def test_a_policy_may_take_its_trunk_along_slowly(tmp_path, predictor):
    config = write(tmp_path, folder=str(tmp_path / "job"), init=str(predictor))
    assert main(["policy", "--config", config, "backbone=0.1", "policy.objective=greedy"]) == 0
    begun, found = newest(predictor, "average"), newest(tmp_path / "job")
    moved = {name.split(".")[0] for name in begun if not torch.equal(begun[name], found[name])}
    assert {"policy", "blocks"} <= moved and "gain" not in moved


def test_a_fresh_head_forgets_what_the_initial_model_was_taught(tmp_path, predictor):
    settings = {"init": str(predictor), "fresh_head": True, "stages": [{"steps": 0}]}
    config = write(tmp_path, folder=str(tmp_path / "job"), **settings)
    assert main(["policy", "--config", config]) == 0
    begun, found = newest(predictor, "average"), newest(tmp_path / "job")
    moved = {name for name in begun if not torch.equal(begun[name], found[name])}
    assert "policy.readout.hidden.weight" in moved and all(name.startswith("policy.") for name in moved)


def test_a_model_is_released_then_fine_tuned_on_a_cohort_also_after_a_full_disk(
    tmp_path, predictor, capsys, monkeypatch
):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump({"run": str(predictor), "folder": str(tmp_path / "model")}))
    assert main(["release", "--config", str(release)]) == 0
    generator = np.random.default_rng(0)
    x = generator.normal(size=(80, 3))
    table = "\n".join(",".join(f"{v:.3f}" for v in row) + f",{int(row[1] > 0)}" for row in x)
    (tmp_path / "table.csv").write_text(
        "age,pulse,lactate,died\n" + table + "\n0.5,0.5,folgt,1\n0.5,-999,0.5,1\n0.2,-999,0.1,0\n"
    )
    config = tmp_path / "finetune.yaml"
    paths = {"folder": tmp_path / "tuned", "init": tmp_path / "model", "cohort": tmp_path / "table.csv"}
    settings = {name: str(path) for name, path in paths.items()}
    settings |= {"outcome": "died", "baseline": ["age"], "finetune": {"steps": 6, "evaluate_every": 3}}
    config.write_text(yaml.safe_dump(settings))
    assert main(["finetune", "--config", str(config)]) == 2
    assert "'folgt' is not a number" in capsys.readouterr().err
    with monkeypatch.context() as change:
        change.setattr(release_files, "save_tensors", full)
        assert main(["finetune", "--config", str(config), "reading.missing=[folgt]"]) == 2
    told = capsys.readouterr().err
    assert "note: 'pulse' is -999 in 2 rows" in told
    assert str(tmp_path / "tuned" / "model") in told and "No space left" in told and "--resume" in told
    assert main(["finetune", "--config", str(config), "reading.missing=[folgt]", "--resume"]) == 0
    assert "decided when to stop" in capsys.readouterr().out
    cohort = Cohort.from_file(tmp_path / "table.csv", "died", baseline=["age"], missing=["folgt"])
    assert load_release(tmp_path / "tuned" / "model").tuned_on == cohort.content_hash
    assert not load_release(tmp_path / "model").tuned_on
    assert "lactate" not in (tmp_path / "tuned" / "log.jsonl").read_text()


def test_a_model_is_fine_tuned_on_classes_as_its_answers_code_them(tmp_path, predictor):
    x = np.random.default_rng(0).normal(size=(60, 3))
    before = {}
    for order in ("code", "frequency"):
        release, config = tmp_path / f"{order}.yaml", tmp_path / f"finetune_{order}.yaml"
        facts = {"run": str(predictor), "folder": str(tmp_path / order), "inference": {"class_order": order}}
        release.write_text(yaml.safe_dump(facts))
        assert main(["release", "--config", str(release)]) == 0
        for ill in (10, 50):
            name = f"{order}_{ill}"
            rows = [f"{a:.3f},{b:.3f},{c:.3f},{int(row < ill)}" for row, (a, b, c) in enumerate(x)]
            (tmp_path / f"{name}.csv").write_text("\n".join(["age,pulse,lactate,died", *rows]))
            settings = {"folder": str(tmp_path / name), "init": facts["folder"], "cohort": f"{tmp_path / name}.csv"}
            settings |= {"outcome": "died", "finetune": {"steps": 1, "dtype": "float32"}}
            config.write_text(yaml.safe_dump(settings))
            assert main(["finetune", "--config", str(config)]) == 0
            made = yaml.safe_load((tmp_path / name / "model" / "model.yaml").read_text())
            before[name] = made["training"]["loss"][0]
    # The ill are the class of code 1: few, and so coded by either order, or most.
    assert before["code_10"] == before["frequency_10"] and before["code_50"] != before["frequency_50"]


def test_a_release_can_be_the_mean_of_two_models(tmp_path, predictor, capsys):
    def released(name: str, **more) -> dict[str, torch.Tensor]:
        release = tmp_path / f"{name}.yaml"
        release.write_text(yaml.safe_dump({"run": str(predictor), "folder": str(tmp_path / name), **more}))
        assert main(["release", "--config", str(release)]) == 0
        return load_initial_model(str(tmp_path / name)).state_dict()

    config = write(tmp_path, folder=str(tmp_path / "other"), model=TINY, seed=5)
    assert main(["predictor", "--config", config]) == 0
    own, other = released("own"), load_initial_model(str(tmp_path / "other")).state_dict()
    mean = released("mean", average_with=str(tmp_path / "other"), own_share=0.25)
    assert main(["release", "--config", str(tmp_path / "mean.yaml"), "average_with=nowhere", "replace=true"]) == 2
    assert "average_with: 'nowhere' is neither" in capsys.readouterr().err
    assert all(torch.allclose(mean[name], 0.25 * own[name] + 0.75 * other[name], atol=1e-6) for name in own)
    assert "own_share: 0.25" in (tmp_path / "mean" / "model.yaml").read_text()


def test_a_release_can_have_another_model_answer_for_classes(tmp_path, predictor):
    config = write(tmp_path, folder=str(tmp_path / "other"), model=TINY, seed=5)
    assert main(["predictor", "--config", config]) == 0
    release, folder = tmp_path / "release.yaml", tmp_path / "model"
    settings = {"run": str(predictor), "folder": str(folder), "for_classes": str(tmp_path / "other")}
    release.write_text(yaml.safe_dump(settings))
    assert main(["release", "--config", str(release)]) == 0
    found = load_initial_model(str(folder)).state_dict()
    for network, job in (("for_classes", tmp_path / "other"), ("for_numbers", predictor)):
        own = load_initial_model(str(job)).state_dict()
        assert all(torch.equal(found[f"{network}.{name}"], value) for name, value in own.items())
    assert len(found) == 2 * len(own)


def test_a_release_takes_the_place_of_a_model_only_if_told_to(tmp_path, predictor, capsys):
    folder = tmp_path / "model"
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump({"run": str(predictor), "folder": str(folder)}))
    assert main(["release", "--config", str(release)]) == 0
    (folder / "card.md").write_text("# Mine")
    (folder / "curve-9-of_the_one_before.jsonl").write_text("{}")
    before = (folder / "model.yaml").stat().st_mtime_ns
    assert main(["release", "--config", str(release)]) == 2
    assert "holds a model. Name another folder, or say replace=true" in capsys.readouterr().err
    assert (folder / "model.yaml").stat().st_mtime_ns == before
    assert main(["release", "--config", str(release), "replace=true"]) == 0
    assert (folder / "model.yaml").stat().st_mtime_ns > before
    assert [path.name for path in folder.glob("curve-*")] == ["curve-1-job.jsonl"]
    assert (folder / "card.md").read_text() == "# Mine"


def test_a_release_into_the_folder_of_its_job_leaves_the_checkpoints(tmp_path, predictor, capsys):
    folder = shutil.copytree(predictor, tmp_path / "job")
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump({"run": str(folder), "folder": str(folder)}))
    assert main(["release", "--config", str(release)]) == 0
    assert all(torch.equal(value, newest(predictor)[name]) for name, value in newest(folder).items())
    assert main(["release", "--config", str(release), "replace=true"]) == 0, capsys.readouterr().err


def test_a_release_without_a_folder_is_refused(tmp_path, predictor, capsys):
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump({"run": str(predictor)}))
    assert main(["release", "--config", str(release)]) == 2
    assert "folder" in capsys.readouterr().err


def test_a_prior_of_more_classes_than_the_model_has_is_refused(tmp_path, predictor, capsys):
    several = {"name": "bnn", "settings": {"classes": [5, 5]}}
    for job, extra in (("predictor", {"model": TINY}), ("gain", {"init": str(predictor)})):
        config = write(tmp_path, folder=str(tmp_path / "job"), prior=several, **extra)
        assert main([job, "--config", config]) == 2
        assert "draws tasks of 5 classes, and the model has model.max_classes: 2" in capsys.readouterr().err
    config = write(tmp_path, folder=str(tmp_path / "job"), prior=several, model={**TINY, "max_classes": 5})
    assert main(["predictor", "--config", config]) == 0


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"seed": 7}, "seed"),
        ({"prior": {"name": "bnn", "settings": {"clusters": [2, 2]}}}, "prior"),
        ({"classes_by_frequency": True}, "classes_by_frequency"),
        ({"model": {**TINY, "width": 8}}, "model"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_job_is_not_resumed_with_settings_that_make_it_another(tmp_path, capsys, changed, name):
    own = {"folder": str(tmp_path / "job"), "model": TINY}
    assert main(["predictor", "--config", write(tmp_path, **own), "stop_at=2"]) == 0
    assert main(["predictor", "--config", write(tmp_path, **{**own, **changed}), "--resume"]) == 2
    assert f"holds a job with other settings ({name})" in capsys.readouterr().err
    # A rate, a length and a way to compute may change on the way.
    again = ["loop.lr=0.0005", "loop.dtype=float32", "stages.0.steps=4", "stop_at=4"]
    assert main(["predictor", "--config", write(tmp_path, **own), "--resume", *again]) == 0
    assert load_checkpoint(tmp_path / "job" / "checkpoints")[1]["step"] == 4


def test_a_place_that_cannot_be_written_to_is_told_in_a_line(tmp_path, predictor, capsys):
    (tmp_path / "file").write_text("")
    release = tmp_path / "release.yaml"
    release.write_text(yaml.safe_dump({"run": str(predictor), "folder": str(tmp_path / "file" / "model")}))
    assert main(["release", "--config", str(release)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and str(tmp_path / "file") in said


def test_a_model_that_learned_classes_by_frequency_is_told_of_them_so(tmp_path, capsys):
    config = write(tmp_path, folder=str(tmp_path / "job"), model=TINY, classes_by_frequency=True)
    assert main(["predictor", "--config", config]) == 0
    release = tmp_path / "release.yaml"
    facts = {"run": str(tmp_path / "job"), "folder": str(tmp_path / "model")}
    release.write_text(yaml.safe_dump(facts))
    assert main(["release", "--config", str(release)]) != 0
    assert "inference.class_order must be frequency" in capsys.readouterr().err
    release.write_text(yaml.safe_dump({**facts, "inference": {"class_order": "frequency"}}))
    assert main(["release", "--config", str(release)]) == 0


@pytest.mark.parametrize(
    ("changed", "words"),
    # Tensors of other heads have the same shapes, and another meaning.
    [({"width": 8}, "width is 8, not 16"), ({"heads": 4}, "heads is 4, not 2")],
    ids=["width", "heads"],
)
def test_models_of_two_shapes_are_no_release_together(tmp_path, predictor, capsys, changed, words):
    config = write(tmp_path, folder=str(tmp_path / "other"), model={**TINY, **changed})
    assert main(["predictor", "--config", config, "stop_at=1"]) == 0
    release = tmp_path / "release.yaml"
    for setting in ("average_with", "for_classes"):
        facts = {"run": str(predictor), "folder": str(tmp_path / "model"), setting: str(tmp_path / "other")}
        release.write_text(yaml.safe_dump(facts))
        assert main(["release", "--config", str(release)]) == 2
        assert f"{setting}: the two models are not of one shape: {words}." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "setting"),
    [
        ("predictor", "crps_weight=-1"),
        ("predictor", "value_weight=-0.5"),
        ("predictor", "orders=0"),
        ("predictor", "loop.average=-1"),
        ("predictor", "loop.average=2"),
        ("predictor", "loop.weight_decay=-0.1"),
        ("predictor", "loop.clip=.nan"),
        ("gain", "reveals=0"),
        ("policy", "backbone=-0.1"),
        ("release", "own_share=2"),
        ("release", "own_share=.nan"),
    ],
)
def test_a_number_that_would_train_the_wrong_way_is_refused(tmp_path, capsys, job, setting):
    config = tmp_path / "job.yaml"
    settings = {"folder": "none"} | ({"run": "none"} if job == "release" else {"stages": [STAGE], "init": "general-1"})
    config.write_text(yaml.safe_dump(settings))
    assert main([job, "--config", str(config), "--check", setting]) == 2
    assert re.search(rf"{setting.partition('=')[0]} is .*; it must be at (least|most)", capsys.readouterr().err)


def test_a_release_names_the_file_that_a_prior_drew_from_and_no_place_of_the_machine():
    data = {"source": "table", "path": "/home/someone/cohorts/table.csv", "outcome": "died"}
    job = {"prior": {"name": "semi_synthetic", "data": data}, "seed": 3}
    assert without_places(job) == {
        "prior": {"name": "semi_synthetic", "data": {**data, "path": "table.csv"}},
        "seed": 3,
    }
    assert without_places({"prior": {"name": "bnn"}}) == {"prior": {"name": "bnn"}}


@pytest.mark.parametrize(
    "job, override, message",
    [
        ("predictor", "lopp.lr=1", "Did you mean 'loop'"),
        ("predictor", "loop.learning_rate=1", "config.loop.learning_rate"),
        ("predictor", "loop.lr=fast", "config.loop.lr is 'fast'; give a number"),
        ("predictor", "held_out=[huge]", "held_out names 'huge'"),
        ("predictor", "prior.name=bmm", "no prior 'bmm'. There are: 'gp', 'bnn'"),
        ("predictor", "seed", "must read key=value"),
        ("gain", "target=hoped", "target is 'hoped'"),
        ("gain", "init=nowhere", "init: 'nowhere' is neither a job's folder"),
        ("policy", "policy.objective=best", "policy.objective is 'best'"),
        ("policy", "policy.temprature=2", "Did you mean 'temperature'"),
    ],
)
def test_a_wrong_setting_is_refused_by_name_before_anything_is_written(
    tmp_path, predictor, capsys, job, override, message
):
    extra = {"model": TINY} if job == "predictor" else {"init": str(predictor)}
    config = write(tmp_path, folder=str(tmp_path / "job"), **extra)
    assert main([job, "--config", config, override]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "job").exists()


def test_every_config_that_comes_with_l2m_can_be_read():
    jobs = {"general": "predictor", "smoke": "predictor", "rows": "predictor", "gain": "gain", "policy": "policy"}
    read = 0
    for path in sorted(CONFIGS.glob("*.yaml")):
        job = jobs.get(path.stem.split("_")[0])
        if job is not None:
            build_settings(settings_of(job), read_settings(path))
            read += 1
    assert read >= 5


def test_a_model_of_one_s_own_is_released_with_the_answer_settings_of_the_released_one():
    job = build_settings(settings_of("release"), read_settings(CONFIGS / "release.yaml"))
    assert job.inference == load_release("general", "cpu").inference


def test_a_job_that_is_not_there_is_told_before_its_config_is_missed(capsys):
    assert main(["predictorr"]) == 2
    assert "no job or command 'predictorr'. Did you mean 'predictor'?" in capsys.readouterr().err


def test_nothing_named_to_run_is_answered_with_what_there_is(capsys):
    assert main([]) == 2
    told = capsys.readouterr().err
    assert all(name in told for name in ("predictor", "finetune", "acquire", "afabench")) and "required" not in told


@pytest.mark.slow
def test_the_smoke_config_learns_something_real(tmp_path):
    """Clearly under the base rate on held-out tasks; on one idle core in under five minutes."""
    folder = tmp_path / "job"
    assert main(["predictor", "--config", str(CONFIGS / "smoke.yaml"), f"folder={folder}"]) == 0
    last = [line for line in log(folder) if "held_out/own" in line][-1]
    assert last["held_out/own"] < last["held_out/own_base"] - 0.05


def test_progress_shows_loss_rate_time_left_and_speed(tmp_path, capfd):
    config = write(tmp_path, folder=str(tmp_path / "job"), model=TINY)
    assert main(["predictor", "--config", config]) == 0
    shown = capfd.readouterr()
    bar = shown.err.split("\r")[-1]
    assert re.search(r"6/6 \[\d+:\d+<\d+:\d+, +[\d.]+(it/s|s/it), loss=\d\.\d+, [\d.e+-]+ GFLOP/s\]", bar)
    assert "GFLOP/s" in shown.out


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("stages=[]", "stages is empty; give at least one stage"),
        ("held_out_pools=0", "held_out_pools is 0"),
        ("stop_at=-1", "stop_at is -1"),
    ],
)
def test_a_job_of_nothing_is_refused(tmp_path, capsys, setting, words):
    config = write(tmp_path, folder=str(tmp_path / "job"), model=TINY)
    assert main(["predictor", "--config", config, setting]) == 2
    assert words in capsys.readouterr().err
