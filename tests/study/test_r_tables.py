"""Tables of R packages: what is read of their files, and what is said of one that is absent or another one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from l2m_core.errors import CohortError
from tests.prerequisites import tables_of_r
from train.study.experiments.datasets import find_cohort
from train.study.experiments.experiment import experiment_settings
from train.study.experiments.families import cohort_of
from train.study.experiments.r_tables import r_cohort, r_tables


def write(folder: Path, name: str, frame: pd.DataFrame) -> None:
    path = folder / r_tables()[name].path
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index_label="rownames")


def made_up(name: str, rows: int = 80) -> pd.DataFrame:
    """Numbers in every column that is read, and either outcome."""
    table, random = r_tables()[name], np.random.default_rng(0)
    frame = pd.DataFrame({column: random.normal(size=rows).round(3) for column in table.columns})
    positive = table.positive[0]
    frame[table.outcome] = [positive, "another" if isinstance(positive, str) else 0] * (rows // 2)
    return frame


def test_only_the_rows_and_columns_that_are_named_are_read(tmp_path):
    frame = made_up("colon").assign(etype=[1, 2, 2, 2] * 20, time=1.0)
    write(tmp_path, "colon", frame)
    table, cohort = r_tables()["colon"], r_cohort("colon", tmp_path)
    assert cohort.names == (*table.baseline, *table.tests) and len(cohort) == 60
    assert cohort.acquirable.tolist() == [False] * len(table.baseline) + [True] * len(table.tests)
    assert cohort.y.tolist() == (frame[frame.etype == 2].status == 1).astype(int).tolist()


def test_texts_for_not_recorded_are_no_levels_and_rows_without_an_outcome_are_left_out(tmp_path):
    frame = made_up("monica").assign(diabetes=["y", "n", "nk", "y"] * 20)
    frame.loc[:9, "outcome"] = [" ", None] * 5
    write(tmp_path, "monica", frame)
    cohort = r_cohort("monica", tmp_path)
    assert len(cohort) == 70 and set(cohort.feature("diabetes").levels) == {"y", "n"}
    assert np.isnan(cohort.x[:, cohort.names.index("diabetes")]).sum() == (frame.diabetes[10:] == "nk").sum()


def test_an_absent_table_has_a_stand_in_and_another_file_is_refused(tmp_path):
    assert find_cohort("pbc", tmp_path).made_up
    write(tmp_path, "gbsg", made_up("gbsg").drop(columns="nodes"))
    with pytest.raises(CohortError, match="'gbsg' of R's package survival: it lacks 'nodes'"):
        find_cohort("gbsg", tmp_path).load()
    (tmp_path / r_tables()["gbsg"].path).write_bytes(b"\xff\xfe\x00damaged")
    with pytest.raises(CohortError, match="gbsg.csv cannot be read"):
        find_cohort("gbsg", tmp_path).load()


@pytest.mark.parametrize("name", r_tables())
def test_each_real_table_has_rows_enough_and_is_asked_about_outside_its_pool(name):
    data = tables_of_r()
    table, whole = r_tables()[name], r_cohort(name, data)
    assert len(whole) >= 290 and len(table.tests) >= 5 and 0.05 < whole.y.mean() < 0.9
    assert all(np.unique(column[~np.isnan(column)]).size > 1 for column in whole.x.T)
    family = next(f for f in experiment_settings("own_covariates", "reduced").families if f.name == name)
    both = [len(cohort_of(family, data, part=part)) for part in ("train", "test")]
    assert both == [family.pool, len(whole) - family.pool] and family.budget == min(8, whole.acquirable.sum())
