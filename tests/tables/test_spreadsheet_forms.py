"""What spreadsheets, and people who type into them, make of a value: read with a note, asked about, or refused in words."""

import warnings

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, FeatureError
from l2m_core.tables.reading_notes import reading_report
from tests.core.ward import N, loaded


def ward(*cells, **options) -> Cohort:
    columns = {"a": (list(cells) * N)[:N], "b": [40 + i % 30 for i in range(N)], "y": [0, 1] * (N // 2)}
    return loaded(columns, **options)


def warnings_of(cohort, column="a") -> str:
    return "\n".join(warning for warning in cohort.warnings if f"'{column}'" in warning)


def stored_and_opened(cohort) -> Cohort:
    return Cohort.restored(cohort.frame(), cohort.schema, cohort.content_hash)


# Numbers


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('="5.3"', 5.3),
        ("'5.3", 5.3),
        (' "5.3"', 5.3),
        ("5\u00b73", 5.3),
        ("5\u066b3", 5.3),
        ("1\u066c234\u066b5", 1234.5),
        ("5.3\u200b", 5.3),
        ("\ufeff5.3", 5.3),
    ],
)
def test_a_number_in_an_unusual_form_is_read_with_a_note(cell, value):
    cohort = ward("7.25", cell, "8")
    assert cohort.x[1, 0] == np.float32(value) and "cells such as" in warnings_of(cohort)
    (note,) = [note for note in reading_report(cohort) if note.kind == "unusual"]
    assert note.columns == ("a",) and note.example.endswith(f"→ {value}")
    assert cohort.encode({"a": cell})[0, 0] == np.float32(value)
    assert stored_and_opened(cohort).content_hash == cohort.content_hash


@pytest.mark.parametrize(("decimal", "cell"), [(",", "5\u00b7300"), (".", "5\u066b300")])
def test_a_sign_that_means_one_thing_means_it_under_any_decimal_sign(decimal, cell):
    cohort = ward(cell, "7", "8", decimal=decimal)
    assert cohort.x[0, 0] == np.float32(5.3)


def test_codes_that_a_spreadsheet_keeps_as_texts_stay_codes():
    assert ward('="007"', '="012"', "113").feature("a").levels == ("007", "012", "113")


def test_a_wrapped_text_that_the_schema_states_as_a_level_stays():
    schema = {"features": [{"name": "a", "kind": "category", "levels": ['="x"', "y", "z"]}]}
    assert ward('="x"', "y", "z", schema=schema).x[0, 0] == 0


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (("5.3-", "4.2-"), "has its minus behind the number"),
        (("5.3-", *"789123456"), "has its minus behind the number"),
        (("80\uff05", "70\uff05"), "is a number with a unit"),
        (("5.3*", "4.2*", "1.2*"), "number with a unit or a mark"),
        (("2021-01", "2021-02", "2020-12"), "is a date"),
        (("Mar-20", "Apr-20", "14-Oct"), "is a date"),
        (("1600000000", "1500000000", "1700000001", "1600000007", "1600099999"), "seconds or milliseconds since 1970"),
        (("1600000000123", "1500000000456", "1700000001789"), "state kind: number"),
    ],
)
def test_what_is_no_plain_number_is_refused_by_its_cell(cells, words):
    with pytest.raises(CohortError, match="Column 'a', row 2: ") as refusal:
        ward(*cells)
    assert words in str(refusal.value)


def test_points_in_time_that_are_meant_as_quantities_are_read():
    schema = {"features": [{"name": "a", "kind": "number"}]}
    cohort = ward("1600000000", "1500000000", "1700000001", schema=schema)
    assert cohort.x[0, 0] == np.float32(1.6e9) and len(stored_and_opened(cohort)) == N


def test_a_range_that_a_spreadsheet_made_a_date_of_is_told():
    assert "'Oct-14' beside '0-4'" in warnings_of(ward("0-4", "5-9", "Oct-14", "15-19"))
    assert "date" not in warnings_of(ward("Decile 3", "Marker 2", "May be"))


@pytest.mark.parametrize(
    ("decimal", "cells"), [(",", ("5.3", "7.25", "8.5")), (".", ("5,3", "7,25", "8")), (",", ("5.3", "7", "8"))]
)
def test_a_decimal_sign_that_is_stated_wrongly_is_told(decimal, cells):
    with pytest.raises(CohortError, match=f"'{cells[0]}' is a number with decimal=.*but decimal='{decimal}' is stated"):
        ward(*cells, decimal=decimal)


