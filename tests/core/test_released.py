"""Model folders: what is loaded is what was saved, and damage is found before anything is computed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
import torch
import yaml

import l2m_core as l2m
from l2m_core.answering.release import FACTS, find_model, load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError, ModelFileError
from l2m_core.model.by_outcome import networks
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import earlier_folders, is_released, model_folders, study_folders


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(0)
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16)
    save_model(
        tmp_path / "tiny",
        build_model(config),
        config,
        TrainedRange(features=7),
        AnswerSettings(temperature=1.3),
        {"seed": 0},
        "# Card",
    )
    return tmp_path / "tiny"


def test_a_model_loads_as_it_was_saved(folder):
    release = load_release(folder)
    assert release.trained.features == 7
    assert release.inference.temperature == 1.3
    assert release.card == "# Card"
    again = load_release(folder)
    assert again.fingerprint == release.fingerprint
    for one, other in zip(release.module.parameters(), again.module.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_bundled_model_loads_by_name():
    assert l2m.load().name == "general"


def test_settings_that_change_answers_change_the_fingerprint(folder):
    before = load_release(folder).fingerprint
    facts = yaml.safe_load((folder / FACTS).read_text())
    facts["inference"]["temperature"] = 1.0
    (folder / FACTS).write_text(yaml.safe_dump(facts))
    assert load_release(folder).fingerprint != before


def test_what_a_model_was_trained_on_is_covered_by_its_fingerprint(folder):
    before = load_release(folder).fingerprint
    facts = yaml.safe_load((folder / FACTS).read_text())
    wider = {**facts["trained"], "features": 500}
    fingerprints = {before}
    for changed in ({"trained": wider}, {"format": 2}, {"format": 2, "trained": wider}):
        (folder / FACTS).write_text(yaml.safe_dump({**facts, **changed}))
        fingerprints.add(load_release(folder).fingerprint)
    assert len(fingerprints) == 3, "only a model of format 2 is told by its answers alone"


def test_models_of_the_second_format_keep_their_fingerprints(folder):
    facts = yaml.safe_load((folder / FACTS).read_text())
    (folder / FACTS).write_text(yaml.safe_dump({**facts, "format": 2}))
    covered = [facts["checksums"], facts["model"], facts["inference"], "float32"]
    assert load_release(folder).fingerprint == sha256(yaml.safe_dump(covered).encode()).hexdigest()


@pytest.mark.parametrize("number", [2.0, True, "2", [2], None])
def test_a_format_is_a_whole_number(folder, number):
    facts = yaml.safe_load((folder / FACTS).read_text())
    (folder / FACTS).write_text(yaml.safe_dump({**facts, "format": number}))
    with pytest.raises(ModelFileError, match="has format"):
        load_release(folder)


def damage(folder, how):
    weights = folder / "weights-00.safetensors"
    if how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "one bit":
        content = bytearray(weights.read_bytes())
        content[-1] ^= 1
        weights.write_bytes(content)
    elif how == "missing":
        weights.unlink()
    elif how == "not safetensors":
        weights.write_bytes(b"\x80\x04cposix\nsystem\n")
    else:
        facts = yaml.safe_load((folder / FACTS).read_text())
        changes = {
            "another version": {"format": 99},
            "unknown setting": {"model": {**facts["model"], "wings": 2}},
            "does not fit": {"model": {**facts["model"], "layers": 2}},
            "impossible": {"model": {**facts["model"], "heads": 3}},
        }
        text = {"not yaml": "a: [", "runs code": "!!python/object/apply:os.system [true]", "no mapping": "5"}
        (folder / FACTS).write_text(text.get(how) or yaml.safe_dump({**facts, **changes[how]}))


@pytest.mark.parametrize(
    "how",
    [
        "truncated",
        "one bit",
        "missing",
        "not safetensors",
        "another version",
        "unknown setting",
        "does not fit",
        "impossible",
        "not yaml",
        "runs code",
        "no mapping",
    ],
)
def test_a_damaged_model_is_refused_in_words(folder, how):
    damage(folder, how)
    with pytest.raises(ModelFileError):
        load_release(folder)


def test_a_model_of_the_first_format_is_refused_as_its_gains_would_be_read_wrongly(folder):
    facts = yaml.safe_load((folder / FACTS).read_text())
    (folder / FACTS).write_text(yaml.safe_dump({**facts, "format": 1}))
    with pytest.raises(ModelFileError, match="has format 1, this version reads formats 2 and 3"):
        load_release(folder)


def test_facts_nested_without_end_are_refused_before_they_are_read(folder):
    (folder / FACTS).write_text("format: " + "[" * 5000)
    with pytest.raises(ModelFileError, match="nested more than 20 levels deep"):
        load_release(folder)


def test_an_unknown_model_names_those_there_are(tmp_path):
    with pytest.raises(ModelFileError, match="general"):
        find_model("generall")
    shutil.rmtree(tmp_path)
    with pytest.raises(ModelFileError):
        find_model(tmp_path)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("checksums", ["a"], "not laid out"),
        ("checksums", {}, "no checksum of weights-00"),
        ("trained", [1], "not laid out"),
        ("trained", {"features": "many"}, "features is 'many'"),
        ("trained", {"outcomes": ["pictures"]}, "outcomes is"),
        ("inference", {"policy": "zzz"}, "policy is 'zzz'"),
        ("inference", {"policy": "fixed"}, "policy is 'fixed'"),  # which no model can know the order of
        ("inference", {"temperature": 0}, "temperature is 0"),
        ("inference", {"views": 1.5}, "views is 1.5"),
        ("inference", {"prevalence": float("nan")}, "prevalence is nan"),
        ("model", {"width": 17}, "width"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(folder, part, value, words):
    facts = yaml.safe_load((folder / FACTS).read_text())
    facts[part] = {**facts[part], **value} if isinstance(value, dict) and value else value
    (folder / FACTS).write_text(yaml.safe_dump(facts))
    with pytest.raises(ModelFileError, match=words):
        load_release(folder)


def test_weights_that_are_not_numbers_are_refused(folder):
    release = load_release(folder)
    with torch.no_grad():
        next(release.module.parameters()).fill_(float("nan"))
    save_model(folder, release.module, release.config, release.trained, release.inference, {})
    with pytest.raises(ModelFileError, match="not numbers"):
        load_release(folder)


@pytest.mark.parametrize("how", [{"dtype": "float16"}, {"device": "abacus"}])
def test_a_device_or_precision_that_is_not_there_is_refused_by_name(folder, how):
    with pytest.raises(ConfigError, match="float16|abacus"):
        load_release(folder, **how)


def test_a_failed_release_leaves_the_old_one(folder, monkeypatch):
    release = load_release(folder)
    (folder / "curve.jsonl").write_text("{}")

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("l2m_core.answering.release.write_text", full)
    with pytest.raises(OSError, match="space"):
        save_model(folder, build_model(release.config), release.config, release.trained, release.inference, {}, "# New")
    assert load_release(folder).fingerprint == release.fingerprint
    monkeypatch.undo()
    save_model(folder, build_model(release.config), release.config, release.trained, release.inference, {}, "# New")
    again = load_release(folder)
    assert again.card == "# New" and again.fingerprint != release.fingerprint
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name] and (folder / "curve.jsonl").exists()


def test_an_earlier_release_is_loaded_by_name_and_offered_to_nobody() -> None:
    assert set(earlier_folders()) == {f"general-{number}" for number in range(1, 11)}
    assert not set(earlier_folders()) & set(model_folders())
    model = l2m.load("general-1")
    assert model.fingerprint.startswith("aa2932c0c1e4") and model.release.inference.gains == "head"
    second, third, now = (l2m.load(name) for name in ("general-2", "general-3", "general"))
    assert second.fingerprint.startswith("2a7a4b2d9d11") and second.release.inference.aligned_by == "column"
    assert third.fingerprint.startswith("83c164ae5100") and third.release.inference.aligned_by == "hidden layer"
    fourth = l2m.load("general-4")
    assert fourth.fingerprint.startswith("ea88178808da") and fourth.release.inference.aligned_by == "like tests"
    assert fourth.release.inference.results == "points" and now.release.inference.results == "shared values"
    fifth = l2m.load("general-5")
    assert fifth.fingerprint.startswith("f3c135698ec7")
    sixth = l2m.load("general-6")
    assert sixth.fingerprint.startswith("9453df8b3508") and sixth.release.inference.class_order == "code"
    seventh = l2m.load("general-7")
    assert seventh.fingerprint.startswith("b562f312779d") and seventh.release.inference.class_order == "frequency"
    eighth = l2m.load("general-8")
    assert eighth.fingerprint.startswith("f17ece8573e4") and eighth.release.inference.aligned_by.startswith(
        "near tests"
    )
    ninth = l2m.load("general-9")
    assert ninth.fingerprint.startswith("6625200c5a53") and ninth.release.inference.unseen == "as coded"
    tenth = l2m.load("general-10")
    assert tenth.fingerprint.startswith("964bf7579165") and tenth.release.inference.most_cells == 0
    assert is_released("general-1") and not is_released("general-0")


def test_outcomes_with_classes_are_answered_as_general_8_answers_them() -> None:
    """So that what was measured of it with such outcomes holds of the released model."""
    now, before = (load_release(name) for name in ("general", "general-8"))
    own, earlier = networks(now.module)[0].state_dict(), before.module.state_dict()
    assert own.keys() == earlier.keys() and all(torch.equal(own[name], earlier[name]) for name in own)
    assert (replace(now.inference, unseen="as coded", most_cells=0), now.trained) == (before.inference, before.trained)
    assert replace(now.config, continuous_apart=False) == before.config


def test_two_releases_of_the_same_weights_answer_alike_where_a_cohort_is_short_and_rows_share_no_value() -> None:
    random = np.random.default_rng(4)
    x = random.normal(size=(90, 3)).astype(np.float32)
    cohort = l2m.Cohort.from_arrays(x, (x[:, 0] + random.normal(size=90) > 0).astype(int))
    asked = np.where(random.random((8, 3)) < 0.5, np.nan, x[:8]).astype(np.float32)
    before, now = (l2m.load(name).condition(cohort).answer(asked) for name in ("general-4", "general-5"))
    assert np.array_equal(before.prediction, now.prediction) and np.array_equal(before.gain, now.gain)


def test_the_study_s_models_are_loaded_by_name_and_offered_to_nobody() -> None:
    assert {"gp-reduced", "bnn-reduced"} <= set(study_folders()) and not set(study_folders()) & set(model_folders())
    for name in study_folders():
        release = l2m.load(name).release
        assert is_released(name) and release.config.encoder == "rows" and "not" in release.card
