"""A data folder as the app writes it: cohorts, step-throughs, evidence, a model, jobs, and the audit trail of them all."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import l2m_core as l2m
from tests.golden import cohorts, inside, jobs
from tests.golden.agreement import KEPT, plain, read, unpacked, write

DATABASE = "store.database.gz"
FACTS = "store.json"
TRACES = KEPT / "traces"
SECRET = bytes(range(32))  # of no installation: what it signs is only ever checked by these tests
NURSE = inside.browser_owner(f"{1:032x}")
DOCTOR = inside.user_owner("https://sign-in.example", "person 2")
TINY = "models/tiny"  # a relative folder, so that no machine's path is kept


def lay_out(folder: Path) -> None:
    """What a data folder holds beside its database."""
    (folder / "secret.key").write_bytes(SECRET)
    shutil.copytree(jobs.FOLDER / "cells" / "model", folder / TINY)


def unpack(folder: Path) -> Path:
    """The kept data folder, laid out again. Returns its database file."""
    folder.mkdir(parents=True, exist_ok=True)
    lay_out(folder)
    database = folder / "l2m.sqlite3"
    database.write_bytes(unpacked(DATABASE))
    return database


# -- what is in it --------------------------------------------------------------------------------------------------


def facts_of(app: inside.Services) -> dict[str, Any]:
    """All that each owner finds, read through the store's own face."""
    found = app.store.verify()
    return plain(
        {
            "verification": {"step-throughs": found.step_throughs, "events": found.events, "acts": found.acts},
            "cookie": app.signer.sign(NURSE.removeprefix("browser-")),
            "owners": {"nurse": _of_owner(app, NURSE), "doctor": _of_owner(app, DOCTOR)},
        }
    )


def _of_owner(app: inside.Services, owner: str) -> dict[str, Any]:
    store = app.store
    step_throughs = sorted(store.step_throughs.list(owner), key=lambda one: (one.created_at, one.id))
    return {
        "owner": owner,
        "cohorts": [_of_cohort(app, owner, cohort) for cohort in reversed(store.cohorts.list(owner))],
        "step-throughs": [_of_step_through(app, owner, one.id) for one in step_throughs],
        "evidence": [
            {"settings": one.settings, "results": one.results, "model": one.model_fingerprint}
            for cohort in store.cohorts.list(owner)
            for one in store.evidence.list(owner, cohort.content_hash)
        ],
        "models": [[one.name, one.fingerprint, one.folder, one.card, one.shared] for one in store.models.list(owner)],
        "jobs": [[one.kind, one.config, one.state, one.message, one.result] for one in store.jobs.list(owner)],
        "acts": [[one.kind, one.subject, one.details, one.hash] for one in store.audit.list(owner)],
    }


def _of_cohort(app: inside.Services, owner: str, stored: inside.StoredCohort) -> dict[str, Any]:
    """Read from its table again, which is refused where that gives another content."""
    cohort = app.cohort(owner, stored)
    return {
        "id": stored.id,
        "name": stored.name,
        "version": stored.version,
        "content_hash": cohort.content_hash,
        "schema": sha256(stored.schema_yaml.encode()).hexdigest(),
        "schema read and written": cohort.schema.to_yaml() == stored.schema_yaml,
        "shared": stored.shared,
        "rows": len(cohort),
        "columns": list(cohort.frame()),
        "warnings": cohort.warnings,
    }


def _of_step_through(app: inside.Services, owner: str, name: str) -> dict[str, Any]:
    one, events = app.store.step_throughs.read(owner, name)
    verdict = app.store.step_throughs.verify(owner, name)
    return {
        "id": one.id,
        "title": one.title,
        "status": one.status,
        "cohort": [one.cohort_id, one.cohort_hash],
        "model": one.model_fingerprint,
        "version": one.version,
        "intact": verdict.intact,
        "head": [one.length, one.head_hash],
        "events": [[event.kind, event.recorded_at.isoformat(), event.payload, event.hash] for event in events],
    }


# -- making it ------------------------------------------------------------------------------------------------------


