"""The bundled cohorts: what is said of them holds."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from app.examples import EXAMPLES, chest_pain
from app.host import services
from l2m_core.cohort import Cohort
from tests.app.conftest import Restart


@pytest.fixture(scope="module")
def triage() -> Cohort:
    return EXAMPLES[0].make()


def test_chest_pain_has_what_a_clinician_expects(triage: Cohort) -> None:
    assert len(triage) == 1000 and len(triage.names) == 20
    tests = [feature for feature in triage.features if feature.role == "acquirable"]
    assert all(test.cost > 0 and test.turnaround for test in tests)
    assert all(test.unit and test.range_text for test in tests if test.kind == "number")
    assert len(triage.schema.groups) >= 2 and {feature.kind for feature in tests} == {"number", "category"}
    assert 0.1 < np.mean(triage.y) < 0.4 and 0.1 < np.mean(~triage.r) < 0.4


def test_its_mechanism_is_the_one_that_is_described(triage: Cohort) -> None:
    def separation(name: str) -> float:
        column = triage.names.index(name)
        rows = triage.r[:, column]
        return float(roc_auc_score(triage.y[rows], triage.x[rows, column]))

    assert separation("troponin at 3 h") > separation("troponin at 0 h") > 0.7
    assert separation("wall motion") > 0.7 and separation("ECG") > 0.7
    assert abs(separation("heart rate") - 0.5) < 0.1 and abs(separation("creatinine") - 0.5) < 0.1


def test_what_always_is_recorded_decides_what_else_is(triage: Cohort) -> None:
    always = triage.r.all(axis=0)
    assert {name for name, is_always in zip(triage.names, always, strict=True) if is_always} == set(
        triage.schema.baseline
    )


def test_it_is_the_same_each_time() -> None:
    assert chest_pain(50).equals(chest_pain(50)) and not chest_pain(50).equals(chest_pain(50, seed=8))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_reads_back_from_the_store_as_it_was(
    example, shared_services: services.Services, restart: Restart
) -> None:
    cohort = example.make()
    stored = shared_services.add_cohort("owner-of-examples", cohort)
    again = restart().cohort("owner-of-examples", stored)
    assert again.content_hash == cohort.content_hash and again.name == example.name
    assert cohort.diagnostics().worst != "critical"
