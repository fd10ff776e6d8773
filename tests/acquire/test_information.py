"""The gain of a test is what the model's own answers say it is, and what is shown beforehand is what comes."""

from __future__ import annotations

import json
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core import metrics
from l2m_core.acquire.foreseen import FEWEST_RECORDED, WORDS, Foreseen, foresee, low_and_high, three_results, words_for
from l2m_core.acquire.information import balance, mutual_information, outlooks
from l2m_core.acquire.policies import Gain
from l2m_core.acquire.stopping import Stopping, least_points_for
from l2m_core.answering.release import load_release, save_model
from l2m_core.answering.settings import RESULTS, SHARED_VALUES, AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError, FeatureError, InputError, ModelFileError
from l2m_core.learn.losses import GainLoss, information_of_each
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.memory import L2M
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.model.results import CHANCES
from l2m_core.tasks.registry import build_prior
from tests.acquire.conftest import GRADE, RARE, make_cohort


def test_a_gain_is_the_mutual_information_of_the_answers(memory):
    patient = memory.start({"ph": 0.3})
    for name in ("lactate", GRADE):
        column = memory.cohort.names.index(name)
        found = foresee(memory, patient.answer.values[0], [column])[0]
        after = [memory.start({"ph": 0.3}).observe(name, memory.cohort.decode(name, v)) for v in found.values]
        beliefs = np.concatenate(
            [p.posterior[None] if hasattr(p.posterior, "shape") else p.posterior.bin_probabilities for p in after]
        )
        outlook = patient.outlook(name)
        np.testing.assert_allclose(outlook.beliefs, beliefs, atol=1e-6)
        np.testing.assert_array_equal(outlook.results[:, 0], found.values)
        mean = outlook.chances @ beliefs
        by_hand = metrics.entropies(mean[None])[0] - outlook.chances @ metrics.entropies(beliefs)
        assert outlook.gain == pytest.approx(max(0, by_hand), abs=1e-6)
        assert patient.open_gains[name] == pytest.approx(outlook.gain, abs=1e-6)


def test_what_is_previewed_is_what_comes(memory):
    patient = memory.start({"ph": 0.3})
    table = patient.preview("lactate")
    assert table.chance.sum() == pytest.approx(1) and len(table) > 3
    shown = table.iloc[:, 3:].to_numpy(dtype=float)
    for row, value in enumerate(table.value):
        posterior = patient.observe("lactate", value).posterior
        now = posterior if isinstance(posterior, np.ndarray) else [posterior.mean[0], posterior.std[0]]
        np.testing.assert_allclose(shown[row], now, atol=1e-5)


def test_previews_average_to_the_belief_or_say_that_they_do_not(memory):
    patient = memory.start({"ph": 0.3})
    for name in ("lactate", "crp", GRADE):
        outlook, table = patient.outlook(name), patient.preview(name)
        if isinstance(patient.posterior, np.ndarray):
            apart = table.chance.to_numpy() @ table.iloc[:, 3:].to_numpy(dtype=float) - patient.posterior
        else:
            scale = memory.cohort.y.std()
            apart = (table.chance.to_numpy() @ table["mean"].to_numpy() - patient.posterior.mean) / scale
        assert (np.abs(apart).max() < 0.011) == outlook.is_balanced


def test_no_gain_is_negative_and_a_model_that_learns_nothing_promises_nothing(memory, releases):
    generator = np.random.default_rng(0)
    for row in memory.cohort.x[generator.integers(0, 80, 5)]:
        x = np.where(generator.random(row.shape) < 0.5, np.nan, row).astype(np.float32)[None]
        scores = Gain().scores(memory, x, memory.answer(x))
        assert (scores[np.isfinite(scores)] >= 0).all()
    silent = L2M(releases["silent"]).condition(memory.cohort)
    assert set(silent.start().open_gains.values()) == {0.0}


