"""What a suite's records are said to show: counts, intervals, losing cells, and what changed since an earlier table."""

import pytest

from train.study.evaluation.report import make_page, write_report
from train.study.evaluation.summary import changes, paired, rivals, summarise


def record(cohort: str, method: str, loss: float, seed: int = 0, **more) -> dict:
    return {
        "cohort": cohort,
        "context": 100,
        "missing": 0.0,
        "seed": seed,
        "method": method,
        "log_loss": loss,
        "ece": 0.03,
        "ece_by_chance": 0.02,
        "kind": "binary",
        **more,
    }


@pytest.fixture
def records() -> list[dict]:
    losses = {"a": (0.40, 0.41, 0.50, 0.60), "b": (0.30, 0.32, 0.28, 0.29)}
    methods = ("l2m", "l2m_random", "gdfs", "base_rate")
    return [record(c, m, loss) for c, row in losses.items() for m, loss in zip(methods, row, strict=True)]


def test_a_summary_counts_what_it_claims(records):
    summary = summarise(records, "l2m")
    assert summary.information["l2m"] == pytest.approx((0.20 - 0.01) / 2)
    assert summary.ratio == pytest.approx(summary.information["l2m"] / summary.information["gdfs"])
    assert summary.hindsight == pytest.approx((0.20 + 0.01) / 2 / summary.information["gdfs"])  # l2m of a, gdfs of b
    assert summary.hindsight_skill == pytest.approx((1 - 0.40 / 0.60 + 1 - 0.28 / 0.29) / 2)
    assert summary.share_lowest == 0.5
    assert list(summary.worse_than_base_rate["cohort"]) == ["b"]
    assert list(summary.losing["cohort"]) == ["b"]
    assert list(summary.losing["lowest"]) == ["gdfs"]


def test_trials_that_some_method_has_not_finished_enter_nowhere(records):
    summary = summarise([*records, record("c", "l2m", 0.0)], "l2m")
    assert set(summary.cells["cohort"]) == {"a", "b"}
    assert summary.left_out == 1


def test_a_failed_trial_enters_nowhere_and_is_listed(records):
    records[0]["error"] = "ValueError: no"
    assert set(summarise(records, "l2m").cells["cohort"]) == {"b"}
    assert "ValueError: no" in make_page(records, "l2m", "command", "about")


def test_the_pair_is_compared_on_cells(records):
    cells, cohorts = paired(records, "l2m", "l2m_random")
    assert cells.mean == pytest.approx(0.015)
    assert (cohorts.low, cohorts.high) == pytest.approx((0.015 - 12.706 * 0.005, 0.015 + 12.706 * 0.005), abs=1e-4)


def test_one_cohort_is_too_few_to_speak_of_others(records):
    more = [{**r, "context": 400} for r in records if r["cohort"] == "a"]
    page = make_page([r for r in records if r["cohort"] == "a"] + more, "l2m", "command", "about")
    assert "0.1000 [0.1000, 0.1000] over cells, 0.1000 (too few for an interval) over cohorts" in page


def test_a_method_s_skill_is_the_share_of_the_base_rate_s_loss_that_it_saves_in_the_mean_of_cells(records):
    methods = summarise(records, "l2m").methods
    assert methods.loc["l2m", "skill"] == pytest.approx((1 - 0.40 / 0.60 + 1 - 0.30 / 0.29) / 2)
    assert methods.loc["base_rate", "skill"] == 0


def test_an_earlier_table_is_compared_on_the_cells_that_both_have(records):
    earlier = [{**r, "log_loss": r["log_loss"] + 0.06 * (r["method"] == "l2m")} for r in records if r["cohort"] == "a"]
    skill, at_random, saved = changes(
        records, [*earlier, record("c", "l2m", 0.1), record("c", "base_rate", 0.2)], "l2m"
    )
    assert (skill.score, skill.before, skill.now) == (
        "skill",
        pytest.approx(1 - 0.46 / 0.6),
        pytest.approx(1 - 0.4 / 0.6),
    )
    assert skill.over_cells.mean == skill.over_cohorts.mean == pytest.approx(0.1)
    assert (saved.before, saved.now) == (pytest.approx(-0.05), pytest.approx(0.01))
    assert at_random.score == "skill in a random order"
    assert (at_random.before, at_random.now) == (pytest.approx(1 - 0.41 / 0.6), pytest.approx(1 - 0.41 / 0.6))
    assert changes(records, [record("z", "l2m", 0.1), record("z", "base_rate", 0.2)], "l2m") == []


