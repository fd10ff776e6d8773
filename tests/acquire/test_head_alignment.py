"""The gain head is brought in line with the model's own answers on the cohort that was read."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import l2m_core as l2m
from l2m_core.acquire.head_alignment import ALIGNMENTS, LEAST, HeadAlignment, align_head, fit_alignment
from l2m_core.acquire.information import outlooks
from l2m_core.answering.settings import COLUMN, FEW_STATES, HIDDEN_LAYER, LIKE_TESTS, NEAR_TESTS
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M, READING, CohortMemory


def with_states(states: int, aligned_by: str = HIDDEN_LAYER) -> L2M:
    release = l2m.load().release
    settings = replace(release.inference, aligned_states=states, aligned_by=aligned_by)
    return L2M(replace(release, inference=settings))


def make_cohort(rows: int = 150, seed: int = 3) -> Cohort:
    """Some columns tell of the outcome, and tell alike; some tell nothing."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 8)).astype(np.float32)
    x[:, 1] = x[:, 0] + 0.3 * generator.normal(size=rows)
    x[generator.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 2]) ** 2 + generator.normal(size=rows) > 0.8
    return Cohort.from_arrays(x, y.astype(int))


def apart(memory: CohortMemory, patients: np.ndarray) -> float:
    """How far the head is from the model's own answers: mean distance of logarithms, over open tests."""
    answer = memory.answer(patients)
    distances = []
    for x, gain, values in zip(patients, answer.gain, answer.values, strict=True):
        columns = np.flatnonzero(np.isnan(x))
        exact = np.array([o.gain for o in outlooks(memory, x, values, [[c] for c in columns])])
        distances.append(np.abs(np.log(gain[columns] + LEAST) - np.log(exact + LEAST)))
    return float(np.concatenate(distances).mean())


@pytest.mark.parametrize(
    ("aligned_by", "most"),
    [(COLUMN, 0.95), (HIDDEN_LAYER, 0.85), (LIKE_TESTS, 0.75), (NEAR_TESTS, 0.75), (FEW_STATES, 0.75)],
)
def test_the_head_is_nearer_to_the_answers_for_patients_it_was_not_fitted_to(aligned_by, most):
    cohort = make_cohort()
    patients = make_cohort(24, seed=8).x.copy()
    patients[np.random.default_rng(9).random(patients.shape) < 0.6] = np.nan
    as_taught, aligned = (with_states(states, aligned_by).condition(cohort) for states in (0, 48))
    assert as_taught.alignment is None and aligned.alignment is not None
    assert apart(aligned, patients) < most * apart(as_taught, patients)
    before, after = (memory.answer(patients) for memory in (as_taught, aligned))
    np.testing.assert_array_equal(before.prediction, after.prediction)  # beliefs are as they were


def test_what_is_told_of_the_reading_s_progress_includes_the_alignment():
    told = {}
    for states in (0, 6):
        shares: list[float] = []
        with_states(states).condition(make_cohort(60), progress=shares.append)
        assert shares == sorted(shares) and shares[-1] == 1.0
        told[states] = shares
    # One share for each state, the last of them before its end; none of them says that all is done.
    assert len([share for share in told[6] if READING <= share < 1.0]) >= 6
    assert max(share for share in told[6][:-1]) < 1.0


def test_it_is_the_same_however_the_rows_stand():
    cohort = make_cohort(60)
    other = cohort.rows(np.random.default_rng(1).permutation(60))
    patients = np.full((1, 8), np.nan, np.float32)
    first, second = (with_states(4).condition(each).answer(patients).gain for each in (cohort, other))
    np.testing.assert_allclose(first, second, rtol=1e-3, atol=1e-6)


COLUMNS = np.arange(40) % 2


def fitted(aligned_by: str, off: np.ndarray, hidden: np.ndarray | None = None) -> HeadAlignment:
    """To a head that says 0.1 nats everywhere, where the answers say off (40,) times as much, in two columns by turns."""
    head = np.full(40, 0.1)
    return fit_alignment(ALIGNMENTS[aligned_by], COLUMNS, head, off * head, hidden)


def test_gains_stay_gains():
    alignment = fitted(COLUMN, np.where(COLUMNS == 0, 1.0, 0.2))
    gain = torch.tensor([[0.0, 0.0], [0.01, 0.01], [0.3, 0.3]])
    aligned = alignment.applied(gain, None)
    assert aligned.dtype == gain.dtype and (aligned >= 0).all() and (aligned.diff(dim=0) >= 0).all()
    assert (aligned[:, 0] >= aligned[:, 1]).all()  # a column that the head overrates comes later
    np.testing.assert_allclose(alignment.applied(torch.full((1, 2), 0.1), None), [[0.1, 0.02]], rtol=0.3)


@pytest.mark.parametrize("aligned_by", [HIDDEN_LAYER, LIKE_TESTS, NEAR_TESTS])
def test_by_the_hidden_layer_a_test_is_corrected_in_some_states_only_and_never_further_than_was_seen(aligned_by):
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=(40, 3)).astype(np.float32)
    hidden[:, 0] = np.repeat([-1.0, 1.0], 20)
    alignment = fitted(aligned_by, np.repeat([1.0, 3.0], 20), hidden)
    features = torch.zeros(3, 2, 3)
    features[:, :, 0] = torch.tensor([-1.0, 1.0, 90.0])[:, None]
    correction = torch.log(alignment.applied(torch.full((3, 2), 0.1), features) / 0.1)
    assert (correction[0].abs() < 0.25).all() and (correction[1] > 0.75).all()
    assert (correction[2] <= np.log(3.0) + 1e-3).all()


