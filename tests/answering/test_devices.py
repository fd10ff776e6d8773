"""Where models compute: a device is chosen in words, and when a GPU fails in the middle of work, the CPU goes on."""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering import devices
from l2m_core.answering.release import save_model
from l2m_core.answering.settings import HIDDEN_LAYER, AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError, DeviceWarning, InputError
from l2m_core.model.interface import ModelConfig
from tests.second_device import ACCELERATOR_ERROR, SECRET, SecondDevice, telling_model

ROOM = devices.LEAST_ROOM


@pytest.fixture
def install(monkeypatch):
    """Puts another machine's GPUs in the place of this one's."""
    monkeypatch.delenv(devices.VARIABLE, raising=False)

    def put(gpus):
        monkeypatch.setattr(devices, "gpus", gpus)
        return gpus

    return put


class NoGpu(SecondDevice):
    def count(self) -> int:
        return 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny model whose gain head is aligned with its own answers, so that reading a cohort asks many questions too."""
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, value_bins=8)
    settings = AnswerSettings(aligned_states=4, aligned_by=HIDDEN_LAYER)
    made = tmp_path_factory.mktemp("models") / "tiny"
    save_model(made, telling_model(config), config, TrainedRange(features=7), settings, {})
    return str(made)


def cohort_of(kind):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(60, 4)).astype(np.float32)
    y = x[:, 0] + 0.3 * generator.normal(size=60)
    classes = {"two classes": (y > 0).astype(int), "three classes": np.digitize(y, [-0.5, 0.5])}
    return l2m.Cohort.from_arrays(x, classes.get(kind, y.astype(np.float32)))


X = np.array([[0.5, np.nan, np.nan, 1.0], [np.nan, np.nan, 0.1, np.nan]], np.float32)
KINDS = ("two classes", "three classes", "continuous")


def numbers(memory):
    answer = memory.answer(X)
    prediction = answer.prediction
    told = prediction if isinstance(prediction, np.ndarray) else np.stack([prediction.mean, prediction.std])
    return np.concatenate([told.ravel(), answer.gain.ravel()])


# -- choosing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["abacus", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "mps", "cuda:1;"])
def test_another_name_is_refused_with_those_that_are_allowed(install, name):
    install(SecondDevice())
    with pytest.raises(ConfigError, match="must be auto, cpu, cuda, or cuda:N") as refusal:
        devices.choose(name)
    assert repr(name) in str(refusal.value)


def test_the_variable_decides_where_nothing_is_asked_for(install, monkeypatch):
    install(SecondDevice())
    assert devices.choose().name == "cuda:0", "nothing asks: auto"
    monkeypatch.setenv("L2M_DEVICE", " CPU ")
    assert devices.choose().name == "cpu"
    assert devices.choose("cuda").name == "cuda:0", "what is asked for comes before the variable"
    monkeypatch.setenv("L2M_DEVICE", "abacus")
    with pytest.raises(ConfigError, match="L2M_DEVICE is 'abacus'"):
        devices.choose()


def test_auto_takes_the_gpu_with_most_room_and_says_which_and_why(install):
    install(SecondDevice(ROOM, 5 * ROOM, 2 * ROOM))
    chosen = devices.choose("auto")
    assert chosen.name == "cuda:1"
    assert chosen.sentence == "Computes on cuda:1 (Second Device): 20.0 GiB of its memory are free."


def test_auto_takes_the_first_of_two_gpus_with_equal_room(install):
    install(SecondDevice(ROOM, ROOM))
    assert devices.choose("auto").name == "cuda:0"


@pytest.mark.parametrize(
    ("gpus", "why"),
    [
        (NoGpu(), "there is no GPU here that torch can use"),
        (SecondDevice(ROOM - 1), "of the GPU's memory 4.0 GiB are free, less than the 4.0 GiB it should have"),
    ],
)
def test_auto_takes_the_cpu_where_no_gpu_has_room_and_says_why(install, gpus, why):
    install(gpus)
    assert devices.choose("auto").sentence == f"Computes on cpu: {why}."


def test_a_gpu_that_does_not_answer_is_not_taken(install, monkeypatch):
    gpus = install(SecondDevice())

    def silent(number):
        raise ACCELERATOR_ERROR(SECRET)

    monkeypatch.setattr(gpus, "free_bytes", silent)
    assert devices.choose("auto").is_cpu


@pytest.mark.parametrize(
    ("gpus", "name", "words"),
    [(NoGpu(), "cuda", "there is no GPU here"), (SecondDevice(ROOM, ROOM), "cuda:2", "numbered 0 to 1")],
)
def test_a_gpu_that_is_named_must_be_there(install, gpus, name, words):
    install(gpus)
    with pytest.raises(ConfigError, match=words):
        devices.choose(name)


def test_a_gpu_that_is_named_is_taken_however_little_room_it_has(install):
    install(SecondDevice(ROOM, 0))
    assert devices.choose("cuda:1").name == "cuda:1"


def test_an_option_holds_for_the_processes_that_are_started_too(install, monkeypatch):
    install(SecondDevice())
    monkeypatch.setenv(devices.VARIABLE, "auto")
    devices.apply_option(None)
    assert devices.wanted() == "auto"
    devices.apply_option("cuda:3")
    told = subprocess.run(
        [sys.executable, "-c", "from l2m_core.answering.devices import wanted; print(wanted())"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "cuda:3"


def test_a_command_says_that_it_computes_on_a_gpu_and_is_silent_on_the_cpu(install, capsys):
    install(SecondDevice())
    devices.tell_of_gpu()
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("Computes on cuda:0 (Second Device): 80.0 GiB")
    install(SecondDevice(0))
    devices.tell_of_gpu()
    assert capsys.readouterr().err == ""


def test_an_option_is_refused_by_name_with_those_that_are_allowed(capsys):
    parser = argparse.ArgumentParser()
    devices.add_option(parser)
    assert parser.parse_args([]).device is None
    with pytest.raises(SystemExit):
        parser.parse_args(["--device", "abacus"])
    assert "argument --device: device is 'abacus'; it must be auto, cpu, cuda, or cuda:N" in capsys.readouterr().err


def test_to_choose_a_name_loads_no_torch():
    code = "import sys; from l2m_core.answering import devices; devices.wanted('cuda:1'); print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("error", "is_failure"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (ACCELERATOR_ERROR("CUDA error: an illegal memory access was encountered"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)"), False),
        (ValueError("CUDA"), False),
    ],
)
def test_a_failure_of_the_gpu_is_told_from_a_mistake_in_the_work(error, is_failure):
    assert devices.Cuda().is_failure(error) is is_failure


# -- answering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_gpu_is_used_and_answers_as_the_cpu_does(install, folder, kind):
    expected = numbers(l2m.load(folder, "cpu").condition(cohort_of(kind)))
    gpus = install(SecondDevice())
    model = l2m.load(folder)
    memory = model.condition(cohort_of(kind))
    before = gpus.calls
    assert len(np.unique(expected)) > 4, "what is told makes a difference"
    np.testing.assert_allclose(numbers(memory), expected, atol=devices.AGREEMENT)
    assert gpus.calls > before > 0
    assert model.release.device.name == memory.device.name == "cuda:0"
    assert model.fingerprint == l2m.load(folder, "cpu").fingerprint


def test_without_a_gpu_nothing_is_kept_for_its_failure(install, folder):
    install(NoGpu())
    assert l2m.load(folder).release.spare is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("failure", [torch.OutOfMemoryError, ACCELERATOR_ERROR])
def test_a_query_that_fails_is_answered_by_the_cpu_once_and_for_all(install, folder, kind, failure):
    expected = numbers(l2m.load(folder, "cpu").condition(cohort_of(kind)))
    gpus = install(SecondDevice(failure=failure))
    memory = l2m.load(folder).condition(cohort_of(kind))
    gpus.fails_at = gpus.calls + 1
    with pytest.warns(DeviceWarning) as told:
        np.testing.assert_allclose(numbers(memory), expected, atol=devices.AGREEMENT)
    (warning,) = told
    words = "ran out of memory" if failure is torch.OutOfMemoryError else "failed"
    assert words in str(warning.message) and "cuda:0 (Second Device)" in str(warning.message)
    assert SECRET not in str(warning.message)
    failed = gpus.calls
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.predict(X + 1)
    assert gpus.calls == failed, "the GPU is not tried again"
    assert str(memory.device) == "cpu (after cuda:0 (Second Device) failed)"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_reading_that_fails_at_any_call_is_done_on_the_cpu(install, folder, kind, nth):
    expected = numbers(l2m.load(folder, "cpu").condition(cohort_of(kind)))
    install(SecondDevice(fails_at=nth))
    model = l2m.load(folder)
    with pytest.warns(DeviceWarning):
        memory = model.condition(cohort_of(kind))
    np.testing.assert_allclose(numbers(memory), expected, atol=devices.AGREEMENT)


def test_what_shares_a_memory_moves_with_it(install, folder):
    gpus = install(SecondDevice())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    shared = memory.with_council(None)
    gpus.fails_at = gpus.calls + 1
    with pytest.warns(DeviceWarning):
        memory.predict(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shared.predict(X + 1)
    assert shared.memories is memory.memories


def test_another_cohort_is_tried_on_the_gpu_again(install, folder):
    gpus = install(SecondDevice(fails_at=1))
    model = l2m.load(folder)
    with pytest.warns(DeviceWarning):
        model.condition(cohort_of("two classes"))
    gpus.fails_at = None
    assert model.condition(cohort_of("continuous")).device.name == "cuda:0"


def test_answers_of_before_the_failure_stay_good_beside_later_ones(install, folder):
    expected = numbers(l2m.load(folder, "cpu").condition(cohort_of("two classes")))
    gpus = install(SecondDevice())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    memory.answer(X[:1])
    gpus.fails_at = gpus.calls + 1
    with pytest.warns(DeviceWarning):
        np.testing.assert_allclose(numbers(memory), expected, atol=devices.AGREEMENT)


def test_threads_that_fail_together_move_once(install, folder):
    gpus = install(SecondDevice())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    gpus.fails_at = gpus.calls + 1
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(memory.query(X))) for _ in range(6)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 6
    assert len([one for one in told if one.category is DeviceWarning]) == 1


def test_a_mistake_in_the_work_is_no_failure_of_the_gpu(install, folder):
    gpus = install(SecondDevice(failure=RuntimeError))
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    gpus.fails_at = gpus.calls + 1
    with pytest.raises(RuntimeError, match=SECRET):
        memory.predict(X)
    assert memory.device.name == "cuda:0"


def test_a_gpu_that_takes_no_model_leaves_it_to_the_cpu(install, folder):
    install(SecondDevice(places=False))
    with pytest.warns(DeviceWarning, match="The model computes on the CPU"):
        model = l2m.load(folder, "cuda")
    assert model.release.device.is_cpu
    assert model.condition(cohort_of("two classes")).device.is_cpu


def test_a_memory_travels_to_another_process(install, folder):
    install(NoGpu())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(memory)).predict(X), memory.predict(X))


def test_an_estimator_computes_where_it_is_told(install, folder):
    gpus = install(SecondDevice())
    generator = np.random.default_rng(0)
    x = generator.normal(size=(40, 3))
    for device, used in (("cpu", False), (None, True)):
        before = gpus.calls
        l2m.L2MClassifier(model=folder, device=device).fit(x, x[:, 0] > 0).predict_proba(x[:2])
        assert (gpus.calls > before) is used


# -- traces -----------------------------------------------------------------------------------------------------------


def nudged(trace, by):
    """The trace with every posterior moved, as another device's rounding would."""
    steps = [replace(step, posterior={name: p + by for name, p in step.posterior.items()}) for step in trace.steps]
    return replace(trace, steps=tuple(steps))


