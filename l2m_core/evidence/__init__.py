"""Can I trust it on my cohort? Measured on the cohort itself, by cross-fitting.

    evidence = gather(model, cohort, EvidenceSettings(folds=5, budget=8))
    print(evidence.text())

The patients are split into folds. Each fold is predicted by a model that has read only the other folds, so no row is
ever predicted from itself. Each patient is stepped through in several orders of tests, the model's own among them, and
the same model predicts after every test: two curves differ by the order alone.
"""

from l2m_core.evidence.cross_fitting import gather
from l2m_core.evidence.figures import Calibration, Curve, Positivity
from l2m_core.evidence.fold_answers import FoldAnswers, ask_fold
from l2m_core.evidence.folds import EvidenceSettings, Plan, make_plan
from l2m_core.evidence.results import Evidence
from l2m_core.evidence.statistics import summarise

__all__ = [
    "Calibration",
    "Curve",
    "Evidence",
    "EvidenceSettings",
    "FoldAnswers",
    "Plan",
    "Positivity",
    "ask_fold",
    "gather",
    "make_plan",
    "summarise",
]
