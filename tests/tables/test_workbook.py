"""Excel workbooks: what their cells hold becomes the table, digit for digit; what a sheet hides is refused or said."""

from __future__ import annotations

import contextlib
import datetime
import io
import random
import zipfile

import numpy as np
import openpyxl
import pytest

import l2m_core as l2m
from l2m_core.errors import CohortError
from l2m_core.tables.reading import read_table, sheets_of
from l2m_core.tables.table import Limits, NumberColumn, RefusedColumn, TextColumn
from l2m_core.tables.workbook_dates import moment, shown_as
from tests.tables.workbooks import number, row, text, with_xml, workbook

ROWS = 24
AGES = [40 + 7 * i % 31 for i in range(ROWS)]
LABS = [round(0.1 + 0.37 * i, 3) for i in range(ROWS)]
DIED = ["no", "yes", "no"] * 8
NAMES = ["age", "crp", "died"]
TABLE = [NAMES, *zip(AGES, LABS, DIED, strict=True)]


def table_with(column: list, name: str = "x") -> bytes:
    return workbook(Data=[[*NAMES, name], *(list(cells) + [x] for cells, x in zip(TABLE[1:], column, strict=True))])


def column_of(data: bytes, name: str = "x"):
    return read_table(data).column(name)


# What the cells hold


def test_a_workbook_is_the_same_cohort_as_the_csv_of_it():
    lines = "\n".join(",".join(map(str, cells)) for cells in TABLE)
    ours, of_text = (l2m.Cohort.from_file(data, outcome="died") for data in (workbook(Data=TABLE), lines.encode()))
    np.testing.assert_array_equal(ours.x, of_text.x)
    np.testing.assert_array_equal(ours.y, of_text.y)
    assert ours.schema == of_text.schema
    assert ours.source.row_numbers[0] == 2  # as the spreadsheet shows it
    assert ours.source.how_read() == ["Read from the sheet 'Data' of an Excel workbook."]


def test_every_cell_is_what_openpyxl_reads():
    """Another reader of the same format, on cells of all kinds at random places."""
    draw = random.Random(0)

    def cell():
        kinds = [
            None,
            draw.randint(-(10**9), 10**9),
            draw.gauss(0, 1) * 10 ** draw.randint(-12, 12),
            draw.choice(["a & b", "<5", "ünï", "under_x", " x ", 'say "no"', "1,5", "n.d.", "two\nlines"]),
            draw.random() < 0.5,
        ]
        return draw.choice(kinds)

    rows = [[cell() for _ in range(9)] for _ in range(60)]
    data = workbook(Data=[[f"name {i}" for i in range(9)], *rows])
    table = read_table(data)
    read = list(openpyxl.load_workbook(io.BytesIO(data), read_only=True).worksheets[0].values)
    for name, column in zip(table.names, table.columns, strict=True):
        assert isinstance(column, TextColumn)
        place = read[0].index(name)
        for ours, line in zip(column.cells(), table.row_numbers, strict=True):
            theirs = read[line - 1][place]
            if isinstance(theirs, bool):
                assert ours == str(theirs)
            elif isinstance(theirs, int | float):
                assert float(ours) == theirs
            else:
                assert ours == ("" if theirs is None else theirs)


def test_numbers_keep_every_digit():
    values = [0.1 + 0.2, 1e-300, -2.5e17, 1 / 3, 12345678.9012345, 5.0] * 4
    cells = "".join(row(i, number(f"A{i}", repr(x)), text(f"B{i}", "m")) for i, x in enumerate(values, 2))
    column = column_of(with_xml(row(1, text("A1", "x"), text("B1", "sex")) + cells))
    assert isinstance(column, NumberColumn)
    assert column.values.tolist() == values


def test_codes_beyond_what_a_float_tells_apart_stay_as_they_are():
    codes = [str(12345678901234567 + i) for i in range(ROWS)]
    rows = [row(1, text("A1", "code"), text("B1", "x"), text("C1", "died"))]
    rows += [
        row(i, number(f"A{i}", code), number(f"B{i}", "1.5"), text(f"C{i}", died))
        for i, (code, died) in enumerate(zip(codes, DIED, strict=True), 2)
    ]
    column = column_of(with_xml("".join(rows)), "code")
    assert isinstance(column, TextColumn) and column.cells() == codes


