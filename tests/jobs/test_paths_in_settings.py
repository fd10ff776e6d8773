"""Settings that people write for jobs: a text that reads like a place is refused or means nothing. No file is touched."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.jobs import study_jobs, templates, trainer
from app.jobs.runner import worker_environment
from app.settings import AppSettings
from l2m_core.errors import LONGEST_MESSAGE, ConfigError
from l2m_core.settings import build_settings, to_plain
from tests.core.opened import outside, watched
from tests.core.test_paths_in_schemas import PLACES
from train.__main__ import main
from train.__main__ import settings_of as job_settings
from train.study.experiments.experiment import experiment_settings

UNFOLDING = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
ODD = ["when: 2020-13-45", "[" * 1000, "a: \0", "a: !!python/name:os.system", "- ../../etc", "../../etc/passwd"]


def settings_of(job: str) -> dict[str, Any]:
    """The smallest offered settings, defaults included, and without what the app decides."""
    plain = trainer.read_settings(job, templates.of(job)[0].text)
    decided = dict.fromkeys(set(trainer.DECIDED[job]) & {"folder", "init", "cohort"}, "x")
    whole = to_plain(build_settings(job_settings(job), plain | decided))
    return {name: value for name, value in whole.items() if name not in trainer.DECIDED[job]}


def texts(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where the texts of nested settings are."""
    if isinstance(value, str):
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from texts(inner, (*path, key))


def replaced(settings: dict[str, Any], path: tuple, value: str) -> dict[str, Any]:
    changed: Any = copy.deepcopy(settings)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


