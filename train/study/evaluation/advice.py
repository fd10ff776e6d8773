"""From a CSV file to the first advice for a patient: what a person waits for, with no training."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import torch

from l2m_core.errors import RangeWarning
from train.data_plugins import PluggedSource
from train.study.evaluation.manifest import Source
from train.study.evaluation.report import markdown_table
from train.study.evaluation.trial_runs import load_model
from train.study.resumable_table import ResumableTable

THREADS = 2
KEYS = ("cohort", "model", "threads")


def first_advice(source: Source | PluggedSource, model_name: str) -> dict:
    """Wall seconds with the model in memory: reading the file, conditioning on all its rows, ranking for one patient."""
    model = load_model(model_name)
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RangeWarning)
            start = time.perf_counter()
            cohort = source.read()
            read = time.perf_counter()
            memory = model.condition(cohort)
            conditioned = time.perf_counter()
            ranked = len(memory.start({}).ranking)
            done = time.perf_counter()
    finally:
        torch.set_num_threads(before)
    return {
        "cohort": source.name,
        "data": cohort.content_hash,
        "model": model.fingerprint,
        "threads": THREADS,
        "rows": len(cohort),
        "features": len(cohort.names),
        "ranked": ranked,
        "read": round(read - start, 3),
        "condition": round(conditioned - read, 3),
        "rank": round(done - conditioned, 3),
        "seconds": round(done - start, 3),
    }


def measure_first_advice(sources: Sequence[Source | PluggedSource], model_name: str, partial: Path, run: bool) -> str:
    """A table of all cohorts, each measured once for each model."""
    fingerprint = load_model(model_name).fingerprint
    table = ResumableTable(partial / "advice.jsonl", KEYS)
    found = []
    for source in sources:
        mark = {"cohort": source.name, "data": source.load().content_hash, "model": fingerprint, "threads": THREADS}
        if run and not table.has(mark):
            table.append([first_advice(source, model_name)])
        if table.has(mark):
            found.append(table.records[table.key(mark)])
    if not found:
        return ""
    frame = pd.DataFrame(found).drop(columns=["model", "threads", "data"], errors="ignore")
    slowest = frame["seconds"].max()
    head = (
        f"Wall seconds with {THREADS} threads and the model in memory: reading the file, conditioning on its rows, "
        f"ranking for a first patient. Slowest: **{slowest:.2f} s**."
    )
    return f"{head}\n\n{markdown_table(frame)}"
