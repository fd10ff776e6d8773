"""Each verdict follows its published rule: records made up to lie on either side of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.cohort import Cohort
from train.study.experiments import (
    ablations,
    acquisition,
    adaptivity,
    context_length,
    gradients,
    informative,
    own_covariates,
    planning,
    policy_maps,
    real_missingness,
    runtimes,
    uncertainty,
    zero_shot,
)
from train.study.experiments.comparison import Run
from train.study.experiments.experiment import Job
from train.study.experiments.families import Family, as_two_classes, draw, stand_ins
from train.study.experiments.verdicts import NO_CLAIM, NOT_SEEN, NOT_TESTABLE, SEEN, gates_failed

TASKS = range(20)
EMPTY = pd.DataFrame()


def records(losses: dict[str, float], family: str = "bnn", variant: str = "", **more) -> list[dict]:
    """Each method's loss on every task, with a little of the task's own."""
    return [
        {"family": family, "task": i, "variant": variant, "method": method, "log_loss": loss + 0.001 * (i % 3), **more}
        for method, loss in losses.items()
        for i in TASKS
    ]


def test_acquisition_is_seen_when_l2m_is_below_every_other_method():
    assert acquisition.verdict(records({"l2m": 0.4, "gdfs": 0.5, "dqn": 0.41}), EMPTY).status == SEEN
    assert acquisition.verdict(records({"l2m": 0.4, "gdfs": 0.5, "dqn": 0.4}), EMPTY).status == NOT_SEEN


def test_acquisition_s_table_has_the_mean_squared_error_too():
    numbers = {"log_loss_by_budget": [1.0, 0.5], "rmse_by_budget": [0.5, 0.2]}
    table = acquisition.table(records({"l2m": 0.4}, **numbers))
    found = table[table["score"] == "mse"].sort_values("step")["value"]
    assert found.tolist() == pytest.approx([0.25, 0.04])


def test_choices_for_each_patient_must_be_below_the_majority_s():
    assert adaptivity.verdict(records({"l2m": 0.4, "majority": 0.41}), EMPTY).status == SEEN
    assert adaptivity.verdict(records({"l2m": 0.4, "majority": 0.4}), EMPTY).status == NOT_SEEN


def test_full_attention_must_be_below_both_other_kinds():
    def found(scores: dict[str, float], own: dict[str, float]) -> str:
        drawn = [{**record, "order": ablations.RANDOM} for record in records(scores)]
        # What they lose along their own orders is published and decides nothing.
        return ablations.verdict([*drawn, *({**r, "order": ablations.OWN} for r in records(own))], EMPTY).status

    worse, better = {"attention": 0.9, "cnp": 0.1, "maml": 0.1}, {"attention": 0.1, "cnp": 0.9, "maml": 0.9}
    assert found({"attention": 0.4, "cnp": 0.42, "maml": 0.45}, worse) == SEEN
    assert found({"attention": 0.4, "cnp": 0.42, "maml": 0.39}, better) == NOT_SEEN


@pytest.mark.parametrize(
    ("loss", "auroc", "precision", "status"),
    [
        (0.40, 0.8, 0.5, SEEN),
        (0.46, 0.8, 0.5, NOT_SEEN),
        (0.40, 0.7, 0.5, NOT_SEEN),
        (0.40, 0.8, 0.7, NOT_SEEN),
    ],
)
def test_l2m_must_predict_and_rank_better_and_be_less_precise_than_methods_trained_on_the_task(
    loss, auroc, precision, status
):
    own = {"l2m": (loss, auroc, precision), "gdfs": (0.45, 0.75, 0.6)}
    found = [
        {**r, "auroc": own[r["method"]][1], "precision": [own[r["method"]][2], 0.9]}
        for r in records({name: values[0] for name, values in own.items()})
    ]
    assert informative.verdict(found, EMPTY).status == status


@pytest.mark.parametrize(("seconds", "status"), [(2.0, SEEN), (0.5, NOT_SEEN)])
def test_seconds_of_learning_and_answering_count_together(seconds, status):
    spent = {"l2m": (0.1, 0.9), "gdfs": (seconds, 0.1)}
    found = [
        {**r, "fit_seconds": spent[r["method"]][0], "query_seconds": spent[r["method"]][1]}
        for r in records(dict.fromkeys(spent, 0.4))
    ]
    assert runtimes.verdict(found, EMPTY).status == status
    table = runtimes.table(found).set_index("method")
    assert table.loc["l2m", "median_seconds"] == pytest.approx(1.0)
    assert table.loc["l2m", "total_seconds"] == pytest.approx(len(TASKS))


@pytest.mark.parametrize(("judged", "status"), [(0.3, SEEN), (0.9, NOT_SEEN)])
def test_one_temperature_is_judged_at_the_fewest_samples(judged, status):
    errors = {
        ("reinforce", None, 1): 0.8,
        ("gumbel", 0.5, 1): judged,
        ("gumbel", 2.0, 1): 0.1,
        ("gumbel", 0.5, 8): 0.1,
    }
    found = [
        {
            "family": "f",
            "task": i,
            "part": "samples",
            "estimator": estimator,
            "temperature": temperature,
            "judged": 0.5,
            "samples": samples,
            "relative_error": error + 0.001 * (i % 3),
        }
        for (estimator, temperature, samples), error in errors.items()
        for i in TASKS
    ]
    assert gradients.verdict([*found, *holes()], EMPTY).status == status


def holes(**errors: float) -> list[dict]:
    """Of the table: every estimate's relative error, those of the study but where others are given."""
    given = {
        ("pathwise, 1 step", 4): errors.get("pathwise", 0.88),
        ("pathwise, 2 steps", 4): 0.95,
        ("offline", 64): 1.56,
        ("offline", 128): errors.get("offline", 1.16),
        ("semi-offline", 64): 19.98,
        ("semi-offline", 128): errors.get("semi", 18.70),
    }
    facts = {"family": "f", "part": "holes", "temperature": None}
    return [
        {**facts, "task": i, "estimator": kind, "samples": n, "relative_error": error + 0.001 * (i % 3 + n % 5)}
        for (kind, n), error in given.items()
        for i in TASKS
    ]


