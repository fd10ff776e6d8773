"""Bulk acquisition: any chunking and engine give the same file; nothing is half-written; memory does not grow."""

import importlib.util
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.council import fitting
from l2m_core.council.members import members_of
from l2m_core.errors import CohortError, ConfigError
from l2m_core.memory import load
from tests.study.patients import context, table
from train import acquire as command
from train.acquire import acquire, identity, main, parse
from train.patients_file import open_patients


def test_a_cohort_as_a_hospital_writes_it_is_read_as_the_options_say(files, tiny_model, tmp_path, capsys):
    cohort, patients = files
    frame = pd.read_csv(cohort)
    frame["lactate"] = [f"{value} mmol/L" if value > -1 else "k.A." for value in frame["lactate"]]
    frame.to_csv(cohort, index=False)
    files_given = ["--cohort", cohort, "--patients", patients, "--out", tmp_path / "out.csv", "--model", tiny_model]
    arguments = [str(word) for word in (*files_given, "--outcome", "died", "--budget", 1, "--engine", "processes")]
    with pytest.raises(CohortError, match="'lactate', row 2: .* is a number with a unit"):
        main(arguments)
    assert main([*arguments, "--missing", "k.A.", "--units", "drop"]) == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 25


def test_the_cohort_may_be_a_sheet_of_a_workbook(files, tiny_model, tmp_path, capsys):
    cohort, patients = files
    book = tmp_path / "cohort.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"note": ["see the next sheet"]}).to_excel(writer, sheet_name="About", index=False)
        pd.read_csv(cohort).to_excel(writer, sheet_name="Patients", index=False)
    files_given = ["--cohort", book, "--patients", patients, "--out", tmp_path / "out.csv", "--model", tiny_model]
    arguments = [str(word) for word in (*files_given, "--outcome", "died", "--budget", 1)]
    with pytest.raises(CohortError, match="several sheets with cells: 'About', 'Patients'"):
        main(arguments)
    assert main([*arguments, "--sheet", "Patients"]) == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == 25


def test_the_command_answers_for_every_patient_in_order(files, tiny_model, tmp_path, capsys):
    cohort, patients = files
    arguments = [
        "--cohort",
        cohort,
        "--patients",
        patients,
        "--out",
        tmp_path / "out.csv",
        "--model",
        tiny_model,
        "--outcome",
        "died",
        "--baseline",
        "age",
        "--chunk",
        10,
        "--budget",
        2,
    ]
    assert main([str(a) for a in arguments]) == 0
    answers = pd.read_csv(tmp_path / "out.csv")
    assert answers["row"].tolist() == list(range(25))
    assert set(answers["action_1"]) <= {"lactate", "sodium", "ward"}
    assert np.allclose(answers["p(no)_after"] + answers["p(yes)_after"], 1)
    assert "25 patients" in capsys.readouterr().out
    assert not (tmp_path / "out.csv.parts").exists()


def test_a_policy_that_needs_more_than_its_name_is_not_offered(capsys):
    given = ["--cohort", "cohort.csv", "--patients", "patients.csv", "--out", "out.csv", "--policy"]
    assert parse([*given, "gain per cost"]).policy == "gain per cost"
    with pytest.raises(SystemExit):
        parse([*given, "fixed"])
    assert "invalid choice: 'fixed'" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "words"), [("--budget", "give 0 or more"), ("--least-gain", "zero or more")])
def test_what_is_below_zero_is_refused_before_a_file_is_read(option, words, tmp_path, capsys):
    given = ["--cohort", "not-there.csv", "--patients", "nor-this.csv", "--out", tmp_path / "out.csv", option, -1]
    with pytest.raises((SystemExit, ConfigError)) as refusal:
        main([str(word) for word in given])
    assert words in str(refusal.value) + capsys.readouterr().err


def test_what_a_patient_lacks_is_not_asked_for(files, tiny_model, tmp_path):
    cohort, patients = files
    acquire(context(cohort, tiny_model, budget=3), patients, tmp_path / "out.csv", chunk=7)
    answers = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    asked = answers.loc[::5, ["action_1", "action_2", "action_3"]].to_numpy()
    assert "sodium" not in asked and (asked[:, 2] == "").all()


@pytest.mark.parametrize("policy", ["gain", "random"])
@pytest.mark.parametrize(("chunk", "workers"), [(4, 1), (100, 1), (7, 2)])
def test_chunks_and_workers_change_nothing(files, tiny_model, tmp_path, chunk, workers, policy):
    cohort, patients = files
    settings = context(cohort, tiny_model, policy=policy)
    acquire(settings, patients, tmp_path / "whole.csv", chunk=25)
    acquire(settings, patients, tmp_path / "cut.csv", chunk=chunk, workers=workers)
    whole, cut = pd.read_csv(tmp_path / "whole.csv"), pd.read_csv(tmp_path / "cut.csv")
    pd.testing.assert_frame_equal(whole, cut, rtol=1e-4)