def test_a_test_that_few_have_is_too_rare_to_say(memory):
    assert memory.cohort.r[:, memory.cohort.names.index(RARE)].sum() < FEWEST_RECORDED
    patient = memory.start({"ph": 0.3})
    row = patient.ranking.set_index("feature").loc[RARE]
    assert np.isnan(row.gain) and not np.isfinite(row.score) and row.status == "open"
    assert RARE not in patient.open_gains and patient.suggestion != RARE
    with pytest.raises(InputError, match="too rarely"):
        patient.expect(RARE)
    assert json.loads(patient.trace.to_json())  # strict JSON holds no NaN
    assert len(patient.preview(RARE)) == 3 and "chance" not in patient.preview(RARE)


def test_what_to_expect_of_a_result(memory):
    patient = memory.start({"ph": 0.3})
    expected = patient.expect("lactate")
    recorded = memory.cohort.x[:, memory.cohort.names.index("lactate")]
    assert expected.is_monotonic_increasing and set(np.float32(expected)) <= set(recorded)
    levels = patient.expect(GRADE)
    assert set(levels.index) == {"A", "B", "C", "D"} and levels.sum() == pytest.approx(1)
    with pytest.raises(InputError, match="strictly between"):
        patient.expect("lactate", [0.5, 1.0])
    with pytest.raises(FeatureError):
        patient.expect("nothing")


def test_a_model_without_a_value_head_goes_on_by_its_gain_head(releases):
    memory = L2M(releases["plain"]).condition(make_cohort("binary"))
    patient = memory.start({"ph": 0.3})
    assert patient.answer.values is None and patient.outlook("lactate") is None
    gains = dict(zip(memory.cohort.names, patient.answer.gain[0].tolist(), strict=True))
    assert patient.open_gains["lactate"] == pytest.approx(gains["lactate"])
    assert list(patient.preview("lactate").result)[0].startswith("low")
    with pytest.raises(InputError, match="does not foresee"):
        patient.expect("lactate")


def test_members_of_a_panel_are_drawn_together(releases):
    memory = L2M(releases["foresees"]).condition(make_cohort("binary", panel=True))
    patient = memory.start({"crp": 0.1})
    gains = patient.open_gains
    assert gains["lactate"] == gains["ph"] > 0
    columns = [memory.cohort.names.index(name) for name in ("lactate", "ph")]
    together = outlooks(memory, patient.x[0], patient.answer.values[0], [columns])[0]
    assert together.results.shape[1] == 2 and together.gain == pytest.approx(gains["ph"])
    again = outlooks(memory, patient.x[0], patient.answer.values[0], [columns])[0]
    np.testing.assert_array_equal(together.results, again.results)


def test_of_few_results_none_is_left_out():
    few = Foreseen(np.array([0.0, 1.0, 2.0], np.float32), np.array([0.1, 0.1, 0.8]))
    assert low_and_high(few) is few
    one_is_likely = Foreseen(np.arange(5, dtype=np.float32), np.array([0.92, 0.02, 0.02, 0.02, 0.02]))
    assert low_and_high(one_is_likely) is one_is_likely  # a low and a high one would be the same
    spread = Foreseen(np.arange(7, dtype=np.float32), np.array([0.05, 0.15, 0.2, 0.2, 0.2, 0.15, 0.05]))
    assert low_and_high(spread).values.tolist() == [1, 5]


@pytest.mark.parametrize("seed", range(40))
def test_three_results_keep_the_mean_and_the_spread_of_all(seed):
    draw = np.random.default_rng(seed)
    count = int(draw.integers(4, 9))
    chances = draw.dirichlet(np.full(count, draw.choice([0.3, 1.0, 10.0]))).clip(2e-4)
    found = Foreseen(np.arange(count, dtype=np.float32), chances / chances.sum())
    few = three_results(found)
    assert 2 <= len(few.values) <= 3 and (np.diff(few.values) > 0).all()
    assert (few.chances > 0).all() and few.chances.sum() == pytest.approx(1)
    z = np.array([NormalDist().inv_cdf(level) for level in np.cumsum(found.chances) - found.chances / 2])
    kept = z[few.values.astype(int)]
    for power in (1, 2):
        assert few.chances @ kept**power == pytest.approx(found.chances @ z**power, abs=1e-6)


@pytest.mark.parametrize("likely", [1, 2, 4])
def test_of_results_that_are_next_to_impossible_none_is_tried(likely):
    chances = np.full(8, 1e-9)
    chances[:likely] = 1 / likely
    few = three_results(Foreseen(np.arange(8, dtype=np.float32), chances / chances.sum()))
    assert set(few.values) <= set(range(likely)) and len(few.values) == min(likely, 3)
    assert few.chances.sum() == pytest.approx(1)


