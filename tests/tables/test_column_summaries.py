"""What is said of a column before a cohort is stored: its unit, its precision, its panel, how it is spread."""

from __future__ import annotations

import numpy as np
import pytest

from l2m_core.tables.column_reading import Reading
from l2m_core.tables.column_summaries import BARS, summarise_column
from l2m_core.tables.panels import recorded_together
from l2m_core.tables.precision import number_shown, recorded_decimals, sensible_step, shown_decimals, usual_range
from l2m_core.tables.unit_guesses import guess_unit

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("values", "decimals", "step"),
    [
        ([130.0, 135.0, 145.0, 140.0], 0, 1.0),
        ([0.6, 0.8, 1.2, 5.1], 1, 0.1),
        (np.round(GENERATOR.normal(26, 5, 300), 4), 4, 0.1),
        (GENERATOR.integers(100, 500, 300) * 1000.0, 0, 1000.0),
        (np.round(GENERATOR.normal(7.38, 0.05, 300), 2).astype(np.float32), 2, 0.01),
        ([3.0, np.nan, 3.0], 0, 1.0),
        ([np.nan, np.nan], 0, 1.0),
    ],
)
def test_a_step_is_as_fine_as_the_column_and_no_finer_than_is_useful(values, decimals: int, step: float) -> None:
    assert recorded_decimals(np.array(values)) == decimals
    assert sensible_step(np.array(values)) == pytest.approx(step)


def test_numbers_are_shown_with_the_precision_of_their_column() -> None:
    body_mass = np.round(np.random.default_rng(1).normal(26, 5, 300), 4)
    assert number_shown(35.6953, shown_decimals(body_mass)) == "35.7"
    assert number_shown(-0.04, 1) == "0.0" and number_shown(1234567.0, 0) == "1,234,567"
    assert usual_range(np.array([np.nan])) is None


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([4.44e-08, 3.8e-07, 5.38e-08, 9.99e-07], ["4.6e-08", "9.06e-07"]),
        ([1e-12, 2e-12, 3e-12], ["1e-12", "3e-12"]),
        ([0.0, 2e-38, 2e-38], ["0", "2e-38"]),
    ],
)
def test_tiny_numbers_are_told_apart(values: list[float], ends: list[str], dtype: type) -> None:
    column = np.array(values, dtype)
    decimals = shown_decimals(column)
    assert [number_shown(end, decimals) for end in usual_range(column)] == ends
    assert sensible_step(column) < np.ptp(column)


def test_a_few_tiny_numbers_do_not_refine_a_column() -> None:
    assert recorded_decimals(np.array([0.1, 0.12, 5.6e-17])) == 2
    assert number_shown(-1e-12, 9) == "0"


@pytest.mark.parametrize(
    ("name", "median", "unit"),
    [
        ("glucose (mmol/L)", 90.0, "mmol/L"),
        ("weight_kg", 80.0, "kg"),
        ("Leukozyten (G/l)", 9.0, "G/l"),
        ("PLT [G/L]", 250.0, "G/L"),
        ("leuko_G_l", 9.0, ""),
        ("hb (g/l)", 120.0, "g/L"),
        ("Température (°C)", 37.2, "°C"),
        ("crea_umol_l", 1.0, "µmol/L"),
        ("glucose", 5.5, "mmol/L"),
        ("glucose", 101.0, "mg/dL"),
        ("Temperature", 98.4, "°F"),
        ("serum_creatinine", 1.1, "mg/dL"),
        ("serum_creatinine", 88.0, "µmol/L"),
        ("creatinine", 20.0, ""),
        ("creatinine_phosphokinase", 250.0, ""),
        ("albumin_and_globulin_ratio", 2.0, ""),
        ("age", 0.5, ""),
        ("hemoglobin", 8.5, ""),
        ("egfr", 60.0, ""),
    ],
)
def test_a_unit_is_guessed_only_where_the_name_or_the_size_tells_it(name: str, median: float, unit: str) -> None:
    assert guess_unit(name, np.array([median, np.nan, median])) == unit


def test_columns_that_are_always_recorded_together_are_a_panel() -> None:
    taken = np.random.default_rng(0).random(100) < 0.5
    other = ~taken
    r = np.stack([taken, np.ones(100, bool), taken, other, np.ones(100, bool)], axis=1)
    assert recorded_together(("sodium", "age", "potassium", "crp", "sex"), r) == (("sodium", "potassium"),)


def test_a_summary_counts_every_recorded_row_once() -> None:
    numbers = np.append(np.random.default_rng(0).normal(60, 10, 500), [np.nan] * 100)
    summary = summarise_column(Reading("age", numbers=numbers), "number")
    assert len(summary.bars) == BARS and sum(summary.bars) == 500 and summary.recorded == pytest.approx(500 / 600)
    assert summary.spread.startswith("usually ") and len(summary.examples) == 3


def test_a_summary_of_levels_names_the_most_frequent() -> None:
    codes = np.array([0] * 6 + [1] * 3 + [2] + [-1] * 10)
    summary = summarise_column(Reading("ward", codes=codes, texts=("A", "B", "C")), "category")
    assert summary.bars == (6, 3, 1) and summary.recorded == 0.5 and summary.spread == "A 60%, B 30% and 1 more"
