"""MiniBooNE: electron neutrinos (signal) against muon neutrinos (background), 50 measurements of each event."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError
from l2m_core.loaders.sources import MINIBOONE

FEATURES = 50
NOT_MEASURED = -999.0


def load_miniboone(path: str | Path, rows: int | None = None, seed: int = 0) -> Cohort:
    """All 130,064 events, or `rows` of them at random. The file's first line counts signal and background events."""
    path = MINIBOONE.require(Path(path))
    (signal, background), values = _read(path)
    if values.shape != (signal + background, FEATURES):
        raise CohortError(
            f"{path.name} holds {values.shape[0]:,} events of {values.shape[1]} measurements; its first line promises "
            f"{signal + background:,} of {FEATURES}. Download it again."
        )
    y = np.repeat([1, 0], [signal, background])
    if rows is not None and rows < len(y):
        kept = np.random.default_rng(seed).permutation(len(y))[:rows]
        values, y = values[kept], y[kept]
    x = np.where(values == NOT_MEASURED, np.nan, values).astype(np.float32)
    names = [f"pid_{number}" for number in range(1, FEATURES + 1)]
    classes = ("background", "signal")
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
