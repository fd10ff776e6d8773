"""Members fitted to a cohort's own rows are heard as far as they foresee rows left out, and no further."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import l2m_core as l2m
from l2m_core.answering.predictive import Predictive
from l2m_core.answering.release import Release, load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.council import members
from l2m_core.council.council import MEMBERS, MIXTURE, MODEL, Council, Recipe, masses_of
from l2m_core.council.fitting import expected_weights, fit_council, rebuild, spread_of
from l2m_core.council.weights import LEAST, find_weights, product
from l2m_core.errors import InputError
from l2m_core.memory import L2M, CohortMemory
from l2m_core.metrics import row_losses
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.step_through.trace import Trace

FEATURES = 4
KINDS = ("binary", "multiclass", "continuous")


def make_cohort(kind: str, rows: int, seed: int = 3) -> l2m.Cohort:
    """An outcome that follows the first feature, and what the last two have in common."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    signal = x[:, 0] + x[:, 2] * x[:, 3] + 0.3 * generator.normal(size=rows)
    x[generator.random(x.shape) < 0.1] = np.nan
    y = {"binary": signal > 0, "multiclass": np.digitize(signal, [-0.5, 0.5]), "continuous": 20 + 5 * signal}[kind]
    return l2m.Cohort.from_arrays(x, y.astype(np.float32 if kind == "continuous" else np.int64), kind=kind)


