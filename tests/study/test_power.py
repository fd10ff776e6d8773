"""Before an experiment is run to its end, its page's statement of power is made, by its first tasks."""

from __future__ import annotations

import numpy as np
import pytest

from train.study.experiments import power
from train.study.experiments.comparison import Run
from train.study.experiments.experiment import Folders, reproduce
from train.study.experiments.families import Family
from train.study.experiments.inference import units_needed
from train.study.experiments.verdicts import NOT_TESTABLE, SEEN, ClaimVerdict, all_of, any_of, gated, gates_note, judge

FAMILY = "{{name: bnn, prior: bnn, features: 4, context: 30, test_rows: 10, tasks: {}, budget: 2}}"


@pytest.fixture
def folders(tmp_path) -> Folders:
    (tmp_path / "data").mkdir()
    return Folders(tmp_path / "data", tmp_path / "partial", tmp_path / "results")


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(power, "FIRST", 3)


def run(folders, model, tasks: int, say=lambda text: None, scale: str = "small") -> str:
    given = [f"families=[{FAMILY.format(tasks)}]", "methods=[l2m, base_rate, l2m_random]", f"model={model}"]
    reproduce("acquisition", scale, folders, "c", overrides=given, say=say)
    return (folders.out / "acquisition.md").read_text()


def test_power_is_stated_by_the_first_tasks_before_any_other_is_run(tiny_model, folders, few):
    stated: dict[int, bool] = {}

    def say(text: str) -> None:
        lines = (folders.partial / "acquisition-small.jsonl").read_text()
        stated[int(text.split("bnn/")[1].split("/")[0])] = '"(power)"' in lines

    page = run(folders, tiny_model, 5, say)
    assert stated == {0: False, 1: False, 2: False, 3: True, 4: True}
    assert "**Power.** Stated by the first 3 tasks of each family, before the others were run. Tasks" in page
    assert "0.005 takes about" in page and "Planned: bnn 5." in page


def test_what_was_stated_stays_when_tasks_are_added(tiny_model, folders, few):
    def power_of(page: str) -> str:
        return next(line for line in page.splitlines() if line.startswith("**Power.**"))

    before = power_of(run(folders, tiny_model, 4))
    assert power_of(run(folders, tiny_model, 5)) == before


def test_where_the_others_had_been_run_it_does_not_say_before(tiny_model, folders, monkeypatch):
    monkeypatch.setattr(power, "FIRST", 1)
    run(folders, tiny_model, 4)
    monkeypatch.setattr(power, "FIRST", 2)
    assert "before the others were run" not in run(folders, tiny_model, 4)


def test_jobs_of_whole_families_have_no_first_tasks():
    family = Family("bnn")
    assert power.first_jobs([(family, "greedy"), (family, "lookahead")]) == []
    assert power.first_jobs([Run(family, i, ()) for i in (0, 7, 8)]) == [0, 1]
    assert power.first_jobs([(family, i, "holes") for i in (9, 3)]) == [1]
    text = power.statement([], [family], by_first=False, before=False)
    assert "after the run" in text and "too few pairs" in text


def test_a_verdict_carries_what_each_of_its_comparisons_needs():
    values = np.random.default_rng(0).normal(0.01, 0.02, 20)
    one, other = judge(values, "A below B", 0.005), judge(values, "A below C", 0.01)
    assert [str(need) for need in one.needs] == [f"A below B: 0.005 takes about {units_needed(values, 0.005):,}"]
    for whole in (all_of([one, other]), any_of([one, other])):
        assert whole.needs == one.needs + other.needs
    assert judge(values[:1], "A below B").needs == ()


def test_the_page_says_whether_the_gates_were_passed():
    poor = {"family": "f", "task": 0, "method": "l2m", "log_loss": 0.7, "base_rate": 0.6}
    assert "on f its log loss is not under the base rate's" in gates_note([poor], "l2m")
    assert gates_note([{**poor, "log_loss": 0.5}], "l2m").endswith("better with more features known: it is.")
    assert gates_note([poor], "").startswith("None")
    kept = gated(ClaimVerdict(SEEN, "", (power.Need("x", 0.1, 3),)), [poor], "l2m")
    assert kept.status == NOT_TESTABLE and kept.needs
