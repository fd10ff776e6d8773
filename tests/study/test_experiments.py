"""Every experiment runs from its command to its table, figure and verdict, and a second run repeats nothing."""

import importlib.util
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import l2m_core as l2m
from l2m_core.errors import ConfigError, TrainingError
from l2m_core.learn.loop import LoopConfig
from l2m_core.learn.stages import Stage
from l2m_core.methods import make_method
from l2m_core.methods.networks import Schedule
from l2m_core.model.interface import ModelConfig
from l2m_core.paths import study_folders
from train.prior_data import DataChoice, rows_of
from train.study import reproduce as command
from train.study.evaluation.versions import earlier_code_version
from train.study.experiments import ablations, experiment, families, policy_maps
from train.study.experiments.adaptivity import MajorityVote
from train.study.experiments.comparison import summarise_groups
from train.study.experiments.datasets import FoundCohort, find_cohort
from train.study.experiments.experiment import EXPERIMENTS, Folders, experiment_settings, find, reproduce
from train.study.experiments.families import Family, cohort_of, draw, stand_ins
from train.study.experiments.gradients import cosine
from train.study.experiments.overview import write_overview
from train.study.experiments.policy_maps import commonest_by_chance
from train.study.experiments.uncertainty import random_trajectories
from train.study.experiments.verdicts import NO_CLAIM, NOT_SEEN, NOT_TESTABLE, SEEN, ClaimVerdict, all_of, judge, pairs
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


def test_stand_ins_are_owned_up_to(tmp_path):
    families = (
        Family("metabric", source="cohort", data="metabric"),
        Family("pairs", source="digits"),
        Family("bnn"),
        Family("hospital", source="cohort", data="hospital_readmission"),
    )
    notes = stand_ins(families, tmp_path)
    assert len(notes) == 3
    assert any("metabric" in note and "made-up" in note for note in notes)
    assert any("MNIST" in note for note in notes)


def test_digit_pairs_have_twenty_blocks(tmp_path):
    family = Family("pairs", source="digits", settings={"pool": 4}, context=30, test_rows=10)
    trial = draw(family, 0, tmp_path)
    assert len(np.unique(trial.context.groups)) == 20
    assert len(trial.context.names) > 20
    # A method that learns from the task has a score for each block, and gives it to the block's pixels.
    once = Schedule(epochs=1)
    method = make_method("gdfs", pretraining=once, schedule=once).fit(trial.context)
    scores = method.rank(trial.x[:1], np.zeros(trial.x[:1].shape, dtype=bool))[0]
    assert len(method.policy.biases[-1]) == len(np.unique(scores)) == 20


def test_a_task_is_the_same_in_every_run_and_another_number_another_task(tmp_path):
    family = Family("bnn")
    assert (draw(family, 1, tmp_path).context.y == draw(family, 1, tmp_path).context.y).all()
    assert not np.allclose(draw(family, 1, tmp_path).context.x, draw(family, 2, tmp_path).context.x, equal_nan=True)


@pytest.mark.parametrize("source", ["cohort", "semi_synthetic"])
def test_tasks_of_a_table_keep_to_the_rows_that_the_model_never_saw(source, tmp_path, monkeypatch):
    family = Family("absent", source, data="absent", model="some", pool=1000, context=30, test_rows=20)
    table = find_cohort("absent", tmp_path).load()
    assert len(cohort_of(family, tmp_path)) == len(table), "no model was trained on a table that is made up"
    monkeypatch.setattr(families, "find_cohort", lambda name, data: FoundCohort(lambda: table))
    seen = rows_of(DataChoice(pool=1000), len(table))
    apart = cohort_of(family, tmp_path)
    assert len(apart) == len(table) - 1000
    assert not {row.tobytes() for row in table.x[seen]} & {row.tobytes() for row in apart.x}
    trial = draw(family, 0, tmp_path)
    assert len(trial.context) == 30 and len(trial.y) == 20
    assert any("outside the 1,000" in note for note in stand_ins((family,), tmp_path))
    if source == "cohort":
        assert {row.tobytes() for row in trial.context.x} <= {row.tobytes() for row in apart.x}