@pytest.mark.parametrize("other", ["<5", "1,5", "n.d.", ""])
def test_a_number_among_texts_is_never_taken_for_a_thousand(other):
    """1.125 beside '1,5' would be 1125, were it a text with a decimal comma."""
    data = table_with([1.125, *["2.5" if other == "" else other] * 3, *LABS[4:]])
    for decimal in (".", ",", None):
        try:
            cohort = l2m.Cohort.from_file(data, outcome="died", decimal=decimal, censored="limit", missing=["n.d."])
        except CohortError:
            continue
        x = cohort.x[:, cohort.names.index("x")]
        assert x[0] == np.float32(1.125)


def test_truths_texts_and_rich_texts():
    strings = (
        "<si><t>x</t></si><si><r><t>high</t></r><r><t xml:space='preserve'>_x0020_risk</t></r></si>"
        "<si><t>&lt;5 &amp; more</t><rPh sb='0' eb='1'><t>spoken</t></rPh></si><si/>"
    )
    cells = [f'<c r="A{i}" t="s"><v>{i % 3 + (i % 3 == 0)}</v></c>' for i in range(2, 14)]
    body = "".join(row(i, cell, number(f"B{i}", "1")) for i, cell in enumerate(cells, 2))
    data = with_xml(row(1, '<c r="A1" t="s"><v>0</v></c>', text("B1", "y")) + body, strings)
    assert set(column_of(data).cells()) == {"high risk", "<5 & more"}
    assert set(column_of(table_with([True, False] * 12)).cells()) == {"True", "False"}


def test_formulas_are_their_stored_results():
    body = "".join(row(i, number(f"A{i}", str(i), f"<f>B{i}*2</f>"), text(f"B{i}", "m")) for i in range(2, 14))
    column = column_of(with_xml(row(1, text("A1", "x"), text("B1", "sex")) + body))
    assert column.values.tolist() == list(range(2, 14))


def test_other_namespaces_prefixes_and_a_table_that_begins_elsewhere():
    """As other programs write them: with a prefix, of the strict kind, and from cell C4 on."""
    data = workbook(lambda book: book["Data"].move_range(f"A1:C{ROWS + 1}", rows=3, cols=2), Data=TABLE)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(buffer, "w") as archive:
        for part in source.namelist():
            content = source.read(part)
            if part.startswith("xl/worksheets/sheet"):
                content = content.replace(b"<", b"<x:").replace(b"<x:/", b"</x:").replace(b"<x:?", b"<?")
                content = content.replace(
                    b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"', b'xmlns:x="u"'
                )
            archive.writestr(part, content)
    for file in (data, buffer.getvalue()):
        table = read_table(file)
        assert table.names == tuple(NAMES) and table.rows == ROWS and table.row_numbers[0] == 5
        assert table.column("crp").values.tolist() == LABS


# Dates


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("General", None),
        ("0.00", None),
        ('0" mg/d"', None),
        (r"0\ \d", None),
        ("0.00E+00", None),
        ("[Red]0.0;[Blue]-0.0", None),
        ("[$€-407]#,##0.00", None),
        ("dd.mm.yyyy", "date"),
        ("[$-409]mmm d, yyyy;@", "date"),
        ("h:mm AM/PM", "date"),
        ("[h]:mm:ss", "passed"),
        ("0.0%", "percent"),
        ('0"%"', None),
    ],
)
def test_formats_tell_dates_from_numbers(code, kind):
    assert shown_as(code) == kind


def test_days_are_counted_as_spreadsheets_count_them():
    assert moment(1, "date", False) == "1900-01-01"
    assert moment(59, "date", False) == "1900-02-28" and moment(61, "date", False) == "1900-03-01"
    assert moment(45292.5, "date", False) == "2024-01-01 12:00:00"
    assert moment(43830, "date", True) == "2024-01-01"
    assert moment(0.25, "date", False) == "06:00:00" and moment(1.5, "passed", False) == "36:00:00"
    assert moment(-1, "date", False) is None and moment(1e9, "date", False) is None


