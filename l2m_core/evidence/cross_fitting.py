"""All folds one after the other, and the figures drawn from them."""

from __future__ import annotations

from collections.abc import Callable

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.evidence.figures import Evidence, summarise
from l2m_core.evidence.fold_answers import FoldAnswers, ask_fold
from l2m_core.evidence.folds import EvidenceSettings, make_plan
from l2m_core.memory import L2M


class Keep:
    """Where finished folds are kept, so that work that was cut short goes on where it stopped. This one forgets."""

    def read(self, fold: int) -> FoldAnswers | None:
        return None

    def write(self, fold: int, answers: FoldAnswers) -> None:
        pass


def gather(
    model: L2M,
    cohort: Cohort,
    settings: EvidenceSettings | None = None,
    *,
    keep: Keep | None = None,
    report: Callable[[float, str], None] = lambda share, sentence: None,
) -> Evidence:
    """report: told the share that is done, and what is going on; what it raises ends the work."""
    settings, keep = settings or EvidenceSettings(), keep or Keep()
    model.check(cohort)
    if not cohort.acquirable.any():
        raise CohortError("No feature of this cohort is to be measured: give at least one the role 'acquirable'.")
    report(0.0, "Splitting the patients into folds.")
    plan = make_plan(cohort, settings)
    answers = []
    for fold in range(plan.folds):
        doing = f"Asking fold {fold + 1} of {plan.folds}: {len(plan.asked_of(fold))} patients."
        known = keep.read(fold)
        if known is None:
            known = ask_fold(
                model,
                cohort,
                plan,
                settings,
                fold,
                lambda share, fold=fold, doing=doing: report(0.95 * (fold + share) / plan.folds, doing),  # type: ignore[misc]
            )
            keep.write(fold, known)
        if len(known.rows):
            answers.append(known)
    report(0.95, "Drawing intervals.")
    return summarise(cohort, plan, settings, answers)
