"""The comparison is fair (same rows, none in both parts, same start and floor); the command goes on where it was stopped."""

import shutil
import zlib
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from l2m_core.acquire.rollout import Rollout
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.tabular.predictions import Gaussian
from l2m_core.tasks.registry import build_prior
from tests.prerequisites import SHARED_DATA
from tests.study.manifests import rewrite
from train.__main__ import main as run_command
from train.study import evaluate
from train.study.evaluate import evaluate_real, main, parse, published_command, with_config
from train.study.evaluation import versions
from train.study.evaluation.cells import Cell, draw_trial, fitting_contexts, real_cells, stratified_order, task_trial
from train.study.evaluation.manifest import default_data_folder, read_manifest
from train.study.evaluation.scores import informative_share, score, with_floor
from train.study.evaluation.trial_runs import MethodChoice, run_trial
from train.study.resumable_table import ResumableTable


def make_cohort(rows: int = 300, classes: int = 2, seed: int = 0) -> Cohort:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 5)).astype(np.float32)
    y = np.digitize(x[:, 1] + 0.3 * generator.normal(size=rows), np.linspace(-0.5, 0.5, classes - 1))
    acquirable = np.array([False, True, True, True, True])
    return Cohort.from_arrays(x, y, acquirable=acquirable, classes=[f"class {k}" for k in range(classes)], name="made")


def keys_of(x: np.ndarray) -> set:
    """The baseline feature tells rows apart; it is never hidden."""
    return set(x[:, 0].tolist())


def test_context_and_test_rows_are_disjoint_and_of_the_table():
    cohort = make_cohort()
    trial = draw_trial(cohort, Cell("made", 100, 0.3, 0), test_rows=120)
    assert len(trial.context) == 100 and len(trial.y) == 120
    assert not keys_of(trial.context.x) & keys_of(trial.x)
    assert keys_of(trial.context.x) | keys_of(trial.x) <= keys_of(cohort.x)


def make_visits(patients: int = 90, continuous: bool = False) -> Cohort:
    """One to five rows of each patient, in any order; the baseline feature tells rows apart."""
    generator = np.random.default_rng(3)
    patient = generator.permutation(np.repeat(np.arange(patients), np.resize([1, 3, 5], patients)))
    x = generator.normal(size=(len(patient), 4)).astype(np.float32)
    outcome = generator.normal(size=patients) if continuous else generator.integers(0, 2, patients)
    acquirable = np.array([False, True, True, True])
    kind = "continuous" if continuous else "binary"
    cohort = Cohort.from_arrays(x, outcome[patient], kind=kind, acquirable=acquirable, name="visits")
    return replace(cohort, kept_patients=patient)


@pytest.mark.parametrize("continuous", [False, True])
def test_context_and_test_rows_are_of_different_patients(continuous):
    cohort = make_visits(continuous=continuous)
    whose = dict(zip(cohort.x[:, 0].tolist(), cohort.patients.tolist(), strict=True))
    for seed, rows in product(range(5), (50, 101)):
        trial = draw_trial(cohort, Cell("visits", rows, 0.0, seed), test_rows=100)
        learnt, tested = ({whose[key] for key in keys_of(x)} for x in (trial.context.x, trial.x))
        assert len(trial.context) == rows and len(trial.y) == 100
        assert not learnt & tested
        assert trial.context.patients.tolist() == [whose[key] for key in trial.context.x[:, 0].tolist()]


@pytest.mark.parametrize("continuous", [False, True])
def test_patients_with_one_row_are_drawn_as_rows_are(continuous):
    cohort = replace(make_visits(continuous=continuous), kept_patients=None)
    named = replace(cohort, kept_patients=np.random.default_rng(0).permutation(len(cohort)))
    order = stratified_order(cohort.y, np.random.default_rng([2, zlib.crc32(b"visits")]), continuous=continuous)
    for each in (cohort, named):
        trial = draw_trial(each, Cell("visits", 60, 0.0, 2), test_rows=50)
        assert (trial.context.x == cohort.x[order[:60]]).all() and (trial.x == cohort.x[order[::-1][:50]]).all()