def test_a_column_of_dates_must_be_ignored():
    data = table_with([datetime.date(2024, 1, 1 + i) for i in range(ROWS)], "seen")
    with pytest.raises(CohortError, match="'seen' holds dates or times.*days since admission"):
        l2m.Cohort.from_file(data, outcome="died")
    cohort = l2m.Cohort.from_file(data, outcome="died", schema="features:\n- {name: seen, role: ignored}\n")
    assert cohort.names == ("age", "crp")


def test_a_number_that_was_turned_into_a_date_is_refused_with_its_row():
    """A spreadsheet makes the 1st of February of 1.2, and of 3-4 the 3rd of April."""
    values: list = list(LABS)
    values[4] = datetime.datetime(2024, 2, 1)
    with pytest.raises(CohortError, match=r"'x', row 6: '2024-02-01' is a date among other values.*1\.2 or 3-4"):
        l2m.Cohort.from_file(table_with(values), outcome="died")


# What a sheet hides, or shows otherwise


def test_merged_cells_are_refused():
    data = workbook(lambda book: book["Data"].merge_cells("A3:A5"), Data=TABLE)
    with pytest.raises(CohortError, match="A3:A5 are merged"):
        read_table(data)
    elsewhere = workbook(lambda book: book["Data"].merge_cells("H40:K44"), Data=TABLE)
    assert read_table(elsewhere).rows == ROWS


def test_formulas_without_a_stored_result_are_refused():
    """A program that writes a workbook computes nothing: a result is stored only by one that did."""
    data = workbook(Data=[[*NAMES, "ratio"], *([*cells, "=A2/B2"] for cells in TABLE[1:])])
    with pytest.raises(CohortError, match="D2 holds a formula whose result is not stored, as do 23 more"):
        read_table(data)
    empty = "".join(
        row(i, number(f"A{i}", "1"), f'<c r="B{i}" t="str"><f>IF(A{i}=1,"",2)</f><v></v></c>') for i in range(2, 14)
    )
    assert read_table(with_xml(row(1, text("A1", "x"), text("B1", "y")) + empty)).column("y").cells() == [""] * 12


def test_hidden_rows_and_columns_are_read_and_said():
    def hide(book):
        book["Data"].row_dimensions[3].hidden = True
        book["Data"].column_dimensions["B"].hidden = True

    table = read_table(workbook(hide, Data=TABLE))
    assert table.rows == ROWS
    assert table.warnings == (
        "Hidden rows, such as those of a filter, were read too: 1.",
        "Hidden columns were read too: 'crp' (B).",
    )


SHARES = [round(0.25 + i / 100, 2) for i in range(ROWS)]


def with_shares(cells: list, others: tuple[int, ...] = ()) -> bytes:
    """The column D shows its numbers as percentages, but for those of the rows `others`."""

    def change(book):
        for at in set(range(2, ROWS + 2)) - {*others}:
            book["Data"].cell(at, 4).number_format = "0%"

    return workbook(change, Data=[[*NAMES, "share"], *([*known, x] for known, x in zip(TABLE[1:], cells, strict=True))])


def test_percentages_are_read_as_stored_and_said():
    table = read_table(with_shares(SHARES))
    assert table.column("share").cells() == SHARES
    (said,) = table.warnings
    assert said == "Cells that are shown as percentages were read as they are stored, 25% as 0.25: 'share'."


@pytest.mark.parametrize("other", [48, 0.48, "48%", "<1%"])
def test_a_number_among_percentages_is_refused(other):
    """48 and 48% look alike in a sheet, which holds 48 and 0.48."""
    data = with_shares([*SHARES[:2], other, *SHARES[3:]], others=(4,))
    with pytest.raises(CohortError, match=f"'share', row 4: '{other}' stands among percentages.*25% is 0.25"):
        l2m.Cohort.from_file(data, outcome="died", units="drop", censored="limit")


