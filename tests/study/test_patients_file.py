"""The files of patients that bulk acquisition reads: CSV as spreadsheets write it, workbooks, Parquet."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from l2m_core.errors import CohortError, ConfigError
from l2m_core.tables.reading_options import ReadingOptions
from tests.study.patients import context
from train.acquire import acquire, main


def numbered(patients: Path) -> pd.DataFrame:
    """The patients with a long number of each, as hospitals have them."""
    frame = pd.read_csv(patients)
    frame.insert(0, "mrn", 123456789012 + np.arange(len(frame)))
    return frame


@pytest.mark.parametrize("ending", ["xlsx", "parquet"])
def test_patients_of_a_workbook_or_parquet_are_answered_as_those_of_a_csv(files, tiny_model, tmp_path, ending):
    cohort, patients = files
    frame = numbered(patients)
    frame.to_csv(patients, index=False)
    frame.to_excel(tmp_path / "patients.xlsx", index=False)
    frame.to_parquet(tmp_path / "patients.parquet")
    settings = context(cohort, tiny_model, keep=("mrn", "lactate"))
    acquire(settings, patients, tmp_path / "from_csv.csv", chunk=10)
    acquire(settings, tmp_path / f"patients.{ending}", tmp_path / "out.csv", chunk=10)
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "from_csv.csv").read_text()
    assert pd.read_csv(tmp_path / "out.csv")["mrn"].tolist() == frame["mrn"].tolist()


def test_numbers_of_a_workbook_need_no_decimal_sign(files, tiny_model, tmp_path):
    """Of a cohort with decimal commas: a text such as 1.100 would be 1100 there, a number is what it is."""
    cohort, patients = files
    frame = pd.read_csv(cohort)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    numbered(patients).to_excel(tmp_path / "patients.xlsx", index=False)
    for name in ("cohort", "comma"):
        settings = context(tmp_path / f"{name}.csv", tiny_model, keep=("mrn",))
        acquire(settings, tmp_path / "patients.xlsx", tmp_path / f"{name}-out.csv")
    assert (tmp_path / "comma-out.csv").read_text() == (tmp_path / "cohort-out.csv").read_text()


def test_the_patients_may_be_a_sheet_of_a_workbook(files, tiny_model, tmp_path, capsys):
    cohort, patients = files
    with pd.ExcelWriter(tmp_path / "patients.xlsx") as writer:
        pd.DataFrame({"note": ["see the next sheet"]}).to_excel(writer, sheet_name="About", index=False)
        pd.read_csv(patients).to_excel(writer, sheet_name="This week", index=False)
    book, out = tmp_path / "patients.xlsx", tmp_path / "out.csv"
    given = ["--cohort", cohort, "--patients", book, "--out", out, "--model", tiny_model, "--outcome", "died"]
    arguments = [str(word) for word in (*given, "--budget", 1)]
    with pytest.raises(
        CohortError, match=r"patients\.xlsx cannot be read: .* several sheets .* --patients-sheet 'About'"
    ):
        main(arguments)
    assert main([*arguments, "--patients-sheet", "This week"]) == 0
    assert len(pd.read_csv(out)) == 25
    with pytest.raises(ConfigError, match=r"patients\.csv is no Excel workbook, so it has no sheet 'This week'"):
        acquire(context(cohort, tiny_model, patients_sheet="This week"), patients, out)


def test_a_column_of_dates_that_is_asked_for_is_refused(files, tiny_model, tmp_path):
    cohort, patients = files
    frame = numbered(patients).assign(lactate=pd.Timestamp("2024-03-01"))
    frame.to_excel(tmp_path / "patients.xlsx", index=False)
    with pytest.raises(CohortError, match=r"patients\.xlsx: Column 'lactate' holds dates"):
        acquire(context(cohort, tiny_model), tmp_path / "patients.xlsx", tmp_path / "out.csv")


def test_patients_may_come_zipped_and_with_the_mark_of_a_spreadsheet(files, tiny_model, tmp_path):
    cohort, patients = files
    acquire(context(cohort, tiny_model), patients, tmp_path / "plain.csv")
    patients.write_bytes(gzip.compress(b"\xef\xbb\xbf" + patients.read_bytes()))
    acquire(context(cohort, tiny_model), patients, tmp_path / "zipped.csv")
    assert (tmp_path / "plain.csv").read_text() == (tmp_path / "zipped.csv").read_text()


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_patients_may_come_in_every_encoding_that_a_cohort_may_come_in(files, tiny_model, tmp_path, encoding):
    for path in files:
        path.write_text(path.read_text().replace("north", "Nörd"), encoding="utf-8")
    cohort, patients = files
    acquire(context(cohort, tiny_model, keep=("ward",)), patients, tmp_path / "plain.csv")
    patients.write_bytes(patients.read_text(encoding="utf-8").encode(encoding))
    acquire(context(cohort, tiny_model, keep=("ward",)), patients, tmp_path / "other.csv")
    assert "Nörd" in (tmp_path / "plain.csv").read_text(encoding="utf-8")
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


def test_a_first_line_that_states_the_delimiter_is_followed(files, tiny_model, tmp_path):
    cohort, patients = files
    acquire(context(cohort, tiny_model), patients, tmp_path / "plain.csv")
    patients.write_text("sep=;\n" + patients.read_text().replace(",", ";"))
    acquire(context(cohort, tiny_model), patients, tmp_path / "stated.csv")
    assert (tmp_path / "plain.csv").read_text() == (tmp_path / "stated.csv").read_text()


def test_patients_may_come_as_the_cohort_did_with_semicolons(files, tiny_model, tmp_path):
    cohort, patients = files
    acquire(context(cohort, tiny_model), patients, tmp_path / "commas.csv")
    frame = pd.read_csv(cohort)
    frame.to_csv(cohort, index=False, sep=";")
    acquire(context(cohort, tiny_model), patients, tmp_path / "mixed.csv")
    pd.read_csv(patients).to_csv(patients, index=False, sep=";")
    acquire(context(cohort, tiny_model), patients, tmp_path / "semicolons.csv")
    texts = {(tmp_path / f"{name}.csv").read_text() for name in ("commas", "mixed", "semicolons")}
    assert len(texts) == 1


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_patients_may_be_separated_otherwise_than_the_cohort(files, tiny_model, tmp_path, sign):
    cohort, patients = files
    acquire(context(cohort, tiny_model), patients, tmp_path / "commas.csv")
    pd.read_csv(patients).to_csv(patients, index=False, sep=sign)
    acquire(context(cohort, tiny_model), patients, tmp_path / "otherwise.csv")
    assert (tmp_path / "commas.csv").read_text() == (tmp_path / "otherwise.csv").read_text()
    patients.write_text(patients.read_text().replace("lactate", "lactat"))
    with pytest.raises(ConfigError, match="column 'lactat' that the cohort has not"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "misspelt.csv")


def test_a_sign_in_a_name_does_not_part_the_header(files, tiny_model, tmp_path):
    cohort, patients = files
    for path in files:
        pd.read_csv(path).rename(columns={"lactate": "lactate; arterial; venous; capillary"}).to_csv(path, index=False)
    acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv")
    assert "lactate; arterial" in (tmp_path / "out.csv").read_text()


def test_names_in_quotes_need_not_be_separated_as_the_cohort_s(files, tiny_model, tmp_path):
    cohort, patients = files
    pd.read_csv(cohort).to_csv(cohort, index=False, sep=";")
    acquire(context(cohort, tiny_model), patients, tmp_path / "plain.csv")
    pd.read_csv(patients).to_csv(patients, index=False, quoting=csv.QUOTE_NONNUMERIC)
    acquire(context(cohort, tiny_model), patients, tmp_path / "quoted.csv")
    assert (tmp_path / "plain.csv").read_text() == (tmp_path / "quoted.csv").read_text()


def test_patients_are_read_by_the_decimal_sign_of_the_cohort(files, tiny_model, tmp_path):
    commas = []
    for path in files:  # 1,5 in place of 1.5, and 1.500 in place of 1500
        frame = pd.read_csv(path)
        frame["sodium"] = (frame["sodium"] * 1000 + 4000).round()
        frame.to_csv(path, index=False)
        written = [f"{value:,.0f}".replace(",", ".") for value in frame["sodium"]]
        commas.append(path.with_stem(f"{path.stem}-commas"))
        frame.assign(sodium=written).replace("nan", "").to_csv(commas[-1], index=False, sep=";", decimal=",")
    with pytest.raises(CohortError, match="'sodium', row 3: '4.362' could be 4362 or 4.362"):
        acquire(context(commas[0], tiny_model), commas[1], tmp_path / "asked.csv")
    for (cohort, patients), name, sign in ((files, "points", None), (commas, "commas", ",")):
        acquire(context(cohort, tiny_model, reading=ReadingOptions(decimal=sign)), patients, tmp_path / f"{name}.csv")
    assert (tmp_path / "points.csv").read_text() == (tmp_path / "commas.csv").read_text()
    with pytest.raises(CohortError, match="must be a number with a decimal comma"):
        acquire(context(commas[0], tiny_model, reading=ReadingOptions(decimal=",")), files[1], tmp_path / "mixed.csv")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "holds no patients"),
        (b"age,lactate\n", "holds no patients"),
        (b"PAR1\xff\xfe\x00", "cannot be read: The Parquet file is damaged"),
        (b"\x1f\x8b cut", "cannot be read as CSV"),
        (b"age,lactate\n" + b"1,2\n" * 8 + b"1,2,3\n", "Row 9 of patients.csv has 3 cells"),
        (b"age,lactate\n" + b"1,2\n" * 6 + b"3\n", "Row 7 of patients.csv has 1 cells"),
        (b"age,lactate\n" + b"1,2,3\n" * 8, "Row 1 of patients.csv has 3 cells"),
        (b"age,lactate\n" + b"1,2\n" * 8 + b'"1,2\n', "after row 9"),
    ],
)
def test_a_file_that_is_no_table_of_patients_is_refused_by_its_row(files, tiny_model, tmp_path, content, problem):
    cohort, patients = files
    patients.write_bytes(content)
    with pytest.raises(CohortError, match=problem):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv", chunk=5)
    assert not (tmp_path / "out.csv").exists()


def test_a_column_that_the_cohort_has_not_is_refused_before_anything_is_done(files, tiny_model, tmp_path):
    cohort, patients = files
    pd.read_csv(patients).rename(columns={"lactate": "lactat"}).to_csv(patients, index=False)
    with pytest.raises(ConfigError, match="column 'lactat' that the cohort has not. Did you mean 'lactate'.*--keep"):
        acquire(context(cohort, tiny_model), patients, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv.parts").exists()
    acquire(context(cohort, tiny_model, keep=("lactat",)), patients, tmp_path / "out.csv")