def test_only_a_table_has_a_pool():
    with pytest.raises(ConfigError, match="has a pool"):
        Family("bnn", pool=10)


@pytest.mark.parametrize("policy_stages", [(), (Stage(steps=2, tasks=2, rows=(24,), features=(4,), continuous=0.0),)])
def test_ablations_follow_a_policy_where_one_was_taught(policy_stages, tmp_path):
    settings = ablations.AblationsSettings(
        families=(Family("bnn", features=5, context=40, test_rows=12, tasks=1),),
        backbone=ModelConfig(
            encoder="rows", features=5, outcome="classes", layers=1, width=16, heads=2, feedforward=16, max_classes=2
        ),
        stages=(Stage(steps=2, tasks=2, rows=(24,), features=(4,), continuous=0.0),),
        loop=LoopConfig(warmup=1, evaluate_every=0),
        policy_stages=policy_stages,
        policy_loop=LoopConfig(warmup=1, evaluate_every=0),
        folder=str(tmp_path),
        steps=2,
    )
    for job in ablations.jobs(settings, tmp_path):
        records = ablations.work(job)
        orders = [record["order"] for record in records]
        assert orders == [ablations.RANDOM] * 2 + [ablations.OWN] * 2 * bool(policy_stages)
        if policy_stages:
            assert all(np.isfinite(record["log_loss"]) for record in records)


def test_contexts_of_one_task_are_cut_from_the_same_rows(tmp_path):
    family = Family("bnn", context=80)
    short, long = (draw(family, 0, tmp_path, context=n, complete=True) for n in (40, 80))
    assert np.array_equal(short.x, long.x)
    assert np.array_equal(short.context.x, long.context.x[:40], equal_nan=True)


def test_scaling_missingness_changes_the_record_and_not_the_patients(tmp_path):
    absent = dict.fromkeys(("none", "mcar", "mar_recorded", "block", "mnar", "panels"), 0)
    family = Family("bnn", settings={"missingness": {**absent, "mar_baseline": 1}})
    whole = draw(family.with_missingness_scale(0.0), 0, tmp_path, complete=True)
    holed = draw(family.with_missingness_scale(1.0), 0, tmp_path, complete=True)
    assert np.array_equal(whole.x, holed.x) and (whole.context.y == holed.context.y).all()
    assert not np.isnan(whole.context.x).any() and np.isnan(holed.context.x).any()


def test_random_trajectories_grow_by_one_and_keep_to_what_is_recorded(tmp_path):
    trial = draw(Family("bnn", settings={"missingness": {"none": 0.0}}), 0, tmp_path)
    states = list(random_trajectories(trial, 4, np.random.default_rng(0)))
    recorded = ~np.isnan(trial.x)
    for before, after in zip(states, states[1:], strict=False):
        assert (before <= after).all() and (after <= recorded).all()
        assert ((after.sum(1) - before.sum(1)) <= 1).all()


def test_the_commonest_choice_by_chance_is_among_what_is_still_open():
    """Five features of which everybody's first was the first: four are open then, and the commonest of few random choices is
    above one in four; of many it comes near it."""
    generator = np.random.default_rng(0)
    for patients, above in ((10, 0.25), (10_000, 0.012)):
        actions = np.column_stack([np.zeros(patients, int), 1 + np.arange(patients) % 4, np.full(patients, -1)])
        first, second, nobody = commonest_by_chance(actions, np.ones((patients, 5), bool), generator)
        assert 0.20 < first < 0.20 + above and 0.25 < second < 0.25 + above and nobody == 0
    only_one = np.eye(5, dtype=bool)[[2] * 10]
    assert commonest_by_chance(np.full((10, 1), 2), only_one, generator) == [1.0]


def test_maps_say_how_common_the_commonest_choice_is_by_chance():
    record = {"method": "l2m", "shares": {"a": [0.9, 0.4, 0.5], "b": [0.1, 0.6, 0.5]}}
    with_chance = policy_maps.verdict([{**record, "chance": [0.55, 0.56, 1.0]}], pd.DataFrame())
    assert (
        "90% of patients at the first step (by chance: 55%) and for 60% of patients at the middle one (by chance: 56%)"
        in (with_chance.reason)
    )
    assert "(by chance:" not in policy_maps.verdict([record], pd.DataFrame()).reason