@pytest.mark.parametrize(
    ("errors", "seen"),
    [({}, True), ({"pathwise": 1.2}, True), ({"pathwise": 1.3}, False), ({"semi": 1.0}, False)],
)
def test_the_table_s_pathwise_estimates_may_be_above_reweighting_by_the_margin(errors, seen):
    found = gradients.table_verdicts(pd.DataFrame(holes(**errors)))
    assert len(found) == 10
    assert all(v.status == SEEN for v in found) == seen
    assert gradients.table_verdicts(pd.DataFrame())[0].status == NOT_TESTABLE


@pytest.mark.parametrize(("noisy", "agreement"), [(False, 1.0), (True, 0.0)])
def test_what_the_reference_is_worth_is_published_beside_it(noisy, agreement, tmp_path, monkeypatch):
    def estimate(settings, module, episode, estimator, temperature, samples, seed):
        return torch.tensor([1.0, 0.0]) if seed % 2 or not noisy else torch.tensor([0.0, 1.0])

    monkeypatch.setattr(gradients, "estimate_gradient", estimate)
    family = Family("bnn_plan", prior="bnn_plan", features=5, context=40)
    settings = gradients.GradientsSettings(
        (family,), samples=(2,), temperatures=(0.5,), reference=8, repeats=1, queries=3
    )
    found = gradients.by_samples(settings, family, tmp_path, torch.Generator().manual_seed(0))
    assert [record["reference_agreement"] for record in found] == pytest.approx([agreement] * 2)


def test_zero_shot_must_be_below_random_order_and_above_what_was_fine_tuned():
    near = {"l2m": 0.4, "l2m_random": 0.42, "gdfs": 0.3, "finetuned": 0.39}
    assert zero_shot.verdict(records(near), EMPTY).status == SEEN
    assert zero_shot.verdict(records({**near, "l2m_random": 0.39}), EMPTY).status == NOT_SEEN
    assert zero_shot.verdict(records({**near, "finetuned": 0.405}), EMPTY).status == NOT_SEEN


