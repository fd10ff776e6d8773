"""Every experiment runs from its command to its table, figure and verdict, and a second run repeats nothing."""

import importlib.util
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.errors import ConfigError, TrainingError
from l2m_core.paths import study_folders
from train.study import reproduce as command
from train.study.evaluation.versions import earlier_code_version
from train.study.experiments import experiment
from train.study.experiments.datasets import find_cohort
from train.study.experiments.experiment import EXPERIMENTS, Folders, experiment_settings, find, reproduce
from train.study.experiments.overview import write_overview
from train.study.experiments.verdicts import NO_CLAIM, NOT_SEEN, NOT_TESTABLE, SEEN, ClaimVerdict
from train.study.reproduce import main

BNN = "{name: bnn, prior: bnn, features: 5, context: 40, test_rows: 12, tasks: 2, budget: 2}"
PLAN = "{name: bnn_plan, prior: bnn_plan, features: 5, context: 40, test_rows: 12, tasks: 2, budget: 2}"
GP = "{name: gp_rbf, prior: gp, features: 5, context: 40, test_rows: 12, tasks: 2, budget: 2}"
TABLE = "{name: table, source: semi_synthetic, data: absent, features: 5, context: 40, test_rows: 12, tasks: 2}"
COHORT = "{name: absent, source: cohort, data: absent, context: 40, test_rows: 12, tasks: 1, budget: 2}"

SMALLEST = {
    "uncertainty": [f"families=[{GP}, {BNN}]", "other=logistic", "steps=2", "levels=[0.5, 0.9]"],
    "acquisition": [f"families=[{GP}, {COHORT}]", "methods=[l2m, l2m_random, base_rate]"],
    "headroom": [f"families=[{BNN}, {PLAN}]", "rows=400"],
    "planning": [
        f"families=[{BNN}, {PLAN}]",
        "loop={warmup: 1, evaluate_every: 0}",
        "stages=[{steps: 2, tasks: 2, rows: [24], features: [4], continuous: 0.0}]",
    ],
    "context_length": [f"families=[{BNN}]", "lengths=[20, 40]", "missingness=[0.0, 1.0]"],
    "informative": [f"families=[{BNN}, {TABLE}]", "methods=[l2m, l2m_random]"],
    "zero_shot": [
        f"families=[{COHORT}]",
        "methods=[l2m, base_rate]",
        "finetune={steps: 2, tasks: 2, rows: 20, evaluate_every: 1}",
    ],
    "own_covariates": [
        f"families=[{COHORT}]",
        "stage={steps: 2, tasks: 2, rows: [24], features: [4]}",
        "loop={warmup: 1, evaluate_every: 0}",
    ],
    "adaptivity": [f"families=[{BNN}]"],
    "ablations": [
        f"families=[{BNN}]",
        "backbone={encoder: rows, features: 5, outcome: classes, layers: 1, width: 16, heads: 2, feedforward: 16}",
        "loop={warmup: 1, evaluate_every: 0}",
        "stages=[{steps: 2, tasks: 2, rows: [24], features: [4], continuous: 0.0}]",
        "policy_loop={warmup: 1, evaluate_every: 0}",
        "policy_stages=[{steps: 2, tasks: 2, rows: [24], features: [4], continuous: 0.0}]",
        "steps=2",
    ],
    "real_missingness": [f"families=[{TABLE}]", "methods=[l2m, l2m_random]"],
    "gradients": [
        f"families=[{PLAN}]",
        "samples=[1, 2]",
        "temperatures=[0.5]",
        "reference=20",
        "repeats=2",
        "queries=3",
        "rows=40",
        "reweighted=[2]",
        "steps=2",
    ],
    "runtimes": [f"families=[{BNN}]", "methods=[l2m, base_rate]"],
    "policy_maps": [f"families=[{BNN}]", "methods=[l2m, base_rate]"],
}


@pytest.fixture
def folders(tmp_path) -> Folders:
    (tmp_path / "data").mkdir()
    return Folders(tmp_path / "data", tmp_path / "partial", tmp_path / "results")


