"""Texts of a column that look the same stay apart, with a warning that shows both."""

import numpy as np
import pytest

from l2m_core.errors import CohortError
from tests.core.ward import N, loaded


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        ("caf\u00e9", "cafe\u0301", ("caf\\xe9", "cafe\\u0301")),
        ("step down", "step\u00a0down", ("'step down'", "step\\xa0down")),
        ("icu", "icu\u200b", ("'icu'", "icu\\u200b")),
        ("home", "h\u043eme", ("'home'", "h\\u043eme")),
        ("\uff29\uff23\uff35", "ICU", ("'ICU'", "\\uff29")),
        ("a  b", "a b", ("'a  b'", "'a b'")),
        ("Icu", "icu", ("'Icu'", "'icu'")),
    ],
)
def test_twins_are_shown_with_what_cannot_be_seen_written_out(a, b, shown):
    cohort = loaded(
        {"ward": [a, b, "other ward", "x"] * (N // 4), "f": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)}
    )
    assert {a, b} <= set(cohort.feature("ward").levels)
    (warning,) = [warning for warning in cohort.warnings if "two different levels" in warning]
    assert [text for text in ("'ward'", *shown) if text not in warning] == []


def test_a_number_with_a_character_that_cannot_be_seen_is_refused_with_it_written_out():
    with pytest.raises(CohortError, match=r"Column 'f', row 4: '6\.2\\x1a' is not a number"):
        loaded({"f": [1.5, 2.5, "6.2\x1a", *([3.5] * (N - 3))], "y": [0, 1] * (N // 2)})


def test_a_column_of_many_twins_is_told_of_in_few_words():
    words = [f"{word}{i}" for i in range(N // 2) for word in ("w", "W")]
    cohort = loaded(
        {"ward": words, "f": [i % 7 for i in range(N)], "y": [0, 1] * (N // 2)},
        schema={"features": [{"name": "ward", "kind": "category"}]},
    )
    assert 0 < sum("two different levels" in warning for warning in cohort.warnings) <= 20


@pytest.mark.parametrize(
    ("cells", "levels"),
    [
        (["oui", "non", "oui", "Oui", "OUI"], ("non", "oui")),
        (["ja", "nein", "ja", "Ja"], ("nein", "ja")),
        (["w", "m", "w", "W"], ("m", "w")),
        (["yes", "no", "yes", "Yes"], ("no", "yes")),
        (["K", "k", "0"], ("0", "K", "k")),
    ],
)
def test_words_for_yes_no_and_sex_are_one_level_in_capitals_or_not(cells, levels):
    cohort = loaded({"a": (cells * N)[:N], "age": [40 + 7 * i % 31 for i in range(N)], "y": ["0", "1"] * (N // 2)})
    assert cohort.feature("a").levels == levels


def test_levels_that_are_stated_stay_apart_so_that_a_stored_cohort_stays_what_it_was():
    columns = {"a": (["ja", "nein", "Ja", "JA"] * N)[:N], "age": [40 + 7 * i % 31 for i in range(N)]}
    schema = {"features": [{"name": "a", "kind": "category", "levels": ["Ja", "ja", "nein"]}]}
    cohort = loaded({**columns, "y": ["0", "1"] * (N // 2)}, schema=schema)
    assert cohort.feature("a").levels == ("Ja", "ja", "nein")
    assert np.bincount(cohort.x[:, cohort.names.index("a")].astype(int)).tolist() == [N // 2, N // 4, N // 4]