@pytest.mark.parametrize(("own", "longer", "status"), [(0.38, 0.39, SEEN), (0.395, 0.39, NOT_SEEN), (0.39, None, SEEN)])
def test_own_covariates_must_beat_what_went_on_equally_long(own, longer, status):
    ways = {"l2m": 0.4, "own covariates": own} | ({} if longer is None else {"longer": longer})
    found = own_covariates.verdict(records(ways), EMPTY)
    assert found.status == status and ("deciding nothing" in found.reason) == (longer is not None)


@pytest.mark.parametrize(("plan", "plain", "status"), [(0.39, 0.4, SEEN), (0.4, 0.4, SEEN), (0.39, 0.42, NOT_SEEN)])
def test_lookahead_must_match_greedy_everywhere_and_says_whether_it_improves(plan, plain, status):
    found = [
        *records({"greedy": 0.4, "lookahead": plan}, "bnn_plan"),
        *records({"greedy": 0.4, "lookahead": plain}, "bnn"),
    ]
    verdict = planning.verdict(found, EMPTY)
    assert verdict.status == status
    assert f"To improve: [{SEEN if plan < 0.4 else NOT_SEEN}]" in verdict.reason


@pytest.mark.parametrize(
    ("shortest", "longest", "none", "most", "status"),
    [(0.1, 0.02, 0.05, 0.1, SEEN), (0.1, 0.1, 0.05, 0.1, NOT_SEEN), (0.1, 0.02, 0.1, 0.1, NOT_SEEN)],
)
def test_gains_over_trained_methods_must_be_largest_with_few_rows_and_many_holes(shortest, longest, none, most, status):
    gains = {"context 50": shortest, "context 900": longest, "missing 0": none, "missing 1": most}
    found = [r for v, gain in gains.items() for r in records({"l2m": 0.5 - gain, "gdfs": 0.5}, variant=v)]
    assert context_length.verdict(found, EMPTY).status == status
    assert context_length.table(found)["against"].unique().tolist() == ["gdfs"]


def test_gains_must_be_largest_there_in_every_family():
    def found(family, shortest):
        gains = {"context 50": shortest, "context 900": 0.02, "missing 0": 0.05, "missing 1": 0.1}
        return [r for v, gain in gains.items() for r in records({"l2m": 0.5 - gain, "gdfs": 0.5}, family, variant=v)]

    assert context_length.verdict([*found("bnn", 0.1), *found("gp_rbf", 0.1)], EMPTY).status == SEEN
    assert context_length.verdict([*found("bnn", 0.1), *found("gp_rbf", 0.02)], EMPTY).status == NOT_SEEN


def test_later_tasks_of_a_family_are_the_same_ones_counted_from_another():
    early, late = Family("bnn", context=20, test_rows=10), Family("bnn", context=20, test_rows=10, first=5)
    assert np.array_equal(draw(early, 7, Path()).x, draw(late, 2, Path()).x, equal_nan=True)
    assert not np.array_equal(draw(early, 2, Path()).x, draw(late, 2, Path()).x, equal_nan=True)


def test_of_a_wide_table_what_can_be_acquired_and_is_recorded_most_stays(ward):
    family = Family("ward", source="cohort", data="ward", features=2, narrowed=True, context=80, test_rows=40)
    assert draw(family, 0, ward).context.names == ("sodium", "glucose")  # lactate is recorded as often, and comes later
    assert draw(replace(family, features=9), 0, ward).context.names == ("age", "sodium", "lactate", "glucose")
    assert draw(replace(family, narrowed=False), 0, ward).context.names == ("age", "sodium", "lactate", "glucose")


@pytest.mark.parametrize(
    ("y", "kind", "expected"),
    [
        ([0, 1, 2, 1, 1, 0, 2, 0, 1, 2] * 3, None, [0, 1, 0, 1, 1, 0, 0, 0, 1, 0] * 3),
        ([3.0, 1.0, 2.0, 9.0, 4.0, 0.5] * 5, "continuous", [1, 0, 0, 1, 1, 0] * 5),
    ],
)
def test_an_outcome_of_any_kind_becomes_a_question_of_yes_or_no(y, kind, expected):
    cohort = Cohort.from_arrays(np.arange(30.0)[:, None], np.array(y), names=["dose"], kind=kind)
    asked = as_two_classes(cohort)
    assert asked.kind == "binary" and asked.y.tolist() == expected
    assert np.array_equal(asked.x, cohort.x)


