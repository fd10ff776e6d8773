"""Each verdict follows its published rule: records made up to lie on either side of it."""

import numpy as np
import pandas as pd
import pytest
import torch

from train.study.experiments import (
    ablations,
    acquisition,
    adaptivity,
    context_length,
    gradients,
    informative,
    planning,
    policy_maps,
    real_missingness,
    runtimes,
    uncertainty,
    zero_shot,
)
from train.study.experiments.experiment import NOT_SEEN, NOT_TESTABLE, SEEN
from train.study.experiments.families import Family, draw

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
    assert ablations.verdict(records({"attention": 0.4, "cnp": 0.42, "maml": 0.45}), EMPTY).status == SEEN
    assert ablations.verdict(records({"attention": 0.4, "cnp": 0.42, "maml": 0.39}), EMPTY).status == NOT_SEEN


@pytest.mark.parametrize(("other", "status"), [(0.3, SEEN), (0.5, NOT_SEEN), (0.6, NOT_SEEN)])
def test_informative_features_must_be_found_sooner_than_by_every_other_method(other, status):
    recalls = {"l2m": 0.5, "gdfs": 0.2, "dime": other}
    found = [{**r, "recall": [recalls[r["method"]], 0.9]} for r in records(dict.fromkeys(recalls, 0.4))]
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


@pytest.mark.parametrize(
    ("judged", "semi_offline", "status"), [(0.8, 0.1, SEEN), (0.3, 0.1, NOT_SEEN), (0.8, 0.6, NOT_SEEN)]
)
def test_one_temperature_is_judged_at_the_fewest_samples_and_the_bias_of_reweighting(judged, semi_offline, status):
    cosines = {
        ("reinforce", None, 1): 0.5,
        ("gumbel", 0.5, 1): judged,
        ("gumbel", 2.0, 1): 0.9,
        ("gumbel", 0.5, 8): 0.9,
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
            "cosine": cosine,
            "relative_error": 1.0,
        }
        for (estimator, temperature, samples), cosine in cosines.items()
        for i in TASKS
    ] + [
        {
            "family": "f",
            "task": i,
            "part": "holes",
            "estimator": name,
            "temperature": None,
            "samples": 6,
            "cosine": 0.9,
            "relative_error": bias,
        }
        for name, bias in {"offline": 0.4, "semi-offline": semi_offline}.items()
        for i in TASKS
    ]
    assert gradients.verdict(found, EMPTY).status == status


@pytest.mark.parametrize(("noisy", "agreement"), [(False, 1.0), (True, 0.0)])
def test_what_the_reference_is_worth_is_published_beside_it(noisy, agreement, tmp_path, monkeypatch):
    def estimate(settings, module, episode, estimator, temperature, samples, seed):
        return torch.tensor([1.0, 0.0]) if seed % 2 or not noisy else torch.tensor([0.0, 1.0])

    monkeypatch.setattr(gradients, "_estimate", estimate)
    family = Family("bnn_plan", prior="bnn_plan", features=5, context=40)
    settings = gradients.GradientsSettings(
        (family,), samples=(2,), temperatures=(0.5,), reference=8, repeats=1, queries=3
    )
    found = gradients.by_samples(settings, family, tmp_path, torch.Generator().manual_seed(0))
    assert [record["reference_agreement"] for record in found] == pytest.approx([agreement] * 2)


def test_zero_shot_may_be_a_hundredth_of_a_nat_above():
    near = {"l2m": 0.405, "gdfs": 0.4, "finetuned": 0.39}
    assert zero_shot.verdict(records(near), EMPTY).status == SEEN
    assert zero_shot.verdict(records({**near, "l2m": 0.412}), EMPTY).status == NOT_SEEN
    assert zero_shot.verdict(records({**near, "finetuned": 0.405}), EMPTY).status == NOT_SEEN


