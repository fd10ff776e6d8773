"""Choices of pretraining beside each other: what a variant holds, and a table that continues where it was left."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from l2m_core.errors import ConfigError
from train.__main__ import main
from train.predictor import run as run_predictor
from train.study import choices
from train.study.choices import in_order

TINY = {"layers": 1, "width": 16, "heads": 2, "feedforward": 24, "max_classes": 2, "bins": 8}
BASE = {
    "model": TINY,
    "stages": [{"steps": 4, "tasks": 4, "rows": [24], "features": [3]}],
    "loop": {"warmup": 1, "threads": 1, "evaluate_every": 0},
    "held_out": ["own"],
    "prior": {"name": "bnn"},
}


def write(tmp_path: Path, **settings) -> str:
    path = tmp_path / "choices.yaml"
    job = {
        "folder": str(tmp_path / "runs"),
        "out": str(tmp_path / "out"),
        "judged_after": [2, 4],
        "base": BASE,
        **settings,
    }
    path.write_text(yaml.safe_dump(job))
    return str(path)


def test_each_variant_holds_the_one_before_or_the_one_it_names() -> None:
    found = in_order({"a": {"x": 1}, "b": {"y": 2}, "c": {"x": 3}, "d": {"after": "a", "z": 4}})
    assert [(v.after, v.settings) for v in found] == [
        ("", {"x": 1}),
        ("a", {"x": 1, "y": 2}),
        ("b", {"x": 3, "y": 2}),
        ("a", {"x": 1, "z": 4}),
    ]
    with pytest.raises(ConfigError, match="variants.a.after is 'b'"):
        in_order({"a": {"after": "b"}, "b": {}})


def test_every_mark_is_judged_once_and_a_second_run_goes_on_from_the_first(tmp_path: Path) -> None:
    config = write(tmp_path, variants={"AdamW": {"loop.muon": False}, "Muon": {"loop.muon": True}})
    assert main(["choices", "--config", config, "judged_after=[2]"]) == 0
    assert main(["choices", "--config", config]) == 0
    assert main(["choices", "--config", config]) == 0
    lines = [json.loads(line) for line in (tmp_path / "runs" / "choices.jsonl").read_text().splitlines()]
    assert [(r["variant"], r["steps"]) for r in lines] == [("AdamW", 2), ("Muon", 2), ("AdamW", 4), ("Muon", 4)]
    assert all(r["tasks"] == 4 * r["steps"] and r["seconds"] >= 0 for r in lines)  # tenths: a fast machine has 0.0
    assert lines[0]["small"] != lines[1]["small"]  # the choice reached the run
    page = (tmp_path / "out" / "choices.md").read_text()
    assert "AdamW" in page and "Muon" in page and (tmp_path / "out" / "choices.csv").is_file()


def test_steps_in_any_order_are_judged_as_trained_so_far(tmp_path: Path) -> None:
    config = write(tmp_path, variants={"Muon": None}, judged_after=[4, 2, 4])
    assert main(["choices", "--config", config]) == 0
    rows = [json.loads(line) for line in (tmp_path / "runs" / "choices.jsonl").read_text().splitlines()]
    assert [(row["steps"], row["tasks"]) for row in rows] == [(2, 8), (4, 16)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("base.loop.lr=0.1", "a run of 'Muon' with other settings (loop)"),
        ("base.stages.0.tasks=2", "a run of 'Muon' with other settings (stages)"),
        ("judged_after=[1, 4]", "trained to step 4 already, so 'Muon' can no longer be judged after 1"),
        ("pools=2", "trained to step 4 already, so 'Muon' can no longer be judged after 2"),
    ],
)
def test_rows_of_another_comparison_are_not_given_for_this_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, words: str
) -> None:
    config = write(tmp_path, variants={"Muon": None})
    assert main(["choices", "--config", config]) == 0
    assert main(["choices", "--config", config, "base.loop.log_every=1", "variants={Muon: null}"]) == 0
    before = (tmp_path / "runs" / "choices.jsonl").read_text()
    capsys.readouterr()
    assert main(["choices", "--config", config, change]) == 2
    assert words in capsys.readouterr().err
    assert (tmp_path / "runs" / "choices.jsonl").read_text() == before


def test_the_page_has_the_variants_of_its_config_alone(tmp_path: Path) -> None:
    assert main(["choices", "--config", write(tmp_path, variants={"Muon": None}, judged_after=[2])]) == 0
    assert main(["choices", "--config", write(tmp_path, variants={"plain": None}, judged_after=[2])]) == 0
    page = (tmp_path / "out" / "choices.md").read_text()
    assert "plain" in page and "Muon" not in page


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("variants={}", "variants is empty"),
        ("judged_after=[]", "judged_after is empty"),
        ("judged_after=[0, 2]", "judged_after has 0"),
        ("judged_after=[2, 9]", "judged_after has 9, but 'a' is trained for 4 steps"),
        ("seeds=[]", "seeds is empty"),
        ("pools=0", "pools is 0"),
        ("variants={a: 3}", "variants.a is 3; give names and values"),
        ("variants={a/b: null}", "'a/b' has a name that can be no folder's"),
        ("variants={a b: null, a_b: null}", "'a_b' has a name"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, words: str
) -> None:
    assert main(["choices", "--config", write(tmp_path, variants={"a": None}), change]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_an_unknown_setting_of_a_variant_is_refused_by_name(tmp_path: Path, capsys) -> None:
    assert main(["choices", "--config", write(tmp_path, variants={"a": {"loop.moun": True}})]) == 2
    assert "variants.a.loop.moun" in capsys.readouterr().err


def test_what_was_stopped_half_way_gets_no_place_and_goes_on_later(tmp_path: Path, monkeypatch) -> None:
    config = write(tmp_path, variants={"AdamW": {"loop.muon": False}})
    with monkeypatch.context() as patch:
        patch.setattr(choices, "run_predictor", lambda job, resume: run_predictor(replace(job, stop_at=1), resume))
        with pytest.raises(SystemExit, match="Stopped at step 1 of 'AdamW'"):
            main(["choices", "--config", config])
    assert not (tmp_path / "runs" / "choices.jsonl").exists()
    assert main(["choices", "--config", config]) == 0
    lines = [json.loads(line) for line in (tmp_path / "runs" / "choices.jsonl").read_text().splitlines()]
    assert [(r["steps"], r["tasks"]) for r in lines] == [(2, 8), (4, 16)]


def test_a_misspelt_setting_of_any_variant_is_refused_before_the_first_one_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(choices, "run_predictor", lambda *given, **more: pytest.fail("it has trained"))
    config = write(tmp_path, variants={"AdamW": {"loop.muon": False}, "Muon": {"loop.moun": True}})
    assert main(["choices", "--config", config]) == 2
    assert "variants.Muon.loop.moun. Did you mean 'muon'" in capsys.readouterr().err