def test_tables_that_scikit_learn_brings_are_found_by_name(tmp_path):
    wine = Family("wine", source="cohort", data="wine", two_classes=True, context=60, test_rows=40)
    assert stand_ins((wine,), tmp_path) == ["wine: asked whether outcome is 1."]
    trial = draw(wine, 0, tmp_path)
    assert trial.context.x.shape == (60, 13) and trial.context.classes == ("no", "yes")


def test_a_model_is_fine_tuned_on_more_rows_than_its_context_and_on_none_that_is_decided_about(ward, monkeypatch):
    shown = []

    def keep(first, cohort, *others, **told):
        shown.append(cohort)
        raise StopIteration

    monkeypatch.setattr(zero_shot, "finetune", keep)
    family = Family("ward", source="cohort", data="ward", context=60, test_rows=40, model="l2m-syn-reduced")
    settings = zero_shot.ZeroShotSettings((family,), finetune_rows=120)
    with pytest.raises(StopIteration):
        zero_shot.fine_tuned(Job("", settings, Run(family, 0, (zero_shot.FINETUNED,)), ward))
    trial = draw(family, 0, ward)
    read, decided, learned = ({row.tobytes() for row in x} for x in (trial.context.x, trial.x, shown[0].x))
    assert len(learned) == 120 and read <= learned and not decided & learned


@pytest.mark.parametrize(("model", "by_frequency"), [("general", True), ("l2m-syn-reduced", False)])
def test_a_model_is_fine_tuned_on_classes_as_it_answers_them(model, by_frequency, ward, monkeypatch):
    asked = []
    monkeypatch.setattr(zero_shot, "finetune", lambda module, *others, **told: asked.append(told) or module)
    family = Family("ward", source="cohort", data="ward", context=60, test_rows=4, budget=0, model=model)
    settings = zero_shot.ZeroShotSettings((family,))
    zero_shot.fine_tuned(Job("", settings, Run(family, 0, (zero_shot.FINETUNED,)), ward))
    assert asked == [{"by_frequency": by_frequency}]


def test_real_tables_pass_the_gates_together_and_drawn_families_each_alone():
    steps = {"log_loss_by_budget": [0.6, 0.4], "base_rate": 0.6}
    told, hopeless = {**steps, "log_loss": 0.5}, {"log_loss_by_budget": [0.2, 0.2], "base_rate": 0.2, "log_loss": 0.2}
    found = [{"family": "a", "method": "l2m", **told}, {"family": "b", "method": "l2m", **hopeless}]
    assert gates_failed([{**r, "real": True} for r in found], "l2m") == []
    assert len(gates_failed(found, "l2m")) == 2 and "on b " in gates_failed(found, "l2m")[0]


def test_a_task_that_failed_at_one_context_is_left_out_of_the_growth():
    gains = {"context 50": 0.1, "context 900": 0.02, "missing 0": 0.05, "missing 1": 0.1}
    found = [r for v, gain in gains.items() for r in records({"l2m": 0.5 - gain, "gdfs": 0.5}, variant=v)]
    found = [{**r, "error": "no"} if (r["task"], r["variant"]) == (3, "context 50") else r for r in found]
    verdict = context_length.verdict(found, EMPTY)
    assert verdict.status == SEEN and "19 pairs" in verdict.reason and "20 pairs" in verdict.reason


def test_real_missingness_needs_tables_with_holes():
    losses = {"l2m": 0.4, "l2m_random": 0.5, "gdfs": 0.3}
    assert real_missingness.verdict(records(losses, variant="real", missing=0.2), EMPTY).status == SEEN
    assert real_missingness.verdict(records(losses, variant="real", missing=0.0), EMPTY).status == NOT_TESTABLE


