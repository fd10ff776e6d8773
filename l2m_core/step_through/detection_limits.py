"""Results that lie beyond a limit, such as <5: the limit itself is used, which many of a cohort's own results may lie beyond."""

from __future__ import annotations

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.step_through.words import number, percent
from l2m_core.tables.cell_parsing import entered_text

SIGNS = {"below": "<", "above": ">"}
MOST_BEYOND = 0.05
"""Share of the cohort's results that lie beyond a limit of detection at most; where more do, more can be measured."""


def used_as_the_limit(cohort: Cohort, name: str, value: float, limit: str) -> str | None:
    """A sentence where the limit says less of a result than it seems to: the belief is then about another one."""
    column = cohort.x[:, cohort.names.index(name)]
    recorded = column[~np.isnan(column)]
    beyond = recorded[recorded < value] if limit == "below" else recorded[recorded > value]
    if not len(recorded) or len(beyond) / len(recorded) <= MOST_BEYOND:
        return None
    limit_text, share = entered_text(value), percent(len(beyond) / len(recorded))
    return (
        f"{SIGNS[limit]}{limit_text} is used as {limit_text}, but {share} of the cohort's results lie {limit} it, half of them "
        f"beyond {number(float(np.median(beyond)))}. Enter the number where it is known."
    )
