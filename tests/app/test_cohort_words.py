"""What is said of a cohort in few words: its summary before saving, and its findings by kind."""

from __future__ import annotations

import numpy as np
import pandas as pd

from app.ui import cohort_words, grouped_findings
from l2m_core.diagnostics import Diagnostics, Finding
from l2m_core.schema import Outcome
from l2m_core.tables.role_guesses import RoleGuess

DIED = Outcome("died", classes=("no", "yes"))


def described(shares: dict[str, float], spread: tuple[float, float, float] | None = None) -> Diagnostics:
    return Diagnostics(100, "binary", shares, spread, (), pd.DataFrame())


def test_the_summary_counts_the_roles_and_the_outcome() -> None:
    roles = {"age": "baseline", "lactate": "acquirable", "crp": "acquirable", "id": "ignored"}
    said = cohort_words.sentence(roles, DIED, described({"no": 0.74, "yes": 0.26}))
    assert said == "1 known at the start, 2 can be measured, 1 ignored; outcome died, 26% yes"
    stage = Outcome("stage", "multiclass", ("I", "II", "III"))
    assert "3 classes, most often II (50%)" in cohort_words.sentence(
        roles, stage, described({"I": 0.3, "II": 0.5, "III": 0.2})
    )
    cost = Outcome("cost", "continuous")
    assert "median 5, from 1 to 9" in cohort_words.sentence(roles, cost, described({}, (1, 5, 9)))


def asked(roles: dict[str, str], guesses: dict[str, RoleGuess], decided=(), share: float = 0.3) -> str:
    shares = {"no": 1 - share, "yes": share}
    return "\n".join(cohort_words.questions(roles, guesses, dict.fromkeys(decided), DIED, described(shares)))


def test_what_looks_wrong_is_asked_about_until_it_is_decided() -> None:
    leak = {"stay": RoleGuess("ignored", "known only afterwards", is_sure=False)}
    roles = {"age": "baseline", "lactate": "acquirable", "stay": "ignored"}
    assert "stay: Is it rightly left out? Known only afterwards." in asked(roles, leak)
    assert asked(roles, leak, decided=("stay",)) == ""
    assert "Nothing is known at the start" in asked({"lactate": "acquirable"}, {})
    assert "Nothing can be measured" in asked({"age": "baseline"}, {})
    assert "Nearly all rows are 'yes'" in asked(roles, {}, share=0.97)
    shares = described({"no": 0.7, "yes": 0.3})
    codes = cohort_words.questions({**roles, "icd": "acquirable"}, {}, {}, DIED, shares, ["icd", "stay"])
    assert len(codes) == 1 and codes[0].startswith("icd: These numbers look like codes")
    assert codes[0].endswith("choose the kind category beside the column.")


def rare(name: str, severity: str = "warning") -> Finding:
    return Finding(severity, "positivity", name, f"'{name}' was measured in 3 of 100 rows.")


def test_findings_are_grouped_by_kind_the_worst_first() -> None:
    leak = Finding("critical", "leak", "stay", "'stay' alone nearly determines the outcome.")
    groups = grouped_findings.grouped([rare("a"), rare("b"), leak, rare("c", "info")])
    assert [[finding.column for finding in group] for group in groups] == [["stay"], ["a", "b"], ["c"]]


def test_one_line_stands_for_many_columns_and_a_single_finding_for_itself() -> None:
    names = [f"lab {number}" for number in range(30)]
    line = grouped_findings.headline(tuple(rare(name) for name in names))
    assert line.startswith("30 columns were measured too rarely") and line.endswith("lab 5 and 24 more.")
    assert grouped_findings.headline((rare("crp"),)) == "'crp' was measured in 3 of 100 rows."


def test_every_kind_of_finding_that_a_cohort_can_have_many_of_has_its_line() -> None:
    from l2m_core.cohort import Cohort
    from l2m_core.diagnostics import diagnose

    generator = np.random.default_rng(0)
    x = np.where(generator.random((200, 40)) < 0.02, generator.normal(size=(200, 40)), np.nan)
    cohort = Cohort.from_arrays(x, generator.integers(0, 2, 200))
    several = [group for group in grouped_findings.grouped(diagnose(cohort).findings) if len(group) > 1]
    assert several
    for group in several:
        assert group[0].code in grouped_findings.ABOUT_SEVERAL


def test_a_column_is_not_said_to_be_like_itself() -> None:
    pairs = [("ward", "Icu", "icu"), ("ward", "Icu", "ICU"), ("site", "A", "a")]
    warnings = [f"Column '{name}' holds '{one}' and '{other}'." for name, one, other in pairs]
    lines = [grouped_findings.in_one_line(group) for group in grouped_findings.similar(warnings)]
    assert lines == [f"{warnings[0]} Likewise: site.", warnings[1]]


def test_warnings_that_differ_in_their_columns_are_one_line() -> None:
    warnings = [f"Column 'lab {n}' varies little, so it is rounded by {n}." for n in range(10)] + ["2 rows left out."]
    many, one = grouped_findings.similar(warnings)
    assert grouped_findings.in_one_line(one) == "2 rows left out."
    line = grouped_findings.in_one_line(many)
    assert line.startswith(warnings[0]) and line.endswith(
        "Likewise: lab 1, lab 2, lab 3, lab 4, lab 5, lab 6 and 3 more."
    )