@pytest.mark.parametrize(("plan", "plain", "status"), [(0.39, 0.4, SEEN), (0.4, 0.4, NOT_SEEN), (0.39, 0.42, NOT_SEEN)])
def test_lookahead_must_help_where_features_tell_together_and_cost_nothing_elsewhere(plan, plain, status):
    found = [
        *records({"greedy": 0.4, "lookahead": plan}, "bnn_plan"),
        *records({"greedy": 0.4, "lookahead": plain}, "bnn"),
    ]
    assert planning.verdict(found, EMPTY).status == status


def test_gains_must_grow_with_the_context_and_outlast_missingness():
    def found(shortest: float, longest: float, missing: float) -> list[dict]:
        gains = {"context 50": shortest, "context 900": longest, "missing 0": 0.1, "missing 1": missing}
        return [r for v, gain in gains.items() for r in records({"l2m": 0.5 - gain, "l2m_random": 0.5}, variant=v)]

    assert context_length.verdict(found(0.02, 0.1, 0.05), EMPTY).status == SEEN
    assert context_length.verdict(found(0.1, 0.1, 0.05), EMPTY).status == NOT_SEEN
    assert context_length.verdict(found(0.02, 0.1, 0.0), EMPTY).status == NOT_SEEN


def test_a_task_that_failed_at_one_context_is_left_out_of_the_growth():
    gains = {"context 50": 0.02, "context 900": 0.1, "missing 0": 0.1, "missing 1": 0.05}
    found = [r for v, gain in gains.items() for r in records({"l2m": 0.5 - gain, "l2m_random": 0.5}, variant=v)]
    found = [{**r, "error": "no"} if (r["task"], r["variant"]) == (3, "context 50") else r for r in found]
    verdict = context_length.verdict(found, EMPTY)
    assert verdict.status == SEEN and "19 pairs" in verdict.reason and "20 pairs" in verdict.reason


def test_real_missingness_needs_tables_with_holes():
    losses = {"l2m": 0.4, "gdfs": 0.5}
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


def test_intervals_must_cover_at_their_levels():
    assert uncertainty.verdict(covered(0.02), EMPTY).status == SEEN
    assert uncertainty.verdict(covered(-0.08), EMPTY).status == NOT_SEEN
    assert uncertainty.judge_coverage(covered(0.0, [0]), "gp_rbf").status == NOT_TESTABLE


def test_coverage_is_judged_family_by_family():
    matern = [{**r, "family": "gp_matern"} for r in covered(0.1)]
    verdict = uncertainty.verdict([*covered(0.0), *matern], EMPTY)
    assert verdict.status == NOT_SEEN and "[seen] Coverage on gp_rbf" in verdict.reason


def shares(first: list[float], middle: list[float]) -> list[dict]:
    """Of three features, at three steps."""
    by_feature = {name: [first[j], middle[j], 0.5] for j, name in enumerate("abc")}
    return [{"method": "l2m", "shares": by_feature, "alike": 0.95}]


def test_only_features_that_can_be_chosen_are_in_a_map(ward, tmp_path):
    family = Family("ward", source="cohort", data="ward", context=80, test_rows=20, tasks=1, budget=2)
    settings = policy_maps.PolicyMapsSettings((family,), methods=("base_rate",))
    (job,) = policy_maps.jobs(settings, ward)
    (found,) = policy_maps.work(job)
    assert list(found["shares"]) == ["sodium", "lactate", "glucose"]
    assert np.sum(list(found["shares"].values()), axis=0) == pytest.approx([1, 1])


def test_choices_must_concentrate_first_and_then_differ():
    assert policy_maps.verdict(shares([0.9, 0.1, 0], [0.6, 0.3, 0.1]), EMPTY).status == SEEN
    assert policy_maps.verdict(shares([0.5, 0.3, 0.2], [0.6, 0.3, 0.1]), EMPTY).status == NOT_SEEN
    assert policy_maps.verdict(shares([0.9, 0.1, 0], [1.0, 0, 0]), EMPTY).status == NOT_SEEN
    assert policy_maps.verdict([], EMPTY).status == NOT_TESTABLE