def test_a_context_with_rows_of_every_patient_is_refused():
    cohort = make_visits()
    few = replace(cohort, kept_patients=cohort.patients % 2)
    with pytest.raises(ConfigError, match="'visits': a context of 200 rows.*smaller --contexts"):
        draw_trial(few, Cell("visits", 200, 0.0, 0))


def test_smaller_contexts_lie_within_larger_ones_and_test_rows_stay():
    cohort = make_cohort()
    small = draw_trial(cohort, Cell("made", 50, 0.0, 0), test_rows=100)
    large = draw_trial(cohort, Cell("made", 150, 0.0, 0), test_rows=100)
    assert keys_of(small.context.x) < keys_of(large.context.x)
    assert (small.x == large.x).all()


def test_extra_missingness_hides_acquirable_values_of_both_parts_only():
    trial = draw_trial(make_cohort(), Cell("made", 150, 0.3, 0), test_rows=150)
    for x in (trial.context.x, trial.x):
        assert not np.isnan(x[:, 0]).any()
        assert np.isnan(x[:, 1:]).mean() == pytest.approx(0.3, abs=0.05)


def test_hidden_values_cannot_be_found_in_the_context():
    trial = draw_trial(make_cohort(), Cell("made", 150, 0.3, 0))
    assert (
        np.isnan(trial.context.frame()["x1"].to_numpy(dtype=float)).sum() == np.isnan(trial.context.x[:, 1]).sum() > 0
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_rare_class_occurs_in_the_context(seed):
    cohort = make_cohort(classes=3)
    y = np.zeros(300, dtype=np.int64)
    y[:150], y[[7, 200]] = 1, 2
    cohort = Cohort.from_arrays(cohort.x, y, classes=["a", "b", "c"])
    trial = draw_trial(cohort, Cell("made", 50, 0.0, seed), test_rows=300)
    assert (trial.context.y == 2).any() and (trial.y == 2).any()


def test_every_stretch_of_a_stratified_order_has_the_outcome_s_distribution():
    y = np.repeat([0, 1], [900, 100])
    order = stratified_order(y, np.random.default_rng(0))
    shares = [y[order[start : start + 100]].mean() for start in range(0, 1000, 100)]
    assert np.abs(np.array(shares) - 0.1).max() <= 0.03


def test_a_context_that_leaves_too_few_rows_becomes_the_small_one():
    assert fitting_contexts(5000, [100, 400]) == [100, 400]
    assert fitting_contexts(300, [100, 400]) == [50, 100]
    assert fitting_contexts(129, [100, 400]) == [50]
    assert fitting_contexts(300, [100, 400, 1000, 2000]) == [50, 100], "a long context is for long tables alone"
    assert fitting_contexts(1500, [100, 1000, 2000]) == [100, 1000]


def test_the_first_seed_of_all_cells_comes_first():
    seeds = [cell.seed for cell in real_cells({"a": 600, "b": 900}, [100], [0.0, 0.3], [0, 1])]
    assert seeds == sorted(seeds) and len(seeds) == 8


def test_the_floor_keeps_probabilities_and_bounds_the_loss():
    p = with_floor(np.array([[1.0, 0.0], [0.3, 0.7]]))
    assert p.sum(1) == pytest.approx([1, 1])
    assert -np.log(p.min()) < 8


def test_the_unit_of_a_continuous_outcome_does_not_change_its_score():
    y = np.linspace(-1.0, 1.0, 40)

    def scored(unit: float) -> dict:
        p = Gaussian(np.full(40, 0.1) * unit, np.full(40, 0.8) * unit)
        rollout = Rollout(("x",), np.zeros((40, 0), dtype=int), (p,), np.ones((40, 1), bool), np.zeros((40, 1)))
        return score(rollout, unit * y, Cohort.from_arrays(y[:, None], unit * y, kind="continuous"))

    small, large = scored(1.0), scored(250.0)
    assert [small[k] for k in ("log_loss", "crps", "rmse")] == pytest.approx(
        [large[k] for k in ("log_loss", "crps", "rmse")]
    )


def test_a_score_is_the_mean_over_all_budgets():
    steps = (np.array([[0.5, 0.5]] * 4), np.array([[0.9, 0.1]] * 4))
    rollout = Rollout(("x",), np.zeros((4, 1), dtype=int), steps, np.ones((4, 1), bool), np.zeros((4, 2)))
    record = score(rollout, np.zeros(4, dtype=int), make_cohort())
    assert record["log_loss"] == pytest.approx(np.mean(record["log_loss_by_budget"]))
    assert record["log_loss_end"] == pytest.approx(-np.log(0.9 * 0.999 + 0.0005))


def test_precision_and_recall_of_a_known_order():
    actions = np.array([[0, 1, 2]])
    rollout = Rollout(("a", "b", "c"), actions, (), np.ones((1, 3), bool), np.zeros((1, 4)))
    share = informative_share(rollout, np.array([[True, False, True]]), np.ones((1, 3), bool))
    assert share["precision"] == pytest.approx([1, 1 / 2, 2 / 3])
    assert share["recall"] == pytest.approx([1 / 2, 1 / 2, 1])


def test_what_could_not_be_had_is_not_missed():
    rollout = Rollout(("a", "b"), np.array([[0]]), (), np.ones((1, 2), bool), np.zeros((1, 2)))
    share = informative_share(rollout, np.array([[True, True]]), np.array([[True, False]]))
    assert share["recall"] == [1.0]


def test_a_task_becomes_a_trial_of_what_was_recorded():
    batch = build_prior("bnn", {"missingness": {"scale": 1.0}}).sample(torch.Generator().manual_seed(0), 2, 120, 6)
    trial = task_trial(batch, 1, 80, 40)
    assert trial.x.shape == (40, 6) and len(trial.context) == 80
    assert (np.isnan(trial.x) == ~batch.r[1, 80:].numpy()).all()
    assert (trial.informative == batch.truth.informative[1, 80:].numpy()).all()


def test_methods_are_compared_on_the_same_rows_and_a_failure_does_not_stop_the_others():
    trial = draw_trial(make_cohort(), Cell("made", 100, 0.0, 0), test_rows=50)
    good, bad = run_trial(trial, [MethodChoice("base_rate"), MethodChoice("base_rate", {"depth": 3})], budget=3)
    assert good.rollout is not None and len(good.rollout.predictions) == 4
    assert bad.rollout is None and "depth" in bad.error


def test_a_council_is_a_method_with_the_policies_of_the_model_alone():
    named = {
        name: MethodChoice(name) for name in ("l2m", "l2m_monte_carlo", "l2m_council", "l2m_council_random", "gdfs")
    }
    assert [name for name, choice in named.items() if choice.council] == ["l2m_council", "l2m_council_random"]
    assert [choice.policy for choice in named.values() if choice.pretrained] == [None, "monte carlo", None, "random"]
    trial = draw_trial(make_cohort(), Cell("made", 200, 0.0, 0), test_rows=20)
    alone, council = run_trial(trial, [MethodChoice("l2m_random"), MethodChoice("l2m_council_random")], budget=1)
    assert alone.error == "" and council.error == ""
    assert (alone.rollout.actions == council.rollout.actions).all() and council.fit_seconds > alone.fit_seconds


def test_the_command_of_a_page_names_a_table_as_it_was_given_and_no_place_on_the_machine():
    assert published_command(["--beside", "docs/before.csv"]).endswith("--beside docs/before.csv")
    assert published_command(["--beside", "/home/somebody/before.csv"]).endswith("--beside before.csv")


def test_a_table_to_compare_with_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="There is no table"):
        evaluate.main(["--beside", str(tmp_path / "none.csv"), "--methods", "base_rate", "--out", str(tmp_path)])