def test_a_trace_says_where_it_was_computed(install, folder):
    gpus = install(SecondDevice())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    patient = memory.start({"x0": 0.5}).observe("x1", 1.0)
    assert l2m.Trace.from_json(patient.trace.to_json()).device == "cuda:0 (Second Device)"
    gpus.fails_at = gpus.calls + 1
    with pytest.warns(DeviceWarning):
        later = patient.observe("x2", 0.1).trace
    assert later.device == "cpu (after cuda:0 (Second Device) failed)"


def test_a_trace_replays_on_another_device_within_the_agreement_and_on_its_own_exactly(install, folder):
    install(SecondDevice())
    memories = {device: l2m.load(folder, device).condition(cohort_of("two classes")) for device in ("cuda", "cpu")}
    trace = memories["cuda"].start({"x0": 0.5}).observe("x1", 1.0).trace
    trace.replay(memories["cuda"])
    nudged(trace, devices.AGREEMENT / 2).replay(memories["cpu"])
    for device, by in (("cuda", devices.AGREEMENT / 2), ("cpu", 2 * devices.AGREEMENT)):
        with pytest.raises(InputError, match="replays to another posterior"):
            nudged(trace, by).replay(memories[device])


def test_a_trace_from_before_devices_were_noted_reads_as_it_did(install, folder):
    install(NoGpu())
    memory = l2m.load(folder).condition(cohort_of("two classes"))
    text = memory.start({"x0": 0.5}).trace.to_json()
    assert "device" not in json.loads(text), "of the CPU, files are as they were"
    old = l2m.Trace.from_json(text)
    assert old.device == "cpu" and old.to_json() == text
    old.replay(memory)
    with pytest.raises(InputError, match="replays to another posterior"):
        nudged(old, devices.AGREEMENT / 2).replay(memory)