def test_of_three_results_and_their_mirror_image_rounding_does_not_choose():
    chances = np.array([0.05, 0.15, 0.2, 0.2, 0.2, 0.15, 0.05])
    few = {
        tuple(three_results(Foreseen(np.arange(7, dtype=np.float32), chances * (1 + tiny * np.arange(7)))).values)
        for tiny in (-1e-14, 0.0, 1e-14)
    }
    assert len(few) == 1
    three = Foreseen(np.array([0.0, 1.0, 2.0], np.float32), np.array([0.1, 0.1, 0.8]))
    assert three_results(three) is three


# -- what results may lead to ---------------------------------------------------------------------------------------------


def test_movement_is_the_expected_change_of_the_belief(memory):
    patient = memory.start({"ph": 0.3})
    outlook, table = patient.outlook("lactate"), patient.preview("lactate")
    if isinstance(patient.posterior, np.ndarray):
        change = 0.5 * np.abs(table.iloc[:, 3:].to_numpy(dtype=float) - patient.posterior).sum(1)
        apart = 0.5 * np.abs(outlook.chances @ outlook.apart).sum()  # where the two beliefs agree about only
        assert outlook.movement <= np.sqrt(outlook.gain / 2) + apart + 1e-6
    else:
        change = np.abs(table["mean"] - patient.posterior.mean[0]) / memory.cohort.y.std()
    assert outlook.movement == pytest.approx(float(table.chance @ change), abs=1e-4)


def test_stopping_in_points_and_at_a_threshold(releases):
    memory = L2M(releases["foresees"]).condition(make_cohort("binary"))
    patient = memory.start({"ph": 0.3})
    most = 100 * max(outlook.movement for outlook in patient.ahead)
    assert patient.advice_by(Stopping(least_points=most - 0.01)) is None
    assert "Nothing left is likely to move this by more than" in patient.advice_by(Stopping(least_points=most + 0.01))
    results = patient.outlook(patient.suggestion)
    inside = float(results.beliefs[:, 1].mean())
    assert patient.advice_by(Stopping(threshold=inside)) is None
    chances = results.chances @ ((results.beliefs[:, 1] >= inside) != (patient.posterior[1] >= inside))
    assert results.crossing(inside) == pytest.approx(chances)
    assert "across 99.99%" in patient.advice_by(Stopping(threshold=0.9999))
    # A test that may cross the threshold is worth having, however little it moves the belief.
    assert patient.advice_by(Stopping(threshold=inside, least_points=99)) is None


@pytest.mark.parametrize(
    ("positive", "points"),
    [(4, 0.2), (196, 0.2), (10, 0.5), (20, 1.0), (100, 1.0)],  # of 200 rows
)
def test_of_a_rare_outcome_less_counts_as_a_move(positive: int, points: float) -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    assert least_points_for(l2m.Cohort.from_arrays(x, np.arange(200) < positive)) == points


def test_of_more_than_two_classes_and_of_numbers_a_point_counts() -> None:
    x = np.random.default_rng(0).normal(size=(200, 2))
    assert least_points_for(l2m.Cohort.from_arrays(x, (np.arange(200) < 4) + 2 * (np.arange(200) > 100))) == 1
    assert least_points_for(l2m.Cohort.from_arrays(x, x[:, 0], kind="continuous")) == 1


def test_of_a_number_the_reason_is_in_its_unit(releases) -> None:
    memory = L2M(releases["foresees"]).condition(make_cohort("continuous"))
    spread = float(memory.start({"ph": 0.3}).posterior.distribution.scale)
    said = memory.start({"ph": 0.3}).advice_by(Stopping(least_points=1000))
    assert said == f"Nothing left is likely to move this by more than {10 * spread:.2g}."


def test_a_model_that_foresees_nothing_is_not_stopped_by_rules_that_look_ahead(releases):
    patient = L2M(releases["plain"]).condition(make_cohort("binary")).start({"ph": 0.3})
    assert patient.ahead == () and patient.advice_by(Stopping(least_points=99, threshold=0.5)) is None


