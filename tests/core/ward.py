"""A ward of forty people with every kind of column: what the tests of a cohort read."""

import numpy as np
import pandas as pd

from l2m_core.cohort import Cohort

N = 40
FRAME = pd.DataFrame(
    {
        "age": [40 + i % 30 for i in range(N)],
        "sex": ["F", "M"] * (N // 2),
        "ward": ["icu", "step-down", "normal", "icu"] * (N // 4),
        "lactate": [np.nan if i % 5 == 0 else i / 10 for i in range(N)],
        "ph": [7 + (i % 9) / 20 for i in range(N)],
        "died": [i % 4 == 0 for i in range(N)],
    }
)


def icu_cohort() -> Cohort:
    schema = {
        "features": [
            {"name": "lactate", "group": "gas", "minimum": 0, "maximum": 30, "unit": "mmol/L"},
            {"name": "ph", "group": "gas"},
        ]
    }
    return Cohort.from_frame(FRAME, "died", ["age", "sex"], {"lactate": 12.0}, schema, name="icu")


def loaded(columns: dict, **options) -> Cohort:
    return Cohort.from_csv(pd.DataFrame(columns).to_csv(index=False).encode(), **{"outcome": "y", **options})
