"""A file whose first row is a patient is refused: nobody is lost, and no column is called 38.5."""

import pytest

from l2m_core.errors import CohortError
from l2m_core.tables.reading import read_table
from tests.tables.workbooks import workbook

NAMES = ["age", "sex", "ward", "died"]
PATIENTS = [[str(40 + i % 7), "FM"[i % 2], ("icu", "normal", "step-down")[i % 3], str(i % 2)] for i in range(30)]


def written(rows) -> bytes:
    return "\n".join(",".join(row) for row in rows).encode()


def test_a_file_without_names_is_refused_with_a_cell_and_the_remedy():
    with pytest.raises(CohortError) as refusal:
        read_table(written(PATIENTS))
    for words in ("The first row seems to be a patient", "4 of its 4 cells, such as '40'", "Add a row of names"):
        assert words in str(refusal.value)


def test_the_first_patient_may_stand_there_twice():
    with pytest.raises(CohortError, match="first row seems to be a patient"):
        read_table(written([*PATIENTS, PATIENTS[0]]))


def test_a_file_with_names_is_read_whatever_its_cells_say():
    assert read_table(written([NAMES, *PATIENTS])).names == tuple(NAMES)
    some = ["yes", "no", "other", "died"]  # two of them are cells too
    rows = [["yes", "no", "a", "1"], ["no", "yes", "b", "0"], ["yes", "yes", "a", "1"]] * 5
    assert read_table(written([some, *rows])).names == tuple(some)


def test_names_that_are_written_again_further_down_are_no_patient():
    again = [NAMES, *PATIENTS[:15], NAMES, *PATIENTS[15:], NAMES]
    assert read_table(written(again)).names == tuple(NAMES)


@pytest.mark.parametrize("first", [0, 1])
def test_numbered_columns_may_hold_their_numbers(first):
    header = [str(first + i) for i in range(8)] + ["digit"]
    rows = [[str((i * j) % 9) for j in range(8)] + [str(i % 10)] for i in range(40)]
    assert read_table(written([header, *rows])).names == tuple(header)


def test_a_form_that_writes_the_name_where_it_was_ticked_has_names():
    names = ["fever", "cough", "rash", "died"]
    rows = [[name if (i + j) % 3 else "" for j, name in enumerate(names[:3])] + [str(i % 2)] for i in range(30)]
    assert read_table(written([names, *rows])).names == tuple(names)


def test_words_that_stand_twice_in_the_first_row_are_no_names():
    with pytest.raises(CohortError, match="first row seems to be a patient"):
        read_table(written([["yn"[i % 2], "yn"[i % 3 == 0], "yn"[i % 5 == 0], "ab"[i % 2]] for i in range(30)]))


def test_a_title_above_the_names_is_refused():
    rows = "\n".join(f"{40 + i},{i % 7},{i % 2}" for i in range(20))
    with pytest.raises(CohortError, match="Row 1 of the file names 1 of 3 columns, so it seems to be a title"):
        read_table(f"Registry 2024,,\n,,\nage,crp,died\n{rows}".encode())
    with pytest.raises(CohortError, match="If the row is a title, delete what stands above the names"):
        read_table(f"Registry 2024\nage,crp,died\n{rows}".encode())
    # Empty columns behind the last one have no names, and an index may have none.
    padded = rows.replace("\n", ",,,,\n") + ",,,,"
    assert read_table(f"age,crp,died,,,,\n{padded}".encode()).rows == 20
    assert read_table(f",crp,died\n{rows}".encode()).names == ("column 1", "crp", "died")


NUMBERS = [[str(40 + i % 7), str(135 + i % 9), f"{1 + i % 5 / 2}", "ny"[i % 2]] for i in range(30)]


@pytest.mark.parametrize(
    ("above", "second", "said"),
    [
        (["Demographics", "Lab", "Lab", "Outcome"], ["age", "sodium", "lactate", "died"], "'age', 'sodium', 'lactate'"),
        (["age", "sodium", "lactate", "died"], ["years", "mmol/l", "mmol/l", ""], "'years', 'mmol/l', 'mmol/l'"),
        (["age", "sodium", "lactate", "died"], ["", "mmol/l", "mg/dl", ""], "'mmol/l', 'mg/dl'"),
    ],
)
def test_a_second_row_of_names_or_of_units_is_no_patient(above, second, said):
    with pytest.raises(CohortError) as refusal:
        read_table(written([above, second, *NUMBERS]))
    assert f"Row 2 of the file seems to be a second row of names, or of units: {said} stand above" in str(refusal.value)
    book = workbook(Labs=[above, second, *[[*map(float, row[:3]), row[3]] for row in NUMBERS]])
    with pytest.raises(CohortError, match="Row 2 of the sheet '.*' seems to be a second row of names"):
        read_table(book)


@pytest.mark.parametrize(
    "first",
    [
        ["45", "n.d.", "n.d.", "y"],  # one text of a laboratory, in two columns
        ["NA", "NA", "", "y"],
        ["45", "hemolysed", "2", "y"],
        ["45", "<5", "~3", "y"],
        ["45", ">= 120", "+2", "y"],
    ],
)
def test_a_first_patient_of_whom_little_was_measured_is_one(first):
    assert read_table(written([["age", "sodium", "lactate", "died"], first, *NUMBERS])).rows == 31


@pytest.mark.parametrize(
    ("above", "row"),
    [
        (["Cohort of 2019, Basel"], 2),
        (["Study XY, export of 2023", ""], 3),
        (["Study XY, export of 2023", "by the ward, in May"], 3),
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_title_with_a_comma_is_told_from_a_row_that_lacks_one(above: list[str], row: int, delimiter: str) -> None:
    lines = [
        *above,
        *(delimiter.join(cells) for cells in (["age", "crp", "died"], *([str(n), "3", "0"] for n in range(50, 80)))),
    ]
    with pytest.raises(CohortError) as refusal:
        read_table("\n".join(lines).encode())
    assert str(refusal.value) == (
        f"Row {row} seems to name the columns, and the first row of the file, '{above[0]}', to be a title. "
        f"Delete what stands above row {row}."
    )


@pytest.mark.parametrize("wrong", ["50,0", "50,0,0,1"])
def test_a_row_of_another_length_is_no_title(wrong: str) -> None:
    lines = ["age,crp,died", wrong, *(f"{n},3,0" for n in range(50, 80))]
    with pytest.raises(CohortError, match=r"Row 2 has \d cells, but the header has 3"):
        read_table("\n".join(lines).encode())