def make() -> None:
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        folder = Path("data")
        folder.mkdir()
        lay_out(Path())
        lay_out(folder)
        with inside.open_services(folder) as app:
            _use(app)
        with inside.open_services(folder) as app:
            facts = {**facts_of(app), "heads": app.store.export_heads()}
            app.store.back_up(Path("copy.sqlite3"))
        packed = gzip.compress(Path("copy.sqlite3").read_bytes(), 9, mtime=0)
    (KEPT / DATABASE).write_bytes(packed)
    print(f"{DATABASE}: {len(packed):,} bytes")
    write(FACTS, facts)


def make_traces() -> None:
    """From the kept store: the files that its owners would export."""
    shutil.rmtree(TRACES, ignore_errors=True)
    TRACES.mkdir(parents=True)
    with opened() as (app, _):
        for owner, number, name in step_throughs(app):
            loaded = inside.load(owner, name)
            (TRACES / f"{number}.json").write_text(inside.file_of(loaded), encoding="utf-8")
            (TRACES / f"{number}.csv").write_text(inside.csv_of(loaded), encoding="utf-8", newline="")
    print(
        f"traces: {sum(path.stat().st_size for path in TRACES.iterdir()):,} bytes in {len(list(TRACES.iterdir()))} files"
    )


@contextlib.contextmanager
def opened() -> Iterator[tuple[inside.Services, Path]]:
    """The app on a copy of the kept data folder, which is where commands run; and that folder."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        unpack(Path(place))
        with inside.open_services(Path(place)) as app:
            yield app, Path(place)


def step_throughs(app: inside.Services) -> list[tuple[str, int, str]]:
    """(owner, number, id) of every kept step-through, in the order of the facts."""
    owners = read(FACTS)["owners"].values()
    kept = [(one["owner"], step_through["id"]) for one in owners for step_through in one["step-throughs"]]
    return [(owner, number, name) for number, (owner, name) in enumerate(kept, start=1)]


def _use(app: inside.Services) -> None:
    """As two people would over a week: the calls are those of the pages' buttons."""
    chest = app.store.cohorts.share(NURSE, app.add_cohort(NURSE, inside.example("Chest pain triage")).id)
    ward = app.add_cohort(NURSE, cohorts.ward())
    app.add_cohort(NURSE, cohorts.ward(60))
    stays = app.add_cohort(NURSE, inside.example("Diabetes progression"))
    wines = app.add_cohort(DOCTOR, cohorts.wines())
    tiny = app.add_cohort(NURSE, jobs.cohort("cells"))
    app.delete_cohort(DOCTOR, app.add_cohort(DOCTOR, cohorts.few()).id)
    model = l2m.load(TINY)
    app.store.models.register(NURSE, "tiny", model.fingerprint, TINY, card="# tiny\n\nNobody has evaluated it.")

    _chest_pain(app, chest)
    _shared(app, chest)
    _stay(app, stays)
    _wine(app, wines)
    _own_model(app, tiny)
    _panel(app, ward)
    _evidence(app, ward)


def _chest_pain(app: inside.Services, chest: inside.StoredCohort) -> None:
    """Everything that can happen, in one step-through; ended, and opened again."""
    values = {"age": 71.0, "sex": "male", "smoker": "yes", "diabetes": "no", "pain": "pressing"}
    name = inside.start(app, NURSE, chest, "Bed 4", values).id
    do = _doing(app, NURSE, name)
    do(lambda p: p.observe({"heart rate": 96, "systolic pressure": 118.0, "oxygen saturation": 95}, reason="vitals"))
    inside.save_rules(app, NURSE, name, inside.rules("gain per cost", budget=8, cost_budget=400.0, confidence=0.95))
    do(lambda p: p.unavailable("wall motion", reason="no echo at night"))
    do(lambda p: p.observe("ECG", "ST depression"))
    do(lambda p: p.undo())
    do(lambda p: p.observe("ECG", "unspecific changes", reason="read again"))
    do(lambda p: p.pending("troponin at 3 h"))
    do(lambda p: p.observe("D-dimer", 0.2, limits={"D-dimer": "below"}))
    do(lambda p: p.observe("troponin at 0 h", 13.5))
    do(lambda p: p.correct("troponin at 0 h", 31.5, reason="typing error"))
    do(lambda p: p.declined("coronary calcium"))
    inside.save_rules(app, NURSE, name, inside.rules("learned", least_gain=0.002))
    do(lambda p: p.stop("clear enough"))
    do(lambda p: p.reopen())
    do(lambda p: p.observe("troponin at 3 h", 62))


