"""`l2m evidence cohort.csv --outcome …`"""

from __future__ import annotations

import json

from l2m_core.evidence import Evidence
from l2m_core.evidence.__main__ import main
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
