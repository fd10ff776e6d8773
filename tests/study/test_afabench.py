"""Evaluations go out in AFABench's layout and come back the same; what is no such file is refused by its line."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError, InputError
from l2m_core.methods.interface import block
from train.__main__ import main
from train.study.afabench_layout import COLUMNS, Evaluation, evaluation_of, read_evaluation, write_evaluation
from train.study.evaluation.cells import Trial
from train.study.evaluation.trial_runs import roll_out

THEIRS = """prev_selections_performed,action_performed,builtin_predicted_class,external_predicted_class,true_class,\
accumulated_cost,idx,forced_stop,eval_seed,eval_hard_budget
[],3,null,0,1,1.0,0,False,7,2.0
[],1,null,1,1,1.0,1,False,7,2.0
[2],2,null,1,1,2.0,0,False,7,2.0
[0],0,null,0,1,1.0,1,False,7,2.0
"[2, 1]",0,null,1,1,2.0,0,True,7,2.0
[],0,null,0,0,0.0,0,False,7,2.0
"""
"""Two batches, of two patients and of one: as AFABench's script writes them, with a classifier of its own."""


class Fixed:
    """Asks for the columns from left to right, and says the class that the number of known columns tells."""

    def predict(self, x, a):
        return np.eye(2)[a.sum(1) % 2]

    def rank(self, x, a):
        return block(np.tile(-np.arange(x.shape[1], dtype=float), (len(x), 1)), a, np.array([False, True, True, True]))


def trial(kind: str = "binary") -> Trial:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 4)).astype(np.float32)
    y = (x[:, 1] > 0).astype(np.int64) if kind == "binary" else x[:, 1]
    cohort = Cohort.from_arrays(
        x, y, kind=kind, acquirable=np.array([False, True, True, True]), groups=["a", "b", "b", "c"], name="ward"
    )
    asked = x[:5].copy()
    asked[0, 3] = np.nan  # cannot be had
    return Trial(cohort, asked, y[:5])


def written(folder: Path, text: str) -> Path:
    file = folder / "l2m" / "dataset-cube+instance_idx-3" / "eval_data.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def assert_equal(one: Evaluation, other: Evaluation) -> None:
    for part in fields(Evaluation):
        np.testing.assert_equal(getattr(one, part.name), getattr(other, part.name), part.name)


@pytest.mark.parametrize("budget", [0, 1, 2, 3])
def test_an_evaluation_comes_back_as_it_went_out(budget: int, tmp_path: Path):
    part = trial()
    evaluation = evaluation_of(roll_out(Fixed(), part, budget), part, seed=4)
    write_evaluation(evaluation, tmp_path / "eval_data.csv")
    again = read_evaluation(tmp_path / "eval_data.csv")
    most = int(evaluation.taken.max())  # nobody can take a third action: one of the three columns shares a panel
    assert_equal(again, trimmed(evaluation, most))


def trimmed(evaluation: Evaluation, most: int) -> Evaluation:
    """Without the steps that nobody reached."""
    predicted = {name: said[:, : most + 1] for name, said in evaluation.predicted.items()}
    return replace(
        evaluation, actions=evaluation.actions[:, :most], predicted=predicted, cost=evaluation.cost[:, : most + 1]
    )


def test_a_panel_is_its_first_column_and_a_stop_is_forced_where_more_could_be_had(tmp_path: Path):
    part = trial()
    evaluation = evaluation_of(roll_out(Fixed(), part, 1), part, seed=0)
    assert set(evaluation.actions.ravel()) == {1}
    assert evaluation.forced.tolist() == [False, True, True, True, True]
    assert not evaluation_of(roll_out(Fixed(), part, 3), part, seed=0).forced.any()


def test_columns_are_afabench_s_in_its_order(tmp_path: Path):
    part = trial()
    write_evaluation(evaluation_of(roll_out(Fixed(), part, 2), part, seed=0), tmp_path / "eval_data.csv")
    table = pd.read_csv(tmp_path / "eval_data.csv", dtype=str, keep_default_na=False)
    assert tuple(table) == COLUMNS == tuple(THEIRS.splitlines()[0].split(","))
    assert set(table["external_predicted_class"]) == {"null"} and set(table["forced_stop"]) <= {"True", "False"}
    assert table["prev_selections_performed"].iloc[0] == "[]" and table["eval_hard_budget"].iloc[0] == "2.0"