ARGUMENTS = ["--contexts", "100", "--missing", "0.3", "--seeds", "0", "--methods", "base_rate", "logistic"]


def run(folder: Path, *more: str) -> str:
    places = ["--data", folder, "--partial", folder / "partial", "--out", folder / "results"]
    assert main([*map(str, places), *ARGUMENTS, *more]) == 0
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
def test_contexts_fit_the_rows_with_an_outcome_whatever_the_manifest_says(folder, rows):
    frame = pd.read_csv(folder / "icu.csv")
    frame.loc[150:, "died"] = np.nan
    frame.to_csv(folder / "icu.csv", index=False)
    rewrite(folder, rows=rows)
    page = run(folder, "--contexts", "60", "200")
    table = pd.read_csv(folder / "results" / "real.csv")
    assert set(table["context"]) == {50, 60} and "error" not in table and "Left out" not in page


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
    page = run(folder, "--workers", "1")
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


def test_two_workers_find_what_one_finds(folder, tmp_path):
    run(folder)
    alone = ResumableTable(folder / "partial" / "real.jsonl", ("cohort", "method")).records
    (folder / "partial" / "real.jsonl").unlink()
    run(folder, "--workers", "2")
    together = ResumableTable(folder / "partial" / "real.jsonl", ("cohort", "method")).records
    strip = lambda r: {k: v for k, v in r.items() if "seconds" not in k}  # noqa: E731
    assert {k: strip(v) for k, v in alone.items()} == {k: strip(v) for k, v in together.items()}


