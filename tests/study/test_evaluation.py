"""The command goes on where it was stopped, repeats what has changed, and refuses what means nothing."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from l2m_core.errors import ConfigError
from tests.prerequisites import SHARED_DATA
from tests.study.manifests import rewrite
from train.__main__ import main as run_command
from train.study import evaluate
from train.study.evaluate import evaluate_real, main, parse, published_command, with_config
from train.study.evaluation import manifest, versions
from train.study.evaluation.manifest import default_data_folder, read_manifest
from train.study.evaluation.scores import score
from train.study.resumable_table import ResumableTable


def test_the_command_of_a_page_names_a_table_as_it_was_given_and_no_place_on_the_machine():
    assert published_command(["--beside", "docs/before.csv"]).endswith("--beside docs/before.csv")
    assert published_command(["--beside", "/home/somebody/before.csv"]).endswith("--beside before.csv")


def test_a_table_to_compare_with_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="There is no table"):
        evaluate.main(["--beside", str(tmp_path / "none.csv"), "--methods", "base_rate", "--out", str(tmp_path)])


@pytest.mark.parametrize("content", [b"", b"cohort,context\nckd,100\n", b"\xff\xfe\x00"])
def test_what_is_no_table_to_compare_with_is_refused_before_the_work(tmp_path, content):
    (tmp_path / "mine.csv").write_bytes(content)
    with pytest.raises(ConfigError, match=r"mine\.csv is no table of trials; --beside takes a real\.csv"):
        evaluate.main(["--beside", str(tmp_path / "mine.csv"), "--methods", "base_rate", "--data", "none"])


ARGUMENTS = ["--contexts", "100", "--missing", "0.3", "--seeds", "0", "--methods", "base_rate", "logistic"]


def run(folder: Path, *more: str) -> str:
    """In this process: others take far longer to begin than such trials take."""
    places = ["--data", folder, "--partial", folder / "partial", "--out", folder / "results"]
    assert main([*map(str, places), *ARGUMENTS, "--workers", "1", *more]) == 0
    return (folder / "results" / "real.md").read_text()


def test_the_command_writes_its_table_and_a_second_run_repeats_nothing(folder, capsys):
    page = run(folder)
    assert "## Outcomes with classes" in page and "## Continuous outcomes" in page
    table = pd.read_csv(folder / "results" / "real.csv")
    assert set(table["method"]) == {"base_rate", "logistic"} and set(table["cohort"]) == {"icu", "scores"}
    assert "1/4" in capsys.readouterr().err
    run(folder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("rows", [None, 9000])
def test_contexts_fit_the_rows_with_an_outcome_whatever_the_manifest_says(folder, rows, capsys):
    frame = pd.read_csv(folder / "icu.csv")
    frame.loc[150:, "died"] = np.nan
    frame.to_csv(folder / "icu.csv", index=False)
    rewrite(folder, rows=rows)
    page = run(folder, "--contexts", "60", "200")
    table = pd.read_csv(folder / "results" / "real.csv")
    assert set(table["context"]) == {50, 60} and "error" not in table and "Left out" not in page
    told = capsys.readouterr().err
    assert "icu: no context of 200 of its 150 rows, which leaves fewer than 75 to test on; 50 rows instead" in told
    assert "of 60" not in told


def test_a_cohort_that_is_too_small_to_compare_on_is_named_with_the_reason(folder, capsys):
    pd.read_csv(folder / "icu.csv")[:50].to_csv(folder / "icu.csv", index=False)
    reason = "icu: 50 rows with an outcome; more than 50 are needed"
    assert reason in run(folder)
    assert f"left out: {reason}" in capsys.readouterr().err
    assert set(pd.read_csv(folder / "results" / "real.csv")["cohort"]) == {"scores"}


def test_a_wide_cohort_is_left_out_by_name_and_compared_when_asked_for(folder, monkeypatch):
    monkeypatch.setattr("train.study.evaluation.manifest.MOST_FEATURES", 2)
    rewrite(folder)
    assert "icu: more than" in run(folder)
    assert "icu: more than" not in run(folder, "--cohorts", "icu")
    assert set(pd.read_csv(folder / "results" / "real.csv")["cohort"]) == {"icu"}


def test_a_score_that_fails_is_one_method_s_error_and_the_others_go_on(folder, monkeypatch):
    def fails_once(rollout, y, context):
        monkeypatch.setattr(evaluate, "score", score)
        raise IndexError("no row to score")

    rewrite(folder)
    monkeypatch.setattr(evaluate, "score", fails_once)
    page = run(folder)
    assert "IndexError: no row to score" in page
    table = pd.read_csv(folder / "results" / "real.csv").set_index("method")
    assert table["error"].notna().to_dict() == {"base_rate": True, "logistic": False}


def test_the_time_to_first_advice_is_measured_once_for_each_model(folder, tiny_model):
    arguments = ["--model", str(tiny_model), "--methods", "l2m", "l2m_random", "base_rate"]
    page = run(folder, *arguments)
    assert "From a CSV file to first advice" in page and "Default policy against random order" in page
    measured = (folder / "partial" / "advice.jsonl").read_text()
    assert measured.count("\n") == 2
    run(folder, *arguments)
    assert (folder / "partial" / "advice.jsonl").read_text() == measured


def test_a_file_that_has_changed_is_measured_anew(folder):
    arguments = ["--cohorts", "icu", "--methods", "base_rate"]
    loss_of = lambda: pd.read_csv(folder / "results" / "real.csv")["log_loss"].tolist()  # noqa: E731
    run(folder, *arguments)
    before, table = loss_of(), pd.read_csv(folder / "icu.csv")
    table.assign(died=(table["lactate"] > 1).astype(int)).to_csv(folder / "icu.csv", index=False)
    manifest.load_once.cache_clear()  # as a new command has it
    assert "No trial has been finished" in run(folder, *arguments, "--report-only")
    run(folder, *arguments)
    assert len(loss_of()) == len(before) and not set(loss_of()) & set(before)
    # Rows from before data were marked are taken as they are.
    kept = (folder / "partial" / "real.jsonl").read_text().splitlines()[-len(before) :]
    unmarked = [{k: v for k, v in json.loads(line).items() if k != "data"} | {"log_loss": 0.5} for line in kept]
    (folder / "partial" / "real.jsonl").write_text("".join(json.dumps(row) + "\n" for row in unmarked))
    run(folder, *arguments)
    assert set(loss_of()) == {0.5}


def test_two_workers_find_what_one_finds(folder, tmp_path):
    run(folder)
    alone = ResumableTable(folder / "partial" / "real.jsonl", ("cohort", "method")).records
    (folder / "partial" / "real.jsonl").unlink()
    run(folder, "--workers", "2")
    together = ResumableTable(folder / "partial" / "real.jsonl", ("cohort", "method")).records
    strip = lambda r: {k: v for k, v in r.items() if "seconds" not in k}  # noqa: E731
    assert {k: strip(v) for k, v in alone.items()} == {k: strip(v) for k, v in together.items()}


def test_methods_whose_code_has_changed_are_run_again_when_asked(folder, capsys):
    run(folder)
    path = folder / "partial" / "real.jsonl"
    path.write_text(path.read_text().replace(versions.code_version("logistic"), "an older one"))
    capsys.readouterr()
    assert "code of logistic has changed" in run(folder)
    assert capsys.readouterr().err == ""
    assert "has changed" not in run(folder, "--repeat-changed")
    assert "1/2" in capsys.readouterr().err


def test_a_councils_rows_are_run_again_when_its_code_has_changed_and_old_ones_without_a_mark_are_not(
    folder, tiny_model, capsys
):
    rewrite(folder)
    arguments = ["--model", str(tiny_model), "--methods", "l2m_council", "base_rate", "--repeat-changed"]
    run(folder, *arguments)
    path, mark = folder / "partial" / "real.jsonl", versions.code_version("l2m_council")
    for stored, repeated in (("2:0123456789ab", True), ("", False)):
        path.write_text(path.read_text().replace(f'"code": "{mark}"', f'"code": "{stored}"'))
        assert f'"code": "{stored}"' in path.read_text()
        capsys.readouterr()
        assert "has changed" not in run(folder, *arguments)
        assert ("1/1" in capsys.readouterr().err) is repeated


def test_a_published_command_tells_what_was_run_and_not_where():
    shown = published_command(
        [
            "--suite",
            "real",
            "--model",
            "/home/someone/models/general",
            "--data",
            "/secret",
            "--workers",
            "4",
            "--seeds",
            "0",
        ]
    )
    assert shown == "python -m train evaluate --suite real --model general --seeds 0"


def test_unknown_methods_and_cohorts_are_refused_by_name(folder):
    with pytest.raises(ConfigError, match="'xgb'"):
        main(["--data", str(folder), "--methods", "xgb"])
    with pytest.raises(ConfigError, match="'ice'.*icu"):
        main(["--data", str(folder), "--cohorts", "ice", "--methods", "base_rate"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--missing", "0", "1.5"], "--missing is 1.5; give a share from 0 to below 1"),
        (["--missing=-0.1"], "--missing is -0.1"),
        (["--missing", "nan"], "--missing is nan"),
        (["--contexts", "1"], "--contexts is 1; give 2 or more"),
        (["--test-rows", "0"], "--test-rows is 0; give 1 or more"),
        (["--seeds=-1"], "--seeds is -1; give 0 or more"),
        (["--budget=-1"], "--budget is -1"),
        (["--suite", "synthetic", "--tasks", "0"], "--tasks is 0"),
        (["--methods", "l2m_ramdom"], "'l2m_ramdom' names no policy. Did you mean 'l2m_random'"),
        (
            ["--methods", "l2m_council_leaned"],
            "'l2m_council_leaned' names no policy. Did you mean 'l2m_council_learned'",
        ),
        (["--suite", "synthetic", "--methods", "l2m_ramdom"], "'l2m_ramdom' names no policy"),
    ],
)
def test_a_number_or_policy_that_means_nothing_is_refused_by_its_option(folder, options, told, capsys):
    places = ["--data", str(folder), "--partial", str(folder / "partial"), "--out", str(folder / "results")]
    assert run_command(["evaluate", *places, *options]) == 2
    assert told in capsys.readouterr().err
    assert not (folder / "results").exists()


def test_a_command_of_which_every_trial_failed_does_not_end_well(folder, monkeypatch, capsys):
    def fails(rollout, y, context):
        raise IndexError("no row to score")

    rewrite(folder)
    monkeypatch.setattr(evaluate, "score", fails)
    places = ["--data", str(folder), "--partial", str(folder / "partial"), "--out", str(folder / "results")]
    assert run_command(["evaluate", *places, *ARGUMENTS, "--workers", "1"]) == 2
    assert "All 2 trials failed, the first of them with: IndexError: no row to score" in capsys.readouterr().err
    assert "IndexError: no row to score" in (folder / "results" / "real.md").read_text()


def test_the_evaluation_takes_parsed_arguments_too(folder):
    import argparse

    from train.study.evaluate import add_arguments

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    given = parser.parse_args(
        [
            *ARGUMENTS,
            "--data",
            str(folder),
            "--partial",
            str(folder / "p"),
            "--out",
            str(folder / "o"),
            "--cohorts",
            "icu",
            "--workers",
            "1",
        ]
    )
    assert "icu" in evaluate_real(given, "command")


def test_real_cohorts_are_looked_for_beside_the_repository():
    assert default_data_folder() == SHARED_DATA


@pytest.mark.shared_data
def test_every_shared_cohort_but_the_widest_can_be_read_as_its_manifest_says(shared_data):
    sources = read_manifest(shared_data)
    manifest = yaml.safe_load((shared_data / "manifest.yaml").read_text())
    stated = {entry["name"]: entry.get("rows") for entry in manifest["datasets"]}
    assert "metabric_pam50_wide" not in {s.name for s in sources} and len(sources) >= 10
    for source in sources:
        cohort = source.load()
        assert len(cohort) == stated[source.name]
        assert cohort.kind == {"regression": "continuous"}.get(source.task, source.task)
        assert set(cohort.names) <= {*source.baseline, *source.acquirable}


def test_options_can_come_from_a_file_and_those_beside_it_win(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("suite: synthetic\nseeds: [0, 1]\ntest_rows: 50\nreport_only: true\nmethods: null\n")
    given = parse(["--config", str(config), "test_rows=70", "missing=[0.1]", "--seeds", "4"])
    assert (given.suite, given.seeds, given.test_rows, given.missing) == ("synthetic", [4], 70, [0.1])
    assert given.report_only and given.methods is None
    assert with_config(["--seeds", "2"]) == ["--seeds", "2"]
    heads = ["--heads", "old=runs/old", "new=runs/new"]
    for words in ([*heads, "--config", str(config)], ["--config", str(config), "test_rows=70", *heads]):
        assert parse(words).heads == heads[1:]


def test_an_unknown_option_of_a_file_is_refused_by_name(tmp_path, capsys):
    config = tmp_path / "mine.yaml"
    config.write_text("test_row: 50\n")
    assert run_command(["evaluate", "--config", str(config)]) == 2
    assert "config.test_row. Did you mean 'test_rows'" in capsys.readouterr().err
    assert run_command(["evaluate", "--config", str(tmp_path / "none.yaml")]) == 2
    config.write_text("budget: many\n")
    with pytest.raises(SystemExit):
        run_command(["evaluate", "--config", str(config)])
    assert "--budget: invalid int value" in capsys.readouterr().err
