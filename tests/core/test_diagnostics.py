"""Diagnostics find what was planted, raise no false alarm, and speak in sentences."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from l2m_core.cohort import Cohort
from l2m_core.diagnostics import SENTINEL, SEVERITIES, Finding, holm, hypergeometric_p, rank_sum_p

N = 400


def draw(rng: np.random.Generator, rows: int = N, features: int = 6, **planted) -> dict[str, np.ndarray]:
    """Features that say little of y, with holes at random; `planted` columns beside them."""
    y = rng.integers(0, 2, rows)
    columns = {f"f{i}": rng.normal(size=rows) + 0.3 * y for i in range(features)}
    for values in columns.values():
        values[rng.random(rows) < 0.2] = np.nan
    return {**columns, **{name: make(y) for name, make in planted.items()}, "y": y}


def diagnose(columns, **options):
    return Cohort.from_frame(pd.DataFrame(columns), "y", **options).diagnostics()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def codes(diagnostics, column=None) -> set[str]:
    return {finding.code for finding in diagnostics.findings if finding.column == column}


def with_code(diagnostics, code) -> list[Finding]:
    return [finding for finding in diagnostics.findings if finding.code == code]


def test_a_sound_cohort_raises_no_alarm(rng):
    diagnostics = diagnose(draw(rng))
    assert diagnostics.findings == () and diagnostics.worst is None
    assert (diagnostics.rows, diagnostics.kind, diagnostics.outcome_range) == (N, "binary", None)
    assert sum(diagnostics.prevalence.values()) == pytest.approx(1)


def test_the_table_tells_each_feature(rng):
    columns = draw(rng)
    table = diagnose(columns).features
    measured = ~np.isnan(columns["f0"])
    assert list(table.index) == [f"f{i}" for i in range(6)]
    assert table.loc["f0", "measured"] == measured.sum()
    assert table.loc["f0", "share"] == pytest.approx(measured.mean())
    assert table.loc["f0", "share, 1"] == pytest.approx(measured[columns["y"] == 1].mean())


def test_a_feature_measured_too_rarely_is_named(rng):
    rare = diagnose(draw(rng, rare=lambda y: np.where(np.arange(N) < 12, np.arange(N), np.nan)))
    (finding,) = with_code(rare, "positivity")
    assert (finding.column, finding.severity) == ("rare", "warning")
    assert "12 of 400" in finding.sentence


def test_a_feature_never_measured_in_one_class_is_named(rng):
    columns = draw(rng, ct=lambda y: np.where(y == 1, rng.normal(size=N), np.nan))
    found = diagnose(columns)
    assert {"positivity", "measuring_predicts_outcome", "leak_by_measuring"} <= codes(found, "ct")
    assert "class '0'" in with_code(found, "positivity")[0].sentence


def test_baseline_features_need_no_support(rng):
    columns = draw(rng, rare=lambda y: np.where(np.arange(N) < 12, np.arange(N), np.nan))
    assert codes(diagnose(columns, baseline=["rare"]), "rare") == set()


def test_measuring_that_predicts_the_outcome_is_named_with_its_direction(rng):
    columns = draw(rng, gas=lambda y: np.where(rng.random(N) < np.where(y == 1, 0.8, 0.5), rng.normal(size=N), np.nan))
    (finding,) = with_code(diagnose(columns), "measuring_predicts_outcome")
    assert finding.column == "gas" and finding.severity == "warning"
    assert finding.sentence.index("y = 1") < finding.sentence.index("y = 0")


def test_false_alarms_over_all_features_together_are_rare():
    """Sixteen features whose measuring has nothing to do with the outcome: an alarm in at most 5% of cohorts."""
    alarms = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(120, 16))
        x[rng.random(x.shape) < 0.4] = np.nan
        found = Cohort.from_arrays(x, rng.integers(0, 2 + seed % 2, 120)).diagnostics()
        alarms += bool(with_code(found, "measuring_predicts_outcome"))
    assert alarms <= 10  # 5 expected at most; a true 5% gives more than 10 once in a hundred times


def test_a_leak_is_critical_and_a_strong_honest_feature_is_not(rng):
    columns = draw(
        rng,
        copy=lambda y: 10.0 * y + rng.normal(size=N),
        folded=lambda y: np.where(y == 1, rng.choice([-3.0, 3.0], N), 0) + 0.1 * rng.normal(size=N),
        code=lambda y: np.array([f"{'d' if k else 'a'}{i % 3}" for i, k in enumerate(y)]),
        strong=lambda y: 2.0 * y + rng.normal(size=N),
    )
    found = diagnose(columns)
    assert {finding.column for finding in with_code(found, "leak")} == {"copy", "folded", "code"}
    assert found.worst == "critical" and [f.severity for f in found.findings] == sorted(
        (f.severity for f in found.findings), key=SEVERITIES.index
    )


def test_a_leak_into_a_continuous_outcome_is_found(rng):
    columns = draw(rng, 600)
    columns["y"] = rng.normal(size=600)
    columns["copy"] = columns["y"] * 3 + 0.01 * rng.normal(size=600)
    columns["strong"] = columns["y"] + 0.8 * rng.normal(size=600)
    found = diagnose(columns)
    assert {finding.column for finding in with_code(found, "leak")} == {"copy"}
    assert found.prevalence == {} and found.outcome_range is not None and found.kind == "continuous"


def test_measuring_that_follows_a_continuous_outcome_is_found(rng):
    columns = draw(rng, 600)
    columns["y"] = rng.normal(size=600)
    columns["gas"] = np.where(rng.random(600) < 0.5 + 0.25 * (columns["y"] > 0), rng.normal(size=600), np.nan)
    assert {finding.column for finding in with_code(diagnose(columns), "measuring_predicts_outcome")} == {"gas"}


def test_halves_of_a_large_outcome_are_no_powers_of_ten(rng):
    columns = draw(rng, 600)
    columns["y"] = 3_000_000.0 + np.arange(600)
    columns["gas"] = np.where(np.arange(600) > 299, rng.normal(size=600), np.nan)
    (found,) = with_code(diagnose(columns), "measuring_predicts_outcome")
    assert "y = up to 3000300" in found.sentence


def test_columns_that_tell_rows_apart_are_named_even_if_stated(rng):
    columns = draw(rng, patient_id=lambda y: rng.permutation(5000)[:N])
    ignored = diagnose(columns)
    assert codes(ignored, "patient_id") == {"ignored"}
    stated = diagnose(columns, schema={"features": [{"name": "patient_id", "kind": "number"}]})
    assert "identifier" in codes(stated, "patient_id")


def test_a_code_for_not_measured_among_words_is_named():
    columns = {"smoker": ["yes", "no", "no", "-999"] * 10, "grade": ["-1", "-2", "0", "1"] * 10, "y": [0, 1] * 20}
    (found,) = with_code(diagnose(columns, schema={"features": [{"name": "grade", "kind": "category"}]}), SENTINEL)
    assert "'smoker' is -999 in 10 rows" in found.sentence and "missing=['-999']" in found.sentence
    assert with_code(diagnose(columns, missing=["-999"]), SENTINEL) == []


def test_repeated_rows_copies_sentinels_and_rare_levels_are_named(rng):
    columns = draw(
        rng,
        pressure=lambda y: np.where(np.arange(N) % 20 == 0, -999.0, rng.integers(80, 160, N)),
        urine=lambda y: np.where(np.arange(N) % 20 == 0, -1.0, rng.integers(2, 9, N)),
        balance=lambda y: rng.integers(-9, 9, N),
        word=lambda y: np.array([f"w{i % 90}" for i in range(N)]),
    )
    columns["twin"] = columns["f0"].copy()
    frame = pd.DataFrame(columns)
    frame = pd.concat([frame, frame.iloc[:40]], ignore_index=True)
    found = diagnose(frame)
    assert {f.column for f in with_code(found, SENTINEL)} == {"pressure", "urine"}
    assert [f.column for f in with_code(found, "copy")] == ["twin"]
    assert [f.column for f in with_code(found, "rare_levels")] == ["word"]
    (repeated,) = with_code(found, "duplicate_rows")
    assert repeated.severity == "warning" and repeated.sentence.startswith("40 rows (9.1%)")


def test_small_cohorts_and_rare_classes_are_named(rng):
    columns = draw(rng, 60)
    columns["y"] = np.array([1] * 4 + [0] * 56)
    found = diagnose(columns)
    assert {"few_rows"} <= codes(found) and "'1' has 4 rows" in with_code(found, "rare_class")[0].sentence


def test_parts_of_a_cohort_can_be_diagnosed_too(rng):
    cohort = Cohort.from_frame(pd.DataFrame(draw(rng)), "y")
    for index in (slice(0, 0), slice(0, 1), cohort.y == 1, cohort.r[:, 0]):
        assert cohort.rows(index).diagnostics().rows == len(cohort.rows(index))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60)
def test_the_exact_test_equals_fishers(a, b, c, d):
    total = a + b + c + d
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    expected = stats.fisher_exact([[a, b], [c, d]]).pvalue
    assert hypergeometric_p(a, a + b, a + c, total, log_factorial) == pytest.approx(expected, abs=1e-6)


@given(st.integers(0, 10_000), st.integers(3, 40), st.integers(3, 40))
@settings(max_examples=40)
def test_the_rank_test_equals_mann_whitneys(seed, n, m):
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 12, n).astype(float), rng.integers(0, 12, m) + 0.5 * (seed % 3)
    expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert rank_sum_p(first, second) == pytest.approx(expected, abs=1e-6)


def test_holm_steps_down():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.shared_data
def test_what_is_known_of_real_cohorts_is_found(shared_data):
    eicu = Cohort.from_csv(shared_data / "eicu_demo_apache.csv", "hospital_death").diagnostics()
    assert {"ph", "pao2"} <= {finding.column for finding in with_code(eicu, "measuring_predicts_outcome")}
    spam = Cohort.from_csv(shared_data / "spambase.csv", "spam").diagnostics()
    assert "391 rows" in with_code(spam, "duplicate_rows")[0].sentence
    assert not with_code(spam, "leak") and spam.worst == "warning"
