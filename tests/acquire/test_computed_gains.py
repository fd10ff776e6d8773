"""Which gains are computed, which are estimated, and which are the head's number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from l2m_core.acquire import policies
from l2m_core.acquire.foreseen import foresee, low_and_high, three_results
from l2m_core.acquire.head_alignment import log_gain
from l2m_core.acquire.information import as_probabilities, balance, filled, mutual_information, outlooks
from l2m_core.acquire.policies import Gain
from tests.acquire.conftest import RARE


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
    monkeypatch.setattr(policies, "ROW_WORK", 0)  # no more than the least
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
    monkeypatch.setattr(policies, "ROW_WORK", 0)  # no more at first than the least
    monkeypatch.setattr(policies, "LEAST_TOLD", 0.0)
    Gain(computed=1, again=1).scores(memory, x, answer)
    assert len(computed) > 1 and set(computed) == {1}
    computed.clear()
    monkeypatch.setattr(policies, "LEAST_TOLD", 2 * tells[np.isfinite(tells)].max())
    Gain(computed=1, again=1).scores(memory, x, answer)
    assert computed == [1]


def test_a_release_says_how_many_are_computed_at_least(memory, monkeypatch):
    monkeypatch.setattr(policies, "ROW_WORK", 0)  # no more at first than the least
    at_first: list[int] = []

    def noting(memory, x, values, asked, rough_from):
        at_first.append(rough_from)
        return outlooks(memory, x, values, asked, rough_from)

    monkeypatch.setattr(policies, "outlooks", noting)
    x = memory.start({"ph": 0.3}).x
    for count in (1, 2):
        saying = replace(memory.release, inference=replace(memory.release.inference, computed_gains=count))
        Gain().scores(replace(memory, release=saying), x, memory.answer(x))
        assert at_first[0] == count
        at_first.clear()


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


@pytest.mark.parametrize(("count", "chosen"), [(2, low_and_high), (3, three_results)])
def test_tests_that_follow_are_estimated_from_a_few_results(memory, count, chosen):
    release = memory.release
    estimating = replace(release, inference=replace(release.inference, estimated_gains=8, estimated_from=count))
    near = replace(memory, release=estimating, alignment=None)
    x = memory.start({"ph": 0.3}).x
    answer = memory.answer(x)
    policy = Gain(computed=1, most=1)
    estimated, exact = (policy.scores(near, x, answer)[0], Gain(computed=9, most=9).scores(memory, x, answer)[0])
    first = int(np.nanargmax(np.where(np.isnan(x[0]) & memory.cohort.acquirable, answer.gain[0], np.nan)))
    assert estimated[first] == exact[first]  # what could come first is computed
    column = next(j for j in (0, 2) if j != first)
    foreseen = chosen(foresee(memory, answer.values[0], [column])[0])
    assert len(foreseen.values) == count
    assert count != 2 or foreseen.chances.tolist() == [0.5, 0.5]
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


def test_an_unavailable_test_is_not_computed_and_keeps_its_number(memory):
    patient = memory.start({"ph": 0.3}).unavailable("lactate")
    row = patient.ranking.set_index("feature").loc["lactate"]
    head = patient.answer.gain[0, memory.cohort.names.index("lactate")]
    assert row.gain == pytest.approx(float(head)) and not np.isfinite(row.score) and patient.suggestion != "lactate"