def test_a_method_s_mark_follows_its_code_and_not_its_comments(tmp_path, monkeypatch):
    folder = tmp_path / "baselines"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = {name: mark(name) for name in ("gdfs", "logistic", "base_rate")}
    assert len(set(before.values())) == 3
    networks = folder / "methods" / "networks.py"
    networks.write_text("# a comment\n" + networks.read_text().replace("Two hidden layers", "A few hidden layers"))
    assert mark("gdfs") == before["gdfs"]
    networks.write_text(networks.read_text() + "\nEXTRA = 1\n")
    assert mark("gdfs") != before["gdfs"]
    assert mark("logistic") == before["logistic"]


@pytest.mark.parametrize(
    ("module", "old", "new", "changed", "kept"),
    [
        ("learn/picks.py", "\n\n\ndef ", "\n\nEXTRA = 1\n\n\ndef ", {"gdfs"}, {"logistic", "l2m"}),
        ("metrics.py", "SMALLEST = 1e-12", "SMALLEST = 1e-9", {"gdfs", "l2m", "l2m_council"}, set()),
        ("metrics.py", "T_GRID = 200_001", "T_GRID = 100_001", set(), {"gdfs", "logistic", "l2m_council"}),
        ("council/weights.py", "LEAST = ", "LEAST = 2 * ", {"l2m_council", "l2m_council_random"}, {"l2m", "gdfs"}),
        ("tabular/linear.py", "\n\n\n", "\n\n\nEXTRA = 1\n\n\n", {"l2m_council", "logistic"}, {"l2m"}),
    ],
)
def test_a_mark_follows_picks_scores_and_councils_where_a_method_uses_them(
    module, old, new, changed, kept, tmp_path, monkeypatch
):
    folder = tmp_path / "core"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = {name: mark(name) for name in changed | kept}
    file = folder / module
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    assert {name for name in before if mark(name) != before[name]} == changed


def test_rows_keep_the_mark_of_their_time_and_are_compared_by_its_rule():
    same = versions.is_same_code
    for method in ("gdfs", "logistic", "base_rate"):
        assert versions.code_version(method).startswith("2:")
        assert same(versions.code_version(method), method) and same(versions.earlier_code_version(method), method)
        assert not same("2:0123456789ab", method) and not same("0123456789ab", method) and not same("", method)
    assert same("", "l2m_council_random") and same("", "l2m"), "forms of the model had no mark"
    assert not same("2:0123456789ab", "l2m_council")


def test_a_method_s_mark_does_not_follow_where_modules_lie_or_how_they_are_laid_out(tmp_path, monkeypatch):
    folder = tmp_path / "methods"
    shutil.copytree(versions.FOLDER, folder)
    monkeypatch.setattr(versions, "FOLDER", folder)
    mark = versions.code_version.__wrapped__
    before = mark("gdfs")
    networks = folder / "methods" / "networks.py"
    moved = networks.read_text().replace("from l2m_core.tabular.predictions import", "from elsewhere import")
    assert "from elsewhere import" in moved
    networks.write_text(moved.replace("\n\n\n", "\n\n\n\n") + "\nimport os\n")
    assert mark("gdfs") == before


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