def _shared(app: inside.Services, chest: inside.StoredCohort) -> None:
    """On another's cohort, with rules from the start; exported, and taken in by the cohort's owner."""
    values = {"age": 44, "sex": "female", "pain": "burning", "radiates": "no"}
    rules = inside.rules(confidence=0.9)
    name = inside.start(app, DOCTOR, chest, "Bett 7 – Ä, ≥ 3", values, rules=rules).id
    do = _doing(app, DOCTOR, name)
    do(lambda p: p.observe(p.suggestion, _typical(p)))
    do(lambda p: p.declined(p.suggestion, reason="=1+1 is not run"))
    do(lambda p: p.stop())
    loaded = inside.load(DOCTOR, name)
    inside.bring(NURSE, inside.file_of(loaded).encode())


def _stay(app: inside.Services, stays: inside.StoredCohort) -> None:
    """A continuous outcome; a value taken back."""
    do = _doing(app, NURSE, inside.start(app, NURSE, stays, "", {"age": 48, "sex": "2"}).id)
    do(lambda p: p.observe("body mass index", 31.2))
    do(lambda p: p.observe("log triglycerides", 4.9))
    do(lambda p: p.correct("body mass index", None, reason="of somebody else"))


def _wine(app: inside.Services, wines: inside.StoredCohort) -> None:
    """Three classes, values written as the table writes them."""
    do = _doing(app, DOCTOR, inside.start(app, DOCTOR, wines, "lot 8", {"cellar": "hill"}).id)
    do(lambda p: p.observe("colour", "7,1"))
    do(lambda p: p.observe("magnesium", 101))
    do(lambda p: p.undo())


def _own_model(app: inside.Services, tiny: inside.StoredCohort) -> None:
    """With a model that was trained on this installation."""
    do = _doing(app, NURSE, inside.start(app, NURSE, tiny, "tiny", {"x0": 0.5}, model="tiny").id)
    do(lambda p: p.observe({"x2": -0.25, "x1": 1}))


def _panel(app: inside.Services, ward: inside.StoredCohort) -> None:
    """Nothing known at first, and a panel in place of the suggestion."""
    do = _doing(app, NURSE, inside.start(app, NURSE, ward, "ward round", {}).id)
    do(lambda p: p.observe({"sodium": 131.0, "potassium": 4.4}, reason="drawn already"))
    do(lambda p: p.observe("scan", "dense"))


def _evidence(app: inside.Services, ward: inside.StoredCohort) -> None:
    """As the job gathers it."""
    model = app.model(NURSE)
    config = {"cohort": ward.id, "model": "general", "settings": inside.evidence_settings()}
    running = app.store.jobs.claim(app.store.jobs.add(NURSE, "evidence", config).id)
    assert running is not None and running.claim is not None
    settings, results = inside.gather_evidence(model, app.cohort(NURSE, ward))
    app.store.evidence_records.put(NURSE, ward.content_hash, model.fingerprint, settings, results)
    app.store.jobs.finish(running.id, running.claim, "done", result={"fingerprint": model.fingerprint})


def _doing(app: inside.Services, owner: str, name: str) -> Any:
    return lambda act: inside.go_on(app, owner, name, act)


def _typical(patient: l2m.Patient) -> Any:
    """A result of the suggested test that the cohort knows."""
    assert patient.suggestion is not None
    preview = patient.preview(patient.suggestion)
    feature = patient.memory.cohort.feature(patient.suggestion)
    return float(preview["value"][1]) if feature.kind == "number" else preview["value"][1]
