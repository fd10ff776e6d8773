"""The experiments page: what is started is checked first, watched, stopped, resumed; models have cards."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.host.services import Services
from app.jobs import folders, releasing, study_jobs, training_job, training_run
from app.jobs.runner import Runner
from app.store import Job
from app.ui.experiments import starting, watching
from l2m_core.paths import model_folders
from tests.app.conftest import PATIENCE, check, open_app, press, small_cohort, texts
from tests.jobs.conftest import end_jobs
from tests.jobs.test_training import with_steps


@pytest.fixture(autouse=True)
def no_worker_is_left(shared_services: Services) -> Iterator[None]:
    yield
    end_jobs(shared_services)


def jobs_of(services: Services, owner: str, kind: str = training_job.KIND) -> tuple[Job, ...]:
    return services.store.jobs.list(owner, kind)


def until(app: AppTest, true: Callable[[], bool]) -> AppTest:
    """What the page does by itself every two seconds, until it has happened."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, texts(app)
        time.sleep(2)
        check(app.run())
    return check(app.run())


def turn_to(app: AppTest, tab: str) -> AppTest:
    app.session_state[starting.TABS] = tab
    return check(app.run())


def settings_of(app: AppTest):
    return next(area for area in app.text_area if str(area.key).startswith("start-yaml"))


def stored_job(services: Services, owner: str, state: str, message: str = "") -> Job:
    """A training job that this process took and that has written a few lines of its log."""
    checked = {"settings": {"stages": [{"steps": 100}], "stop_at": 0, "loop": {"threads": 1}}, "outcomes": ["classes"]}
    config = {"job": "predictor", "name": "mine", "yaml": "stages: [{steps: 100}]", "init": None, "checked": checked}
    job = services.store.jobs.add(owner, training_job.KIND, config)
    run = services.runner.folder(job) / training_run.RUN
    run.mkdir(parents=True)
    lines = [{"step": step, "seconds": step / 2, "loss": 0.7 - step / 1000} for step in range(1, 41)]
    lines.append({"step": 40, "seconds": 20.0, "held_out/own": 0.6, "held_out/own_base": 0.65})
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 41, "sec')
    (run.parent / folders.LOG).write_text(
        "training begins\nTraceback (most recent call last):\n  File 'x'\nKeyError: 1\n"
    )
    claimed = services.store.jobs.claim(job.id)
    assert claimed is not None and claimed.claim is not None
    if state != "running":
        services.store.jobs.finish(job.id, claimed.claim, state, message)  # type: ignore[arg-type]
    return services.store.jobs.get(owner, job.id)


def test_checkpoints_of_one_minute_can_be_told_apart(shared_services: Services, owner: str) -> None:
    jobs = [stored_job(shared_services, owner, "done") for _ in range(2)]
    for job in jobs:
        (shared_services.runner.folder(job) / training_run.RUN / "checkpoints" / "step-40").mkdir(parents=True)
    found = [label for label, start in starting.starts(owner).items() if start["name"] in {job.id for job in jobs}]
    assert len(found) == 2 and all(" UTC" in label for label in found)


# -- starting -------------------------------------------------------------------------------------------------------


def test_a_researcher_is_offered_the_trainers_configs(shared_services: Services, owner: str) -> None:
    app = open_app("experiments")
    offered = app.selectbox(key="start-config-predictor").options
    assert offered[0] == "smoke" and "general_cpu" in offered
    assert "folder:" not in settings_of(app).value and "stages:" in settings_of(app).value


def test_what_the_trainer_refuses_is_said_and_what_was_written_stays(shared_services: Services, owner: str) -> None:
    app = open_app("experiments")
    settings_of(app).set_value("loop: {lr: 0}\nstages: [{steps: 1}]")
    app = press(app, "start-job")
    assert "loop.lr is 0.0; it must be above 0." in texts(app)
    assert settings_of(app).value.startswith("loop: {lr: 0}")
    assert not jobs_of(shared_services, owner)