def test_a_council_is_compared_with_the_model_alone_of_an_earlier_table(records):
    now = [
        {**r, "method": r["method"].replace("l2m", "l2m_council"), "log_loss": r["log_loss"] - 0.06} for r in records
    ]
    skill, at_random, saved = changes(now, records, "l2m_council")
    assert skill.now > skill.before and at_random.now > at_random.before and saved.before == pytest.approx(saved.now)


def test_a_models_other_forms_are_no_rivals_of_it():
    methods = ["base_rate", "gdfs", "l2m", "l2m_council", "l2m_council_random"]
    assert rivals("l2m_council", methods) == ["base_rate", "gdfs"]
    assert rivals("gdfs", methods) == ["base_rate", "l2m", "l2m_council", "l2m_council_random"]


def test_other_forms_of_the_model_are_told_beside_the_count(records):
    council = [
        {**r, "method": "l2m_council", "log_loss": r["log_loss"] - 0.06} for r in records if r["method"] == "l2m"
    ]
    summary = summarise([*records, *council], "l2m_council")
    cells, cohorts = summary.skill_beyond("l2m")
    assert cells.mean == cohorts.mean == pytest.approx((0.06 / 0.60 + 0.06 / 0.29) / 2)
    assert summary.lowest_of_all == 2 and summarise([*records, *council], "l2m").lowest_of_all == 0
    page = make_page([*records, *council], "l2m_council", "command", "about")
    assert "were they rivals too: 2." in page and f"- Skill beyond l2m: {cells} over cells" in page
    assert "Skill beyond" not in make_page(records, "l2m", "command", "about")


def test_the_lead_is_held_against_the_one_other_method_that_is_lowest_over_all_cells(records):
    summary = summarise(records, "l2m")
    cells, cohorts = summary.lower_than("gdfs")
    assert summary.best_rival == "gdfs"  # 0.39 in the mean, the base rate 0.445; another form of the model is no rival
    assert cells.mean == cohorts.mean == pytest.approx((0.10 - 0.02) / 2)
    page = make_page(records, "l2m", "command", "about")
    assert f"- Lower than gdfs, the lowest of the other methods over all cells (0.3900), by {cells} over cells" in page
    alone = summarise([r for r in records if r["method"] == "l2m"], "l2m")
    assert alone.best_rival is None


def test_the_page_has_a_section_beside_an_earlier_table(records, tmp_path):
    write_report(tmp_path, "before", records, "l2m", "command", "about")
    page = write_report(tmp_path, "real", records, "l2m", "command", "about", beside=tmp_path / "before.csv")
    section = page.split("## Beside before.csv")[1]
    for score in ("skill", "skill in a random order", "saved by its own order"):
        assert f"| {score} |" in section
    assert page == (tmp_path / "real.md").read_text()


def test_one_failed_run_takes_its_own_trial_from_what_is_compared_with_an_earlier_table(records, tmp_path):
    failed = {**record("a", "gdfs", 0.0, seed=1), "error": "ValueError: no"}
    write_report(tmp_path, "before", [*records, failed], "l2m", "command", "about")
    page = write_report(tmp_path, "real", records, "l2m", "command", "about", beside=tmp_path / "before.csv")
    section = page.split("## Beside before.csv")[1]
    assert "| skill | 0.1494 | 0.1494 | 0.0000 [0.0000, 0.0000] | 0.0000 [0.0000, 0.0000] | 2 | 0 |" in section


def test_only_seeds_that_both_tables_have_are_compared(records):
    """A seed of which the earlier table has nothing, or has the base rate alone, would move a cell's mean by itself."""
    other_seed = [record("a", method, loss, seed=1) for method, loss in (("l2m", 0.1), ("base_rate", 0.6))]
    skill = changes([*records, *other_seed], [*records, other_seed[1]], "l2m")[0]
    assert skill.now == skill.before == pytest.approx((1 - 0.40 / 0.60 + 1 - 0.30 / 0.29) / 2)
    assert (skill.trials, skill.left_out) == (2, 1)
    assert changes(other_seed, records, "l2m") == []


def test_the_page_names_the_losing_cells(records):
    page = make_page(records, "l2m", "python -m train evaluate", "about")
    losing = page.split("### Losing cells")[1]
    assert "| b | 100 |" in losing and "gdfs 0.2800" in losing and "| a |" not in losing


def test_long_contexts_are_reported_apart(records):
    long = [{**r, "context": 2000, "log_loss": r["log_loss"] - 0.01} for r in records]
    page = make_page([*records, *long], "l2m", "command", "about")
    short, apart = page.split("## Outcomes with classes, contexts of 1,000 rows and more")
    assert "| 2000 |" not in short and "| 100 |" not in apart and "| 2000 |" in apart
