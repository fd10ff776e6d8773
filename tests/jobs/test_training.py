"""Training jobs with the real trainer, small enough for seconds: checked, run, stopped, resumed, made into models."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from app.host.services import Services
from app.jobs import folders, releasing, study_jobs, templates, trainer, training_job, training_run
from app.jobs.runner import Runner
from app.store import Job, NotFound, processes
from l2m_core.errors import LONGEST_MESSAGE, ConfigError
from tests.jobs.conftest import OWNER, ended, wait_until

TINY: dict[str, Any] = {
    "seed": 1,
    "model": {"encoder": "cells", "layers": 1, "width": 16, "heads": 2, "feedforward": 32, "max_classes": 2},
    "prior": {"name": "synthetic", "settings": {"outcome": "classes", "max_classes": 2}},
    "held_out": ["own"],
    "held_out_pools": 1,
    "loop": {"warmup": 2, "threads": 4, "evaluate_every": 0, "log_every": 1, "checkpoint_minutes": 0.02},
    "stages": [{"steps": 3, "tasks": 2, "rows": [16], "features": [3], "context": [0.5]}],
}


def with_steps(steps: int) -> str:
    return yaml.safe_dump({**TINY, "stages": [{**TINY["stages"][0], "steps": steps}]})


def begin(services: Services, job: str = "predictor", text: str = "", name: str = "mine", **more) -> Job:
    """As the page does it."""
    config = {"job": job, "yaml": text or with_steps(3), "name": name, **more}
    decided = training_job.decided(services, OWNER, config, services.settings.jobs_dir / "new")
    checked = trainer.check(job, config["yaml"], decided, services.settings)
    config["checked"] = {"settings": checked.settings, "outcomes": list(checked.outcomes)}
    return services.runner.submit(OWNER, training_job.KIND, config)


# -- checking -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loop: {lr: -1}\nstages: [{steps: 1}]", "loop.lr is -1.0"),
        ("stagez: []", "Did you mean 'stages'"),
        ("stages: [{steps: 1}]\nprior: {name: nowhere}", "nowhere"),
    ],
)
def test_the_trainer_says_what_is_wrong_in_its_own_words(services: Services, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        trainer.check("predictor", text, {"folder": "run"}, services.settings)
    assert "Traceback" not in str(refusal.value) and "/tmp" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["stages: [{steps: 6, rows: [10000000]}]", "stages: [{steps: 6}]\nmodel: {width: 100000000}"]
)
def test_a_job_that_no_machine_would_hold_is_refused_with_its_memory(services: Services, text: str) -> None:
    with pytest.raises(ConfigError, match=r"about [\d,]+ (GB|parameters).*(256 GB|1,000,000,000)"):
        trainer.check("predictor", text, {"folder": "run"}, services.settings)


def test_the_trainers_refusal_is_short_however_long_what_it_quotes(services: Services) -> None:
    with pytest.raises(ConfigError, match=r"loop.lr is 'x+\.\.\.x+'; give a number") as refusal:
        trainer.check("predictor", f"loop: {{lr: {'x' * 90_000}}}", {"folder": "run"}, services.settings)
    assert len(str(refusal.value)) <= LONGEST_MESSAGE


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("folder: /etc", "'folder' is decided"),
        ("init: /home/somebody", "'init' is decided"),
        ("a: [", "Not valid YAML \\(line"),
        ("just a text", "lines of"),
        ("x: !!python/object/apply:os.system ['true']", "Not valid YAML"),
        ("a: " + "b" * 200_000, "at most 100,000"),
    ],
)
def test_settings_that_are_not_a_persons_to_write_are_refused(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        trainer.read_settings("predictor", text)


@pytest.mark.parametrize("job", ["predictor", "gain", "policy", "finetune"])
def test_every_offered_config_passes_the_trainers_check(services: Services, job: str) -> None:
    offered = templates.of(job)
    assert offered
    smallest = offered[0]
    decided = {name: "x" for name in trainer.DECIDED[job] if name in ("folder", "init", "cohort")}
    checked = trainer.check(job, smallest.text, decided, services.settings)
    assert checked.steps > 0
    for template in offered:
        assert trainer.read_settings(job, template.text)


def test_jobs_that_need_something_to_start_from_say_so(services: Services) -> None:
    for config, words in (
        ({"job": "gain"}, "start from"),
        ({"job": "finetune", "init": {"from": "model", "name": "general"}}, "cohort"),
    ):
        with pytest.raises(ConfigError, match=words):
            training_job.decided(services, OWNER, config, Path("x"))


def test_nobody_starts_from_what_is_not_his(services: Services) -> None:
    for chosen in ({"from": "model", "name": "/etc"}, {"from": "job", "name": "another"}):
        with pytest.raises(NotFound):
            training_job.initial(services, OWNER, chosen)


def test_a_job_gets_no_more_threads_than_the_installation_grants() -> None:
    checked = trainer.Checked({"loop": {"threads": 4}, "stages": []}, ())
    assert training_job.threads("predictor", checked, 1) == ["loop.threads=1"]
    assert training_job.threads("predictor", checked, 8) == ["loop.threads=4"]


# -- running --------------------------------------------------------------------------------------------------------


def test_a_finished_job_is_a_model_with_a_card_that_can_be_chosen(services: Services, runner: Runner) -> None:
    done = ended(runner, begin(services))
    assert done.state == "done", (done.message, folders.tail(runner.folder(done)))
    model = services.model(OWNER, "mine")
    assert done.result == {"fingerprint": model.fingerprint}
    assert "Nobody has evaluated it" in model.card and "not trained" in model.card
    assert model.release.inference.policy == "monte carlo"
    assert (model.release.trained.features, model.release.trained.outcomes) == (3, ("binary",))
    written = yaml.safe_load((runner.folder(done) / trainer.CONFIG).read_text())
    assert written["folder"].endswith("/run") and written["stages"] == TINY["stages"]
    state = next((runner.folder(done) / "run" / "checkpoints").glob("step-*/state.json")).read_text()
    assert '"threads": 1' in state


def test_a_job_is_stopped_with_a_checkpoint_and_goes_on_from_it(services: Services, runner: Runner) -> None:
    job = begin(services, text=with_steps(100_000))
    run = runner.folder(job) / training_run.RUN
    wait_until(lambda: training_run.last_step(run) >= 3)
    runner.stop(OWNER, job.id)
    stopped = ended(runner, job)
    assert stopped.state == "cancelled" and "a checkpoint is written" in stopped.message
    step = training_run.last_step(run)
    assert training_run.has_checkpoint(run) and step >= 3
    assert "mine" not in services.model_names(OWNER)
    runner.resume(OWNER, job.id)
    wait_until(lambda: training_run.last_step(run) > step + 3)
    steps = [line["step"] for line in training_run.read_log(run)]
    assert steps == sorted(set(steps))  # nothing was done twice
    runner.stop(OWNER, job.id)
    assert ended(runner, job).state == "cancelled"
    made = ended(runner, runner.submit(OWNER, releasing.KIND, {"of": job.id, "name": "half way"}))
    assert made.state == "done", made.message
    assert "of 100,000 steps" in services.model(OWNER, "half way").card


def test_a_trainer_ends_with_its_worker(services: Services, runner: Runner) -> None:
    job = begin(services, text=with_steps(100_000))
    run = runner.folder(job) / training_run.RUN
    wait_until(lambda: training_run.last_step(run) >= 2)
    child = (runner.folder(job) / trainer.PROCESS).read_text()
    assert processes.is_alive(child) and job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    wait_until(lambda: processes.is_alive(child) is False)
    runner.pump()
    assert runner.store.jobs.get(OWNER, job.id).state == "crashed"
    assert training_run.has_checkpoint(run)  # it was told, and kept what it had


def test_fine_tuning_reads_a_stored_cohort_and_leaves_no_copy_of_it(services: Services, runner: Runner, ward) -> None:
    text = "finetune: {steps: 2, tasks: 1, rows: 32, evaluate_every: 1, patience: 2}"
    start = {"init": {"from": "model", "name": "general"}, "cohort": ward.id}
    done = ended(runner, begin(services, "finetune", text, "ward's own", **start))
    assert done.state == "done", (done.message, folders.tail(runner.folder(done)))
    assert not list(runner.folder(done).rglob("*.parquet"))
    model = services.model(OWNER, "ward's own")
    assert model.release.inference == services.model(OWNER).release.inference, "its answers are read with the same care"
    assert model.condition(services.cohort(OWNER, ward)).predict(np.full((1, 4), np.nan)).shape == (1, 2)


def test_the_gain_head_is_taught_on_an_earlier_jobs_checkpoint(services: Services, runner: Runner) -> None:
    first = ended(runner, begin(services))
    text = yaml.safe_dump({k: v for k, v in TINY.items() if k != "model"} | {"reveals": 1})
    second = ended(runner, begin(services, "gain", text, "ranks", init={"from": "job", "name": first.id}))
    assert second.state == "done", (second.message, folders.tail(runner.folder(second)))
    assert services.model(OWNER, "ranks").release.inference.policy == "gain"


def test_training_is_refused_where_it_is_switched_off(services: Services) -> None:
    off = Runner(services.store, replace(services.settings, training="off"))
    signed_in = Runner(services.store, replace(services.settings, training="signed-in"))
    for runner, owner in ((off, OWNER), (off, "user-1"), (signed_in, OWNER)):
        assert not runner.may_train(owner)
        with pytest.raises(ConfigError, match="switched off"):
            runner.submit(owner, training_job.KIND, {})
    assert signed_in.may_train("user-1")


# -- models ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", " ", "../up", "a/b", "![x](http://y)", "n" * 61, "general"])
def test_a_models_name_is_plain_and_new(name: str) -> None:
    with pytest.raises(ConfigError):
        releasing.check_name(name, {"general": Path()})
    assert releasing.check_name(" my model 2.1 ", {}) == "my model 2.1"


def test_a_name_that_became_taken_gets_a_number() -> None:
    assert releasing.unique("a", {"a": Path(), "a 2": Path()}) == "a 3"


# -- studies --------------------------------------------------------------------------------------------------------


def test_options_of_an_evaluation_become_words_of_its_command() -> None:
    assert study_jobs.options("suite: synthetic\ntasks: 2\nmethods: [l2m, l2m_random]\ntest_rows: 30") == [
        "--suite",
        "synthetic",
        "--tasks",
        "2",
        "--methods",
        "l2m",
        "l2m_random",
        "--test-rows",
        "30",
    ]
    assert study_jobs.options(study_jobs.TEMPLATE)


@pytest.mark.parametrize(
    "text", ["out: /etc", "tasks: [1, 2]", "methods: []", "suite: --out", "tasks: {a: 1}", "- a", "a: ["]
)
def test_options_that_are_not_a_persons_to_choose_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        study_jobs.options(text)


@pytest.mark.parametrize("value", ["many", "2.5", "-1", "0", "true"])
def test_a_count_of_an_evaluation_that_is_none_is_refused_before_it_starts(value: str) -> None:
    with pytest.raises(ConfigError, match="it must be a whole number, 1 or more"):
        study_jobs.options(f"suite: synthetic\ntasks: {value}")


def test_an_evaluation_may_ask_for_no_tests() -> None:
    assert study_jobs.options("suite: synthetic\nbudget: 0") == ["--suite", "synthetic", "--budget", "0"]
    with pytest.raises(ConfigError, match="'budget' is -1; it must be a whole number, 0 or more"):
        study_jobs.options("suite: synthetic\nbudget: -1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("suite: syntetic", "no suite 'syntetic'. Did you mean 'synthetic'"),
        ("suite: 3", "no suite '3'"),
        ("suite: synthetic\nmethods: [l2m, boostin]", "no method 'boostin'. Did you mean 'boosting"),
    ],
)
def test_a_suite_or_method_that_is_not_there_is_refused_before_it_starts(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        study_jobs.options(text)


def test_methods_that_are_there_are_taken() -> None:
    text = "suite: synthetic\nmethods: [l2m, l2m_council_random, base_rate, general_model, gdfs]"
    assert "general_model" in study_jobs.options(text)


@pytest.mark.parametrize("text", ["suite: real", "budget: 3"])
def test_real_cohorts_that_are_not_here_are_refused_before_it_starts(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "home", lambda: tmp_path / "installed" / "train")
    with pytest.raises(ConfigError, match="no real cohorts on this computer. Write `suite: synthetic`"):
        study_jobs.options(text)
    (tmp_path / "shared" / "data").mkdir(parents=True)
    assert study_jobs.options(text)


def test_the_experiments_of_the_study_are_known_without_importing_the_trainer() -> None:
    assert {"acquisition", "uncertainty", "ablations"} <= set(study_jobs.experiments())
    assert study_jobs.overrides("tasks: 3\nfamilies: [gp]") == ["tasks=3", "families=[gp]"]


def test_a_long_setting_of_an_experiment_stays_whole() -> None:
    names = [f"family_{number}" for number in range(40)]
    (override,) = study_jobs.overrides(f"families: [{', '.join(names)}]")
    assert yaml.safe_load(override.removeprefix("families=")) == names


def test_what_a_command_line_refuses_is_said(services: Services, runner: Runner) -> None:
    job = runner.submit(
        OWNER, study_jobs.EVALUATE, {"model": "general", "yaml": "suite: synthetic\nmethods: [l2m_nowhere]"}
    )
    failed = ended(runner, job)
    assert failed.state == "failed" and "nowhere" in failed.message and "usage" not in failed.message


def test_a_models_evaluation_leaves_a_report(services: Services, runner: Runner) -> None:
    text = "suite: synthetic\ntasks: 1\nbudget: 1\nmethods: [l2m, l2m_random]"
    done = ended(runner, runner.submit(OWNER, study_jobs.EVALUATE, {"model": "general", "yaml": text}))
    assert done.state == "done", (done.message, folders.tail(runner.folder(done)))
    assert done.result is not None and any(name.endswith(".md") for name in done.result["files"])
