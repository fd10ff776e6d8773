"""Which of two classes counts as positive, where nobody has said so."""

from __future__ import annotations

import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.tables.level_order import order_levels


@pytest.mark.parametrize(
    ("no", "yes"),
    [
        ("no", "yes"),
        ("alive", "dead"),
        ("nein", "ja"),
        ("Nein", "Ja"),
        ("non", "oui"),
        ("não", "sim"),
        ("nej", "ja"),
        ("negativ", "positiv"),
        ("négatif", "positif"),
        ("überlebt", "verstorben"),
        ("nicht verstorben", "verstorben"),
        ("sans infection", "infection"),
        ("not septic", "septic"),
        ("nonsmoker", "smoker"),
        ("without sepsis", "sepsis"),
    ],
)
def test_the_class_that_means_no_comes_first_and_is_certain(no: str, yes: str) -> None:
    assert order_levels([yes, no]) == order_levels([no, yes]) == ((no, yes), True)


@pytest.mark.parametrize("texts", [("home", "ward"), ("no", "nein"), ("sinus", "us"), ("nichtig", "ig")])
def test_which_of_two_is_positive_is_not_certain_where_words_do_not_tell(texts: tuple[str, str]) -> None:
    assert order_levels(texts) == (tuple(sorted(texts)), False)


def test_a_german_outcome_needs_no_statement() -> None:
    frame = pd.DataFrame({"Alter": [40 + i % 12 for i in range(30)], "Verstorben": ["nein", "nein", "ja"] * 10})
    cohort = Cohort.from_frame(frame, outcome="Verstorben")
    assert cohort.classes == ("nein", "ja")
    assert not [warning for warning in cohort.warnings if "positive class" in warning]


@pytest.mark.parametrize(
    "levels",
    [
        ("1:10", "1:20", "1:160", "1:1280"),
        ("0-2", "3-5", "6-10", "11-20", ">50"),
        ("<40", "40-59", "60-79", "80+"),
        ("grade 2", "grade 10"),
        ("neg", "trace"),
        ("I", "II", "III", "IV"),
    ],
)
def test_levels_come_in_the_order_of_their_numbers(levels):
    assert order_levels(list(levels)[::-1])[0] == levels
    assert order_levels(list(levels))[0] == levels


def test_titres_are_levels_and_clocks_are_not():
    """1:20 could be twenty past one; a column in which every hour is one could not."""
    titres = ["1:10", "1:20", "1:40", "1:80"] * 6
    rows = "\n".join(f"{titre},{i % 2}" for i, titre in enumerate(titres))
    cohort = Cohort.from_csv(f"titre,died\n{rows}".encode(), outcome="died")
    assert cohort.feature("titre").levels == ("1:10", "1:20", "1:40", "1:80")
    clocks = rows.replace("1:40", "2:40")
    with pytest.raises(CohortError, match="is a date or a time"):
        Cohort.from_csv(f"time,died\n{clocks}".encode(), outcome="died")