def test_a_job_is_started_watched_stopped_and_resumed(shared_services: Services, owner: str) -> None:
    app = open_app("experiments")
    settings_of(app).set_value(with_steps(100_000))
    app.text_input(key="start-name-predictor").set_value("watched")
    app = press(app, "start-job")
    (job,) = jobs_of(shared_services, owner)
    run = shared_services.runner.folder(job) / training_run.RUN
    app = until(app, lambda: training_run.last_step(run) >= 3)
    assert "Running" in texts(app) and "‘watched’" in texts(app)
    (running_box,) = (found.key for found in app.selectbox if found.label == "Job")
    assert [metric.label for metric in app.metric] == ["Steps", "Rate", "Time left", "Training loss"]
    app = press(app, "job-stop")
    app = until(app, lambda: not shared_services.store.jobs.get(owner, job.id).active)
    assert "a checkpoint is written" in texts(app)
    (box,) = (found for found in app.selectbox if found.label == "Job")
    assert [option.split(":")[0] for option in box.options] == ["Stopped"]
    assert running_box != box.key, "a box that stays would go on showing the name that was chosen"
    app = press(app, "job-resume")
    assert shared_services.store.jobs.get(owner, job.id).active
    app = press(app, "job-stop")
    app = until(app, lambda: not shared_services.store.jobs.get(owner, job.id).active)
    app = press(app, "job-release")
    (release,) = jobs_of(shared_services, owner, releasing.KIND)
    app = until(app, lambda: not shared_services.store.jobs.get(owner, release.id).active)
    assert "Model 'watched' can be chosen now." in texts(app)
    assert "watched" in shared_services.model_names(owner)


@pytest.mark.parametrize("task", ["gain", "policy", "finetune", study_jobs.EVALUATE, study_jobs.REPRODUCE])
def test_every_task_has_its_form(shared_services: Services, owner: str, ward, task: str) -> None:
    app = open_app("experiments")
    app = check(app.selectbox(key="start-task").set_value(task).run())
    assert settings_of(app).value
    assert starting.TASKS[task].about in texts(app)


def test_a_taken_name_is_refused(shared_services: Services, owner: str) -> None:
    app = open_app("experiments")
    app.text_input(key="start-name-predictor").set_value("general")
    assert "There is a model 'general' already" in texts(press(app, "start-job"))