@pytest.fixture
def ward(tmp_path):
    """A table in which sodium and lactate are missing together, and age never."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(200, 4)).round(3), columns=["age", "sodium", "lactate", "glucose"])
    frame.loc[::2, ["sodium", "lactate"]] = np.nan
    frame["died"] = np.arange(200) % 2
    frame.to_csv(tmp_path / "ward.csv", index=False)
    (tmp_path / "manifest.yaml").write_text(
        "datasets: [{name: ward, file: ward.csv, outcome: died, task: binary, rows: 200, baseline_columns: [age], "
        "acquirable_columns: [sodium, lactate, glucose]}]"
    )
    return tmp_path


def test_a_real_pattern_is_the_table_s_own_and_leaves_outcomes_and_patients_as_they_are(ward):
    family = Family("ward", source="semi_synthetic", data="ward", features=4, context=80, test_rows=40)
    trials = {
        pattern: draw(real_missingness.with_pattern(family, pattern, 0.3), 0, ward, complete=True)
        for pattern in real_missingness.PATTERNS
    }
    holes = {pattern: np.isnan(trial.context.x) for pattern, trial in trials.items()}
    assert not holes["complete"].any()
    assert (holes["real"][:, 1] == holes["real"][:, 2]).all() and 0.3 < holes["real"][:, 1].mean() < 0.7
    assert not holes["real"][:, [0, 3]].any()
    assert (holes["at random"][:, 1] != holes["at random"][:, 2]).any()
    for trial in trials.values():
        assert not np.isnan(trial.x).any() and np.array_equal(trial.x, trials["complete"].x)
        assert (trial.context.y == trials["complete"].context.y).all()


LEVELS = (0.5, 0.9)


def covered(shift: float, tasks=TASKS) -> list[dict]:
    """A method whose intervals cover more, or less, than they say; other scores in L2M's favour."""
    found = []
    for i in tasks:
        wobble = 0.02 * (-1) ** i
        shares = {str(level): level + shift + wobble for level in LEVELS}
        own = {"coverage": shares, "coverage_error": abs(shift), "log_loss": 0.4, "mse": 0.2}
        other = {"coverage": shares, "coverage_error": 0.3, "log_loss": 0.5, "mse": 0.3}
        for method, scores in (("l2m", own), ("mlp_random", other)):
            found += [{"family": "gp_rbf", "task": i, "step": s, "method": method, **scores} for s in (1, 2)]
    return found


def test_coverage_must_be_nearer_to_its_levels_than_the_other_method_s():
    assert uncertainty.verdict(covered(0.02), EMPTY).status == SEEN
    assert uncertainty.verdict(covered(0.4), EMPTY).status == NOT_SEEN


def test_real_outcomes_decide_nothing_about_uncertainty():
    real = [{**r, "family": "metabric", "real": True} for r in covered(0.4)]
    assert uncertainty.verdict([*covered(0.02), *real], EMPTY).status == SEEN
    assert uncertainty.verdict(real, EMPTY).status == NOT_TESTABLE


def shares(first: list[float], middle: list[float]) -> list[dict]:
    """Of three features, at three steps."""
    by_feature = {name: [first[j], middle[j], 0.5] for j, name in enumerate("abc")}
    return [{"method": "l2m", "shares": by_feature}]


def test_only_features_that_can_be_chosen_are_in_a_map(ward, tmp_path):
    family = Family("ward", source="cohort", data="ward", context=80, test_rows=20, tasks=1, budget=2)
    settings = policy_maps.PolicyMapsSettings((family,), methods=("base_rate",))
    (job,) = policy_maps.jobs(settings, ward)
    (found,) = policy_maps.work(job)
    assert list(found["shares"]) == ["sodium", "lactate", "glucose"]
    assert np.sum(list(found["shares"].values()), axis=0) == pytest.approx([1, 1])


def test_maps_have_no_claim_and_say_what_they_show():
    verdict = policy_maps.verdict(shares([0.9, 0.1, 0], [0.6, 0.3, 0.1]), EMPTY)
    assert verdict.status == NO_CLAIM and "90% of patients at the first step and for 60%" in verdict.reason
    assert policy_maps.verdict([], EMPTY).status == NO_CLAIM


def test_adaptivity_needs_one_family_that_gains():
    gains = records({"l2m": 0.4, "majority": 0.42}, "metabric")
    none = records({"l2m": 0.4, "majority": 0.4}, "miniboone")
    assert adaptivity.verdict([*gains, *none], EMPTY).status == SEEN
    assert adaptivity.verdict(none, EMPTY).status == NOT_SEEN
