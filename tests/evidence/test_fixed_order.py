"""The best fixed order: found where the rows can tell, and not claimed where they cannot."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import l2m_core as l2m
from l2m_core.evidence import Evidence, EvidenceSettings, ask_fold, gather, make_plan
from l2m_core.evidence.fixed_order import actions_of, best_fixed_order
from l2m_core.evidence.fold_answers import FIXED, orders_for
from l2m_core.evidence.sentences import Sentence
from tests.evidence.conftest import SETTINGS

ALONE = EvidenceSettings(draws=200, council=False, conventional=False)  # no other voice has a say in the order
KINDS = pytest.mark.parametrize("kind", ["binary", "continuous"])


def last_column_tells(
    rows: int, columns: int, missing: float = 0.0, recorded: int | None = None, kind: str = "binary", seed: int = 0
) -> l2m.Cohort:
    """recorded: rows that have the last column, Z, which alone follows the outcome."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, columns)).astype(np.float32)
    y = (x[:, -1] > np.median(x[:, -1])).astype(int) if kind == "binary" else 3 * x[:, -1]
    hidden = draw.random(x.shape) < missing
    if recorded is not None:
        hidden[:, -1] = draw.permutation(rows) >= recorded
    x[hidden] = np.nan
    return l2m.Cohort.from_arrays(x, y, kind=kind, names=[*"abcdefgh"[: columns - 1], "Z"])


def about_fixed_order(evidence: Evidence) -> Sentence:
    return [sentence for sentence in evidence.summary() if sentence.about == "order"][1]


@KINDS
@pytest.mark.parametrize(
    ("rows", "columns", "missing", "recorded", "budget"), [(24, 4, 0.0, None, 3), (80, 6, 0.65, 33, 4)]
)
def test_the_only_test_that_tells_comes_first_in_a_small_or_sparse_cohort(
    model, kind, rows, columns, missing, recorded, budget
):
    cohort = last_column_tells(rows, columns, missing, recorded, kind)
    evidence = gather(model, cohort, replace(ALONE, budget=budget))
    assert [order[0] for order in evidence.fixed_orders] == ["Z"] * 5
    assert not any(evidence.unjudged) and evidence.unfounded == 0
    found = about_fixed_order(evidence)
    assert "the best fixed order" in found.text and "could not be judged" not in found.text
    assert abs(evidence.differences[1].overall.value) < 0.05  # it was 0.45 where the order was that of the columns


@KINDS
def test_where_hardly_a_row_has_a_test_no_order_is_claimed(model, kind):
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"age": draw.normal(60, 12, 40), **{name: draw.normal(size=40) for name in "abcZ"}})
    died = frame["Z"] > 0 if kind == "binary" else frame["Z"] * 3
    for place, name in enumerate("abcZ"):
        frame.loc[(frame.index < 4 * place) | (frame.index >= 4 * place + 4), name] = None
    cohort = l2m.Cohort.from_frame(frame.assign(died=died), outcome="died", baseline=["age"])
    evidence = gather(model, cohort, replace(ALONE, budget=3))
    assert evidence.unjudged == (("a", "b", "c", "Z"),) * 5 and evidence.unfounded == 1
    found = about_fixed_order(evidence)
    assert found.verdict == "open"
    assert "Too few rows to find a fixed order" in found.text and "4 of 4 tests could not be judged" in found.text
    assert Evidence.from_data(json.loads(json.dumps(evidence.to_data()))) == evidence


def test_one_test_that_few_rows_have_leaves_the_verdict_open_in_a_small_cohort_alone(model):
    small = gather(model, last_column_tells(30, 3, recorded=4), replace(ALONE, budget=3))
    assert set(small.unjudged) == {("Z",)} and small.unfounded == pytest.approx(4 / 30)
    assert "Too few rows" in about_fixed_order(small).text
    large = gather(model, last_column_tells(150, 3, recorded=4), replace(ALONE, budget=3, most_rows=150))
    assert set(large.unjudged) == {("Z",)} and large.unfounded == pytest.approx(4 / 150)
    assert "the best fixed order" in about_fixed_order(large).text
    assert "1 of 3 tests could not be judged" in about_fixed_order(large).text


def test_a_judge_is_never_asked_of_a_model_that_read_the_patient(model, monkeypatch):
    cohort = last_column_tells(60, 3)
    patient = np.arange(60) // 2  # each has two rows
    of_row = {tuple(row): number for row, number in zip(cohort.x.tolist(), patient, strict=True)}
    read = []
    condition = l2m.L2M.condition

    def noted(self, part, **details):
        read.append([of_row[tuple(row)] for row in part.x.tolist()])
        return condition(self, part, **details)

    monkeypatch.setattr(l2m.L2M, "condition", noted)
    best_fixed_order(model, cohort, patient, 3, np.random.default_rng(0))
    for patients in read:
        assert set(np.bincount(patients, minlength=30)) == {0, 2}
    left_out = np.sum([np.bincount(patients, minlength=30) == 0 for patients in read], axis=0)
    assert (left_out == 1).all()  # and every row can judge


def test_a_panel_recorded_in_part_has_the_panels_place_in_the_fixed_order(model):
    draw = np.random.default_rng(0)
    salt, other = draw.normal(size=(2, 40))
    frame = pd.DataFrame({"noise": other, "sodium": salt, "potassium": salt + 0.01 * other, "died": salt > 0})
    frame.loc[:19, "sodium"] = None
    schema = "features: [{name: sodium, group: salts}, {name: potassium, group: salts}]"
    cohort = l2m.Cohort.from_frame(frame, outcome="died", schema=schema)
    answers = ask_fold(model, cohort, make_plan(cohort, SETTINGS), SETTINGS, 0)
    salts = next(action for action, members in actions_of(cohort).items() if len(members) == 2)
    assert answers.order[0] == salts
    assert (answers.actions[orders_for(cohort).index(FIXED), :, 0] == salts).all()
