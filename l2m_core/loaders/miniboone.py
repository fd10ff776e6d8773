"""MiniBooNE: muon neutrinos (background, the positive class) against electron neutrinos (signal).

The study takes ten of the 50 measurements, "Feature 1" and so on, which are counted from 1 here; it does not say from where. Its
prevalence of 72% is that of the background: 93,565 of 130,064 events.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.loaders.sources import MINIBOONE

MEASUREMENTS = 50
STUDY_FEATURES = (1, 17, 23, 32, 3, 27, 12, 4, 25, 2)
"""In the study's order."""
NOT_MEASURED = -999.0


def load_miniboone(path: str | Path, rows: int | None = None, seed: int = 0) -> Cohort:
    """The study's ten features of all 130,064 events, or of `rows` of them at random.

    The file's first line counts signal and background events, which follow in this order.
    """
    path = MINIBOONE.require(Path(path))
    (signal, background), values = _read(path)
    if values.shape != (signal + background, MEASUREMENTS):
        raise CohortError(
            f"{path.name} holds {values.shape[0]:,} events of {values.shape[1]} measurements; its first line promises "
            f"{signal + background:,} of {MEASUREMENTS}. Download it again."
        )
    y = np.repeat([0, 1], [signal, background])
    if rows is not None and rows < len(y):
        kept = np.random.default_rng(seed).permutation(len(y))[:rows]
        values, y = values[kept], y[kept]
    values = values[:, [number - 1 for number in STUDY_FEATURES]]
    x = np.where(values == NOT_MEASURED, np.nan, values).astype(np.float32)
    names = [f"Feature {number}" for number in STUDY_FEATURES]
    classes = ("signal", "background")
    return Cohort.from_arrays(x, y, names=names, kind="binary", classes=classes, outcome="event", name="miniboone")


def _read(path: Path) -> tuple[list[int], np.ndarray]:
    """The counts of the first line, and (events, measurements)."""
    try:
        with path.open() as file:
            counts = file.readline().split()
            if len(counts) != 2 or not all(text.isdigit() for text in counts):
                raise CohortError(
                    f"{path.name} is not MiniBooNE's file: its first line should be two counts of events."
                )
            return [int(text) for text in counts], np.loadtxt(file, dtype=np.float32, ndmin=2)
    except CohortError:
        raise
    except (OSError, ValueError) as error:
        raise CohortError(f"{path.name} cannot be read as MiniBooNE's file: {error}. Download it again.") from error
