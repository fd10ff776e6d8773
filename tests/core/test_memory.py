"""The conditioned model: prediction, ranking, bulk, and what must never change an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.errors import CohortError, FeatureError, InputError, ModelFileError, RangeWarning
from l2m_core.memory import bootstrap_rows


def test_probabilities_sum_to_one_in_the_order_of_the_classes(memory):
    p = memory.predict({"age": 70, "sex": "F"})
    assert p.shape == (1, 2)
    assert memory.classes == ("no", "yes")
    assert p.sum() == pytest.approx(1.0)


def test_nothing_known_is_an_answer_too(memory, cohort):
    p = memory.predict([{}])[0]
    prevalence = (cohort.y == 1).mean()
    assert abs(p[1] - prevalence) < 0.15


def test_the_answer_follows_the_mechanism(memory):
    low, high = memory.predict([{"lactate": 0.8}, {"lactate": 6.0}])[:, 1]
    assert high > low + 0.1


def test_ranks_are_gains_of_acquirable_features_and_blank_where_known(memory):
    table = memory.rank(pd.DataFrame({"age": [50.0, 60.0], "lactate": [np.nan, 2.0]}, index=["a", "b"]))
    assert list(table.columns) == ["lactate", "sodium", "potassium", "ct"]
    assert list(table.index) == ["a", "b"]
    assert (table.loc["a"] >= 0).all()
    assert np.isnan(table.loc["b", "lactate"])


def test_for_predictions_alone_nothing_is_compared_and_they_are_the_same(model, cohort, memory):
    only = model.condition(cohort, rank=False)
    assert only.alignment is None and memory.alignment is not None
    np.testing.assert_array_equal(only.predict(cohort.x[:9]), memory.predict(cohort.x[:9]))


def test_many_patients_answer_as_each_alone(memory, cohort):
    x = cohort.x[:9]
    together = memory.predict(x)
    alone = np.concatenate([memory.predict(row[None]) for row in x])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_the_order_of_the_cohorts_rows_never_matters(model, cohort, memory):
    shuffled = model.condition(cohort.rows(np.random.default_rng(0).permutation(len(cohort))))
    np.testing.assert_allclose(shuffled.predict(cohort.x[:5]), memory.predict(cohort.x[:5]), atol=1e-5)


def test_conditioning_in_chunks_gives_the_same_answers(model, cohort, memory, monkeypatch):
    monkeypatch.setattr("l2m_core.answering.engine.CONTEXT_CHUNK", 17)
    in_chunks = model.condition(cohort)
    np.testing.assert_allclose(in_chunks.predict(cohort.x[:5]), memory.predict(cohort.x[:5]), atol=1e-5)


def test_a_continuous_outcome_gives_a_distribution(continuous_memory):
    predictive = continuous_memory.predict([{"x0": 1.0}, {"x0": -1.0}])
    assert len(predictive) == 2
    assert predictive.mean.shape == predictive.std.shape == (2,)
    assert (predictive.quantile(0.1) < predictive.quantile(0.9)).all()
    grid = np.linspace(-20, 40, 4001)
    np.testing.assert_allclose(np.trapezoid(predictive.pdf(grid), grid, axis=1), 1.0, atol=0.02)
    np.testing.assert_allclose(predictive.log_prob([9.0, 9.0]), np.log(predictive.pdf([9.0])[:, 0]), atol=1e-4)


def test_a_cohort_outside_the_trained_range_warns_in_words_and_answers(model):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 13))
    cohort = l2m.Cohort.from_arrays(x, np.arange(30) % 2)
    trained_on_few = l2m.L2M(replace(model.release, trained=replace(model.release.trained, features=8)))
    with pytest.warns(RangeWarning, match="13 features.*times"):
        memory = trained_on_few.condition(cohort)
    assert memory.predict(x[:2]).shape == (2, 2)
    assert memory.notes


def test_of_more_rows_than_tell_anything_an_even_part_is_read(model):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 3)).astype(np.float32)
    y = (x[:, 0] + rng.normal(size=3000) > 1).astype(np.int64)
    narrow = l2m.L2M(replace(model.release, inference=replace(model.release.inference, part_rows=1040)))
    with pytest.warns(RangeWarning, match="3,000 rows.*an even part of 2,080"):
        memory = narrow.condition(l2m.Cohort.from_arrays(x, y))
    assert [part.context_rows for part in memory.memories] == [1040, 1040]
    assert memory.rows_read == narrow.rows_read(memory.cohort) == 2080
    assert len(memory.cohort) == 3000 and memory.start({}).tests[0].support == 3000
    few = model.condition(l2m.Cohort.from_arrays(x[:600], y[:600]))
    assert np.abs(memory.predict(x[:50]) - few.predict(x[:50])).mean() < 0.05


def test_of_a_wide_cohort_so_many_rows_are_read_that_its_cells_are_bounded(model):
    narrow = l2m.L2M(replace(model.release, inference=replace(model.release.inference, most_cells=1200)))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 9)).astype(np.float32)
    y = (x[:, 0] > 0).astype(np.int64)
    with pytest.warns(
        RangeWarning, match="400 rows.*an even part of 120, since more of 9 features would take too long"
    ):
        memory = narrow.condition(l2m.Cohort.from_arrays(x, y))
    assert memory.rows_read == sum(part.context_rows for part in memory.memories) == 120
    assert memory.cells == 1200 and len(memory.cohort) == 400
    assert narrow.rows_read(l2m.Cohort.from_arrays(x[:, :2], y)) == 400
    assert narrow.rows_read(l2m.Cohort.from_arrays(np.tile(x, 3), y)) == 100


def test_more_classes_than_supported_are_refused(model):
    trained = replace(model.release.trained, classes=3)
    narrow = l2m.L2M(replace(model.release, trained=trained))
    x = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(CohortError, match="4 classes.*at most 3"):
        narrow.condition(l2m.Cohort.from_arrays(x, np.arange(60) % 4))


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros((2, 3)), "columns"),
        (np.full((1, 6), np.inf), "'age': inf must be finite"),
        (np.zeros((1, 6), "datetime64[D]"), r"must hold numbers; this one holds datetime64\[D\]"),
    ],
)
def test_arrays_that_cannot_be_patients_are_refused_by_name(memory, x, words):
    with pytest.raises(FeatureError, match=words):
        memory.predict(x)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda memory: memory.model.condition(pd.DataFrame({"a": [1]})), "The cohort is a DataFrame.*from_frame"),
        (lambda memory: memory.model.condition(memory.cohort, exponent=float("nan")), "exponent is nan"),
        (lambda memory: memory.model.condition(memory.cohort, exponent=-1), "exponent is -1"),
        (lambda memory: memory.resampled(rows=0), "rows is 0; it must be at least 1"),
        (lambda memory: memory.resampled(count=0), "count is 0; it must be at least 1"),
        (lambda memory: memory.resampled(2.5), "count is 2.5; it must be a whole number of at least 1"),
        (lambda memory: memory.resampled(rows="30"), "rows is '30'; it must be a whole number of at least 1"),
        (lambda memory: memory.resampled(seed=-1), "seed is -1; it must be at least 0"),
        (lambda memory: memory.start({}, stopping={"budget": 2}), "stopping is a dict; give a Stopping"),
        (
            lambda memory: memory.acquire(memory.cohort.x[:1], stopping={"budget": 2}),
            "stopping is a dict; give a Stopping",
        ),
        (lambda memory: memory.acquire(memory.cohort.x[:1], policy=3), "policy is 3; give a policy's name"),
        (lambda memory: memory.start([1, 2]), "The values are a list; they must be a mapping"),
    ],
)
def test_a_slip_is_told_in_words(memory, ask, words):
    with pytest.raises(InputError, match=words):
        ask(memory)


def test_a_model_is_named_by_a_text_or_a_folder():
    with pytest.raises(ModelFileError, match="named by a text or a folder, not by None"):
        l2m.load(None)  # type: ignore[arg-type]


def test_a_patient_may_come_as_a_row_of_a_table(memory):
    row = pd.Series({memory.cohort.names[0]: 1.0})
    assert memory.start(row).state.values == {memory.cohort.names[0]: 1.0}


def test_one_level_may_be_asked_for_by_itself(memory):
    patient, name = memory.start({}), memory.cohort.names[0]
    assert patient.expect(name, 0.5).tolist() == patient.expect(name, [0.5]).tolist()


def test_it_is_shown_in_a_line(memory):
    assert repr(memory) == f"CohortMemory({memory.model!r} on {memory.cohort!r})" and "\n" not in repr(memory)


def test_resampled_memories_move_the_answer_a_little(memory):
    answers = [m.predict({"age": 70, "lactate": 4.0})[0, 1] for m in memory.resampled(3)]
    assert 0 < np.ptp(answers) < 0.8


def test_resampling_is_seeded(memory):
    first, again = (memory.resampled(2, seed=5)[1].predict({"age": 70}) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_bootstrap_sample_draws_patients_with_all_their_visits():
    visits = np.random.default_rng(1).permutation(np.repeat(np.arange(50), 4))
    frame = pd.DataFrame({"patient_id": [f"P{visit}" for visit in visits], "a": np.arange(200) % 7, "died": visits % 2})
    cohort = l2m.Cohort.from_frame(frame, outcome="died").without_table()
    for rows in (200, 80):
        drawn = bootstrap_rows(cohort, rows, np.random.default_rng(0))
        times = np.bincount(drawn, minlength=200)
        assert len(drawn) == rows and all(len(set(times[cohort.patients == patient])) == 1 for patient in range(50))
    alone = l2m.Cohort.from_frame(frame.drop(columns="patient_id"), outcome="died")
    assert np.array_equal(
        bootstrap_rows(alone, 80, np.random.default_rng(0)), np.sort(np.random.default_rng(0).integers(0, 200, 80))
    )