@pytest.mark.parametrize("name", sorted(SMALLEST))
def test_an_experiment_runs_to_its_page_and_repeats_nothing(name, tiny_model, folders, tmp_path):
    overrides = [*SMALLEST[name]]
    if name in ("planning", "ablations", "own_covariates"):
        overrides.append(f"folder={tmp_path / 'trained'}")
    if name not in ("ablations", "headroom"):  # the others ask a model
        overrides.append(f"model={tiny_model}")
    said: list[str] = []
    verdict = reproduce(name, "small", folders, "the command", overrides=overrides, say=said.append)
    assert verdict.status in (SEEN, NOT_SEEN, NOT_TESTABLE, NO_CLAIM) and verdict.reason
    assert said
    page = (folders.out / f"{name}.md").read_text()
    assert "the command" in page and "Scale small" in page and verdict.reason in page
    assert find(name).CLAIM in page and find(name).RULE in page
    table = pd.read_csv(folders.out / f"{name}.csv")
    assert len(table) > 0 and set(table["scale"]) == {"small"}
    assert f"{find(name).TITLE} (scale small)" in (folders.out / f"{name}.html").read_text()
    again: list[str] = []
    assert reproduce(name, "small", folders, "the command", overrides=overrides, say=again.append) == verdict
    assert again == []


def test_every_experiment_is_tested_and_has_its_scales():
    assert set(SMALLEST) == set(EXPERIMENTS)
    for name in EXPERIMENTS:
        assert {"small", "study"} <= set(experiment.scales_of(name)) <= set(experiment.SCALES)
        for scale in experiment.scales_of(name):
            assert experiment_settings(name, scale)


def test_the_reduced_scale_asks_models_of_the_study_about_tasks_as_long_as_theirs():
    for name in EXPERIMENTS:
        if "reduced" not in experiment.scales_of(name) or name == "ablations":  # trains its own
            continue
        settings = experiment_settings(name, "reduced")
        for family in settings.families:
            trained = l2m.load(family.model or settings.model).release.trained
            assert family.model or settings.model in study_folders()
            assert (family.features, family.context) <= (trained.features, trained.context_rows)


def test_two_workers_find_what_one_finds(tiny_model, tmp_path):
    tables = []
    for workers in (1, 2):
        (tmp_path / "data").mkdir(exist_ok=True)
        folders = Folders(tmp_path / "data", tmp_path / f"partial{workers}", tmp_path / f"out{workers}")
        overrides = [*SMALLEST["acquisition"], f"model={tiny_model}"]
        reproduce("acquisition", "small", folders, "c", workers=workers, overrides=overrides, say=lambda text: None)
        tables.append((folders.out / "acquisition.csv").read_text())
    assert tables[0] == tables[1]


def reproduced(tiny_model, folders, **options) -> list[str]:
    """The keys of the jobs that were run."""
    said: list[str] = []
    overrides = [*SMALLEST["acquisition"], f"model={tiny_model}"]
    reproduce("acquisition", "small", folders, "c", overrides=overrides, say=said.append, **options)
    return sorted(text.split(": ")[1] for text in said)


def test_a_run_cut_short_goes_on_where_it_stopped(tiny_model, folders, monkeypatch):
    module, done = find("acquisition"), []
    whole = module.work

    def failing(job):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(job.key)
        return whole(job)

    monkeypatch.setattr(module, "work", failing)
    with pytest.raises(KeyboardInterrupt):
        reproduced(tiny_model, folders)
    assert not folders.out.exists()
    monkeypatch.setattr(module, "work", whole)
    rest = reproduced(tiny_model, folders)
    assert len(rest) > 0 and not set(rest) & set(done)
    cut = (folders.out / "acquisition.csv").read_text()
    elsewhere = Folders(folders.data, folders.partial / "other", folders.out / "other")
    assert sorted(rest + done) == reproduced(tiny_model, elsewhere)
    assert (elsewhere.out / "acquisition.csv").read_text() == cut