def test_a_run_cut_short_goes_on_where_it_stopped(files, tiny_model, tmp_path, monkeypatch):
    cohort, patients = files
    out = tmp_path / "out.csv"
    answered: list[int] = []
    whole = command.answer_chunk

    def failing(job):
        if len(answered) == 2:
            raise KeyboardInterrupt
        answered.append(job.number)
        return whole(job)

    monkeypatch.setattr(command, "answer_chunk", failing)
    with pytest.raises(KeyboardInterrupt):
        acquire(context(cohort, tiny_model), patients, out, chunk=5)
    assert not out.exists()
    monkeypatch.setattr(command, "answer_chunk", lambda job: answered.append(job.number) or whole(job))
    assert acquire(context(cohort, tiny_model), patients, out, chunk=5) == 25
    assert sorted(answered) == [0, 1, 2, 3, 4]


def test_a_full_disk_is_told_with_the_file_that_was_to_be_written(files, tiny_model, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command.shutil, "copyfileobj", full)
    out = tmp_path / "advice.csv"
    options = ["--cohort", str(files[0]), "--outcome", "died", "--patients", str(files[1]), "--workers", "1"]
    with pytest.raises(OSError, match=r"No space left on device: '.*advice\.csv'"):
        main([*options, "--model", str(tiny_model), "--out", str(out), "--budget", "2"])


def test_after_a_full_disk_what_is_finished_is_kept_and_told_and_no_draft_stays(
    files, tiny_model, tmp_path, monkeypatch
):
    cohort, patients = files
    said: list[str] = []

    def full(_, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as change:
        change.setattr(command.shutil, "copyfileobj", full)
        with pytest.raises(OSError):
            acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=5, say=said.append)
    assert said[-1] == "What is finished is kept in out.csv.parts; the same command goes on from there."
    assert not list(tmp_path.rglob("*.partly"))
    monkeypatch.setattr(command, "answer_chunk", lambda job: 1 / 0)  # nothing is left to answer
    assert acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=5) == 25


def test_a_disk_too_full_to_begin_leaves_nothing_in_the_way(files, tiny_model, tmp_path, monkeypatch):
    cohort, patients = files
    kept = Path.write_text

    def full(path, text, *more):
        if path.name == "run":
            raise OSError(28, "No space left on device")
        return kept(path, text, *more)

    with monkeypatch.context() as change:
        change.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv")
    assert acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv") == 25


def test_parts_of_other_work_are_not_gone_on_with(files, tiny_model, tmp_path):
    cohort, patients = files
    parts = tmp_path / "out.csv.parts"
    parts.mkdir()
    (parts / "run").write_text("another run")
    (parts / "chunk-00000000.csv").write_text("row\n99\n")
    acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=5)
    assert 99 not in pd.read_csv(tmp_path / "out.csv")["row"].tolist()