@pytest.mark.parametrize("rule", [{"threshold": 1.0}, {"threshold": 0}, {"least_points": -1}])
def test_rules_that_make_no_sense_are_refused(rule):
    with pytest.raises(ConfigError, match=next(iter(rule))):
        Stopping(**rule)


def test_rules_that_look_ahead_are_refused_in_bulk(memory):
    with pytest.raises(ConfigError, match="one patient"):
        memory.acquire(memory.cohort.x[:3], budget=2, stopping=Stopping(least_points=1))


def test_pairs_that_tell_more_than_their_parts(memory):
    patient = memory.start({"ph": 0.3})
    pairs = patient.together(times=0.0, least=0.0)
    assert len(pairs) == 3 and pairs.together.is_monotonic_decreasing  # lactate, crp, grade
    columns = [memory.cohort.names.index(name) for name in pairs.loc[0, ["first", "second"]]]
    joint = outlooks(memory, patient.x[0], patient.answer.values[0], [columns])[0]
    assert pairs.together[0] == pytest.approx(joint.gain)
    assert len(patient.together(times=1e9)) == 0


# -- the arithmetic -----------------------------------------------------------------------------------------------------


def test_mutual_information_of_known_cases():
    assert mutual_information(np.array([0.5, 0.5]), np.eye(2)) == pytest.approx(np.log(2))
    assert mutual_information(np.array([0.3, 0.7]), np.array([[0.2, 0.8]] * 2)) == 0


def test_chances_are_moved_as_little_as_balance_needs():
    chances, beliefs = np.array([0.25, 0.5, 0.25]), np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    same, is_balanced = balance(chances, beliefs - [0.5, 0.5])
    assert is_balanced and same == pytest.approx(chances, abs=1e-6)
    moved, is_balanced = balance(chances, beliefs - [0.6, 0.4])
    assert is_balanced and moved @ beliefs[:, 0] == pytest.approx(0.6, abs=0.01) and moved.sum() == pytest.approx(1)


def test_what_cannot_be_balanced_stays_and_is_said():
    chances, beliefs = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.8, 0.2]])
    same, is_balanced = balance(chances, beliefs - [0.3, 0.7])
    assert not is_balanced and same.tolist() == chances.tolist()


def test_the_head_is_taught_the_very_quantity(releases):
    """Training computes it in batches of tasks, the page for one patient: the same numbers."""
    release = releases["foresees"]
    prior = {"classes": build_prior("bnn", {"outcome": "classes"})}
    episode = EpisodeStream(
        prior, (Stage(steps=1, tasks=1, rows=(60,), features=(4,), context=(0.9,), continuous=0.0),), 3
    ).episode(0)
    tasks, n = episode.tasks, episode.context
    cohort = l2m.Cohort.from_arrays(
        np.where(tasks.r[0, :n], tasks.x[0, :n], np.nan),
        tasks.y[0, :n].numpy(),
        categorical=tasks.categorical[0].numpy(),
        kind="binary",
    )
    memory = L2M(release).condition(cohort)
    x, a = tasks.x[:, n:], episode.a
    shown = np.where(a[0], x[0], np.nan).astype(np.float32)
    with torch.no_grad():
        output = release.module.query(memory.memories[0], x, a)
        choices = torch.where(a, -1, torch.arange(4)).amax(-1, keepdim=True)
        taught = information_of_each(release.module, memory.memories[0], x, a, choices, output)[0, :, 0]
    for row, column in enumerate(choices[0, :, 0].tolist()):
        if column < 0:
            assert taught[row] == 0
            continue
        found = foresee(memory, memory.answer(shown[row : row + 1]).values[0], [column])[0]
        rows = np.repeat(shown[row : row + 1], len(found.values), 0)
        rows[:, column] = found.values
        assert float(taught[row]) == pytest.approx(
            mutual_information(found.chances, memory.predictions(rows)), abs=1e-6
        )