def test_a_data_set_that_has_come_takes_the_place_of_its_stand_in_s_records(tiny_model, folders):
    stood_in = reproduced(tiny_model, folders)
    assert reproduced(tiny_model, folders) == []
    assert "absent: a made-up table" in (folders.out / "acquisition.md").read_text()
    x = np.random.default_rng(0).normal(size=(80, 3)).round(2)
    table = pd.DataFrame(x, columns=["a", "b", "c"]).assign(y=(x[:, 0] > 0).astype(int))
    table.to_csv(folders.data / "absent.csv", index=False)
    entry = (
        "{name: absent, file: absent.csv, outcome: y, task: binary, baseline_columns: [a], acquirable_columns: [b, c]}"
    )
    (folders.data / "manifest.yaml").write_text(f"datasets: [{entry}]\n")
    find_cohort.cache_clear()  # as a new command has it
    again = reproduced(tiny_model, folders)
    assert again == [key for key in stood_in if key.startswith("absent")] != []
    assert "a made-up table" not in (folders.out / "acquisition.md").read_text()
    assert reproduced(tiny_model, folders) == []


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'learning-to-measure[ray]'")
@pytest.mark.slow
def test_two_ray_workers_find_what_one_process_finds_and_go_on_where_it_stopped(tiny_model, folders):
    every = reproduced(tiny_model, folders)
    alone = (folders.out / "acquisition.csv").read_text()
    partial = folders.partial / "acquisition-small.jsonl"
    lines = partial.read_text().splitlines(keepends=True)
    partial.write_text("".join(lines[:2]) + lines[2][:40])
    again = reproduced(tiny_model, folders, engine="ray", workers=2)
    assert len(again) == len(every) - 2
    assert (folders.out / "acquisition.csv").read_text() == alone


def test_planning_asks_policies_that_were_taught_already(tmp_path):
    settings = experiment_settings("planning", "reduced")
    families = (replace(settings.families[0], tasks=2, test_rows=8, budget=2),)
    planning = find("planning")
    records = [
        record for job in planning.jobs(replace(settings, families=families), tmp_path) for record in planning.work(job)
    ]
    assert [(r["method"], r["task"]) for r in records] == [(w, t) for w in ("greedy", "lookahead") for t in (0, 1)]
    assert not list(tmp_path.iterdir()), "nothing is taught"
    with pytest.raises(ConfigError, match="taught names greedy; it must name greedy and lookahead"):
        experiment_settings("planning", "reduced", ["taught={greedy: {model: bnn-plan-greedy}}"])


def test_the_overview_takes_no_verdict_on_another_claim(tmp_path):
    page = "`python -m train reproduce acquisition --scale small`\n\n{claim}\n\n**Verdict: seen.** By 1 nat.\n"
    for claim, shown in ((find("acquisition").CLAIM, "seen (small)"), ("It is best.", "not judged")):
        (tmp_path / "acquisition.md").write_text(page.format(claim=claim))
        write_overview(tmp_path)
        row = next(line for line in (tmp_path / "README.md").read_text().splitlines() if "acquisition.md" in line)
        assert f"| {shown} |" in row and ("By 1 nat." in row) == (shown != "not judged")


def test_the_command_writes_the_overview(tiny_model, tmp_path, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "real.md").write_text("# Methods on real cohorts\n\nNumbers.\n")
    folders = ["--data", tmp_path / "data", "--partial", tmp_path / "p", "--out", tmp_path / "out"]
    arguments = ["adaptivity", "--scale", "small", *map(str, folders), *SMALLEST["adaptivity"], f"model={tiny_model}"]
    assert main(arguments) == 0
    overview = (tmp_path / "out" / "README.md").read_text()
    assert "[Adaptivity](adaptivity.md)" in overview and "not run yet" in overview
    assert "[Methods on real cohorts](real.md)" in overview
    assert "adaptivity:" in capsys.readouterr().out
    page = (tmp_path / "out" / "adaptivity.md").read_text()
    assert "model=tiny" in page and str(tiny_model.parent) not in page and str(tmp_path) not in page


