"""Nothing that a file says changes silently: whole families of cells, each read as it stands, told of, or refused."""

import sys
import unicodedata
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.tables.cell_parsing import parse_number
from tests.core.ward import N, loaded

CATEGORY = {"features": [{"name": "a", "kind": "category"}]}


def ward(cells, **options) -> Cohort:
    return loaded({"a": (list(cells) * N)[:N], "b": [40 + i % 30 for i in range(N)], "y": [0, 1] * (N // 2)}, **options)


def warnings_of(cohort) -> str:
    return "\n".join(warning for warning in cohort.warnings if "'a'" in warning)


def test_a_minus_beside_any_plus_is_a_result(figure):
    pluses = [few for size in (1, 2, 3) for few in combinations(("+", "++", "(+)", "\u00b1", "pos", "+/-"), size)]
    lost = []
    columns = list(product(pluses, ("-", "\u2212", "\u2013", "--", "(-)"), ((), ("NA",), ("?", ""))))
    for few, minus, absent in columns:
        cells = (*few, minus, *absent)
        cohort = ward(cells)
        minus_is_kept = minus in cohort.feature("a").levels and cohort.decode("a", cohort.x[len(few), 0]) == minus
        counted = all(f"'{text}' (" in warnings_of(cohort) for text in absent if text)
        if not minus_is_kept or not counted:
            lost.append(cells)
    figure(
        "reading: columns of + ++ (+) ± pos +/- with a minus of five forms, and words for not recorded",
        "the minus is a result, nothing is dropped without a counted warning",
        f"{len(columns) - len(lost)} of {len(columns)} columns",
        not lost,
    )
    assert lost == []


def test_no_character_that_only_a_compatibility_form_makes_a_digit_is_one(figure):
    characters = [chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    compatible = [c for c in characters if any(map(str.isdecimal, unicodedata.normalize("NFKC", c)))]
    disguised = [c for c in compatible if not c.isdecimal()]
    read = [text for c in disguised for text in (c, f"5{c}", f"{c}5", f"5.3{c}") if parse_number(text) is not None]
    figure(
        "reading: every character of Unicode that a compatibility form makes a digit, alone and beside digits",
        "never a number",
        f"{len(disguised)} characters, {len(read)} read as numbers",
        not read,
    )
    assert len(disguised) > 200 and read == []


def disturbed_outcomes():
    """Outcomes of forty patients that something is wrong with in one place."""
    for (no, yes), row in product((("0", "1"), ("no", "yes"), ("alive", "dead")), (0, 17, N - 1)):
        plain = [yes if i % 3 == 0 else no for i in range(N)]
        wrong = {
            "0": ("0.41", "died", "yes", "7"),
            "no": ("died", "1", "N", "maybe", "yess"),
            "alive": ("died", "ded", "0"),
        }[no]
        for cell in wrong:
            yield cell, row, [cell if i == row else text for i, text in enumerate(plain)]


def test_no_outcome_changes_its_kind_silently(figure):
    silent, count = [], 0
    for cell, row, outcome in disturbed_outcomes():
        count += 1
        try:
            cohort = loaded(
                {"a": [i % 7 for i in range(N)], "b": [i % 11 for i in range(N)], "died": outcome}, outcome="died"
            )
        except CohortError as refusal:
            if f"row {row + 2}" not in str(refusal):
                silent.append((cell, row, str(refusal)))
            continue
        silent.append((cell, row, f"read as {cohort.classes}"))
    figure(
        "reading: one cell of an outcome wrong (a mean, a header, another coding, a slip), in three rows",
        "refused with the row until its kind is stated",
        f"{count - len(silent)} of {count} outcomes",
        not silent,
    )
    assert silent == []


def test_no_two_codes_of_a_stated_category_merge(figure):
    rng = np.random.default_rng(3)
    merged, count = [], 0
    for _ in range(60):
        number = str(rng.integers(1, 999)) + "." + str(rng.integers(1, 99))
        long = str(rng.integers(10**16, 10**17))
        codes = [
            number,
            f"{number}0",
            f"0{number}",
            f"{number}e0",
            f"+{number}",
            long,
            f"{long[:-1]}{(int(long[-1]) + 1) % 10}",
        ]
        count += len(codes)
        cohort = ward(codes, schema=CATEGORY)
        merged += [code for i, code in enumerate(codes) if cohort.decode("a", cohort.x[i, 0]) != code]
    figure(
        "reading: codes of a stated category that are the same number (250.1, 250.10, 17 digits)",
        "no two merge",
        f"{count} codes, {len(merged)} merged",
        not merged,
    )
    assert merged == []


TWINS = {
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "non-breaking blank": lambda text: text.replace(" ", "\u00a0"),
    "zero-width": lambda text: f"{text[:2]}\u200b{text[2:]}",
    "Cyrillic o": lambda text: text.replace("o", "\u043e"),
    "case": str.swapcase,
    "two blanks": lambda text: text.replace(" ", "  "),
    "full width": lambda text: text.replace("a", "\uff41"),
    "soft hyphen": lambda text: f"{text}\u00ad",
}


@pytest.mark.parametrize("word", ["caf\u00e9 noir", "ward no 4", "cardiology \u00e0 la carte"])
def test_twins_are_shown_or_are_one_level(word, figure):
    silent = []
    for form, changed in TWINS.items():
        twin = changed(word)
        cohort = ward([word, twin, "elsewhere", "home"])
        if twin != word and cohort.x[0, 0] != cohort.x[1, 0] and "two different levels" not in warnings_of(cohort):
            silent.append(form)
    figure(
        f"reading: twins of '{word}' ({', '.join(TWINS)})",
        "one level, or a warning that shows both",
        f"{len(TWINS) - len(silent)} of {len(TWINS)}",
        not silent,
    )
    assert silent == []


@pytest.mark.parametrize("written", ["{}.0", "0{}", "grade {}"])
def test_stated_levels_that_no_cell_writes_so_are_refused(written):
    """Every cell would be 'other', and the column tell nothing."""
    frame = pd.DataFrame(
        {"grade": [written.format(1 + i % 3) for i in range(60)], "age": range(60), "ill": [0, 1] * 30}
    )
    stated = {"features": [{"name": "grade", "kind": "category", "levels": ["1", "2", "3"]}]}
    with pytest.raises(
        CohortError, match=r"'grade' holds none of its stated levels \('1', '2', '3'\), but .*2.*as the cells"
    ):
        Cohort.from_frame(frame, "ill", schema=stated)
    frame.loc[0, "grade"] = "2"
    assert Cohort.from_frame(frame, "ill", schema=stated).features[0].levels == ("1", "2", "3")  # said, as ever


def test_whole_numbers_that_floats_do_not_tell_apart_are_codes_with_a_word():
    cells = [str(2**60 + i) for i in range(4)]
    cohort = ward(cells)
    assert cohort.feature("a").levels == tuple(cells)
    assert "would become one and the same, so it is read as codes" in warnings_of(cohort)


def test_long_whole_numbers_that_floats_tell_apart_stay_numbers():
    assert ward([str(2**60 * (i + 1)) for i in range(4)]).feature("a").kind == "number"
    stated = {"features": [{"name": "a", "kind": "number"}, {"name": "b"}], "outcome": {"name": "y"}}
    assert ward([str(2**60 + 512 * i) for i in range(4)], schema=stated).feature("a").kind == "number"