def test_the_majority_s_choice_is_made_for_everybody():
    class Scores:
        def rank(self, x, a):
            return np.array([[3.0, 1, 0], [3, 1, 0], [0, 3, 1], [np.nan, 2, 3]])

    x = np.zeros((4, 3))
    x[3, 0] = np.nan
    scores = np.where(np.isnan(Scores().rank(x, None)), -np.inf, Scores().rank(x, None))
    method = type("M", (), {"rank": lambda self, x, a: scores})()
    chosen = MajorityVote(method).rank(x, np.zeros((4, 3), bool)).argmax(1)
    assert chosen[:3].tolist() == [0, 0, 0]
    assert chosen[3] in (1, 2)


def test_a_verdict_needs_its_interval_above_zero():
    assert judge(np.full(20, 0.1), "gain").status == SEEN
    assert judge(np.tile([-0.1, 0.1], 20), "gain").status == NOT_TESTABLE, "it may be too small to be seen with 40"
    assert judge(np.tile([-0.001, 0.001], 20), "gain").status == NOT_SEEN
    assert judge(np.array([0.1]), "gain").status == NOT_TESTABLE
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(NOT_SEEN, "b")]).status == NOT_SEEN


def test_a_part_that_could_not_be_tested_leaves_the_whole_untested():
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(NOT_TESTABLE, "b")]).status == NOT_TESTABLE
    assert all_of([ClaimVerdict(NOT_SEEN, "a"), ClaimVerdict(NOT_TESTABLE, "b")]).status == NOT_SEEN
    assert all_of([ClaimVerdict(SEEN, "a"), ClaimVerdict(SEEN, "b")]).status == SEEN


def test_a_mean_over_tasks_has_the_interval_of_student_s_t_and_that_of_one_task_none():
    table = pd.DataFrame({"method": ["l2m", "l2m", "l2m", "gdfs"], "loss": [0.1, 0.2, 0.6, 0.5]})
    l2m, gdfs = summarise_groups(table, ["method"], "loss").to_dict("records")
    assert (l2m["loss_low"], l2m["loss_high"]) == pytest.approx(
        (0.3 - 4.3027 * 0.152753, 0.3 + 4.3027 * 0.152753), abs=1e-3
    )
    assert gdfs["loss"] == 0.5 and np.isnan([gdfs["loss_low"], gdfs["loss_high"]]).all()


def test_what_failed_is_named_on_the_page():
    records = [
        {"method": "gdfs", "task": 0, "error": "CohortError: too few rows\nmore"},
        {"method": "gdfs", "task": 1, "error": "CohortError: another"},
        {"method": "l2m", "task": 0, "log_loss": 0.5},
    ]
    assert experiment.failures(records) == [
        "GDFS failed on 2 tasks, which its numbers leave out: CohortError: too few rows"
    ]


def test_pairs_are_made_on_the_same_task_only():
    records = [
        {"method": "a", "task": 0, "loss": 0.5},
        {"method": "b", "task": 0, "loss": 0.7},
        {"method": "a", "task": 1, "loss": 0.1},
        {"method": "b", "task": 2, "loss": 0.1},
        {"method": "b", "task": 1, "loss": 0.1, "error": "failed"},
    ]
    assert pairs(records, "loss", "a", "b", ("task",)) == pytest.approx([0.2])


def test_settings_that_do_not_exist_are_refused_by_name():
    with pytest.raises(ConfigError, match="lenghts"):
        experiment_settings("context_length", "small", ["lenghts=[1]"])
    with pytest.raises(ConfigError, match="'nothing'"):
        find("nothing")
    with pytest.raises(ConfigError, match="large"):
        experiment_settings("adaptivity", "large")


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


def test_cosine_of_opposite_gradients_is_minus_one():
    assert cosine(torch.tensor([1.0, 2.0]), torch.tensor([-1.0, -2.0])) == pytest.approx(-1)