def test_a_file_of_theirs_is_read_batch_by_batch(tmp_path: Path):
    found = read_evaluation(written(tmp_path, THEIRS))
    assert found.actions.tolist() == [[2, 1], [0, -1], [-1, -1]]
    assert found.y.tolist() == [1, 1, 0] and found.forced.tolist() == [True, False, False]
    assert list(found.predicted) == ["external"]
    assert found.predicted["external"].tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0]]
    assert found.cost.tolist() == [[0, 1, 2], [0, 1, 1], [0, 0, 0]]
    assert (found.seed, found.budget) == (7, 2.0)


def test_an_import_is_tidy_and_carries_the_last_prediction_on(tmp_path: Path):
    written(tmp_path, THEIRS)
    out = tmp_path / "scores" / "tasks.csv"  # in a folder that is made
    assert main(["afabench", "import", str(tmp_path), "--out", str(out)]) == 0
    table = pd.read_csv(out)
    assert list(table) == ["family", "task", "unit", "variant", "method", "score", "step", "value"]
    assert set(zip(table["family"], table["task"], table["method"], strict=True)) == {("cube", 3, "l2m")}
    assert set(table["variant"]) == {"external, seed 7, budget 2"}
    by_step = table[(table["score"] == "accuracy") & table["step"].notna()]
    assert by_step["value"].tolist() == pytest.approx([2 / 3, 2 / 3, 2 / 3], abs=1e-5)
    assert table.loc[table["score"] == "actions", "value"].item() == 1.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("true_class", "label", "lacks the column 'true_class'"),
        ("[],1,null,1", "[],one,null,1", "line 3"),
        ("[2],2", "[1],2", "line 4: idx 0 does not follow"),
        ("[0],0,null", "[0],2,null", "idx 1 has no row that stops"),
        ("[],3", "__import__('os'),3", "line 2"),
        ("True", "perhaps", "line 6"),
    ],
)
def test_what_is_no_evaluation_is_refused_by_its_line(old: str, new: str, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        read_evaluation(written(tmp_path, THEIRS.replace(old, new)))


def test_an_empty_folder_and_a_nameless_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = ["afabench", "import", str(tmp_path), "--out", str(tmp_path / "tasks.csv")]
    assert main(command) == 2 and "holds no eval_data.csv" in capsys.readouterr().err
    (tmp_path / "eval_data.csv").write_text(THEIRS)
    assert main(command) == 2 and "dataset-NAME+instance_idx-N" in capsys.readouterr().err


def test_a_continuous_outcome_cannot_go_out():
    part = trial("continuous")
    with pytest.raises(ConfigError, match="classes only"):
        evaluation_of(roll_out(Fixed(), trial(), 1), part, seed=0)


def test_what_is_exported_is_imported(folder: Path, tiny_model: Path, tmp_path: Path):
    given = ["--cohorts", "icu", "--methods", "l2m", "base_rate", "--context", "60", "--test-rows", "20"]
    where = ["--budget", "2", "--model", str(tiny_model), "--data", str(folder), "--out", str(tmp_path / "theirs")]
    assert main(["afabench", "export", *given, *where]) == 0
    assert main(["afabench", "import", str(tmp_path / "theirs"), "--out", str(tmp_path / "tasks.csv")]) == 0
    table = pd.read_csv(tmp_path / "tasks.csv")
    assert set(table["method"]) == {"l2m", "base_rate"} and set(table["family"]) == {"icu"}


def test_a_cohort_that_is_not_there_is_refused_by_name(folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["afabench", "export", "--cohorts", "ward", "--data", str(folder)]) == 2
    assert "no cohort 'ward'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value"), [("--context", "0"), ("--test-rows", "0"), ("--budget", "-1"), ("--seeds", "-1")]
)
def test_numbers_that_mean_nothing_are_refused_by_their_option(option, value, folder: Path, capsys):
    with pytest.raises(SystemExit):
        main(["afabench", "export", "--cohorts", "icu", "--data", str(folder), option, value])
    assert f"argument {option}: it is {value}; give" in capsys.readouterr().err
