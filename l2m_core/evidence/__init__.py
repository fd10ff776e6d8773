"""Can I trust it on my cohort? Measured on the cohort itself, by cross-fitting.

    evidence = gather(model, cohort, EvidenceSettings(folds=5, budget=8))
    print(evidence.text())

The patients are split into folds. Those of one fold are asked about by a model that has read only the other folds, so
no answer ever comes from the row itself. Each patient is stepped through in several orders, the model's own among them,
with the same model predicting after every test: what differs between two curves is the order alone.
"""

from l2m_core.evidence.cross_fitting import gather
from l2m_core.evidence.figures import Calibration, Curve, Evidence, Wishes, summarise
from l2m_core.evidence.fold_answers import FoldAnswers, ask_fold
from l2m_core.evidence.folds import EvidenceSettings, Plan, make_plan

__all__ = [
    "Calibration",
    "Curve",
    "Evidence",
    "EvidenceSettings",
    "FoldAnswers",
    "Plan",
    "Wishes",
    "ask_fold",
    "gather",
    "make_plan",
    "summarise",
]
