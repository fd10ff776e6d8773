"""`l2m evidence cohort.csv --outcome …`"""

from __future__ import annotations

import json

import pandas as pd
import pytest

from l2m_core.evidence import Evidence
from l2m_core.evidence.__main__ import Progress, main, time_left
from tests.evidence.conftest import small_frame

QUICK = ["--folds", "2", "--budget", "2", "--most-rows", "12", "--draws", "100", "--quiet"]


def test_a_file_becomes_sentences_and_figures(tmp_path, capsys):
    table, figures = tmp_path / "ward.csv", tmp_path / "figures.json"
    small_frame().drop(columns="record").to_csv(table, index=False)
    assert main([str(table), "--outcome", "died", "--baseline", "age", *QUICK, "--json", str(figures)]) == 0
    said = capsys.readouterr().out
    assert "On this cohort the model's order" in said and "log loss in nats" in said
    found = Evidence.from_data(json.loads(figures.read_text()))
    assert found is not None and found.asked == 12


def test_a_number_that_may_mean_not_measured_is_told(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    small_frame().drop(columns="record").assign(sodium=lambda frame: frame.sodium.fillna(-999)).to_csv(
        table, index=False
    )
    assert main([str(table), "--outcome", "died", "--baseline", "age", *QUICK]) == 0
    assert "'sodium' is -999 in" in capsys.readouterr().err
    assert main([str(table), "--outcome", "died", "--baseline", "age", *QUICK, "--missing", "-999"]) == 0
    assert "-999" not in capsys.readouterr().err


def test_figures_never_take_the_place_of_the_cohort(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    small_frame().drop(columns="record").to_csv(table, index=False)
    before = table.read_bytes()
    assert main([str(table), "--outcome", "died", *QUICK, "--json", str(tmp_path / "." / "ward.csv")]) == 2
    assert "--json would take the place of ward.csv" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(table), "--outcome", "died", *QUICK, "--json", str(table / "figures.json")])
    assert "ward.csv is a file, so there can be no folder" in capsys.readouterr().err
    assert table.read_bytes() == before


def test_progress_has_an_estimate_and_says_a_thing_once_in_a_file(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("l2m_core.evidence.__main__.time.monotonic", lambda: now[0])
    with Progress(quiet=False) as report:
        report(0.0, "Splitting.")
        for share in (0.1, 0.2):
            now[0] = 600 * share
            report(share, "Asking fold 1 of 5.")
        now[0] = 300.0
        report(0.5, "Asking fold 3 of 5.")
    assert capsys.readouterr().err.splitlines() == [
        "  0%  Splitting.",
        " 10%  Asking fold 1 of 5. About 9 min left.",
        " 50%  Asking fold 3 of 5. About 5 min left.",
    ]


@pytest.mark.parametrize(
    ("passed", "share", "words"),
    [(100, 0.0, ""), (0.5, 0.5, ""), (30, 0.5, " About 30 s left."), (8000, 0.5, " About 2.2 h left.")],
)
def test_time_left_is_in_words_a_person_uses(passed, share, words):
    assert time_left(passed, share) == words


def test_a_file_as_a_hospital_writes_it_is_read_as_the_options_say(tmp_path, capsys):
    table, frame = tmp_path / "ward.csv", small_frame().drop(columns="record")
    frame["lactate"] = ["k.A." if i % 9 == 0 else f"{1 + i % 7},5 mmol/l" for i in range(len(frame))]
    frame.to_csv(table, index=False, sep=";")
    assert main([str(table), "--outcome", "died", *QUICK]) == 2
    assert "'lactate', row 3: '2,5 mmol/l' is a number with a unit" in capsys.readouterr().err
    how = ["--missing", "k.A.", "--units", "drop"]
    assert main([str(table), "--outcome", "died", *how, *QUICK]) == 0
    assert "'2,5 mmol/l' were read as the number alone, in mmol/L" in capsys.readouterr().err


def test_a_sheet_of_a_workbook_can_be_stated(tmp_path, capsys):
    table, frame = tmp_path / "ward.xlsx", small_frame().drop(columns="record")
    with pd.ExcelWriter(table) as writer:
        frame.to_excel(writer, sheet_name="Data", index=False)
        frame.head(3).to_excel(writer, sheet_name="Codes", index=False)
    assert main([str(table), "--outcome", "died", *QUICK]) == 2
    assert "several sheets with cells: 'Data', 'Codes'" in capsys.readouterr().err
    assert main([str(table), "--outcome", "died", "--sheet", "Data", *QUICK]) == 0


def test_what_cannot_be_used_is_one_sentence(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    small_frame().drop(columns="record").to_csv(table, index=False)
    assert main([str(table), "--outcome", "dead", *QUICK]) == 2
    said = capsys.readouterr().err
    assert "dead" in said and "Traceback" not in said
    assert main([str(table), "--outcome", "died", *QUICK, "--patients", "bed"]) == 2
    assert "'bed'" in capsys.readouterr().err


def test_the_decimal_sign_of_a_file_can_be_stated(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    frame = small_frame().drop(columns="record")
    frame["platelets"] = ["1.100" if i % 2 else "950" for i in range(len(frame))]
    frame.to_csv(table, index=False)
    assert main([str(table), "--outcome", "died", *QUICK]) == 2
    assert "'1.100' could be 1100 or 1.100" in capsys.readouterr().err
    assert main([str(table), "--outcome", "died", "--decimal", ".", *QUICK]) == 0


def test_a_threshold_is_told_of_and_one_that_is_no_probability_refused(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    small_frame().drop(columns="record").to_csv(table, index=False)
    alone = [str(table), "--outcome", "died", "--no-council", "--no-conventional", *QUICK]
    assert main([*alone, "--threshold", "0.3"]) == 0
    said = capsys.readouterr().out
    assert "Whoever acts from 30% on for 'yes', by the general model alone" in said and "Head to head" not in said
    assert main([*alone, "--threshold", "30"]) == 2
    assert "The threshold 30 is no probability" in capsys.readouterr().err


@pytest.mark.parametrize(("threshold", "instead"), [("0.005", "0.01 or 0.02"), ("0.125", "0.12 or 0.13")])
def test_a_threshold_between_whole_percentages_is_refused_and_not_moved(tmp_path, capsys, threshold, instead):
    table = tmp_path / "ward.csv"
    small_frame().drop(columns="record").to_csv(table, index=False)
    assert main([str(table), "--outcome", "died", *QUICK, "--threshold", threshold]) == 2
    assert f"choose {instead}" in capsys.readouterr().err


def test_a_threshold_of_a_continuous_outcome_is_refused_before_the_work(tmp_path, capsys):
    table = tmp_path / "ward.csv"
    frame = small_frame().drop(columns=["record", "died"])
    frame.assign(days=[0.5 + 0.37 * row for row in range(len(frame))]).to_csv(table, index=False)
    assert main([str(table), "--outcome", "days", *QUICK, "--threshold", "0.2"]) == 2
    answer = capsys.readouterr()
    assert "'days' is continuous, which has no probability to act on" in answer.err and not answer.out
