"""Settings: one reader and one builder, which refuse by name what they cannot use."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from l2m_core.answering.settings import AnswerSettings
from l2m_core.errors import ConfigError
from l2m_core.model.interface import ModelConfig
from l2m_core.settings import (
    EARLIER_NAME,
    apply_override,
    build_settings,
    parse_settings,
    read_settings,
    to_plain,
)


@dataclass(frozen=True)
class Inner:
    rate: float = 0.5
    sizes: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Outer:
    folder: str
    inner: Inner = field(default_factory=Inner)
    inners: tuple[Inner, ...] = ()
    span: tuple[float, float] = (0.0, 1.0)
    steps: int = 1
    resume: bool = False
    limit: int | None = None
    options: dict[str, dict[str, Any]] = field(default_factory=dict)


def test_plain_values_fill_nested_dataclasses_and_come_back_plain():
    plain = {
        "folder": "runs",
        "inner": {"rate": 1, "sizes": [2, 3]},
        "inners": [{"rate": 0.25}],
        "span": [0, 2],
        "limit": 4,
        "options": {"gdfs": {"hidden": 8}},
    }
    built = build_settings(Outer, plain)
    assert built.inner == Inner(1.0, (2, 3)) and isinstance(built.inner.rate, float)
    assert built.inners == (Inner(0.25),) and built.span == (0.0, 2.0)
    assert build_settings(Outer, yaml.safe_load(yaml.safe_dump(to_plain(built)))) == built


def test_a_group_with_nothing_below_it_has_its_defaults():
    assert build_settings(Outer, parse_settings("folder: runs\ninner:\nlimit:\n")) == Outer("runs")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"foldr": "x"}, r"no setting config.foldr\. Did you mean 'folder'\?"),
        ({"inner": {"rte": 1}}, r"no setting config\.inner\.rte\. Did you mean 'rate'\?"),
        ({"inners": [{}, {"size": [1]}]}, r"no setting config\.inners\[1\]\.size\. Did you mean 'sizes'"),
        ({"folder": 3}, r"config\.folder is 3; give a text"),
        ({"steps": 1.5}, r"config\.steps is 1\.5; give a whole number"),
        ({"steps": True}, r"config\.steps is True; give a whole number"),
        ({"resume": "yes"}, r"config\.resume is 'yes'; give true or false"),
        ({"inner": {"sizes": 2}}, r"config\.inner\.sizes is 2; give a list"),
        ({"inner": {"sizes": [1, "b"]}}, r"config\.inner\.sizes\[1\] is 'b'; give a whole number"),
        ({"inner": 0}, r"The settings of config\.inner are 0; give names and values"),
        ({"span": [1]}, r"config\.span is \[1\]; give 2 values"),
        ({"options": {"gdfs": 1}}, r"config\.options\.gdfs is 1; give names and values"),
    ],
)
def test_what_does_not_fit_is_refused_with_name_value_and_remedy(change, message):
    with pytest.raises(ConfigError, match=message):
        build_settings(Outer, {"folder": "runs", **change})


def test_what_is_missing_is_named():
    with pytest.raises(ConfigError, match="config needs the setting 'folder'"):
        build_settings(Outer, {})


def test_a_long_value_does_not_hide_what_to_give():
    with pytest.raises(ConfigError, match="give a number") as refusal:
        build_settings(Outer, {"folder": "runs", "inner": {"rate": "x" * 100_000}})
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "key 'a' appears twice"),
        ("a: &a 1\nb: *a", "uses an alias"),
        ("a: [", "Not valid YAML"),
        ("a: !!python/name:os.system", "Not valid YAML"),
        ("- a", "lines of `name: value`"),
        ("# only a comment", "lines of `name: value`"),
    ],
)
def test_a_file_is_read_strictly_and_named_without_its_folder(tmp_path: Path, text, message):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as refusal:
        read_settings(path)
    assert str(refusal.value).startswith("job.yaml: ") and str(tmp_path) not in str(refusal.value)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_bytes("outcome: gehört".encode("latin-1"))
    with pytest.raises(ConfigError, match="job.yaml is not a text in UTF-8"):
        read_settings(path)


def test_overrides_replace_single_settings(tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text("loop: {lr: 0.1}\nstages: [{steps: 1}, {steps: 2}]\n")
    changed = read_settings(path, ["loop.lr=1", "stages.1.steps=9", "prior.name=bnn", "held_out=[small]"])
    assert changed == {
        "loop": {"lr": 1},
        "stages": [{"steps": 1}, {"steps": 9}],
        "prior": {"name": "bnn"},
        "held_out": ["small"],
    }


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loop.lr", "must read key=value"),
        ("loop.lr=[", "Override loop.lr: Not valid YAML"),
        ("loop.lr=&a [*a]", "Override loop.lr: Line 1 uses an alias"),
        ("loop.lr.more=1", "'lr' is not a group of settings"),
        ("stages.5.steps=1", "'5' is no index of a list of 1; the first is 0"),
        ("stages.last=1", "'last' is no index of a list of 1"),
    ],
)
def test_an_override_that_leads_nowhere_is_refused_in_words(override, message):
    with pytest.raises(ConfigError, match=message):
        apply_override({"loop": {"lr": 0.1}, "stages": [{"steps": 1}]}, override)


def test_a_refused_override_says_how_it_is_given_as_a_text():
    with pytest.raises(ConfigError) as refusal:
        apply_override({}, "reading.decimal=,")
    (told,) = shlex.split(str(refusal.value).rpartition("shell: ")[2])
    settings: dict = {}
    apply_override(settings, told)
    assert settings == {"reading": {"decimal": ","}}


def test_a_model_of_no_heads_is_refused_by_name():
    with pytest.raises(ConfigError, match=r"model\.heads is 0; it must be at least 1"):
        build_settings(ModelConfig, {"heads": 0}, "model")


@dataclass(frozen=True)
class Renamed:
    rows: int = field(default=1, metadata={EARLIER_NAME: "lines"})


def test_a_settings_earlier_name_is_read_and_its_present_one_is_written() -> None:
    assert build_settings(Renamed, {"lines": 3}) == build_settings(Renamed, {"rows": 3}) == Renamed(3)
    assert to_plain(Renamed(3)) == {"rows": 3}
    with pytest.raises(ConfigError, match="config.lines is the earlier name of config.rows"):
        build_settings(Renamed, {"lines": 3, "rows": 4})
    with pytest.raises(ConfigError, match="no setting config.columns"):
        build_settings(Renamed, {"columns": 3})


def test_what_released_models_called_their_answer_settings_is_read() -> None:
    settings = build_settings(AnswerSettings, {"care_rows": 64, "sharpness": 0.5})
    assert (settings.view_rows, settings.exponent_spread) == (64, 0.5)
    assert {"view_rows", "exponent_spread"} < set(to_plain(settings))