def test_a_folder_that_is_somebody_else_s_is_left_alone(files, tiny_model, tmp_path):
    cohort, patients = files
    (tmp_path / "out.csv.parts").mkdir()
    (tmp_path / "out.csv.parts" / "thesis.txt").write_text("precious")
    with pytest.raises(ConfigError, match="in the way"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv")
    assert (tmp_path / "out.csv.parts" / "thesis.txt").is_file()


def test_a_bad_cell_is_told_with_its_row_and_nothing_is_written(files, tiny_model, tmp_path):
    cohort, patients = files
    lines = patients.read_text().splitlines()
    lines[12] = lines[12].replace(lines[12].split(",")[1], "high", 1)
    patients.write_text("\n".join(lines) + "\n")
    with pytest.raises(CohortError, match="The patient of row 12 cannot be read: .*high"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=10)
    assert not (tmp_path / "out.csv").exists()


def test_identifiers_are_kept_and_not_read(files, tiny_model, tmp_path):
    cohort, patients = files
    frame = pd.read_csv(patients)
    frame.insert(0, "mrn", [f"M{i:03d}" for i in range(len(frame))])
    frame.to_csv(patients, index=False)
    with pytest.raises(ConfigError, match="column 'mrn' that the cohort has not"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=10)
    acquire(context(cohort, tiny_model, keep=("mrn", "ward")), patients, tmp_path / "out.csv", chunk=10)
    answers = pd.read_csv(tmp_path / "out.csv")
    assert answers["mrn"].tolist() == frame["mrn"].tolist() and answers["ward"].tolist() == frame["ward"].tolist()
    with pytest.raises(ConfigError, match="'mnr' to keep. Did you mean 'mrn'"):
        acquire(context(cohort, tiny_model, keep=("mnr",)), patients, tmp_path / "out.csv")


def test_another_schema_makes_another_run(files, tiny_model, tmp_path):
    cohort, patients = files
    schema = tmp_path / "schema.yaml"
    schema.write_text("features: [{name: lactate, cost: 2}]")
    given = context(cohort, tiny_model, schema=str(schema))
    before = identity(given, patients, 5)
    schema.write_text("features: [{name: lactate, cost: 3}]")
    assert identity(given, patients, 5) != before
    schema.unlink()
    with pytest.raises(ConfigError, match="schema.yaml"):
        identity(given, patients, 5)


def test_absent_files_and_a_chunk_of_nothing_are_refused(files, tiny_model, tmp_path):
    cohort, patients = files
    with pytest.raises(CohortError, match="nobody.csv"):
        acquire(context(cohort, tiny_model), tmp_path / "nobody.csv", tmp_path / "out.csv")
    with pytest.raises(CohortError, match="nothing.csv"):
        acquire(context(tmp_path / "nothing.csv", tiny_model), patients, tmp_path / "out.csv")
    with pytest.raises(ConfigError, match="chunk is 0"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=0)


def test_of_two_files_the_one_that_cannot_be_read_is_named(files, tiny_model, tmp_path):
    cohort, patients = files
    cohort.write_text("age,lactate,sodium,ward,died\n")
    with pytest.raises(CohortError, match="The cohort cohort.csv cannot be read: The file holds a header but no rows"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv")


def test_a_column_to_keep_may_be_named_twice(files, tiny_model, tmp_path):
    files_given = ["--cohort", files[0], "--patients", files[1], "--out", tmp_path / "out.csv", "--model", tiny_model]
    words = (*files_given, "--outcome", "died", "--keep", "age", "age", "--budget", 0)
    assert main([str(word) for word in words]) == 0
    assert pd.read_csv(tmp_path / "out.csv").columns.tolist().count("age") == 1


def test_patients_are_streamed(files, tiny_model, tmp_path, monkeypatch):
    """Reading all of a long file in chunks holds a small part of it at any time."""
    cohort, _ = files
    long = tmp_path / "long.csv"
    table(60_000, 2).to_csv(long, index=False)
    peaks = []
    for _ in range(2):  # what other threads of the process allocate meanwhile only adds to one
        patients = open_patients(long, Cohort.from_file(cohort, "died"))
        jobs = command.chunk_jobs(context(cohort, tiny_model), patients, 500, tmp_path, "null")
        next(jobs)
        tracemalloc.start()
        count = sum(1 for _ in jobs)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count == 119
    assert min(peaks) < long.stat().st_size


PEAK = """
import sys
from train.acquire import main
from train.study.benchmark import peak_kilobytes
main(sys.argv[1:])
print(peak_kilobytes())
"""


@pytest.mark.slow
def test_ten_times_the_patients_need_the_same_memory(files, tiny_model, tmp_path):
    """The whole way from the command to the joined file."""
    cohort, patients = files
    peaks = []
    for rows in (20_000, 200_000):
        table(rows, 3).to_csv(patients, index=False)
        arguments = [
            "--cohort",
            cohort,
            "--patients",
            patients,
            "--out",
            tmp_path / "out.csv",
            "--model",
            tiny_model,
            "--outcome",
            "died",
            "--chunk",
            1000,
            "--budget",
            2,
            "--workers",
            1,
        ]
        run = [sys.executable, "-c", PEAK, *map(str, arguments)]
        said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        assert f"{rows:,} patients" in said
        peaks.append(int(said.splitlines()[-1]) / 1024)
    with (tmp_path / "out.csv").open() as file:
        assert sum(1 for _ in file) == 200_001
    assert peaks[1] - peaks[0] < 30  # megabytes; the rows alone, held as texts, would be 60


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray: pip install 'learning-to-measure[ray]'")
@pytest.mark.slow
def test_ray_gives_what_processes_give(files, tiny_model, tmp_path):
    cohort, patients = files
    acquire(context(cohort, tiny_model), patients, tmp_path / "one.csv", chunk=6)
    acquire(context(cohort, tiny_model), patients, tmp_path / "ray.csv", chunk=6, engine="ray", workers=2)
    assert (tmp_path / "one.csv").read_text() == (tmp_path / "ray.csv").read_text()


def test_a_column_is_not_kept_in_place_of_an_answer(files, tiny_model, tmp_path):
    cohort, patients = files
    for name in ("row", "cost", "action_2", "p(yes)_after"):
        pd.read_csv(patients).assign(**{name: 7}).to_csv(tmp_path / "more.csv", index=False)
        with pytest.raises(ConfigError, match=re.escape(f"The answers have a column '{name}' of their own")):
            acquire(context(cohort, tiny_model, keep=(name,)), tmp_path / "more.csv", tmp_path / "out.csv")
    pd.read_csv(patients).assign(action_3=7).to_csv(tmp_path / "more.csv", index=False)
    acquire(context(cohort, tiny_model, keep=("action_3",)), tmp_path / "more.csv", tmp_path / "out.csv")
    assert pd.read_csv(tmp_path / "out.csv")["action_3"].eq(7).all()


def test_answers_never_take_the_place_of_what_is_read(files, tiny_model, tmp_path):
    cohort, patients = files
    before = [path.read_bytes() for path in files]
    for path in (cohort, patients, tmp_path / "here" / ".." / "patients.csv"):
        with pytest.raises(ConfigError, match="would take the place of"):
            acquire(context(cohort, tiny_model), patients, path)
    with pytest.raises(ConfigError, match="is a folder. Name a file in it"):
        acquire(context(cohort, tiny_model), patients, tmp_path)
    assert [path.read_bytes() for path in files] == before


def test_with_the_council_answers_are_those_of_the_page(files, tiny_model, tmp_path, monkeypatch, capsys):
    """Its weights are looked for once, whatever the number of chunks, and not again when a run goes on."""
    cohort, patients = files
    shares = {"model": 0.4, "Bayesian regression": 0.35, "trees": 0.25}
    weights = np.array([shares.get(name, 0.0) for name in ("model", *members_of("binary"))])
    looked: list[int] = []
    monkeypatch.setattr(fitting, "find_weights", lambda *given: looked.append(1) or weights)
    whole = command.answer_chunk
    monkeypatch.setattr(command, "answer_chunk", lambda job: 1 / 0)
    arguments = ["--cohort", cohort, "--patients", patients, "--out", tmp_path / "out.csv", "--model", tiny_model]
    arguments = [str(a) for a in (*arguments, "--outcome", "died", "--baseline", "age", "--chunk", 10, "--budget", 1)]
    with pytest.raises(ZeroDivisionError):
        main([*arguments, "--council", "--workers", "1"])
    monkeypatch.setattr(command, "answer_chunk", whole)
    assert main([*arguments, "--council", "--workers", "1"]) == 0
    assert len(looked) == 1 and "council: model 0.40, trees 0.25, Bayesian regression 0.35" in capsys.readouterr().err
    answers = pd.read_csv(tmp_path / "out.csv")
    read = Cohort.from_csv(str(cohort), "died", baseline=["age"])
    memory = load(str(tiny_model)).condition(read, council=True)
    x = read.encode(pd.read_csv(patients))
    starts = np.where(read.acquirable, np.nan, x)
    np.testing.assert_allclose(answers["p(yes)_before"], memory.answer(starts).prediction[:, 1], atol=1e-4)
    alone = memory.with_council(None).answer(starts).prediction[:, 1]
    assert np.abs(answers["p(yes)_before"] - alone).max() > 0.01


def test_costs_are_told_to_the_last_digit_and_notes_on_the_cohort_are_said(files, tiny_model, tmp_path):
    cohort, patients = files
    schema = tmp_path / "schema.yaml"
    dear = "".join(f"- {{name: {name}, cost: {cost}}}\n" for name, cost in (("lactate", 12345678), ("sodium", 12.3)))
    schema.write_text(f"features:\n{dear}- {{name: ward, role: ignored}}\n")
    pd.read_csv(cohort).assign(always=1).to_csv(cohort, index=False)
    said: list[str] = []
    settings = context(cohort, tiny_model, schema=str(schema), policy="random", budget=1)
    acquire(settings, patients, tmp_path / "out.csv", say=said.append)
    answers = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    costs = {"lactate": "12345678", "sodium": "12.3", "": "0"}
    assert [*answers["cost"]] == [costs[name] for name in answers["action_1"]] and len({*answers["cost"]}) > 1
    assert any(note.startswith("note: ") and "always" in note for note in said)


def test_a_run_that_goes_on_calls_chunks_by_their_place_in_the_file(files, tiny_model, tmp_path, monkeypatch):
    cohort, patients = files
    settings, out, said = context(cohort, tiny_model), tmp_path / "out.csv", []
    answer = command.answer_chunk
    monkeypatch.setattr(command, "answer_chunk", lambda job: answer(job) if job.number < 2 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        acquire(settings, patients, out, chunk=7)
    monkeypatch.setattr(command, "answer_chunk", answer)
    acquire(settings, patients, out, chunk=7, say=said.append)
    assert [text for text in said if text.startswith("chunk")] == [
        "chunk 3: patients from row 14",
        "chunk 4: patients from row 21",
    ]
