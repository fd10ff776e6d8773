"""The gain of a test is what the model's own answers say it is, and what is shown beforehand is what comes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch

import l2m_core as l2m
from l2m_core import metrics
from l2m_core.acquire import policies
from l2m_core.acquire.foreseen import FEWEST_RECORDED, Foreseen, foresee, low_and_high, words_for
from l2m_core.acquire.head_alignment import log_gain
from l2m_core.acquire.information import as_probabilities, balance, filled, mutual_information, outlooks
from l2m_core.acquire.policies import Gain
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.release import Release, load_release, save_model
from l2m_core.answering.settings import RESULTS, SHARED_VALUES, AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError, FeatureError, InputError, ModelFileError
from l2m_core.learn.losses import GainLoss, information_of_each
from l2m_core.learn.stages import EpisodeStream, Stage
from l2m_core.memory import L2M
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from l2m_core.schema import Overrides
from l2m_core.tasks.registry import build_prior

NUMBERS, GRADE, RARE = ("lactate", "ph", "crp"), "grade", "rare"
KINDS = ("binary", "multiclass", "continuous")


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Release]:
    """Tiny models with weights drawn at random: one that foresees results, one that does not, one that answers alike
    whatever it is shown."""
    made = {}
    for name, bins in (("foresees", 6), ("plain", 0), ("silent", 6)):
        config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, max_classes=3, bins=12, value_bins=bins)
        torch.manual_seed(1)
        module = build_model(config)
        if name != "silent":
            for parameter in module.parameters():
                torch.nn.init.normal_(parameter, std=0.35)
        folder = tmp_path_factory.mktemp("models") / name
        save_model(folder, module, config, TrainedRange(), AnswerSettings(gains="answers" if bins else "head"), {})
        made[name] = load_release(folder)
    return made


def make_cohort(kind: str, panel: bool = False) -> l2m.Cohort:
    """Three numbers, a grade of four levels, and a test that five rows have."""
    generator = np.random.default_rng(5)
    frame = {name: generator.normal(size=80).round(2) for name in NUMBERS}
    frame["grade"] = generator.choice(["A", "B", "C", "D"], 80)
    frame["rare"] = np.where(np.arange(80) < 5, generator.normal(size=80), np.nan)
    signal = frame["lactate"] + 0.3 * generator.normal(size=80)
    classes = np.array(["low", "middle", "high"])[np.digitize(signal, [-0.5, 0.5])]
    frame["y"] = {"binary": signal > 0, "multiclass": classes, "continuous": signal}[kind]
    features = {name: {"group": "gas"} for name in ("lactate", "ph")} if panel else {}
    return l2m.Cohort.from_frame(pd.DataFrame(frame), outcome="y", schema=Overrides(features, {}))


@pytest.fixture(params=KINDS)
def memory(request, releases):
    return L2M(releases["foresees"]).condition(make_cohort(request.param))


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


def test_every_test_that_could_come_first_is_computed(memory):
    patient = memory.start({"ph": 0.3})
    few = {t.feature: t.gain for t in memory.start({"ph": 0.3}, policy=Gain(computed=1, most=9)).tests}
    best = max((name for name in few if np.isfinite(few[name])), key=few.get)
    assert few[best] == pytest.approx(patient.outlook(best).gain, abs=1e-6)


def test_where_a_cohort_is_short_more_tests_are_computed_at_first(memory, monkeypatch):
    x = memory.start({"ph": 0.3}).x
    is_open = np.isnan(x[0])
    # A head that promises nothing of all but the first: no test is computed but those of the first query.
    answer = memory.answer(x)
    promising = replace(answer, gain=np.where(np.arange(len(x[0])) == 0, answer.gain, 0.0))
    every = Gain(computed=9, most=9).scores(memory, x, answer)[0][is_open]
    np.testing.assert_array_equal(Gain(computed=1).scores(memory, x, promising)[0][is_open], every)
    monkeypatch.setattr(policies, "WORK", 8 * memory.work)
    one = Gain(computed=1).scores(memory, x, promising)[0][is_open]
    assert one[0] == every[0] and (one == 0).sum() > (every == 0).sum()


def promising_too_much(memory, x):
    """An answer whose head promises half as much again of every test as the most telling one tells; and what each tells."""
    answer = memory.answer(x)
    tells = Gain(computed=9, most=9).scores(memory, x, answer)[0]
    return replace(
        answer, gain=np.where(np.isfinite(answer.gain), 1.5 * tells[np.isfinite(tells)].max(), answer.gain)
    ), tells


def test_later_queries_ask_for_few_tests_and_for_none_that_tells_next_to_nothing(memory, monkeypatch):
    x = memory.start({"ph": 0.3}).x
    answer, tells = promising_too_much(memory, x)
    computed: list[int] = []

    def noting(memory, x, values, asked, rough_from):
        computed.append(rough_from)
        return outlooks(memory, x, values, asked, rough_from)

    monkeypatch.setattr(policies, "outlooks", noting)
    monkeypatch.setattr(policies, "WORK", 8 * memory.work)
    monkeypatch.setattr(policies, "LEAST_TOLD", 0.0)
    Gain(computed=1, again=1).scores(memory, x, answer)
    assert len(computed) > 1 and set(computed) == {1}
    computed.clear()
    monkeypatch.setattr(policies, "LEAST_TOLD", 2 * tells[np.isfinite(tells)].max())
    Gain(computed=1, again=1).scores(memory, x, answer)
    assert computed == [1]


def test_what_is_not_computed_follows_what_is(memory):
    """A head that promises ten times too much of all tests is taken down where nothing is computed, too."""
    x = memory.start({"ph": 0.3}).x
    answer = memory.answer(x)
    some = Gain(computed=3, most=3)
    (plain,), (tenfold,) = (some.scores(memory, x, replace(answer, gain=times * answer.gain)) for times in (1, 10))
    is_open = np.isnan(x[0]) & memory.cohort.acquirable
    by_head = np.argsort(np.where(is_open, -answer.gain[0], np.inf))
    computed, rest = by_head[:3], by_head[3 : is_open.sum()]
    np.testing.assert_array_equal(tenfold[computed], plain[computed])  # what is computed does not ask the head
    assert len(rest) and (tenfold[rest] < 9 * plain[rest]).all()
    np.testing.assert_allclose(
        tenfold[rest] / tenfold[rest[0]], answer.gain[0, rest] / answer.gain[0, rest[0]], rtol=1e-5
    )


def test_tests_that_follow_are_estimated_from_two_results(memory):
    release = memory.release
    estimating = replace(release, inference=replace(release.inference, estimated_gains=8))
    near = replace(memory, release=estimating, alignment=None)
    x = memory.start({"ph": 0.3}).x
    answer = memory.answer(x)
    policy = Gain(computed=1, most=1)
    estimated, exact = (policy.scores(near, x, answer)[0], Gain(computed=9, most=9).scores(memory, x, answer)[0])
    first = int(np.nanargmax(np.where(np.isnan(x[0]) & memory.cohort.acquirable, answer.gain[0], np.nan)))
    assert estimated[first] == exact[first]  # what could come first is computed
    column = next(j for j in (0, 2) if j != first)
    foreseen = low_and_high(foresee(memory, answer.values[0], [column])[0])
    assert len(foreseen.values) == 2 and foreseen.chances.tolist() == [0.5, 0.5]
    beliefs = memory.predictions(filled(x[0], [column], foreseen.values[:, None]))
    now = memory.predictions(x)
    apart = beliefs - now if isinstance(beliefs, np.ndarray) else (beliefs.mean - now.mean)[:, None] / scale_of(beliefs)
    chances, _ = balance(foreseen.chances, apart)
    assert estimated[column] == pytest.approx(mutual_information(chances, as_probabilities(beliefs)), abs=1e-6)


@dataclass(frozen=True)
class AsTaught:
    """An alignment that leaves the head as it is."""

    share_of_estimates: float

    def applied(self, gain, features):
        return gain


def test_the_head_may_have_a_share_in_what_is_estimated(memory):
    release = memory.release
    estimating = replace(release, inference=replace(release.inference, estimated_gains=8))
    x = memory.start({"ph": 0.3}).x
    answer, policy = memory.answer(x), Gain(computed=1, most=1)
    shares = (0.0, 0.5, 1.0)
    alone, half, head = (
        policy.scores(replace(memory, release=estimating, alignment=AsTaught(share)), x, answer)[0] for share in shares
    )
    rare = memory.cohort.names.index(RARE)
    told = np.isnan(x[0]) & memory.cohort.acquirable & (np.arange(len(half)) != rare)
    np.testing.assert_allclose(log_gain(half)[told], (log_gain(alone)[told] + log_gain(head)[told]) / 2, rtol=1e-5)
    assert (alone != head)[told].any()
    assert half[rare] == -np.inf  # too rarely recorded to say, whatever the head says


def scale_of(belief) -> float:
    return belief.distribution.scale.item()


def test_of_few_results_none_is_left_out():
    few = Foreseen(np.array([0.0, 1.0, 2.0], np.float32), np.array([0.1, 0.1, 0.8]))
    assert low_and_high(few) is few
    one_is_likely = Foreseen(np.arange(5, dtype=np.float32), np.array([0.92, 0.02, 0.02, 0.02, 0.02]))
    assert low_and_high(one_is_likely) is one_is_likely  # a low and a high one would be the same
    spread = Foreseen(np.arange(7, dtype=np.float32), np.array([0.05, 0.15, 0.2, 0.2, 0.2, 0.15, 0.05]))
    assert low_and_high(spread).values.tolist() == [1, 5]


def test_an_unavailable_test_is_not_computed_and_keeps_its_number(memory):
    patient = memory.start({"ph": 0.3}).unavailable("lactate")
    row = patient.ranking.set_index("feature").loc["lactate"]
    head = patient.answer.gain[0, memory.cohort.names.index("lactate")]
    assert row.gain == pytest.approx(float(head)) and not np.isfinite(row.score) and patient.suggestion != "lactate"


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
    assert "across 100%" in patient.advice_by(Stopping(threshold=0.9999))
    # A test that may cross the threshold is worth having, however little it moves the belief.
    assert patient.advice_by(Stopping(threshold=inside, least_points=99)) is None


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
    save_model(tmp_path / "m", build_model(config), config, TrainedRange(), AnswerSettings(gains="answers"), {})
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
    assert told == ["typical (95% likely)", "very high (under 1% likely)", "very high (4% likely)"]


def test_of_results_one_of_which_is_likelier_than_all_others_it_and_their_middle_are_tried():
    found = Foreseen(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.8, 0.05, 0.1, 0.05]))
    pair = low_and_high(found, shared_apart=True)
    assert pair.values.tolist() == [0, 2] and pair.chances == pytest.approx([0.8, 0.2])
    assert low_and_high(found).values.tolist() == [0, 2] and low_and_high(found).chances.tolist() == [0.5, 0.5]
    even = Foreseen(np.arange(4.0), np.full(4, 0.25))
    assert low_and_high(even, shared_apart=True).chances.tolist() == low_and_high(even).chances.tolist()
