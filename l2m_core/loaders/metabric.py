"""METABRIC: subtype of a breast tumour from the expression of the study's eleven genes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.loaders.sources import METABRIC

GENES = ("ccnb1", "cdk1", "e2f2", "e2f7", "stat5b", "notch1", "rbpj", "bcl2", "egfr", "erbb2", "erbb3")
"""The study's acquirable features; it has no baseline ones."""
OUTCOMES = ("pam50_+_claudin-low_subtype", "pam50_claudin_subtype")
"""The column's name in the public file, and without its plus sign."""
UNCLASSIFIED = "NC"


def load_metabric(path: str | Path) -> Cohort:
    """Six subtypes; the few tumours without a class ("NC") are left out; all features are acquirable."""
    try:
        table = pd.read_csv(METABRIC.require(Path(path)), low_memory=False)
    except CohortError:
        raise
    except (OSError, ValueError) as error:
        raise CohortError(f"{Path(path).name} cannot be read as a CSV ({error}). Download it again.") from error
    outcome = next((name for name in OUTCOMES if name in table), None)
    absent = [name for name in GENES if name not in table]
    if outcome is None or absent:
        raise CohortError(
            f"{Path(path).name} is not METABRIC's table: it lacks {absent[0] if absent else OUTCOMES[0]!r}. "
            f"It should have the genes {', '.join(GENES)}, and {OUTCOMES[0]}."
        )
    rows = table[table[outcome].notna() & (table[outcome] != UNCLASSIFIED)]
    frame = rows[[*GENES, outcome]].rename(columns={outcome: OUTCOMES[1]}).reset_index(drop=True)
    return Cohort.from_frame(frame, outcome=OUTCOMES[1], name="metabric")
