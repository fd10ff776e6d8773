"""The order in which a model reads a cohort's rows.

A model's answer does not depend on the order of its context, but choices among the rows may: the folds of the
calibration step, the rows kept of a long cohort, and bootstrap samples. Releases that state `row_order: content` make
them by what the rows hold, so that a file sorted otherwise gets the same answers.
"""

from __future__ import annotations

import hashlib

import numpy as np

from l2m_core.cohort import Cohort


def arranged(cohort: Cohort, row_order: str) -> Cohort:
    """The cohort with its rows in the order that a release reads them in; see `AnswerSettings.row_order`."""
    return cohort if row_order == "position" else cohort.rows(content_order(cohort))


def content_order(cohort: Cohort, with_outcome: bool = True) -> np.ndarray:
    """(N,) rows by a digest of what each holds: as good as random, and the same however the file is sorted.

    Rows that hold the same have the same digest; which of them comes first changes nothing. with_outcome: whether the
    outcome's code is part of what a row holds.
    """
    x = np.where(cohort.r, cohort.x, np.float32(np.nan)) + np.float32(0)  # one NaN, and no minus zero
    y = cohort.y + cohort.y.dtype.type(0) if with_outcome else np.zeros_like(cohort.y)
    cells = [array.astype(array.dtype.newbyteorder("<")).tobytes() for array in (x, y)]
    digests = [
        hashlib.blake2b(values + outcome, digest_size=16).digest()
        for values, outcome in zip(*(_in_rows(data, len(y)) for data in cells), strict=True)
    ]
    return np.array(sorted(range(len(y)), key=digests.__getitem__), dtype=np.int64)


def _in_rows(data: bytes, rows: int) -> list[bytes]:
    size = len(data) // rows
    return [data[start : start + size] for start in range(0, len(data), size)]
