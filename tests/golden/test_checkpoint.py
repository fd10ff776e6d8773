"""Checkpoints and model folders of an earlier day: they resume to the losses, and answer what, they did then."""

import json
import shutil
from pathlib import Path

import pytest

from tests.golden import agreement, jobs

KEPT = agreement.read(jobs.ANSWERS)
SAME_LOSS = 1e-4
KINDS = sorted(jobs.CONFIGS)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def job(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what was kept, which is where commands run."""
    folder = tmp_path / kind
    shutil.copytree(jobs.FOLDER / kind, folder)
    monkeypatch.chdir(folder)
    return folder


def test_a_checkpoint_resumes_to_the_same_losses(job: Path, kind: str) -> None:
    before = jobs.log_of(job / "job")
    assert max(line["step"] for line in before) == jobs.STOPPED
    jobs.run("predictor", "--config", "config.yaml", "--resume")
    after = jobs.log_of(job / "job")
    assert [line["step"] for line in after if "loss" in line] == list(range(1, jobs.END + 1))
    assert list(agreement.differences(after, KEPT[kind]["log"], near=SAME_LOSS)) == []


def test_a_model_folder_is_loaded_and_answers_the_same(job: Path, kind: str) -> None:
    assert list(agreement.differences(jobs.answers_of(job / "model", kind), KEPT[kind]["model"])) == []


def test_a_checkpoint_is_released_as_the_same_weights(job: Path, kind: str) -> None:
    """The fingerprint may become another, where a setting of models is new; what it answers may not."""
    shutil.move(job / "model", job / "earlier")
    jobs.run("release", "--config", "release.yaml")
    now, then = jobs.answers_of(job / "model", kind), KEPT[kind]["model"]
    assert list(agreement.differences({**now, "model": ""}, {**then, "model": ""})) == []


def test_a_job_begins_with_an_earlier_model_folder_and_with_a_checkpoint(job: Path) -> None:
    for number, begin in enumerate(("model", "job")):
        jobs.run("predictor", "--config", "config.yaml", f"init={begin}", f"folder=next-{number}", "stop_at=1")
    first, second = (jobs.log_of(job / f"next-{number}") for number in range(2))
    assert first[0]["loss"] == pytest.approx(second[0]["loss"], abs=1e-6), "both hold the running average"


def test_no_machine_is_named_in_what_is_kept() -> None:
    texts = [path for path in jobs.FOLDER.rglob("*") if path.suffix in (".json", ".yaml", ".jsonl")]
    assert len(texts) >= 2 * len(KINDS)
    for path in texts:
        assert "/tmp" not in path.read_text() and "/work" not in path.read_text(), path.name
    assert json.loads(next(jobs.FOLDER.rglob("state.json")).read_text())["step"] == jobs.STOPPED
