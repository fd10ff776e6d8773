"""Tables that nobody would write by hand, and damaged files: read cell for cell, or refused in words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from tests.tables.generated import tables, unfaithful_cells, written


@settings(max_examples=60)
@given(tables())
def test_no_cell_of_any_table_changes_its_meaning_without_a_word(table):
    check_faithful(*table)


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_no_cell_of_thousands_of_tables_changes_its_meaning_without_a_word(figure):
    settings(max_examples=5000)(given(tables())(lambda table: check_faithful(*table)))()
    figure("uploads: 5,000 generated tables", "read cell for cell, or refused in words", "5,000 of 5,000", True)


def check_faithful(names, rows):
    try:
        cohort = Cohort.from_csv(written(names, rows), "y", delimiter=",")
    except InputError as refusal:
        assert str(refusal)
        return
    assert unfaithful_cells(cohort, names, rows) == []
    assert set(cohort.names) | {f.name for f in cohort.schema.features if not f.used} == set(names[:-1])
    again = Cohort.from_csv(written(names, rows), schema=cohort.schema.to_yaml(), delimiter=",")
    assert again.content_hash == cohort.content_hash
    assert Cohort.from_frame(cohort.frame(), schema=cohort.schema).content_hash == cohort.content_hash


@settings(max_examples=40)
@given(tables(), st.data())
def test_any_damage_to_a_file_is_read_or_refused(table, data):
    check_damage(*table, data)


@pytest.mark.reliability
@pytest.mark.timeout(3600)
def test_thousands_of_damages_are_read_or_refused(figure):
    settings(max_examples=5000)(given(tables(), st.data())(lambda table, data: check_damage(*table, data)))()
    figure("uploads: 5,000 generated damages to a file", "read or refused, never a stack trace", "5,000 of 5,000", True)


def check_damage(names, rows, data):
    content = bytearray(written(names, rows))
    for _ in range(data.draw(st.integers(1, 5))):
        position = data.draw(st.integers(0, len(content) - 1))
        content[position : position + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    try:
        Cohort.from_csv(bytes(content), "y").encode({})
    except InputError as refusal:
        assert str(refusal)
