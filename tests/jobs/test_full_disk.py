"""A disk that fills up while a training job writes a checkpoint: the job says so, keeps what it had, and goes on later."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

from app.host.services import Services
from app.jobs import folders, training_run
from app.jobs.runner import Runner
from l2m_core.learn.checkpoints import load_checkpoint
from tests.jobs.conftest import OWNER, ended, wait_until
from tests.jobs.test_training import TINY, begin

# Read by every interpreter as it starts. As soon as the switch is there, no file of the trainer can grow beyond what the
# job's log needs: the system itself refuses the next checkpoint in the middle of its writing.
SITE = """
import os, sys
if "--config" in sys.orig_argv and "--check" not in sys.orig_argv:
    import resource, threading, time
    def fill():
        while not os.path.exists({switch!r}):
            time.sleep(0.1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    threading.Thread(target=fill, daemon=True).start()
"""
QUIET = {**TINY, "loop": {**TINY["loop"], "log_every": 100_000}, "stages": [{**TINY["stages"][0], "steps": 90_000}]}


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are those of a Unix system")
def test_a_full_disk_ends_a_training_job_in_words_and_it_can_be_resumed(
    services: Services, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch, site = tmp_path / "disk-is-full", tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE.format(switch=str(switch)))
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    monkeypatch.setenv("PYTHONPATH", path)
    job = begin(services, text=yaml.safe_dump(QUIET))
    run = runner.folder(job) / training_run.RUN
    wait_until(lambda: training_run.has_checkpoint(run))
    switch.touch()
    failed = ended(runner, job)
    assert failed.state == "failed", (failed.message, folders.tail(runner.folder(job)))
    assert "could not be written" in failed.message and "free some space" in failed.message
    assert "Traceback" not in failed.message and "Traceback" not in folders.tail(runner.folder(job))
    step = load_checkpoint(run / "checkpoints")[1]["step"]
    assert not list((run / "checkpoints").glob(".step*"))

    switch.unlink()
    runner.resume(OWNER, job.id)
    wait_until(lambda: load_checkpoint(run / "checkpoints")[1]["step"] > step)
    runner.stop(OWNER, job.id)
    assert ended(runner, job).state == "cancelled"
