"""What an earlier release answers on ten cohorts, as it answered when the golden files were made."""

import copy

import pytest

import l2m_core as l2m
from tests.golden import agreement, answers, inside
from tests.golden.cohorts import COHORTS

KEPT = agreement.read("answers.json")


@pytest.fixture(scope="module")
def model() -> l2m.L2M:
    return l2m.load(inside.GOLDEN_MODEL)


def test_every_cohort_is_kept() -> None:
    assert set(KEPT) == {*COHORTS, "estimators"}


@pytest.mark.parametrize("name", COHORTS)
def test_a_cohort_and_the_answers_on_it_are_what_they_were(name: str, model: l2m.L2M) -> None:
    cohort = COHORTS[name]()
    assert list(agreement.differences(answers.of_cohort(cohort), KEPT[name]["cohort"])) == []
    now = answers.of_model(inside.condition(model, cohort))
    assert list(agreement.differences(now, KEPT[name]["model"])) == []


def test_the_estimators_answer_as_they_did() -> None:
    assert list(agreement.differences(answers.of_estimators(), KEPT["estimators"])) == []


# -- the comparison itself notices ----------------------------------------------------------------------------------


def changed(path: tuple, value: object) -> dict:
    other = copy.deepcopy(KEPT["ward"])
    part = other
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return other


STATE = ("model", "patients", 0, "states", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cohort", "content_hash"), "0" * 64),
        ((*STATE, "posterior", 0), KEPT["ward"]["model"]["patients"][0]["states"][0]["posterior"][0] + 2e-5),
        ((*STATE, "ranking", "feature"), KEPT["ward"]["model"]["patients"][0]["states"][0]["ranking"]["feature"][::-1]),
        ((*STATE, "ranking", "status", 0), "known"),
        ((*STATE, "ranking", "support", 0), 1),
        ((*STATE, "suggestion"), None),
        (("model", "acquire", "feature", 0), "scan"),
        (("model", "notes"), ["a note"]),
    ],
)
def test_a_change_is_noticed(path: tuple, value: object) -> None:
    assert len(list(agreement.differences(changed(path, value), KEPT["ward"]))) >= 1


def test_two_tests_of_nearly_the_same_score_may_change_places() -> None:
    then = {"feature": ["a", "b", "c", "d"], "score": [0.5, 0.2000001, 0.2, None]}
    swapped = {"feature": ["a", "c", "b", "d"], "score": [0.5, 0.2000001, 0.2, None]}
    assert list(agreement.differences(swapped, then)) == []
    moved = {"feature": ["b", "a", "c", "d"], "score": [0.5, 0.2, 0.2, None]}
    assert list(agreement.differences(moved, then)) != []
    closed = {"feature": ["a", "b", "d", "c"], "score": [0.5, 0.2000001, None, 0.2]}
    assert list(agreement.differences(closed, then)) != []