def test_like_tests_are_corrected_alike_where_no_direction_could_do_it():
    """Tests on both sides are underrated, those between are not."""
    hidden = np.zeros((40, 2), np.float32)
    hidden[:, 0] = np.repeat([-1.0, 0.0, 1.0, 0.0], 10)
    off = np.repeat([3.0, 1.0, 3.0, 1.0], 10)
    features = torch.tensor([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])[:, None].expand(3, 2, 2)
    by_direction, by_like = (
        torch.log(fitted(aligned_by, off, hidden).applied(torch.full((3, 2), 0.1), features) / 0.1).numpy()
        for aligned_by in (HIDDEN_LAYER, LIKE_TESTS)
    )
    truth = np.log([[3.0], [1.0], [3.0]])
    assert np.abs(by_like - truth).max() < 0.2 < np.abs(by_direction - truth).max()


def ridge(column: np.ndarray, head: np.ndarray, exact: np.ndarray, hidden: np.ndarray | None) -> np.ndarray:
    """(m,) corrections of the tests fitted to, as general-2 and general-3 were released with: by ridge regression on a constant,
    the head's own size, the column and the hidden layer, whose coefficients are held by 1, 4, 1 and 5 observations."""
    log = np.log(head + LEAST)
    design, held = [np.ones((len(log), 1)), (log - log.mean())[:, None], np.eye(2)[column]], [1.0, 4.0, 1.0, 1.0]
    if hidden is not None:
        design.append((hidden - hidden.mean(0)) / (hidden.std() + LEAST))
        held += [5.0] * hidden.shape[1]
    table = np.concatenate(design, axis=1)
    found = np.linalg.solve(table.T @ table + np.diag(held), table.T @ (np.log(exact + LEAST) - log))
    return table @ found


@pytest.mark.parametrize("aligned_by", [COLUMN, HIDDEN_LAYER])
def test_with_linear_parts_alone_corrections_are_those_of_earlier_releases(aligned_by):
    generator = np.random.default_rng(2)
    head, exact = generator.gamma(0.5, 0.1, (2, 40))
    hidden = generator.normal(size=(40, 6)) if aligned_by == HIDDEN_LAYER else None
    alignment = fit_alignment(ALIGNMENTS[aligned_by], COLUMNS, head, exact, hidden)
    # Tests of both columns in every row; each row's own is the one that was fitted to.
    gain = torch.from_numpy(np.repeat(head[:, None], 2, axis=1))
    features = None if hidden is None else torch.from_numpy(np.repeat(hidden[:, None], 2, axis=1))
    corrected = alignment.applied(gain, features).numpy()[np.arange(40), COLUMNS]
    correction = ridge(COLUMNS, head, exact, hidden)
    if hidden is not None:
        off = np.log(exact + LEAST) - np.log(head + LEAST)
        correction = correction.clip(off.min(), off.max())
    expected = np.maximum((head + LEAST) * np.exp(correction) - LEAST, 0.0)
    np.testing.assert_allclose(corrected, expected, rtol=1e-9, atol=1e-12)


def test_in_every_state_the_test_that_the_head_puts_first_is_compared(monkeypatch):
    memory = with_states(0, LIKE_TESTS).condition(make_cohort(60))
    states: list[np.ndarray] = []
    answer = CohortMemory.answer

    def watched(self, x):
        # What another test left running may ask about a cohort of its own.
        if self.cohort is memory.cohort:
            states.extend(x)
        return answer(self, x)

    monkeypatch.setattr(CohortMemory, "answer", watched)
    alignment = align_head(memory, memory.cohort.x, 12)
    monkeypatch.undo()
    assert alignment is not None and len(states) > 6
    compared = iter(alignment.fitted.column.tolist())
    for state in states:
        gain = np.where(np.isnan(state), memory.answer(state[None]).gain[0], -1.0)
        columns = [next(compared) for _ in range(min(4, int(np.isnan(state).sum())))]
        assert columns[0] == gain.argmax() and len(set(columns)) == len(columns)


def test_bootstrap_samples_share_the_cohort_s_alignment():
    memory = with_states(4).condition(make_cohort(60))
    assert all(sample.alignment is memory.alignment for sample in memory.resampled(2))


def test_a_model_whose_gains_are_the_head_s_is_left_as_it_is():
    assert l2m.load("general-1").condition(make_cohort(60)).alignment is None


def test_where_every_test_is_too_rarely_recorded_nothing_is_aligned():
    cohort = make_cohort(60)
    x = cohort.x.copy()
    x[5:] = np.nan
    memory = with_states(0).condition(Cohort.from_arrays(x, cohort.y))
    assert align_head(memory, x, 4) is None


def test_what_a_release_cannot_be_aligned_by_is_refused():
    with pytest.raises(ConfigError, match="aligned_by is 'rows'; it must be one of column, hidden layer, like tests"):
        with_states(4, "rows")


@pytest.mark.parametrize("states", [-1, 2.5, True])
def test_a_number_of_states_that_is_none_is_refused(states):
    with pytest.raises(ConfigError, match="aligned_states is"):
        with_states(states)
