"""Evidence from all folds, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.evidence.fold_answers import FoldAnswers, ask_fold
from l2m_core.evidence.folds import EvidenceSettings, make_plan
from l2m_core.evidence.results import Evidence
from l2m_core.evidence.statistics import summarise
from l2m_core.memory import L2M

FOLDS_SHARE = 0.95  # of the work; the rest is drawing intervals


class FoldCache:
    """Where the answers of finished folds are cached, so that an interrupted run resumes. This one caches nothing."""

    def read(self, fold: int) -> FoldAnswers | None:
        return None

    def write(self, fold: int, answers: FoldAnswers) -> None:
        pass


def gather(
    model: L2M,
    cohort: Cohort,
    settings: EvidenceSettings | None = None,
    *,
    cache: FoldCache | None = None,
    report: Callable[[float, str], None] = lambda share, sentence: None,
) -> Evidence:
    """report: called with the share of the work that is done, and what is going on; an error that it raises ends the work."""
    settings, cache = (settings or EvidenceSettings()).of(cohort), cache or FoldCache()
    model.check(cohort)
    if not cohort.acquirable.any():
        raise CohortError("No feature of this cohort is to be measured: give at least one the role 'acquirable'.")
    report(0.0, "Splitting the patients into folds.")
    plan = make_plan(cohort, settings)
    answers = []
    for fold in range(plan.folds):
        doing = f"Asking fold {fold + 1} of {plan.folds}: {len(plan.asked_of(fold))} patients."
        found = cache.read(fold)
        if found is None:

            def report_fold(share: float, fold: int = fold, doing: str = doing) -> None:
                report(FOLDS_SHARE * (fold + share) / plan.folds, doing)

            found = ask_fold(model, cohort, plan, settings, fold, report_fold)
            cache.write(fold, found)
        if len(found.rows):
            answers.append(found)
    report(FOLDS_SHARE, "Drawing intervals.")
    return replace(summarise(cohort, plan, settings, answers), tuned=_tuned(model, cohort))


def _tuned(model: L2M, cohort: Cohort) -> Literal["", "here", "elsewhere"]:
    """See Figures."""
    tuned_on = model.release.tuned_on
    if not tuned_on:
        return ""
    return "here" if tuned_on == cohort.content_hash else "elsewhere"
