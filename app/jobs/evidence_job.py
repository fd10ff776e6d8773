"""The evidence job: gathers evidence fold by fold, keeps each finished fold, and stores the result for the page."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from app.jobs import folders
from app.jobs.work import Ending, Work
from app.store import NotFound
from l2m_core.cohort import Cohort
from l2m_core.errors import ConfigError
from l2m_core.evidence import EvidenceSettings, FoldAnswers, gather
from l2m_core.evidence.cross_fitting import FoldCache
from l2m_core.evidence.folds import patients_of
from l2m_core.evidence.results import FORMAT

KIND = "evidence"


def settings_of(plain: dict[str, Any]) -> EvidenceSettings:
    try:
        return EvidenceSettings(**plain)
    except TypeError as error:
        raise ConfigError(f"These settings of the evidence are not known: {', '.join(sorted(plain))}.") from error


def kept_under(cohort: Cohort, settings: EvidenceSettings) -> dict[str, Any]:
    """The settings that evidence is found by, with what the column of patients says: the cohort's content leaves it out."""
    settings = settings.of(cohort)
    plain = asdict(settings)
    if settings.patients:
        plain["grouping"] = grouping(cohort, settings.patients)
    return plain


def grouping(cohort: Cohort, column: str) -> str:
    """A hash that tells which rows belong to one patient."""
    return sha256(patients_of(cohort, column).astype("<i8").tobytes()).hexdigest()


def run(work: Work) -> Ending:
    catalogue, owner = work.catalogue, work.job.owner
    settings = settings_of(work.config["settings"])
    work.say(0.0, "Reading the cohort and the model.")
    stored = catalogue.store.cohorts.get(owner, work.config["cohort"])
    cohort = catalogue.cohort(owner, stored)
    model = catalogue.model(owner, work.config["model"])
    about = kept_under(cohort, settings)
    keep = KeptFolds(work.folder, [cohort.content_hash, model.fingerprint, about, FORMAT])
    try:
        found = gather(model, cohort, settings, cache=keep, report=work.say)
        stored = catalogue.store.cohorts.get(owner, stored.id)
        catalogue.cohort(owner, stored)  # nothing is stored of what was deleted meanwhile
    except BaseException:
        if not _is_usable(work, stored.id):
            keep.clear()
        raise
    catalogue.store.evidence.put(owner, cohort.content_hash, model.fingerprint, about, found.to_data())
    keep.clear()
    return Ending("done", found.summary()[0].text, {"fingerprint": model.fingerprint})


def _is_usable(work: Work, cohort_id: str) -> bool:
    try:
        return work.catalogue.store.cohorts.get(work.job.owner, cohort_id).is_usable_by(work.job.owner)
    except NotFound:
        return False


class KeptFolds(FoldCache):
    """Finished folds in files, so that a job that was stopped or killed goes on with the next. about: what they are of."""

    def __init__(self, folder: Path, about: list[Any]) -> None:
        self.folder = folder
        self.mark = sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]

    def _path(self, fold: int) -> Path:
        return self.folder / f"fold-{fold:03d}-{self.mark}.npz"

    def read(self, fold: int) -> FoldAnswers | None:
        try:
            with np.load(self._path(fold), allow_pickle=False) as arrays:
                return FoldAnswers(**arrays)
        except (OSError, ValueError, TypeError, BadZipFile):  # not there, or cut short: the fold is asked again
            return None

    def write(self, fold: int, answers: FoldAnswers) -> None:
        draft = self.folder / f".fold-{fold:03d}.npz"
        np.savez(draft, **answers.arrays())  # type: ignore[arg-type]
        draft.replace(self._path(fold))

    def clear(self) -> None:
        folders.delete(self.folder, folders.OF_PATIENTS)
