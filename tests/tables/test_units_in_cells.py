"""Numbers with a unit behind them, and words that may mean "not recorded": told of, and read as a person says."""

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, FeatureError
from l2m_core.tables.cell_parsing import number_and_unit
from l2m_core.tables.reading_notes import reading_report
from tests.core.ward import N, loaded

LACTATE = ["1.2 mmol/L", "3.4 mmol/L", "2.5 mmol/l", "1.9mmol/L", "NA"]


def ward(cells, **options) -> Cohort:
    return loaded({"a": (list(cells) * N)[:N], "b": [40 + i % 30 for i in range(N)], "y": [0, 1] * (N // 2)}, **options)


def told(cohort) -> list[str]:
    return [warning for warning in cohort.warnings if "'a'" in warning]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("5.2 mmol/L", ("5.2", "mmol/L")),
        ("<0,1 \u00b5g/l", ("<0,1", "\u00b5g/l")),
        ("37.2\u00b0C", ("37.2", "\u00b0C")),
        ("80\uff05", ("80", "%")),
        ("27 kg/m2", ("27", "kg/m2")),
        ("62 ml/min/1,73m2", ("62", "ml/min/1,73m2")),
        ("1.5e3", None),  # a number
        ("5.2 H", None),  # a laboratory's mark: high
        ("5.2*", None),
        ("5A10", None),
        ("mmol/L", None),
        ("5 to 6 mmol", None),
    ],
)
def test_a_unit_is_what_stands_behind_a_number(text, parts):
    assert number_and_unit(text) == parts


def test_cells_with_a_unit_are_refused_by_their_place_and_with_both_remedies():
    with pytest.raises(CohortError) as refusal:
        ward(LACTATE)
    for words in ("Column 'a', row 2", "'1.2 mmol/L' is a number with a unit", "Cells such as 5 mg/L", "units='drop'"):
        assert words in str(refusal.value)


def test_the_numbers_are_taken_where_that_is_said_and_the_unit_goes_to_the_schema():
    cohort = ward(LACTATE, units="drop")
    assert cohort.feature("a").kind == "number" and cohort.feature("a").unit == "mmol/L"
    assert cohort.x[:5, 0] == pytest.approx([1.2, 3.4, 2.5, 1.9, np.nan], nan_ok=True)
    assert told(cohort) == ["Column 'a': 32 cells such as '1.2 mmol/L' were read as the number alone, in mmol/L."]
    (note,) = (note for note in reading_report(cohort) if note.kind == "unit")
    assert note.text == "32 cells such as '1.2 mmol/L' are read as the number alone (1.2), in 'a'."


def test_numbers_without_a_unit_among_them_are_counted():
    cohort = ward(["1.2 mmol/L", "3.4"], units="drop")
    assert cohort.x[:2, 0] == pytest.approx([1.2, 3.4])
    assert f"; {N // 2} have no unit and are taken to have the same" in told(cohort)[0]


def test_a_decimal_comma_a_limit_and_a_word_for_not_recorded_are_read_as_without_a_unit():
    cohort = ward(["1,25 mmol/l", "<0,5 mmol/l", "n.d."], units="drop", censored="limit")
    assert cohort.x[:3, 0] == pytest.approx([1.25, 0.5, np.nan], nan_ok=True)


@pytest.mark.parametrize("cells", [["90 mg/dL", "5.1 mmol/L"], ["5 years", "6 months", "7 years"]])
def test_a_column_of_several_units_is_refused_by_a_cell_of_the_second(cells):
    with pytest.raises(CohortError, match=f"'a', row 3: '{cells[1]}' has another unit than '{cells[0]}'"):
        ward(cells, units="drop")


def test_another_unit_than_the_stated_one_is_told():
    schema = {"features": [{"name": "a", "unit": "mg/dL"}]}
    cohort = ward(LACTATE, units="drop", schema=schema)
    assert cohort.feature("a").unit == "mg/dL"
    assert "Column 'a' is in mmol/L by its cells, and in 'mg/dL' as stated." in told(cohort)


def test_further_values_are_read_likewise():
    cohort = ward(LACTATE, units="drop")
    assert cohort.encode({"a": "2.2 mmol/l"})[0, 0] == pytest.approx(2.2)
    with pytest.raises(FeatureError, match="another unit than the cohort .mmol/L"):
        cohort.encode({"a": "20 mg/dL"})
    with pytest.raises(FeatureError, match="must be a number"):
        ward(["1.2", "3.4"]).encode({"a": "2.2 mmol/L"})


def test_levels_that_begin_with_a_digit_stay_levels():
    schema = {"features": [{"name": "a", "kind": "category"}]}
    for units in ("refuse", "drop"):
        assert ward(["1a", "2b", "3c"], units=units, schema=schema).feature("a").levels == ("1a", "2b", "3c")


def test_a_column_of_words_keeps_them_as_they_are():
    cells = ["low", "low", "high", "5 mg", "none seen"]
    assert set(ward(cells, units="drop").feature("a").levels) == {"low", "high", "5 mg", "none seen"}


def test_only_two_rules_are_known():
    with pytest.raises(CohortError, match="units is 'keep'"):
        ward(LACTATE, units="keep")


@pytest.mark.parametrize("text", ["n.d.", "k.A.", "Keine  Angabe", "unknown", "non fait", "desconocido"])
def test_a_level_that_may_mean_not_recorded_is_told_and_is_read_so_where_that_is_said(text):
    cohort = ward(["I", "II", text])
    assert cohort.r[:, 0].all()
    count = len(range(2, N, 3))
    assert told(cohort)[0].startswith(f"Column 'a': {count} cells '{text}' are read as a level. If")
    assert "perhaps" in [note.kind for note in reading_report(cohort)]
    said = ward(["I", "II", text], missing=[text])
    assert not said.r[2, 0] and set(said.feature("a").levels) == {"I", "II"}
    assert not any("read as a level" in warning for warning in told(said))


def test_a_level_that_was_stated_or_stored_is_not_asked_about_again():
    levels = ["I", "II", "unknown"]
    cohort = ward(levels, schema={"features": [{"name": "a", "kind": "category", "levels": levels}]})
    assert not any("read as a level" in warning for warning in told(cohort))
    stored = Cohort.restored(cohort.frame(), cohort.schema, cohort.content_hash)
    assert not any("read as a level" in warning for warning in told(stored))


def test_a_word_among_numbers_is_refused_with_how_many_there_are_and_how_to_say_that_it_means_not_recorded():
    with pytest.raises(CohortError) as refusal:
        ward(["1.5", "2.5", "3.5", "folgt"])
    for words in ("'folgt' is not a number", "(10 such cells)", "missing=['folgt']", "'Other codes for not measured'"):
        assert words in str(refusal.value)
    assert np.isnan(ward(["1.5", "2.5", "3.5", "folgt"], missing=["folgt"]).x[3, 0])


def test_a_column_is_named_once_however_many_of_its_spellings_were_joined():
    (note,) = (n for n in reading_report(ward(["m", "M", "männlich", "w", "weiblich"])) if n.kind == "joined")
    assert note.columns == ("a",)