def test_one_experiment_that_cannot_be_run_does_not_stop_the_others(folders, monkeypatch, capsys):
    tried = []

    def reproduced(name, *arguments, **options):
        tried.append(name)
        if name == "planning":
            raise ConfigError("no GPU is at hand")
        return ClaimVerdict(SEEN, "because")

    monkeypatch.setattr(command, "reproduce", reproduced)
    folders.out.mkdir()
    arguments = ["--data", str(folders.data), "--partial", str(folders.partial), "--out", str(folders.out)]
    with pytest.raises(TrainingError, match=f"1 of {len(EXPERIMENTS)} experiments could not be run: planning"):
        main(["all", *arguments])
    assert tuple(tried) == EXPERIMENTS
    said = capsys.readouterr()
    assert "planning: no GPU" in said.err and said.out.count("seen. because") == len(EXPERIMENTS) - 1
    with pytest.raises(ConfigError, match="no GPU"):
        main(["planning", *arguments])


def test_settings_that_do_not_exist_are_refused_by_name():
    with pytest.raises(ConfigError, match="lenghts"):
        experiment_settings("context_length", "small", ["lenghts=[1]"])
    with pytest.raises(ConfigError, match="'nothing'"):
        find("nothing")
    with pytest.raises(ConfigError, match="large"):
        experiment_settings("adaptivity", "large")


@pytest.mark.parametrize("setting", ["families=[]", "families.0.tasks=0", "families.0.context=0", "steps=0"])
def test_settings_that_leave_nothing_to_run_are_refused_by_name(folders: Folders, setting: str):
    with pytest.raises(ConfigError, match=re.escape(setting.partition("=")[0].split(".")[-1])):
        reproduce("uncertainty", "small", folders, "c", overrides=[setting])


def versions(tiny_model, folders, *overrides: str) -> dict[str, str]:
    settings = experiment_settings("acquisition", "small", [f"model={tiny_model}", "methods=[l2m, gdfs]", *overrides])
    return {job.key: experiment.version_of(job) for job in find("acquisition").jobs(settings, folders.data)}


def test_another_model_makes_other_records_of_itself_only(tiny_model, folders):
    before = versions(tiny_model, folders, f"families=[{BNN}]")
    facts = tiny_model / "model.yaml"
    kept = facts.read_text()
    facts.write_text(kept.replace("for tests", "for other tests"))
    try:
        after = versions(tiny_model, folders, f"families=[{BNN}]")
    finally:
        facts.write_text(kept)
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {key for key in before if key.endswith("l2m")} and len(before) == 2 * len(changed)


def test_more_tasks_or_methods_keep_what_is_done_and_other_tasks_do_not(tiny_model, folders):
    before = versions(tiny_model, folders, f"families=[{BNN}]")
    more = versions(
        tiny_model, folders, f"families=[{BNN.replace('tasks: 2', 'tasks: 3')}]", "methods=[l2m, gdfs, dime]"
    )
    assert before.items() < more.items()
    larger = versions(tiny_model, folders, f"families=[{BNN.replace('context: 40', 'context: 50')}]")
    assert not set(before.values()) & set(larger.values())


def test_records_that_an_earlier_rule_marked_are_kept_while_they_are_the_same_by_it(tiny_model, folders, monkeypatch):
    with monkeypatch.context() as before:
        before.setattr(experiment, "code_version", earlier_code_version)
        done = reproduced(tiny_model, folders)
    assert done and reproduced(tiny_model, folders) == []
    monkeypatch.setattr(experiment, "earlier_code_version", lambda name: "another")
    assert reproduced(tiny_model, folders) == done


def test_an_experiment_that_is_not_there_is_told_with_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["uncertanty"])
    assert "no experiment 'uncertanty'. Did you mean 'uncertainty'?" in capsys.readouterr().err
