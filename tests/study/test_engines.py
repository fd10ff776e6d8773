"""Engines give the same results whatever their number of workers; partial tables survive being killed."""

import contextlib
import importlib.util
import itertools
import json
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from l2m_core.errors import CohortError, ConfigError, TrainingError
from train.engines import cores, fan_out
from train.study.resumable_table import ResumableTable, read_lines


def test_two_processes_give_what_one_gives():
    alone = dict(fan_out(math.factorial, range(20)))
    together = dict(fan_out(math.factorial, range(20), workers=2))
    assert alone == together == {i: math.factorial(i) for i in range(20)}


def test_results_can_be_had_in_the_order_of_the_jobs():
    assert [number for number, _ in fan_out(math.sqrt, range(30), workers=2, ordered=True)] == list(range(30))


def test_jobs_are_read_as_they_are_needed():
    """An endless stream of jobs gives results before it ends."""
    assert list(itertools.islice(fan_out(math.sqrt, itertools.count(), ordered=True), 3))[2] == (2, math.sqrt(2))


def test_an_unknown_engine_and_no_workers_are_refused_by_name():
    with pytest.raises(ConfigError, match="'slurm'.*processes, ray"):
        fan_out(math.sqrt, [1], engine="slurm")
    with pytest.raises(ConfigError, match="workers is 0"):
        fan_out(math.sqrt, [1], workers=0)


def test_a_worker_that_dies_is_reported_with_the_remedy():
    with pytest.raises(TrainingError, match="fewer --workers"):
        list(fan_out(_die, [1, 2, 3, 4], workers=2))


def _die(_):
    os._exit(9)


TWO_AT_WORK = """
import time
from train.engines import fan_out
for _ in fan_out(time.sleep, [0, 600, 600], workers=2):
    print("begun", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
def test_workers_end_with_a_command_that_is_killed():
    command = subprocess.Popen(
        [sys.executable, "-c", TWO_AT_WORK], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert command.stdout is not None and command.stdout.readline() == "begun\n"
        command.kill()
        command.communicate(timeout=30)  # the workers have its output open, which ends with the last of them
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed here")
def test_ray_missing_names_its_extra():
    with pytest.raises(ConfigError, match=r"learning-to-measure\[ray\]"):
        list(fan_out(math.sqrt, [1], engine="ray"))


needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'learning-to-measure[ray]'"
)


@needs_ray
@pytest.mark.slow
def test_two_ray_workers_give_what_one_process_gives():
    assert dict(fan_out(math.factorial, range(20), engine="ray", workers=2)) == dict(fan_out(math.factorial, range(20)))


@pytest.mark.parametrize("engine", ["processes", pytest.param("ray", marks=[needs_ray, pytest.mark.slow])])
def test_an_error_comes_in_the_words_in_which_the_job_raised_it(engine):
    with pytest.raises(CohortError) as error:
        list(fan_out(_refuse, [1], engine=engine, workers=2))
    assert str(error.value) == "Column 'age' is empty."


def _refuse(_):
    raise CohortError("Column 'age' is empty.")


@needs_ray
@pytest.mark.slow
def test_a_ray_worker_that_dies_is_reported_with_the_remedy():
    with pytest.raises(TrainingError, match="fewer --workers"):
        list(fan_out(_die, [1], engine="ray", workers=2))


def test_the_cores_at_hand_are_those_that_the_process_may_use():
    code = "from train.engines import cores; print(cores())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(found.stdout) == cores() >= 1
    if hasattr(os, "sched_getaffinity"):
        one = sorted(os.sched_getaffinity(0))[0]
        pinned = f"import os; os.sched_setaffinity(0, [{one}]); {code}"
        assert int(subprocess.run([sys.executable, "-c", pinned], capture_output=True, text=True).stdout) == 1


KEYS = ("cohort", "seed")


def test_a_partial_table_remembers_what_is_finished(tmp_path):
    path = tmp_path / "partial" / "real.jsonl"
    ResumableTable(path, KEYS).append([{"cohort": "a", "seed": 0, "loss": 0.5}])
    again = ResumableTable(path, KEYS)
    assert again.has({"cohort": "a", "seed": 0})
    assert not again.has({"cohort": "a", "seed": 1})


def test_a_failed_record_is_tried_again_and_then_replaced(tmp_path):
    table = ResumableTable(tmp_path / "t.jsonl", KEYS)
    table.append([{"cohort": "a", "seed": 0, "error": "no memory"}])
    assert not table.has({"cohort": "a", "seed": 0})
    table.append([{"cohort": "a", "seed": 0, "loss": 0.5}])
    assert ResumableTable(tmp_path / "t.jsonl", KEYS).has({"cohort": "a", "seed": 0})


def test_a_line_cut_short_by_a_kill_costs_that_line_only(tmp_path):
    path = tmp_path / "t.jsonl"
    table = ResumableTable(path, KEYS)
    table.append([{"cohort": "a", "seed": 0}])
    with path.open("a") as file:
        file.write('{"cohort": "b", "se')
    ResumableTable(path, KEYS).append([{"cohort": "c", "seed": 0}])
    assert [r["cohort"] for r in read_lines(path)] == ["a", "c"]


def test_a_disk_that_fills_up_within_a_record_is_told_with_the_file(tmp_path):
    """The system itself takes the part of a write that a file may still hold, in a process of its own."""
    pytest.importorskip("resource")
    program = (
        "import resource, sys; from pathlib import Path; from train.study.resumable_table import ResumableTable\n"
        "table = ResumableTable(Path(sys.argv[1]), ('cohort', 'seed'))\n"
        "table.append([{'cohort': 'a', 'seed': 0}])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60, resource.RLIM_INFINITY))\n"
        "try: table.append([{'cohort': 'b', 'seed': 0, 'loss': 0.123456789}])\n"
        "except OSError as error: print(error.strerror, error.filename)"
    )
    path = tmp_path / "t.jsonl"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f"{path}\n"), "the record was lost and nothing said so"
    assert [record["cohort"] for record in read_lines(path)] == ["a"]


def test_two_processes_can_append_to_one_table(tmp_path):
    path = tmp_path / "t.jsonl"
    code = (
        "import sys; from pathlib import Path; from train.study.resumable_table import ResumableTable\n"
        "table = ResumableTable(Path(sys.argv[1]), ('cohort', 'seed'))\n"
        "for seed in range(200): table.append([{'cohort': sys.argv[2], 'seed': seed, 'pad': 'x' * 500}])"
    )
    runs = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [run.wait(120) for run in runs] == [0, 0]
    lines = path.read_text().splitlines()
    assert len(lines) == 400
    assert len({(r["cohort"], r["seed"]) for r in map(json.loads, lines)}) == 400


def test_a_table_of_numbers_from_numpy_is_written_as_plain_numbers(tmp_path):
    table = ResumableTable(tmp_path / "t.jsonl", KEYS)
    table.append([{"cohort": "a", "seed": 0, "loss": float(np.float32(0.25))}])
    assert read_lines(tmp_path / "t.jsonl")[0]["loss"] == 0.25