def make_release(folder: Path, encoder: str = "cells", **settings) -> Release:
    """A tiny model with weights drawn at random: it knows next to nothing."""
    small = {"layers": 1, "width": 16, "heads": 2, "feedforward": 16, "max_classes": 3, "bins": 12}
    config = ModelConfig(encoder=encoder, **small, **settings)
    torch.manual_seed(0)
    save_model(folder, build_model(config), config, TrainedRange(), AnswerSettings(), {})
    return load_release(folder)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> L2M:
    return L2M(make_release(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture(scope="module", params=KINDS)
def heard(request: pytest.FixtureRequest, model: L2M) -> CohortMemory:
    """A memory with a council in which others than the model are heard."""
    memory = model.condition(make_cohort(request.param, 400), council=True)
    assert memory.recipe is not None and memory.recipe.members
    return memory


def alone(memory: CohortMemory) -> CohortMemory:
    return memory.with_council(None)


def questions(rows: int = 9) -> np.ndarray:
    generator = np.random.default_rng(4)
    x = generator.normal(size=(rows, FEATURES)).astype(np.float32)
    x[generator.random(x.shape) < 0.5] = np.nan
    return x


# -- the blend ---------------------------------------------------------------------------------------------------------


def test_a_blend_is_the_product_of_its_voices(heard: CohortMemory) -> None:
    x = questions()
    own, blended = (masses_of(memory.answer(x).prediction) for memory in (alone(heard), heard))
    assert isinstance(heard.council, Council)
    answer = heard.answer(x).prediction
    assert np.allclose(blended.sum(1), 1, atol=1e-6)
    assert not np.allclose(own, blended, atol=1e-3)
    # Taken apart again: a single member with all of the weight gives that member's own prediction.
    weights = heard.recipe.weights  # type: ignore[union-attr]
    parts = {MODEL: own}
    for name, member in heard.council.members.items():
        parts[name] = masses_of(Council(Recipe({MODEL: 0.0, name: 1.0}), {name: member}).blend(answer, x))
    whole = np.prod([parts[name] ** weights[name] for name in parts], axis=0)
    assert np.allclose(whole / whole.sum(1, keepdims=True), blended, atol=1e-5)


def test_a_council_of_before_is_the_mixture_that_it_was(heard: CohortMemory) -> None:
    plain = Recipe({MODEL: 0.7, "regression": 0.3}).to_data()
    del plain["blend"]  # nor had it such a word
    memory = alone(heard).under(Recipe.from_data(plain))
    assert isinstance(memory.council, Council) and memory.council.recipe.blend == MIXTURE
    x = questions()
    answer = alone(heard).answer(x).prediction
    member = Council(Recipe({MODEL: 0.0, "regression": 1.0}), memory.council.members).blend(answer, x)
    expected = 0.7 * masses_of(answer) + 0.3 * masses_of(member)
    assert np.allclose(masses_of(memory.answer(x).prediction), expected, atol=1e-6)


def test_the_models_own_weight_makes_it_surer() -> None:
    p = np.array([[0.6, 0.4], [0.1, 0.9]])
    surer = Council(Recipe({MODEL: 2.0}), {}).blend(p, np.zeros((2, 1)))
    assert np.allclose(surer, p**2 / (p**2).sum(1, keepdims=True))


def test_what_is_known_of_a_continuous_outcome_stays_a_whole_distribution(model: L2M) -> None:
    cohort = make_cohort("continuous", 400)
    memory = model.condition(cohort, council=True)
    prediction = memory.answer(questions()).prediction
    assert isinstance(prediction, Predictive)
    assert (np.diff([prediction.quantile(p) for p in (0.05, 0.5, 0.95)], axis=0) > 0).all()
    assert (prediction.std < 2 * cohort.y.std()).all()


def test_rows_that_nobody_has_seen_are_predicted_better_with_the_council(heard: CohortMemory) -> None:
    new = make_cohort(heard.cohort.kind, 200, seed=8)
    losses = [row_losses(memory.answer(new.x).prediction, new.y).mean() for memory in (alone(heard), heard)]
    assert losses[1] < losses[0] - 0.1


def test_all_that_reads_answers_reads_the_blend(heard: CohortMemory) -> None:
    patient = heard.start({"x0": 1.0})
    blended = heard.answer(patient.x).prediction
    own = alone(heard).answer(patient.x).prediction
    posterior = patient.posterior
    if isinstance(posterior, Predictive):
        assert posterior.mean == pytest.approx(blended.mean) and posterior.mean != pytest.approx(own.mean)
    else:
        assert posterior == pytest.approx(blended[0]) and posterior != pytest.approx(own[0], abs=1e-4)
    (band,) = {memory.council for memory in heard.resampled(2)}
    assert band is heard.council


# -- its weights -------------------------------------------------------------------------------------------------------


WIDE, NARROW = 0.2, 0.1  # how far weights may lie from those expected


def voices(rows: int, *errors: float) -> tuple[np.ndarray, np.ndarray]:
    """What voices said of two classes, each from the truth's logit and an error of its own; and what happened. The first is the
    model's, with an error of 1."""
    generator = np.random.default_rng(0)
    logit = 1.5 * generator.normal(size=rows)
    happened = (generator.random(rows) < 1 / (1 + np.exp(-logit))).astype(np.int64)
    told = logit + np.array([1.0, *errors])[:, None] * generator.normal(size=(1 + len(errors), rows))
    p = 1 / (1 + np.exp(-told))
    return np.stack([1 - p, p], axis=2), happened


def gained(weights: np.ndarray, p: np.ndarray, happened: np.ndarray) -> float:
    """Nats a row under the model alone."""
    rows = np.arange(len(happened))
    return float((product(np.log(p), weights) - np.log(p[0]))[rows, happened].mean())


def test_a_voice_that_foresees_better_is_heard_the_more_the_more_rows_say_so() -> None:
    weights = [find_weights(*voices(rows, 0.3), WIDE)[1] for rows in (20, 200, 2000)]
    assert weights[0] < weights[1] < weights[2] and weights[2] > 0.5


def test_the_nearer_weights_are_expected_the_less_a_voice_is_heard() -> None:
    p, happened = voices(100, 0.5)
    wide, narrow = (find_weights(p, happened, spread) for spread in (WIDE, NARROW))
    assert 0 < narrow[1] < wide[1] and abs(narrow.sum() - 1) < abs(wide.sum() - 1)


def test_with_classes_weights_lie_near_in_a_short_cohort_and_further_the_longer_it_is() -> None:
    short, long, longest = (spread_of("binary", rows) for rows in (100, 800, 4000))
    assert short == spread_of("multiclass", 400)
    assert (long, longest) == (2 * short, 10 * short)
    assert spread_of("continuous", 100) == spread_of("continuous", 10_000)


def test_weights_are_where_nothing_near_foresees_better() -> None:
    p, happened = voices(2000, 0.8, 1.2)
    found = find_weights(p, happened, WIDE)
    assert (found > 0).all() and gained(found, p, happened) > 0.02
    for change in np.eye(3) * 0.1:
        assert gained(found + change, p, happened) < gained(found, p, happened)
        assert gained(found - change, p, happened) < gained(found, p, happened)


def test_a_faint_voice_is_not_heard() -> None:
    found = find_weights(*voices(300, 0.5, 0.5, 8.0), WIDE)
    assert found[-1] == 0 and all(weight == 0 or weight >= LEAST for weight in found[1:])


def test_a_model_that_is_too_sure_is_made_less_so() -> None:
    p, happened = voices(1000)
    p = p**2 / (p**2).sum(2, keepdims=True)
    (weight,) = find_weights(p, happened, WIDE)
    assert 0.2 < weight < 0.8


def test_copies_of_a_row_count_once() -> None:
    p, happened = voices(100, 0.5)
    again = find_weights(np.repeat(p, 3, axis=1), np.repeat(happened, 3), WIDE, copies=3)
    assert again == pytest.approx(find_weights(p, happened, WIDE))


def test_of_a_continuous_outcome_a_gaussian_process_is_heard_before_rows_have_spoken(model: L2M) -> None:
    weights = model.condition(make_cohort("continuous", 60), council=True).recipe.weights  # type: ignore[union-attr]
    assert weights["Gaussian process"] > 0.1
    assert "Gaussian process" not in members.members_of("binary")


def test_of_classes_a_bayesian_regression_is_expected_to_tell_the_more_the_more_rows_have_the_rarer_ones() -> None:
    x = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    told = []
    for rarer in (20, 60, 100, 400):
        expected = expected_weights(l2m.Cohort.from_arrays(x, (np.arange(1000) < rarer).astype(int)))
        assert set(expected) == set(members.members_of("binary"))
        told.append(expected.pop("Bayesian regression"))
        assert not any(expected.values())
    assert told == pytest.approx([0.04, 0.12, 0.2, 0.2])
    assert expected_weights(make_cohort("continuous", 60))["Gaussian process"] == 0.4


def test_beside_a_model_that_knows_others_have_little_to_say() -> None:
    x = np.random.default_rng(0).normal(size=(220, FEATURES)).astype(np.float32)
    cohort = l2m.Cohort.from_arrays(x, (x[:, 0] > 0).astype(int))

    def read(part: l2m.Cohort):
        def answer(asked: np.ndarray) -> np.ndarray:
            p = np.where(np.isnan(asked[:, 0]), 0.5, 1 / (1 + np.exp(-30 * np.nan_to_num(asked[:, 0]))))
            return np.stack([1 - p, p], axis=1)

        return answer

    council = fit_council(cohort, read)
    weights = dict(council.recipe.weights)
    # Of members that are heard before any row has spoken, a model that knows loses little by it.
    assert weights.pop(MODEL) > 0.8 and sum(weights.values()) < 0.3
    p = read(cohort)(questions())
    assert np.abs(council.blend(p, questions()) - p).max() < 0.1


def test_a_council_that_changes_nothing_gives_the_model_s_own_answer() -> None:
    p = np.array([[0.6, 0.4]])
    assert Council(Recipe(), {}).blend(p, np.zeros((1, 1))) is p
    assert Recipe().changes_nothing and not Recipe({MODEL: 1.1}).changes_nothing


def test_a_cohort_of_a_few_rows_is_not_judged(model: L2M) -> None:
    recipe = model.condition(make_cohort("binary", 49), council=True).recipe
    assert recipe is not None and recipe.members == () and "from 50 rows on" in recipe.notes[0]


# -- the same again ----------------------------------------------------------------------------------------------------


def test_a_council_is_fitted_again_to_the_same_numbers(heard: CohortMemory) -> None:
    recipe = Recipe.from_data(json.loads(json.dumps(heard.recipe.to_data())))  # type: ignore[union-attr]
    assert recipe == heard.recipe
    again = alone(heard).under(recipe)
    x = questions()
    assert np.array_equal(masses_of(again.answer(x).prediction), masses_of(heard.answer(x).prediction))
    whole = heard.model.condition(heard.cohort, council=recipe)
    assert np.allclose(masses_of(whole.answer(x).prediction), masses_of(heard.answer(x).prediction), atol=1e-6)


def test_how_the_file_was_sorted_changes_nothing(model: L2M) -> None:
    cohort = make_cohort("binary", 400)
    shuffled = cohort.rows(np.random.default_rng(1).permutation(400))
    one, other = (model.condition(part, council=True) for part in (cohort, shuffled))
    assert one.recipe.weights == pytest.approx(other.recipe.weights, abs=1e-5)  # type: ignore[union-attr]
    x = questions()
    assert one.answer(x).prediction == pytest.approx(other.answer(x).prediction, abs=1e-5)


def test_the_seed_draws_the_rows_left_out(model: L2M) -> None:
    memory = model.condition(make_cohort("binary", 400))
    recipes = [memory.fit_council(seed).recipe for seed in (0, 0, 1)]
    assert recipes[0] == recipes[1] and recipes[0].weights != recipes[2].weights


# -- what cannot be fitted ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [ValueError, torch.linalg.LinAlgError])
def test_a_member_that_cannot_be_fitted_drops_out_with_a_note(
    failure: type[Exception], model: L2M, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(context, random):
        raise failure("one class")

    monkeypatch.setitem(members.FITTED_BY, "trees", refuse)
    memory = model.condition(make_cohort("binary", 400), council=True)
    assert memory.recipe is not None
    assert "trees" not in memory.recipe.weights and "Bayesian regression" in memory.recipe.members
    (note,) = memory.recipe.notes
    assert "'trees'" in note
    with pytest.raises(InputError, match="trees cannot be fitted"):
        rebuild(memory.cohort, Recipe({MODEL: 0.5, "trees": 0.5}))


def test_constant_and_empty_columns_and_a_class_of_one_row_are_no_hindrance(model: L2M) -> None:
    cohort = make_cohort("multiclass", 300)
    x, y = cohort.x.copy(), cohort.y.copy()
    y[y == 2] = 1
    y[7] = 2
    x[:, 1], x[:, 3] = 5.0, np.nan
    memory = model.condition(l2m.Cohort.from_arrays(x, y, classes=["a", "b", "c"], kind="multiclass"), council=True)
    assert memory.recipe is not None and memory.recipe.members and memory.recipe.notes == ()
    p = memory.answer(questions()).prediction
    assert (p > 0).all() and np.allclose(p.sum(1), 1)  # type: ignore[operator]


def test_one_class_in_a_fold_leaves_only_those_who_can_do_with_it(model: L2M) -> None:
    x = np.random.default_rng(0).normal(size=(240, FEATURES)).astype(np.float32)
    memory = model.condition(l2m.Cohort.from_arrays(x, np.arange(240) == 30), council=True)
    assert memory.recipe is not None and any("could not be fitted" in note for note in memory.recipe.notes)
    assert np.isfinite(memory.answer(questions()).prediction).all()


def test_a_normal_distribution_is_not_blended(tmp_path: Path) -> None:
    release = make_release(tmp_path / "rows", "rows", features=FEATURES, outcome="continuous")
    memory = L2M(release).condition(make_cohort("continuous", 200), council=True)
    assert memory.recipe is not None and memory.recipe.members == () and "normal" in memory.recipe.notes[0]


@pytest.mark.parametrize(
    "change",
    [
        {"weights": {MODEL: 0.5, "somebody": 0.5}},
        {"weights": {MODEL: float("inf")}},
        {"blend": "sum"},
        {"blend": MIXTURE, "weights": {MODEL: 0.5}},
        {"weights": {MODEL: 1.5, "trees": -0.5}},
        {"weights": {MODEL: float("nan"), "trees": 1.0}},
        {"weights": [1.0]},
        {"weights": {"trees": 1.0}},
        {"seed": 1.5},
        {"seed": -1},
        {"seed": True},
        {"versions": None},
        {"notes": 3},
    ],
    ids=str,
)
def test_a_recipe_that_was_changed_by_hand_is_refused(change: dict) -> None:
    # Its weights sum to more than 1, so that it is no mixture.
    plain = Recipe({MODEL: 0.9, "trees": 0.4}, 3, {"numpy": "2"}).to_data()
    assert Recipe.from_data(plain).members == ("trees",)
    with pytest.raises(InputError):
        Recipe.from_data({**plain, **change})
    with pytest.raises(InputError):
        Recipe.from_data({name: value for name, value in plain.items() if name not in change})


def test_every_member_can_be_fitted_by_its_name() -> None:
    assert set(members.FITTED_BY) == set(MEMBERS)


# -- traces ------------------------------------------------------------------------------------------------------------


def test_a_trace_names_its_council_and_replays_with_it_on_any_memory(heard: CohortMemory) -> None:
    patient = heard.start({"x0": 1.0}).observe("x1", -0.5)
    trace = Trace.from_json(patient.trace.to_json())
    assert trace.council == heard.recipe
    for memory in (heard, alone(heard)):
        assert max(trace.differences(memory)) <= 1e-6
        assert trace.replay(memory).memory.recipe == heard.recipe  # type: ignore[attr-defined]


def test_a_trace_of_the_model_alone_replays_alone_on_a_memory_with_a_council(heard: CohortMemory) -> None:
    trace = Trace.from_json(alone(heard).start({"x0": 1.0}).trace.to_json())
    assert trace.council is None and "council" not in json.loads(trace.to_json())
    assert max(trace.differences(heard)) <= 1e-6


def test_a_trace_whose_council_was_changed_is_refused(heard: CohortMemory) -> None:
    plain = json.loads(heard.start({"x0": 1.0}).trace.to_json())
    plain["council"]["weights"] = {MODEL: 1.0}
    with pytest.raises(InputError, match="another posterior"):
        Trace.from_json(json.dumps(plain)).replay(heard)
    plain["council"]["weights"] = {"somebody": 1.0}
    with pytest.raises(InputError, match="somebody"):
        Trace.from_json(json.dumps(plain))


def test_fitting_can_be_ended(model: L2M) -> None:
    def stop() -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        model.condition(make_cohort("binary", 300)).fit_council(check=stop)


def test_nobody_is_judged_on_patients_whose_other_rows_were_learned_from(model: L2M) -> None:
    """Noise, four nearly equal visits of each patient: trees that know a visit know the others, and nothing else."""
    draw = np.random.default_rng(0)
    visits = np.repeat(np.arange(1500), 4)
    x = draw.normal(size=(1500, 4))[visits] + 0.05 * draw.normal(size=(6000, 4))
    frame = pd.DataFrame(x.round(3), columns=list("abcd")).assign(patient_id=[f"P{visit}" for visit in visits])
    frame["died"] = (draw.random(1500) < 0.4)[visits].astype(int)
    cohort = l2m.Cohort.from_frame(frame, outcome="died").without_table()
    council = fit_council(cohort, lambda part: lambda x: np.tile([[0.6, 0.4]], (len(x), 1)))
    assert not {"trees", "shallow trees"} & set(council.recipe.weights)  # 0.68 for trees that know the other visits