def test_numbers_that_vanish_in_32_bits_are_told():
    cohort = ward("1e-50", "2e-50", "1")
    assert "27 numbers such as 1e-50 are so small that they become 0" in warnings_of(cohort)
    assert [note.example for note in reading_report(cohort) if note.kind == "rounded"] == ["1e-50 → 0"]


def test_a_marker_in_two_rows_is_found():
    cohort = ward("999", *(f"{i % 17}.5" for i in range(19)))
    (finding,) = [finding for finding in cohort.diagnostics().of("a") if finding.code == "sentinel"]
    assert "'a' is 999 in 2 rows" in finding.sentence
    assert "for a command: --missing 999" in finding.sentence
    assert cohort.remarks == (*cohort.warnings, finding.sentence), "commands tell it too"


# Levels


def test_na_among_regions_is_a_region():
    cohort = ward("EU", "NA", "AS", "AF")
    assert cohort.feature("a").levels == ("AF", "AS", "EU", "NA") and "missing=['NA']" in warnings_of(cohort)
    assert cohort.encode({"a": "NA"})[0, 0] == 3
    assert np.isnan(ward("EU", "NA", "AS", "AF", missing=["NA"]).x[1, 0])
    assert stored_and_opened(cohort).content_hash == cohort.content_hash


def test_na_among_codes_of_countries_is_not_recorded_and_told():
    cohort = ward("DE", "NA", "FR", "US", "IT")
    assert np.isnan(cohort.x[1, 0]) and "8 cells 'NA' were read as not recorded" in warnings_of(cohort)
    stated = {"features": [{"name": "a", "kind": "category", "levels": ["DE", "FR", "IT", "NA", "US"]}]}
    assert ward("DE", "NA", "FR", "US", "IT", schema=stated).x[1, 0] == 3
    assert warnings_of(ward("F", "M", "NA")) == ""


@pytest.mark.parametrize(
    ("cells", "levels", "codes"),
    [
        (("Y", "N", "Y", "No", "Yes"), ("N", "Y"), [1, 0, 1, 0, 1]),
        (("TRUE", "1", "0", "FALSE", "1"), ("0", "1"), [1, 1, 0, 0, 1]),
        (("M", "F", "male", "M", "F"), ("F", "M"), [1, 0, 1, 1, 0]),
        (("T", "F", "true", "T", "F"), ("F", "T"), [1, 0, 1, 1, 0]),
    ],
)
def test_spellings_of_two_levels_are_joined_with_a_note(cells, levels, codes):
    cohort = ward(*cells)
    assert cohort.feature("a").kind == "binary" and cohort.feature("a").levels == levels
    assert cohort.x[:5, 0].tolist() == codes and "spellings of one level were joined" in warnings_of(cohort)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cohort.encode([{"a": cell} for cell in cells])[:, 0].tolist() == codes
    opened = stored_and_opened(cohort)
    assert opened.content_hash == cohort.content_hash
    assert opened.encode([{"a": cell} for cell in cells])[:, 0].tolist() == codes
    again = ward(*cells, schema=cohort.schema.to_yaml())
    assert again.content_hash == cohort.content_hash


def test_a_spelling_that_the_cohort_never_held_is_no_level_of_it():
    with pytest.warns(UserWarning, match="never seen"):
        assert ward("yes", "no").encode({"a": "Y"})[0, 0] == 2


def test_spellings_among_further_levels_or_of_a_stated_category_stay_apart_and_are_told():
    for cohort in (
        ward("yes", "no", "Y", "maybe"),
        ward("yes", "no", "Y", schema={"features": [{"name": "a", "kind": "category"}]}),
    ):
        assert {"yes", "Y", "no"} <= set(cohort.feature("a").levels)
        assert "'yes' and 'Y', which may mean the same" in warnings_of(cohort)


def test_what_is_typed_may_have_such_forms_too_but_no_other():
    cohort = ward("5.3", "7.25", "8")
    assert cohort.encode({"a": "'7.1"})[0, 0] == np.float32(7.1)
    with pytest.raises(FeatureError, match="must be a number"):
        cohort.encode({"a": "7.1-"})