def test_where_training_is_switched_off_models_are_still_shown(
    shared_services: Services, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = replace(shared_services.settings, training="off")
    monkeypatch.setattr(shared_services, "runner", Runner(shared_services.store, off))
    app = open_app("experiments")
    assert "switched off" in texts(app)
    assert not [button for button in app.button if button.key == "start-job"]
    assert "general" in turn_to(app, "Models").selectbox(key="experiments-model").options[0]


# -- watching -------------------------------------------------------------------------------------------------------


def test_a_running_job_shows_curves_rate_time_left_and_its_log(shared_services: Services, owner: str) -> None:
    job = stored_job(shared_services, owner, "running")
    app = open_app("experiments")
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown == {"Steps": "40", "Rate": "2", "Time left": "30 s", "Training loss": "0.6600"}
    assert len(app.get("plotly_chart")) == 2
    logged = [element.value for element in app.code]
    assert any("training begins" in text and "Traceback" not in text and "File" not in text for text in logged)
    claim = shared_services.store.jobs.get(owner, job.id).claim
    assert claim is not None
    shared_services.store.jobs.finish(job.id, claim, "cancelled")


@pytest.mark.parametrize(("state", "words"), [("failed", "Failed"), ("cancelled", "Stopped")])
def test_how_a_job_ended_is_in_words(shared_services: Services, owner: str, state: str, words: str) -> None:
    stored_job(shared_services, owner, state, "Something ![x](y) happened.")
    app = turn_to(open_app("experiments"), "Jobs")
    assert words in texts(app) and "Something ![x](y) happened." in texts(app)
    assert app.button(key="job-resume") is not None


@pytest.mark.parametrize(
    ("kind", "words"), [("train", "the trainer writes a checkpoint first."), ("evaluate", "what is finished is kept.")]
)
def test_what_a_job_that_is_stopping_keeps_is_said(
    shared_services: Services, owner: str, kind: str, words: str
) -> None:
    jobs = shared_services.store.jobs
    job = stored_job(shared_services, owner, "running")
    if kind == "evaluate":
        jobs.finish(job.id, str(job.claim), "done")
        job = jobs.add(owner, kind, {"model": "general", "yaml": ""})
        jobs.claim(job.id)
    jobs.request_cancel(owner, job.id)
    page = texts(turn_to(open_app("experiments"), "Jobs"))
    jobs.finish(job.id, str(jobs.get(owner, job.id).claim), "cancelled")
    assert f"Stopping; {words}" in page


@pytest.mark.parametrize("state", ["done", "cancelled"])
def test_a_job_whose_files_are_erased_says_so_and_shows_no_progress_of_none(
    shared_services: Services, owner: str, state: str
) -> None:
    stored_job(shared_services, owner, state, "Step 40 of 100.")
    app = turn_to(open_app("experiments"), "Jobs")
    assert "were erased" not in texts(app) and len(app.metric) == 4
    app = press(app, "job-erase")
    assert "Its files were erased" in texts(app) and "The log is empty" not in texts(app)
    assert not app.metric
    resume = [button.help for button in app.button if button.key == "job-resume"]
    assert resume == (["Begins anew."] if state == "cancelled" else [])


@pytest.mark.parametrize(
    ("key", "box"), [("job-use-start-model", "start-model"), ("job-use-evidence-model", "evidence-model")]
)
def test_what_a_job_made_is_chosen_on_the_page_that_it_leads_to(
    shared_services: Services, owner: str, ward, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, box: str
) -> None:
    fingerprint = finished_tuning(shared_services, owner, ward, tmp_path)
    shared_services.add_cohort(owner, replace(small_cohort(), name="newest"))  # with which a page opens otherwise
    went: list[str] = []
    monkeypatch.setattr(watching.st, "switch_page", went.append)  # works in a browser only
    app = press(turn_to(open_app("experiments"), "Jobs"), key)
    app = check(app.switch_page(went[0]).run())
    assert app.selectbox(key=box).value == "tuned"
    assert app.session_state["l2m.open.cohort"] == ward.id
    shared_services.store.models.forget(owner, fingerprint)
    app = turn_to(open_app("experiments"), "Jobs")
    assert not [button for button in app.button if str(button.key).startswith("job-use")]


def finished_tuning(services: Services, owner: str, ward, folder: Path) -> str:
    """A job that fine-tuned a model on the ward; the model's fingerprint."""
    shutil.copytree(model_folders()["general"], folder / "tuned")
    fingerprint = services.model(owner).fingerprint
    services.store.models.register(owner, "tuned", fingerprint, str(folder / "tuned"), "card")
    checked = {"settings": {"finetune": {"steps": 4}}, "outcomes": []}
    config = {"job": "finetune", "name": "tuned", "cohort": ward.id, "yaml": "", "init": None, "checked": checked}
    job = services.store.jobs.add(owner, training_job.KIND, config)
    claimed = services.store.jobs.claim(job.id)
    assert claimed is not None and claimed.claim is not None
    services.store.jobs.finish(
        job.id, claimed.claim, "done", "Model 'tuned' can be chosen now.", {"fingerprint": fingerprint}
    )
    return fingerprint


def test_another_owners_jobs_are_not_shown(shared_services: Services, owner: str) -> None:
    stored_job(shared_services, "browser-" + "c" * 32, "failed", "secret")
    assert "No job has been started yet" in texts(turn_to(open_app("experiments"), "Jobs"))


# -- models ---------------------------------------------------------------------------------------------------------


def test_models_have_cards_and_those_trained_here_can_be_shared_and_deleted(
    shared_services: Services, owner: str, tmp_path: Path
) -> None:
    folder = shared_services.settings.models_dir / "copy"
    shutil.copytree(model_folders()["general"], folder)
    fingerprint = shared_services.model(owner).fingerprint
    shared_services.store.models.register(owner, "copied", fingerprint, str(folder), "card")
    app = turn_to(open_app("experiments"), "Models")
    assert [metric.label for metric in app.metric] == ["Parameters", "Features", "Context rows", "Outcomes"]
    assert app.metric[0].delta.startswith("two networks")  # classes and continuous outcomes have one each
    app = check(app.selectbox(key="experiments-model").set_value("copied").run())
    app = check(app.toggle(key=f"share-{fingerprint}").set_value(True).run())
    assert shared_services.store.models.get("browser-" + "d" * 32, fingerprint).shared
    app = press(app, f"model-delete-{fingerprint}")
    assert "Model 'copied' is deleted" in texts(app)
    assert not folder.exists() and model_folders()["general"].exists()
