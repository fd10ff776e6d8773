"""A level that the cohort never had moves no belief, unless others are 'other' too."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from l2m_core.answering.other_levels import OtherLevels
from l2m_core.answering.settings import AnswerSettings
from l2m_core.cohort import Cohort, UnseenLevelWarning
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M, CohortMemory, load

N = 120


def cohort_of(unnamed: bool = False) -> Cohort:
    """unnamed: rows of a level that is too rare to keep its name."""
    generator = np.random.default_rng(0)
    pain = generator.integers(0, 2, N)
    ward = np.array(["icu", "home", "ward"], dtype=object)[generator.integers(0, 3, N)]
    if unnamed:
        ward[:80] = [f"place {number}" for number in range(80)]
    ill = (pain + generator.normal(size=N) > 0.8).astype(int)
    age = generator.normal(60, 10, N).round()
    return Cohort.from_frame(
        pd.DataFrame({"pain": np.where(pain, "yes", "no"), "ward": ward, "age": age, "ill": ill}), "ill"
    )


def read(unseen: str) -> CohortMemory:
    release = load("general").release
    return L2M(dataclasses.replace(release, inference=dataclasses.replace(release.inference, unseen=unseen))).read(
        cohort_of()
    )


@pytest.fixture(scope="module")
def memory() -> CohortMemory:
    return read("not known")


@pytest.mark.filterwarnings("ignore::l2m_core.cohort.UnseenLevelWarning")
def test_a_level_that_nobody_has_moves_no_belief(memory):
    unknown, perhaps = memory.predict([{"age": 70}, {"age": 70, "pain": "perhaps"}])
    np.testing.assert_allclose(unknown, perhaps, atol=1e-6)
    known = memory.predict([{"age": 70, "pain": "yes"}, {"age": 70, "pain": "no"}])
    assert known[0, 1] > unknown[1] + 0.05 > known[1, 1] + 0.1
    patient = memory.start({"age": 70}).observe("pain", "perhaps")
    np.testing.assert_allclose(patient.posterior, unknown, atol=1e-6)
    assert "pain" not in patient.open_gains  # it was asked for, and has an answer


def test_other_tells_what_those_are_who_are_other():
    cohort = cohort_of(unnamed=True)
    assert "ward" not in [cohort.names[j] for j in OtherLevels.of(cohort).columns]
    assert "pain" in [cohort.names[j] for j in OtherLevels.of(cohort).columns]


def test_named_levels_and_numbers_stay_as_they_are():
    cohort = cohort_of()
    np.testing.assert_array_equal(OtherLevels.of(cohort).not_known(cohort.x), cohort.x)


def test_an_earlier_release_answers_as_it_did(memory):
    codes = np.array([[np.nan, np.nan, 70], [2, np.nan, 70]], dtype=np.float32)
    as_coded, not_known = read("as coded").predict_array(codes), memory.predict_array(codes)
    assert abs(as_coded[1] - as_coded[0]).max() > 0.01
    np.testing.assert_allclose(not_known[1], not_known[0], atol=1e-6)


def test_another_word_is_refused():
    with pytest.raises(ConfigError, match="unseen is 'ignored'; it must be one of as coded, not known"):
        AnswerSettings(unseen="ignored")


def test_the_warning_says_what_it_means(memory):
    with pytest.warns(UnseenLevelWarning, match="read as 'other', which tells nothing unless"):
        memory.predict([{"pain": "perhaps"}])
