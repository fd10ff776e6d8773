"""A file becomes a table of texts, exactly, or a refusal; sizes are bounded before memory is spent."""

import csv
import gzip
import io
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.errors import CohortError, InputError
from l2m_core.schema import Feature
from l2m_core.tables.reading import read_table
from l2m_core.tables.table import Limits, TextColumn, clean_names
from tests.tables.generated import written

SMALL = b"age,sex\n40,F\n41,M\n\n42,F\n"


def cells(table) -> list[list[str]]:
    return [list(row) for row in zip(*(column.cells() for column in table.columns), strict=True)]


def test_cells_stay_texts_and_rows_keep_the_number_that_a_spreadsheet_shows():
    table = read_table(SMALL)
    assert table.names == ("age", "sex")
    assert cells(table) == [["40", "F"], ["41", "M"], ["42", "F"]]
    assert table.row_numbers.tolist() == [2, 3, 5]
    assert (table.rows, table.delimiter, table.warnings) == (3, ",", ())


def test_a_table_is_read_from_a_path_bytes_or_an_open_file(tmp_path):
    path = tmp_path / "ward 3.final.csv"
    path.write_bytes(SMALL)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(SMALL))
    for source in (path, str(path), path.open("rb"), path.open(), tmp_path / "packed.csv.gz", io.BytesIO(SMALL)):
        assert cells(read_table(source)) == cells(read_table(SMALL))
    assert read_table(path).name == "ward 3"
    assert read_table(path, name="ours").name == "ours"


def test_gzip_files_of_many_members_are_read_in_time_that_grows_with_their_size():
    """Each member used to cost a copy of all that followed it."""

    def seconds(members: int) -> float:
        data = gzip.compress(b"") * members + gzip.compress(SMALL)
        begun = time.process_time()
        assert cells(read_table(data)) == cells(read_table(SMALL))
        return time.process_time() - begun

    assert min(seconds(60_000) for _ in range(2)) < 8 * min(seconds(15_000) for _ in range(2))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere.csv", "does not exist"),
        (".", "is a folder"),
        ("a\0b", "cannot be opened|does not exist"),
        (3, "an int, which cannot be read"),
        (None, "a NoneType, which cannot be read"),
    ],
)
def test_what_is_no_file_is_refused(source, words):
    with pytest.raises(CohortError, match=words):
        read_table(source)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(rows=2), "more than 2 rows"),
        (Limits(columns=1), "2 columns"),
        (Limits(megabytes=0), "0 MB"),
    ],
)
def test_limits_are_kept(limits, words, tmp_path):
    (tmp_path / "table.csv").write_bytes(SMALL)
    for source in (SMALL, tmp_path / "table.csv", gzip.compress(SMALL)):
        with pytest.raises(CohortError, match=words):
            read_table(source, limits=limits)


def test_an_open_file_is_not_read_beyond_the_limit():
    class Endless(io.RawIOBase):
        def read(self, size=-1):
            assert 0 < size <= 1_000_001
            return b"a,b\n" * (size // 4 + 1)

    with pytest.raises(CohortError, match="1 MB"):
        read_table(Endless(), limits=Limits(megabytes=1))


def test_memory_stays_near_the_size_of_the_file():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20_000, 20)).round(3).astype(str).tolist()
    data = ("\n".join([",".join(f"f{i}" for i in range(20)), *(",".join(row) for row in values)]) + "\n").encode()
    tracemalloc.start()
    table = read_table(data)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1.5 * len(data) and peak < 3 * len(data)
    assert cells(table) == values


cell_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)


@given(
    st.integers(2, 4).flatmap(
        lambda width: st.lists(st.lists(cell_texts, min_size=width, max_size=width), min_size=1, max_size=8)
    ),
    st.sampled_from(",;\t|"),
)
def test_every_cell_of_a_well_formed_file_comes_back(rows, delimiter):
    names = [f"n{i}" for i in range(len(rows[0]))]
    assert cells(read_table(written(names, rows, delimiter), delimiter)) == rows


@given(st.lists(st.lists(st.sampled_from(["1", "", "x"]), min_size=1, max_size=5), min_size=2, max_size=8))
def test_a_ragged_file_is_never_read(rows):
    text = "\n".join(",".join(row) for row in [["a", "b", "c"], *rows])
    present = [row for row in rows if row != [""]]
    if all(len(row) == 3 for row in present) and present:
        assert cells(read_table(text.encode())) == present
    else:
        with pytest.raises(CohortError):
            read_table(text.encode(), delimiter=",")


@settings(max_examples=50)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_table_or_a_refusal(data):
    try:
        table = read_table(data)
    except InputError as refusal:
        assert str(refusal)
    else:
        assert all(len(column.cells()) == table.rows for column in table.columns)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=8))
def test_any_header_gives_unique_names_that_a_schema_accepts(header):
    names, _, warnings = clean_names(header)
    assert len(set(names)) == len(names) == len(header)
    for name in names:
        Feature(name)
    changed = [name for name, written_name in zip(names, header, strict=True) if name != written_name.strip()]
    assert len(warnings) >= len(changed)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter):
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter).writerows([["a", "b", "c"], ["1", "x, y; z", "2.5"], ["3", "w", "4.5"]])
    assert read_table(buffer.getvalue().encode()).delimiter == delimiter


def test_a_column_of_no_cells_and_one_of_an_empty_cell_differ():
    assert TextColumn.of([]).cells() == []
    assert TextColumn.of([""]).cells() == [""]