def test_nothing_and_0_among_percentages_are_what_they_are():
    data = with_shares([*SHARES[:2], 0, "NA", *SHARES[4:]], others=(4, 5))
    cohort = l2m.Cohort.from_file(data, outcome="died")
    np.testing.assert_allclose(cohort.x[:5, 2], [0.25, 0.26, 0, np.nan, 0.29], rtol=1e-6)


def test_measurements_whose_results_cannot_be_read_say_why():
    tests = [[patient, test, 0.3 if test == "ef" else 5 + patient] for patient in range(20) for test in ("crp", "ef")]

    def change(book):
        for at, (_, test, _) in enumerate(tests, 2):
            book["Data"].cell(at, 3).number_format = "0%" if test == "ef" else "General"

    data = workbook(change, Data=[["patient", "test", "result"], *tests])
    with pytest.raises(CohortError, match="'result', row 2: '5' stands among percentages"):
        l2m.Cohort.from_file(data, outcome="died", measurements="first")


def test_a_title_above_and_a_note_below_are_refused():
    with pytest.raises(CohortError, match="Row 1 .* names 1 of 3 columns.*delete what stands above"):
        read_table(workbook(Data=[["Study export 2024"], [], *TABLE]))
    with pytest.raises(CohortError, match="Row 27 .* seems to be a note"):
        read_table(workbook(Data=[*TABLE, [], ["Source: registry"]]))
    # A patient below an empty row, and one of whom little is known, are patients.
    assert read_table(workbook(Data=[*TABLE, [], [50, 1.5, "no"], [51, None, None]])).rows == ROWS + 2


def test_a_first_row_that_is_a_patient_is_refused():
    data = workbook(Data=[["m", "left", "no", 50], *(["m", "left", "no", 50 + i % 3] for i in range(ROWS))])
    with pytest.raises(CohortError, match="The first row seems to be a patient"):
        read_table(data)


def test_errors_of_formulas_are_not_read_as_numbers():
    body = [number("A2", "1")] + [f'<c r="A{i}" t="e"><v>#DIV/0!</v></c>' for i in (3, 4)]
    body += [number(f"A{i}", f"{i}.5") for i in range(5, 26)]
    rows = "".join(row(i, cell, text(f"B{i}", "no" if i % 3 else "yes")) for i, cell in enumerate(body, 2))
    data = with_xml(row(1, text("A1", "x"), text("B1", "died")) + rows)
    with pytest.raises(CohortError, match="#DIV/0!"):
        l2m.Cohort.from_file(data, outcome="died")
    cohort = l2m.Cohort.from_file(data, outcome="died", missing=["#DIV/0!"])
    assert int((~cohort.r).sum()) == 2


# Sheets


def test_of_several_sheets_one_must_be_stated():
    data = workbook(Codes=[["code", "meaning"], ["1", "mild"]], Data=TABLE, Empty=[])
    assert sheets_of(data) == ("Codes", "Data")
    with pytest.raises(CohortError, match="several sheets with cells: 'Codes', 'Data'.*sheet='Codes'"):
        read_table(data)
    assert read_table(data, sheet="Data").rows == ROWS
    with pytest.raises(CohortError, match="no sheet 'Date'. It has 'Codes', 'Data', 'Empty'"):
        read_table(data, sheet="Date")
    with pytest.raises(CohortError, match="no sheet 'Data'"):
        read_table(b"a,b\n1,2\n", sheet="Data")


def test_a_hidden_sheet_is_read_by_its_name_only():
    def hide(book):
        book["Old"].sheet_state = "hidden"

    data = workbook(hide, Old=TABLE[:12], Data=TABLE)
    assert sheets_of(data) == ("Data",) and read_table(data).rows == ROWS
    assert read_table(data, sheet="Old").rows == 11


def test_other_files_have_no_sheets():
    assert sheets_of(b"a,b\n1,2\n") == ()


# Hostile files


