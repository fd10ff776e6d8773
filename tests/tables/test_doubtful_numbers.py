"""What could be two numbers, or looks like a number that it is not, is asked about or refused, never guessed."""

import csv
import io

import numpy as np
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, FeatureError
from l2m_core.tables.cell_parsing import is_disguised, parse_number
from tests.core.ward import N, loaded

TABLES = 400
THOUSANDS = {".": (",", " ", "\u00a0", "'", ""), ",": (".", " ", "\u202f", "\u2019", "")}


def ward(cells, other=None, **options) -> Cohort:
    columns = {"a": (list(cells) * N)[:N], "b": other or [40 + i % 30 for i in range(N)], "y": [0, 1] * (N // 2)}
    return loaded(columns, **options)


# Characters that a compatibility form changes


@pytest.mark.parametrize(
    "text", ["5.3\u00b9", "10\u00b3", "5\u2460", "5\u2082", "5\u00bd", "\u2460", "\u2488", "<10\u00b3"]
)
def test_a_superscript_subscript_circled_digit_or_fraction_is_refused_by_its_cell(text):
    assert is_disguised(text) and parse_number(text) is None
    for cells in ([*map(str, range(N - 1)), text], [text] * 3 + ["3.5", "4.5"], [text]):
        with pytest.raises(CohortError) as refusal:
            ward(cells)
        row = 2 + cells.index(text)
        for words in (f"Column 'a', row {row}", f"'{text}'", "plain digits", "kind: category"):
            assert words in str(refusal.value)


@pytest.mark.parametrize("text", ["5.3\u00b9", "10\u00b3", "5\u2460", "5\u2082", "5\u00bd"])
def test_such_a_text_of_a_patient_is_refused_by_name(text):
    with pytest.raises(FeatureError, match="'a' must be a number") as refusal:
        ward(["1.5", "2.5", "3.25"]).encode({"a": text})
    assert repr(text) in str(refusal.value)


def test_such_texts_are_levels_where_a_category_is_stated():
    cohort = ward(["\u2460", "\u2461", "1"], schema={"features": [{"name": "a", "kind": "category"}]})
    assert set(cohort.feature("a").levels) == {"\u2460", "\u2461", "1"}


@pytest.mark.parametrize(
    "text", ["\uff15.\uff13", "\uff15\uff0e\uff13", "\u0665.\u0663", "\U0001d7d3.\U0001d7d1", "\u2009 5.3", "5.3\u3000"]
)
def test_digits_and_signs_that_stand_one_for_one_are_read(text):
    assert parse_number(text) == 5.3 and not is_disguised(text)
    assert ward([text, "7.1", "8.25"]).x[0, 0] == np.float32(5.3)


# Decimal signs


@pytest.mark.parametrize(
    ("cells", "other"),
    [
        (["950", "1.100", "12.500"], None),
        (["1.100", "2"], [f"{i},5" for i in range(N)]),
        (["1.100", "2"], [f"{i}.5" for i in range(N)]),
        (["950", "1,100", "12,500"], None),
        (["1,100", "2"], [f"{i}.5" for i in range(N)]),
        (["1,5", "1.100", "2,25"], None),
        (["1.5", "1,100", "2.25"], None),
        (["-1.100", "7"], None),
        (["\uff11\uff0e\uff11\uff10\uff10", "7"], None),
    ],
)
def test_three_digits_after_a_sign_that_nothing_in_the_column_explains_are_asked_about(cells, other):
    for first in (cells, cells[::-1]):
        with pytest.raises(
            CohortError, match=r"Column 'a', row \d+: '.*' could be -?\d+ or .*decimal='\.' or decimal=','"
        ):
            ward(first, other)


@pytest.mark.parametrize(
    ("cells", "options", "values"),
    [
        (["950", "1.100", "12.500"], {"decimal": ","}, [950, 1100, 12500]),
        (["950", "1.100", "12.500"], {"decimal": "."}, [950, 1.1, 12.5]),
        (["950", "1,100", "12,500"], {"decimal": "."}, [950, 1100, 12500]),
        (["0.500", "1.100", "12.500"], {}, [0.5, 1.1, 12.5]),
        (["7.35", "7.351", "7"], {}, [7.35, 7.351, 7]),
        (["1.100", "2.250,5", "3"], {}, [1100, 2250.5, 3]),
        (["1.100", "1.234.567", "3"], {}, [1100, 1234567, 3]),
        (["1,100", "1,234.5", "3"], {}, [1100, 1234.5, 3]),
        (["1.234e2", "5", "6"], {}, [123.4, 5, 6]),
        (["1.100", "1.1e0", "3"], {}, [1.1, 1.1, 3]),
    ],
)
def test_a_decimal_sign_that_is_stated_or_told_by_the_column_is_used(cells, options, values):
    np.testing.assert_array_equal(ward(cells, **options).x[:3, 0], np.float32(values))


def test_what_is_in_doubt_is_no_matter_in_a_column_that_is_not_used():
    ignored = {"features": [{"name": "a", "role": "ignored"}]}
    cohort = ward(["950", "1.100"], schema=ignored)
    assert cohort.names == ("b",) and cohort.frame()["a"].tolist()[:2] == ["950", "1.100"]


def written(value: float, decimals: int, sign: str, thousands: str) -> str:
    text = f"{value:,.{decimals}f}"
    return text.replace(",", "\0").replace(".", sign).replace("\0", thousands)


def table(rng) -> tuple[bytes, dict[str, list[float]]]:
    """A table whose columns are each written in one way, not always the same, and what their cells mean."""
    truth: dict[str, list[float]] = {}
    cells: dict[str, list[str]] = {}
    home = str(rng.choice([".", ","]))
    for i in range(int(rng.integers(1, 4))):
        sign = home if rng.random() < 0.7 else "." if home == "," else ","
        thousands, decimals = str(rng.choice(THOUSANDS[sign])), int(rng.choice([0, 1, 2, 3]))
        size = float(rng.choice([3, 90, 900, 9_000, 2e6]))
        values = [round(float(value), decimals) for value in rng.uniform(-0.1 * size, size, N)]
        truth[f"c{i}"] = values
        cells[f"c{i}"] = [written(value, decimals, sign, thousands) for value in values]
    cells["y"] = [str(k % 2) for k in range(N)]
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=str(rng.choice([";", ",", "\t"])), quoting=csv.QUOTE_ALL)
    writer.writerows([cells, *zip(*cells.values(), strict=True)])
    return buffer.getvalue().encode(), truth


def test_no_number_of_any_locale_changes_silently(figure):
    rng = np.random.default_rng(5)
    read = asked = 0
    for _ in range(TABLES):
        data, truth = table(rng)
        try:
            cohort = Cohort.from_csv(data, "y")
        except CohortError as refusal:
            assert "could be" in str(refusal) or "decimal sign" in str(refusal), refusal
            asked += 1
            continue
        read += 1
        for name in set(cohort.names) & set(truth):
            assert cohort.feature(name).kind == "number"
            np.testing.assert_array_equal(cohort.x[:, cohort.names.index(name)], np.float32(truth[name]))
    figure(
        f"reading: {TABLES} generated tables of locales (decimal signs, thousands, three digits after a sign)",
        "no number changes silently: read cell for cell, or asked about",
        f"{read} read, {asked} asked about, 0 changed",
        True,
    )
    assert read > TABLES / 2 and asked > TABLES / 20


# Numbers in a form of their own


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("{},00,000", "digits in groups of two"),
        ("{}2,34,567.5", "digits in groups of two"),
        ("{}.5x10^3", "a power of ten"),
        ("{} \u00d7 10^-2", "a power of ten"),
        ("10**{}", "a power of ten"),
        ("{}'23", "signs between its digits"),
    ],
)
def test_a_number_in_a_form_that_is_not_read_is_refused_and_not_made_a_level(written, problem):
    cells = [written.format(digit) for digit in range(1, 8)]
    with pytest.raises(CohortError, match=rf"Column 'a', row 2: .*{problem}.*state kind: category"):
        ward(cells)
    stated = ward(cells, schema={"features": [{"name": "a", "kind": "category"}]})
    assert {*stated.feature("a").levels} == {*cells}


def test_lists_of_codes_and_doses_stay_levels():
    for cells in (("1,2,3", "1,3,5", "2,4,6"), ("2x10", "3x10", "1x20")):
        assert {*ward(cells).feature("a").levels} == {*cells}
