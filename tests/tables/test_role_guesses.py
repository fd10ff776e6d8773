"""Guesses of roles: how many are right on real cohorts, and what each rule says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from l2m_core.tables.column_parsing import read_columns
from l2m_core.tables.column_reading import DEFAULT_RULES, Reading
from l2m_core.tables.reading import read_table
from l2m_core.tables.role_guesses import groups_of, guess_outcome, guess_role, guess_roles

WRITTEN_WITHOUT = {"eicu_demo_apache", "nhanes_diabetes", "stroke", "whas500", "dermatology", "ilpd"}
ENOUGH = 0.8
HELD_BACK = "of these, held back"


def cohorts_of(folder: Path) -> Iterator[tuple[str, list[Reading], str, dict[str, str]]]:
    """Of each shared cohort: its name, its columns as read, its outcome, and the role of each column in the manifest."""
    for entry in yaml.safe_load((folder / "manifest.yaml").read_text())["datasets"]:
        if not entry["file"].endswith(".csv"):
            continue
        table = read_table((folder / entry["file"]).read_bytes())
        readings = [r for _, r in read_columns(table.names, table.columns, table.row_numbers, {}, DEFAULT_RULES)]
        known = {name: "baseline" for name in entry["baseline_columns"]}
        measured = {name: "acquirable" for name in entry["acquirable_columns"]}
        yield entry["name"], readings, entry["outcome"], known | measured


@pytest.mark.shared_data
def test_four_of_five_guesses_are_right_on_real_cohorts(shared_data: Path) -> None:
    right: dict[str, list[bool]] = {}
    for cohort, readings, outcome, roles in cohorts_of(shared_data):
        assert guess_outcome([reading.name for reading in readings]) == outcome
        guesses = guess_roles(readings, outcome)
        right[cohort] = [guesses[name].role == role for name, role in roles.items()]
        wrong = [f"{name} ({guesses[name].role})" for name, role in roles.items() if guesses[name].role != role]
        held = "held back" if cohort in WRITTEN_WITHOUT else ""
        print(f"{cohort:24}{sum(right[cohort]):4} of {len(roles):3} {np.mean(right[cohort]):6.0%} {held:10}", *wrong)
    narrow = {cohort: marks for cohort, marks in right.items() if len(marks) < 100}
    groups = {
        "all columns": right,
        "without the cohort of 490 columns": narrow,
        "of these, rules were written with": {c: m for c, m in narrow.items() if c not in WRITTEN_WITHOUT},
        HELD_BACK: {c: m for c, m in narrow.items() if c in WRITTEN_WITHOUT},
    }
    for words, marks in groups.items():
        together = [mark for cohort in marks.values() for mark in cohort]
        by_cohort = np.mean([np.mean(cohort) for cohort in marks.values()])
        print(f"{words}: {sum(together)} of {len(together)}, {np.mean(together):.1%}; mean of cohorts {by_cohort:.1%}")
        assert min(np.mean(together), by_cohort) >= (ENOUGH if words != HELD_BACK else 0.75)


def read(name: str, cells: list[str]) -> Reading:
    table = read_table("\n".join([name, *(f'"{cell}"' for cell in cells)]).encode(), delimiter=",")
    return next(r for _, r in read_columns(table.names, table.columns, table.row_numbers, {}, DEFAULT_RULES))


NUMBERS = [f"{20 + 7 * i % 31}.5" for i in range(40)]
YES_NO = ["yes", "no"] * 20


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("Age", "baseline"),
        ("Alter", "baseline"),
        ("edad (años)", "baseline"),
        ("sexe", "baseline"),
        ("RespRate", "baseline"),
        ("systolic_bp", "baseline"),
        ("meanbp", "baseline"),
        ("Herzfrequenz", "baseline"),
        ("family_history", "baseline"),
        ("smoking status", "baseline"),
        ("treatment arm", "baseline"),
        ("hepaticfailure", "baseline"),
        ("simvastatin", "baseline"),
        ("HbA1c", "acquirable"),
        ("Hämoglobin", "acquirable"),
        ("créatinine", "acquirable"),
        ("glucosa", "acquirable"),
        ("Leukozyten", "acquirable"),
        ("cystatin c", "acquirable"),
        ("pH", "acquirable"),
        ("risk score", "acquirable"),
        ("lactate dehydrogenase", "acquirable"),
        ("gene 17", "acquirable"),
        ("time in hospital", "ignored"),
        ("days to death", "ignored"),
        ("discharge destination", "ignored"),
        ("Verweildauer", "ignored"),
        ("did die in hospital", "ignored"),
        ("Größe bei der Aufnahme in die Ambulanz", "baseline"),  # the German article, not dying
    ],
)
def test_the_words_of_a_name_tell_its_role(name: str, role: str) -> None:
    guess = guess_role(read(name, NUMBERS), "outcome")
    assert guess.role == role and guess.reason


@pytest.mark.parametrize(
    ("name", "groups"),
    [("country", ["person"]), ("respiration", []), ("dosage", ["treatment"]), ("map2", []), ("disease", ["condition"])],
)
def test_a_word_within_another_word_tells_nothing(name: str, groups: list[str]) -> None:
    assert groups_of(name) == groups


def test_what_is_of_no_use_is_ignored_and_says_why() -> None:
    reasons = {
        "seen on": [f"2024-01-{1 + i % 28:02d}" for i in range(40)],
        "mrn": [str(70_000 + 13 * i) for i in range(40)],
        "note": [f"patient {i} was seen in the ward" for i in range(40)],
        "ward": ["B2"] * 40,
    }
    guesses = {name: guess_role(read(name, cells), "died") for name, cells in reasons.items()}
    assert {guess.role for guess in guesses.values()} == {"ignored"}
    assert "date" in guesses["seen on"].reason and "identifier" in guesses["mrn"].reason
    assert "one and the same" in guesses["ward"].reason


def test_the_stay_is_known_where_the_outcome_comes_after_it() -> None:
    stay = read("time_in_hospital", NUMBERS)
    assert guess_role(stay, "readmitted_30d").role == "baseline"
    assert guess_role(stay, "hospital_death").role == "ignored"
    assert guess_role(read("days_to_death", NUMBERS), "readmitted_30d").role == "ignored"


def test_a_substance_that_is_given_is_told_from_one_that_is_measured_by_its_values() -> None:
    assert guess_role(read("insulin", NUMBERS), "died").role == "acquirable"
    assert guess_role(read("insulin", ["no", "up", "steady", "down"] * 10), "died").role == "baseline"


def test_what_nearly_gives_the_outcome_away_is_ignored_and_to_be_looked_at() -> None:
    guess = guess_role(read("lactate", NUMBERS), "died", explained=0.97)
    assert guess.role == "ignored" and not guess.is_sure and "97%" in guess.reason
    assert guess_role(read("lactate", NUMBERS), "died", explained=0.4).is_sure


def test_a_name_that_says_two_things_is_to_be_looked_at() -> None:
    assert not guess_role(read("heart disease score", YES_NO), "died").is_sure
    assert guess_role(read("heart disease", YES_NO), "died").is_sure


def test_a_column_with_a_doubtful_cell_keeps_its_role_for_a_person_to_mend() -> None:
    reading = read("crp", [*NUMBERS[:39], "<5"])
    assert reading.problem is not None and guess_role(reading, "died").role == "acquirable"


@pytest.mark.parametrize("name", ["verstorben", "30-Tage-Mortalität", "décès à J28", "Exitus", "deceduto"])
def test_the_outcome_is_guessed_from_words_of_an_end_in_several_languages(name):
    assert guess_outcome(["age", name, "lactate"]) == name


@pytest.mark.parametrize(
    ("name", "outcome", "role"), [("time", "event", "ignored"), ("time", "diabetes", "acquirable")]
)
def test_how_long_a_patient_was_followed_is_known_only_afterwards(name, outcome, role):
    reading = Reading(name, np.arange(40.0) % 37)
    assert guess_role(reading, outcome).role == role
