"""Which of two classes counts as positive, where nobody has said so."""

from __future__ import annotations

import pandas as pd
import pytest

from l2m_core.cohort import Cohort
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
