"""Each of 432 exported files is read cell for cell, asked about and then read, or refused in words."""

from collections import Counter

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.tables.reading_notes import reading_report
from tests.tables.exported_files import ENCODINGS, READABLE, ROWS, ExportedFile, exported_files

MOST_QUESTIONS = 3


def read(file: ExportedFile) -> tuple[Cohort, int]:
    """The cohort, with what its refusals ask for stated, and how often something had to be stated."""
    stated: dict[str, str] = {}
    for questions in range(MOST_QUESTIONS):
        try:
            return Cohort.from_csv(file.data, file.outcome, **stated), questions
        except CohortError as refusal:
            words = str(refusal)
            if "decimal='.' or decimal=','" in words and "decimal" not in stated:
                stated["decimal"] = file.decimal
            elif "State delimiter" in words and "delimiter" not in stated:
                stated["delimiter"] = file.separator
            else:
                raise
    raise AssertionError(f"{file}: asked about for ever")


def wrong_cells(cohort: Cohort, file: ExportedFile) -> list[str]:
    """Columns that are not what the file says, each row of it and no other."""
    if len(cohort) != ROWS or cohort.source_rows.tolist() != list(range(ROWS)):
        return [f"{len(cohort)} rows"]
    texts = [cohort.decode("ward", code) for code in cohort.x[:, cohort.names.index("ward")]]
    wrong = [] if texts == [ward.strip() for ward in file.wards] else ["ward"]
    wrong += [] if np.array_equal(cohort.y, file.died) else ["died"]
    for name, values in file.numbers.items():
        found = cohort.x[:, cohort.names.index(name)] if name in cohort.names else None
        if found is None or not np.array_equal(found, np.float32(values), equal_nan=True):
            wrong.append(name)
    return wrong


@pytest.fixture(scope="module")
def results() -> list[tuple[ExportedFile, Cohort | str, int]]:
    found: list[tuple[ExportedFile, Cohort | str, int]] = []
    for file in exported_files():
        try:
            found.append((file, *read(file)))
        except CohortError as refusal:
            found.append((file, str(refusal), 0))
    return found


def test_what_is_read_is_what_stands_in_the_file(results, figure):
    wrong = {
        str(file): cells
        for file, cohort, _ in results
        if isinstance(cohort, Cohort) and (cells := wrong_cells(cohort, file))
    }
    count = sum(isinstance(cohort, Cohort) for _, cohort, _ in results)
    asked = sum(questions > 0 for _, cohort, questions in results if isinstance(cohort, Cohort))
    figure(
        f"reading: {len(results)} files of encodings, separators, decimal signs, thousands, footers and headers",
        "read cell for cell, or refused in words",
        f"{count} read ({asked} after a question), {len(results) - count} refused, {len(wrong)} read wrongly",
        not wrong,
    )
    assert wrong == {} and len(results) >= 300


def test_files_of_patients_alone_are_read_and_others_refused(results):
    refused = Counter(
        file.shape for file, cohort, _ in results if isinstance(cohort, str) and file.encoding != "utf-16-le"
    )
    assert {shape for shape in refused if shape in READABLE} == set(), refused
    for file, cohort, _ in results:
        if file.shape not in READABLE:
            assert isinstance(cohort, str) and len(cohort) > 20, str(file)


def test_utf_16_without_its_mark_is_refused_by_name(results):
    words = [cohort for file, cohort, _ in results if file.encoding == "utf-16-le"]
    assert words and all(isinstance(word, str) and "UTF-16 without its mark" in word for word in words)


def test_what_was_read_how_is_told_of_every_file(results):
    shown = {
        "utf-8": "UTF-8",
        "utf-8-sig": "UTF-8",
        "utf-16": "UTF-16",
        "utf-16-be": "UTF-16",
        "cp1252": "Windows-1252",
    }
    names = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
    assert {*shown} | {"utf-16-le"} == {*ENCODINGS}
    for file, cohort, _ in results:
        if isinstance(cohort, Cohort):
            notes = {note.kind: note for note in reading_report(cohort)}
            assert (
                notes["file"].text
                == f"Read as {shown[file.encoding]}, with columns separated by {names[file.separator]}."
            )
            assert ("comma" in notes) == (file.decimal == ","), str(file)
            assert ("thousands" in notes) == (file.thousands != "" and "leukocytes" in notes["thousands"].columns), str(
                file
            )
