"""Each hostile file is read rightly, or refused in words that say what, where and what to do."""

import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from tests.tables.hostile import parquets
from tests.tables.hostile.corpus import CASES, Hostile

CASES = [*CASES, *parquets.CASES]


def test_the_corpus_is_large_and_its_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 40


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_hostile_file_is_read_rightly_or_refused_in_words(case: Hostile):
    options = {"outcome": "died", **case.options}
    if case.right is None:
        with pytest.raises(InputError) as refusal:
            Cohort.from_csv(case.data, **options)
        message = str(refusal.value)
        assert [word for word in case.refused if word not in message] == [], message
        assert case.refused and len(message) < 700
    else:
        cohort = Cohort.from_csv(case.data, **options)
        assert case.right(cohort), (cohort.schema, cohort.warnings, cohort.x[:5])


@pytest.mark.parametrize("case", [case for case in CASES if len(case.data) < 100_000], ids=lambda case: case.name)
def test_a_damaged_hostile_file_never_ends_in_a_bare_exception(case: Hostile):
    """Cut at several places, doubled, reversed: whatever comes of it, it is a cohort or an InputError."""
    data, options = case.data, {"outcome": "died", **case.options}
    for cut in (1, len(data) // 3, len(data) // 2, max(len(data) - 2, 0)):
        for damaged in (data[:cut], data[cut:], data[:cut] + data, data[:cut] + b"\xff\x00" + data[cut:]):
            try:
                Cohort.from_csv(damaged, **options)
            except InputError as refusal:
                assert str(refusal)
