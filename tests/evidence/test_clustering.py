"""Rows of one patient tell less than as many rows of different patients: no table of visits makes figures surer."""

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.evidence import EvidenceSettings, gather
from l2m_core.evidence.clustering import Clustering
from l2m_core.evidence.groups import calibration_of_groups
from l2m_core.metrics import alike


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_how_alike_rows_of_a_patient_are_is_found(correlation):
    draw = np.random.default_rng(1)
    patient = np.repeat(np.arange(2000), draw.integers(1, 6, 2000))
    shown = correlation**0.5 * draw.normal(size=2000)[patient] + (1 - correlation) ** 0.5 * draw.normal(
        size=len(patient)
    )
    assert Clustering.of(patient, shown).correlation == pytest.approx(correlation, abs=0.04)
    uniform = alike(patient, correlation, draw)
    assert Clustering.of(patient, uniform).correlation == pytest.approx(correlation, abs=0.04)
    assert uniform.mean() == pytest.approx(0.5, abs=0.02) and uniform.std() == pytest.approx(12**-0.5, abs=0.01)


def test_rows_that_show_the_same_are_worth_their_patients_and_others_themselves():
    patient, member = np.repeat(np.arange(30), 4), np.arange(120) < 40
    assert Clustering(patient, 1.0).worth(member) == pytest.approx(10)
    assert Clustering(patient, 0.0).worth(member) == 40
    assert Clustering(patient, 1.0).worth(member & False) == 0
    assert Clustering.of(np.arange(120), np.arange(120) % 2).correlation == 0, "one row each"
    assert Clustering.of(np.zeros(120, dtype=int), np.arange(120) % 2).correlation == 0, "one patient"


def test_groups_of_visits_are_off_no_more_often_than_groups_of_patients():
    """Predictions that are the truth, one outcome for all visits of a patient: in 95 of 100 nothing is off."""
    off = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        truth = draw.beta(2, 3, 60)
        happened, woman = draw.random(60) < truth, draw.random(60) < 0.5
        patient = np.repeat(np.arange(60), 20)
        groups = [("sex", "f", woman[patient]), ("sex", "m", ~woman[patient])]
        found = calibration_of_groups(groups, truth[patient], happened[patient].astype(float), patient, is_share=True)
        off += any(group.is_off for group in found)
    assert off <= 12  # 5 of 100 expected; counted as rows, 80 and more


def test_evidence_of_visits_says_less_about_calibration_than_of_patients(model):
    draw = np.random.default_rng(0)
    visits, died = np.repeat(np.arange(30), 4), draw.integers(0, 2, 30)
    frame = pd.DataFrame(draw.normal(size=(120, 3)).round(2), columns=["a", "b", "c"])
    frame = frame.assign(patient_id=[f"P{visit}" for visit in visits], died=died[visits])
    cohort = l2m.Cohort.from_frame(frame, outcome="died")
    assert cohort.patient_column == "patient_id"
    settings = EvidenceSettings(folds=2, budget=1, most_rows=60, draws=100, conventional=False, council=False)
    found = gather(model, cohort, settings).calibration[0]
    width = np.array(found.high) - np.array(found.low)
    alone = gather(model, cohort, EvidenceSettings(**{**settings.__dict__, "patients": ""})).calibration[0]
    assert width.min() > 1.4 * (np.array(alone.high) - np.array(alone.low)).min()
    assert found.by_chance > alone.by_chance