def test_the_head_learns_it(releases):
    prior = {"classes": build_prior("bnn", {"outcome": "classes"})}
    stream = EpisodeStream(prior, (Stage(steps=1, tasks=4, rows=(40,), features=(4,), continuous=0.0),), 3)
    torch.manual_seed(0)
    module = build_model(releases["foresees"].config)
    module.load_state_dict(releases["foresees"].module.state_dict())
    loss = GainLoss(module, "information", reveals=2)
    optimiser = torch.optim.Adam(module.gain.parameters(), lr=0.01)
    first, report = loss(stream.episode(0))
    assert report["target"] > 0
    for _ in range(40):
        optimiser.zero_grad()
        loss(stream.episode(0))[0].backward()
        optimiser.step()
    assert loss(stream.episode(0))[0] < 0.5 * first


def test_bulk_work_goes_by_the_head_unless_gains_are_asked_for(memory):
    x = memory.cohort.x[:4]
    orders = [memory.acquire(x, budget=3, policy=policy).actions.tolist() for policy in (None, "gain head", "gain")]
    assert orders[0] == orders[1] != orders[2]


def test_a_release_without_a_value_head_cannot_promise_its_gains(tmp_path):
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, max_classes=3, bins=12)
    with pytest.raises(ConfigError, match="foresees no results. Leave out that setting"):
        save_model(tmp_path / "m", build_model(config), config, TrainedRange(), AnswerSettings(gains="answers"), {})
    assert not (tmp_path / "m").exists()
    save_model(tmp_path / "m", build_model(config), config, TrainedRange(), AnswerSettings(gains="head"), {})
    facts = tmp_path / "m" / "model.yaml"
    facts.write_text(facts.read_text().replace("gains: head", "gains: answers"))
    with pytest.raises(ModelFileError, match="foresees no results"):
        load_release(tmp_path / "m")


@pytest.mark.parametrize("results", RESULTS)
def test_a_result_that_few_rows_have_and_that_settles_the_outcome_tells_something(results):
    """Fifteen of a thousand rows have an amount, all others none; whoever has any is ill."""
    generator = np.random.default_rng(0)
    amount = np.where(np.arange(1000) < 15, generator.uniform(1, 9, 1000).round(2), 0)
    ill = (amount > 0) | (generator.random(1000) < 0.15)
    x = np.c_[amount, generator.normal(size=1000)].astype(np.float32)
    release = l2m.load().release
    inference = replace(release.inference, results=results, aligned_states=0)
    memory = L2M(replace(release, inference=inference)).condition(l2m.Cohort.from_arrays(x, ill.astype(int)))
    unknown = np.full(2, np.nan, np.float32)
    told, _ = outlooks(memory, unknown, memory.answer(unknown[None]).values[0], [[0], [1]])
    found = foresee(memory, memory.answer(unknown[None]).values[0], [0])[0]
    if results == SHARED_VALUES:
        assert told.gain > 0.01 and found.values[0] == 0 and 0.9 < found.chances[0] < 0.999
    else:  # how earlier releases answer, and replay
        assert told.gain < 1e-6 and found.values.tolist() == [0]


def test_results_are_told_with_how_likely_each_is():
    told = words_for(np.array([0.952, 0.0046, 0.0434]))
    assert told == ["typical (95% likely)", "high (under 1% likely)", "very high (4% likely)"]


def test_no_two_results_have_one_name_unless_there_are_more_of_them_than_names():
    def names(chances):
        return [said.split(" (")[0] for said in words_for(np.array(chances))]

    assert names([0.02, 0.05, 0.93]) == ["very low", "low", "typical"]
    assert names([1.0]) == ["typical"] and names([]) == []
    assert names(CHANCES) == list(WORDS)
    assert len(names(np.full(8, 1 / 8))) == 8


def test_of_results_one_of_which_is_likelier_than_all_others_it_and_their_middle_are_tried():
    found = Foreseen(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.8, 0.05, 0.1, 0.05]))
    pair = low_and_high(found, shared_apart=True)
    assert pair.values.tolist() == [0, 2] and pair.chances == pytest.approx([0.8, 0.2])
    assert low_and_high(found).values.tolist() == [0, 2] and low_and_high(found).chances.tolist() == [0.5, 0.5]
    even = Foreseen(np.arange(4.0), np.full(4, 0.25))
    assert low_and_high(even, shared_apart=True).chances.tolist() == low_and_high(even).chances.tolist()
