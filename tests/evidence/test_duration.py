"""How long it will take is told before it is started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from l2m_core.evidence.duration import Pace, expected_seconds, in_words, measure_pace
from tests.evidence.conftest import SETTINGS, small_cohort

PACE = Pace(reading=1.0, aligning=1.0, asking=0.01, growing=0.001)


def seconds(model, rows: int = 60, **changes) -> float:
    return expected_seconds(model, small_cohort(rows=rows), replace(SETTINGS, **changes), PACE)


def test_more_work_takes_longer(model):
    usual = seconds(model)
    assert seconds(model, rows=600) > 2 * usual
    assert seconds(model, folds=5) > usual and seconds(model, most_rows=60) > usual and seconds(model, budget=1) < usual
    assert seconds(model, council=False) < usual and seconds(model, conventional=False) < usual


def test_a_trial_measures_every_part(model, cohort):
    pace = measure_pace(model, cohort)
    assert pace.reading > 0 and pace.aligning > 0 and pace.asking > 0 and pace.growing > 0
    assert measure_pace(model, cohort, conventional=False).growing == 0
    assert expected_seconds(model, cohort, SETTINGS) > 0


@pytest.mark.parametrize(
    ("seconds", "words"), [(3, "About 10 s"), (44, "About 40 s"), (300, "About 5 min"), (2 * 3600, "About 2.0 h")]
)
def test_it_is_told_in_words(seconds, words):
    assert in_words(seconds) == words