@pytest.mark.parametrize("job", trainer.DECIDED)
def test_a_place_in_the_settings_of_a_training_job_leads_nowhere(job: str, tmp_path: Path, capsys) -> None:
    settings = settings_of(job)
    for path in texts(settings):
        for place in PLACES:
            text = yaml.safe_dump(replaced(settings, path, place))
            read = trainer.read_settings(job, text)
            decided = dict.fromkeys(set(trainer.DECIDED[job]) & {"folder", "init", "cohort"}, str(tmp_path / "x"))
            config = tmp_path / trainer.CONFIG
            config.write_text(yaml.safe_dump(read | decided))
            with watched() as found:
                status = main([job, "--config", str(config), "--check"])
            assert status in (0, trainer.REFUSED), (path, place)
            assert "Traceback" not in capsys.readouterr().err
            assert outside(found, tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [trainer.CONFIG]


@pytest.mark.parametrize("job", trainer.DECIDED)
def test_what_names_a_folder_is_not_a_persons_to_write(job: str) -> None:
    for name in trainer.DECIDED[job]:
        for place in PLACES:
            with pytest.raises(ConfigError, match="is decided by"):
                trainer.read_settings(job, yaml.safe_dump({name: place}))


@pytest.mark.parametrize("experiment", study_jobs.experiments())
def test_a_place_in_the_settings_of_an_experiment_is_refused(experiment: str) -> None:
    settings = to_plain(experiment_settings(experiment, "small"))
    paths = list(texts(settings))
    assert all(study_jobs.overrides(yaml.safe_dump({k: v})) for k, v in settings.items() if k != study_jobs.FOLDER)
    for path in paths:
        changed = {path[0]: replaced(settings, path, "PLACE")[path[0]]}
        for place in PLACES[:3]:
            with watched() as found, pytest.raises(ConfigError, match="plain name|is decided by"):
                study_jobs.overrides(yaml.safe_dump(changed).replace("PLACE", place))
            assert found == []


@pytest.mark.parametrize("name", ["model", "folder", "families", "settings"])
@pytest.mark.parametrize("place", [place for place in PLACES if "$" not in place])
def test_every_kind_of_place_is_refused_at_any_depth(name: str, place: str) -> None:
    for value in (place, [place], {"inner": [place]}, {place: 1}, {"folder": "x"}):
        with pytest.raises(ConfigError):
            study_jobs.overrides(yaml.safe_dump({name: value}))


@pytest.mark.parametrize("place", PLACES[:5])
@pytest.mark.parametrize("name", ["suite", "methods", "cohorts", "out", "data", "partial", "model", "config"])
def test_a_place_in_the_options_of_an_evaluation_is_refused(name: str, place: str) -> None:
    with pytest.raises(ConfigError):
        study_jobs.options(yaml.safe_dump({name: place}))


@pytest.mark.parametrize("name", ["os:system", "tools.deep:Thing"])
def test_code_to_import_is_nobody_s_to_name_on_a_page(name: str) -> None:
    for text in ({"prior": {"name": name}}, {"prior": {"settings": {"parts": [{"prior": name}]}}}):
        with pytest.raises(ConfigError, match="names code to import"):
            trainer.read_settings("predictor", yaml.safe_dump(text))
    for key in ("methods", "cohorts"):
        with pytest.raises(ConfigError, match="names code to import"):
            study_jobs.options(yaml.safe_dump({key: ["l2m", name]}))
    for value in ([{"name": "a", "prior": name}], {name: {"hidden": 4}}):
        with pytest.raises(ConfigError, match="names code to import"):
            study_jobs.overrides(yaml.safe_dump({"families": value}))


def test_the_processes_of_a_page_s_jobs_import_no_code_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("L2M_PLUGINS", "any")
    assert worker_environment(AppSettings.from_environment({}))["L2M_PLUGINS"] == "offered"


READERS = [study_jobs.options, study_jobs.overrides, partial(trainer.read_settings, "predictor")]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (UNFOLDING, "alias"),
        ("a: &a [*a]", "alias"),
        ("a: &a {b: *a}", "alias"),
        ("a: &a 1\nb: *a", "alias"),
        (f"a: {'[' * 30}{']' * 30}", "nested more than 20"),
        ("a: " + "b" * 200_000, "at most 100,000"),
        ("a: 1\na: 2", "'a' appears twice"),
        ("a: 0x" + "f" * 10_000, "a number has more than 100"),  # Python reads it, and cannot write it
        ("a: " + "1:" * 10_000 + "1", "a number has more than 100"),
        ("a: !!set {b, c}", "Not valid YAML"),
        ("a: !!binary aGk=", "Not valid YAML"),
    ],
)
def test_settings_that_unfold_or_never_end_are_refused(read, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refusal:
        read(text)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("text", [UNFOLDING, "a: &a 1\nb: *a", "seed: 1\nseed: 2", "a: !!set {b, c}"])
def test_the_trainer_reads_a_file_as_strictly_as_the_page(text: str, tmp_path: Path, capsys) -> None:
    with pytest.raises(ConfigError) as refusal:
        trainer.read_settings("predictor", text)
    config = tmp_path / trainer.CONFIG
    config.write_text(text)
    assert main(["predictor", "--config", str(config), "--check"]) == trainer.REFUSED
    assert capsys.readouterr().err.strip() == f"error: {trainer.CONFIG}: {refusal.value}"


@pytest.mark.parametrize("read", READERS)
def test_a_refusal_is_short_however_long_what_it_quotes(read) -> None:
    for text in ("b" * 90_000 + ": 1", f"a: !!{'b' * 90_000} 1", f"folder: {'b' * 90_000}", f"{'/' * 90_000}: [1]"):
        try:
            read(text)
        except ConfigError as refusal:
            assert 0 < len(str(refusal)) <= LONGEST_MESSAGE


def test_numbers_truths_and_texts_of_settings_are_what_they_look_like() -> None:
    text = "a: 3\nb: 0.5\nc: true\nd: word\ne: [1, -2.5e-3, no]\nf:\ng: '3'\nh: 2020-13-45"
    expected = {
        "a": 3,
        "b": 0.5,
        "c": True,
        "d": "word",
        "e": [1, -0.0025, False],
        "f": None,
        "g": "3",
        "h": "2020-13-45",
    }
    assert trainer.read_mapping(text) == expected
    assert trainer.read_mapping("# nothing yet") == {}


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_are_refused_in_words(text: str) -> None:
    for read in READERS:
        with watched() as found:
            try:
                read(text)
            except ConfigError as refusal:
                assert str(refusal)
        assert found == []


@pytest.mark.parametrize("job", ["predictor", "policy", "gain"])
def test_a_prior_may_not_name_a_file_of_this_computer(job: str) -> None:
    text = "prior: {name: semi_synthetic, data: {source: table, path: /etc/passwd, outcome: root}}"
    with pytest.raises(ConfigError, match=r"prior\.data"):
        trainer.read_settings(job, text)