def archive(**parts: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for path, content in parts.items():
            file.writestr(path, content)
    return buffer.getvalue()


GOOD = row(1, text("A1", "x"), text("B1", "y")) + "".join(
    row(i, number(f"A{i}", "1"), number(f"B{i}", "2")) for i in range(2, 14)
)
ENTITIES = '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;">]>'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (archive(**{"a.txt": "hello"}), "zip archive, but no Excel workbook"),
        (archive(**{"mimetype": "application/vnd.oasis.opendocument.spreadsheet"}), "OpenDocument"),
        (archive(**{"xl/workbook.xml": "<workbook/>"}), "damaged"),
        (workbook(Data=TABLE)[:-200], "damaged"),
        (with_xml(GOOD.replace("</row>", "", 1)), "damaged"),
        (with_xml(GOOD, strings="</sst><sst>"), "damaged"),
        (with_xml(row(1, number("A1", "1e")) + GOOD), "damaged"),
        (with_xml(row(1, '<c r="A1" t="s"><v>9</v></c>') + row(2, number("A2", "1"))), "damaged"),
        (with_xml(GOOD + row(2, number("A2", "1"))), "damaged"),  # a row twice
        (with_xml(row(1, number("A9", "1"))), "damaged"),
        (with_xml(row(1, number("XFE1", "1"))), "damaged"),
        (with_xml(row(1048577, number("A1048577", "1"))), "damaged"),
        (with_xml(GOOD, more={"xl/sharedStrings.xml": f"{ENTITIES}<sst><si><t>&c;</t></si></sst>"}), "damaged"),
        (with_xml(""), "no sheet with cells"),
        (with_xml(row(1, text("A1", "x"), text("B1", "y"))), "a row of names at most"),
    ],
)
def test_what_is_no_whole_workbook_is_refused_in_words(data, words):
    with pytest.raises(CohortError, match=words):
        read_table(data)


def test_what_would_unfold_is_refused_before_it_does():
    zeros = with_xml(GOOD, more={"xl/media/image.bin": b"\0" * 3_000_000})
    with pytest.raises(CohortError, match="unpacks to more than 2 MB"):
        read_table(zeros, limits=Limits(megabytes=1))
    many = with_xml(GOOD, more={f"xl/media/{i}": b"" for i in range(10_001)})
    with pytest.raises(CohortError, match="too many parts"):
        read_table(many)
    far = with_xml(GOOD + row(14, *(number(f"{chr(65 + i // 26)}{chr(65 + i % 26)}14", "1") for i in range(600))))
    with pytest.raises(CohortError, match="columns; at most 500"):
        read_table(far)
    with pytest.raises(CohortError, match="at most 5 are read"):
        read_table(with_xml(GOOD), limits=Limits(rows=5))


def test_a_file_that_was_changed_at_random_is_read_or_refused():
    """Whatever stands in it, nothing but a refusal comes out; so too of XML whose letters were changed."""
    draw = random.Random(1)
    whole = workbook(Data=TABLE)
    sheet = zipfile.ZipFile(io.BytesIO(whole)).read("xl/worksheets/sheet1.xml")
    rows = sheet.decode().partition("<sheetData>")[2].partition("</sheetData>")[0]
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        letters = list(rows)
        for _ in range(draw.randint(1, 4)):
            letters[draw.randrange(len(letters))] = draw.choice('09AZz<>/="& -.e')
        for changed in (bytes(data), with_xml("".join(letters), "<si><t>x</t></si>")):
            with contextlib.suppress(CohortError):
                read_table(changed)


def test_cells_far_away_take_no_room():
    """A cell in the last row of a sheet is a row of its own, not a million of them."""
    table = read_table(with_xml(GOOD + row(1048576, number("A1048576", "7"), number("B1048576", "8"))))
    assert table.rows == 13 and table.row_numbers[-1] == 1048576
    assert isinstance(read_table(with_xml(GOOD)).column("x"), NumberColumn)


def test_a_refused_column_says_so_only_where_it_is_used():
    column = column_of(table_with([datetime.time(10, 30)] * ROWS))
    assert isinstance(column, RefusedColumn) and "dates or times" in column.problem
