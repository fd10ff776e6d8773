"""Checks of a step-through: its chain, its cohort and model read again, and the recorded predictions replayed."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import l2m_core as l2m
from app.host import services
from app.ui import labels
from app.ui.traces.exchange import OTHER_BUILD, SAME_BUILD, Incoming, agree, installed, passes_through, told_by
from app.ui.traces.loading import LoadedTrace
from l2m_core.acquire.stopping import Stopping
from l2m_core.answering.devices import CPU, Device
from l2m_core.cohort import Cohort
from l2m_core.errors import L2MError, RangeWarning
from l2m_core.memory import CohortMemory
from l2m_core.schema import Schema
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import difference_from, summarise

Result = Literal["verified", "failed", "not checked"]


@dataclass(frozen=True)
class Check:
    """what: the thing that was checked; sentence: what was found, in words."""

    what: str
    result: Result
    sentence: str

    def to_plain(self) -> dict[str, Any]:
        return asdict(self)


def verify(owner: str, loaded: LoadedTrace) -> tuple[Check, ...]:
    """Everything that can be checked of a stored step-through. Model and table are read from disk again."""
    chain = _check_chain(owner, loaded)
    memory, inputs = _read_anew(owner, loaded)
    if memory is None:
        replay = Check("Replay", "not checked", "Without its own model and cohort nothing can be recomputed.")
        return (chain, *inputs, replay)
    # Replayed from the stored events alone: cached views may be older than a change in the database.
    patients = loaded.record.patients(memory)
    return (chain, *inputs, _check_replay(loaded, patients, memory.device), _check_suggestions(loaded, patients))


def _check_chain(owner: str, loaded: LoadedTrace) -> Check:
    verdict = services.get().store.step_throughs.verify(owner, loaded.record.id)
    if not verdict.intact:
        return Check("Record", "failed", f"The chain of events is broken: {verdict.reason}.")
    return Check(
        "Record",
        "verified",
        f"All {verdict.length} stored events are linked from the first to the last (head {verdict.head_hash[:16]}…): "
        "none was changed, moved or removed between them.",
    )


def _read_anew(owner: str, loaded: LoadedTrace) -> tuple[CohortMemory | None, tuple[Check, ...]]:
    cohort, cohort_check = _check_cohort(owner, loaded)
    model, model_check = _check_model(owner, loaded)
    if cohort is None or model is None:
        return None, (cohort_check, model_check)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RangeWarning)
        memory = model.condition(cohort)
    council = loaded.record.council
    if council is None:
        return memory, (cohort_check, model_check)
    try:
        again = Check("Council", "verified", f"Its members were fitted to the table again: {council.in_words}.")
        return memory.under(council), (cohort_check, model_check, again)
    except L2MError as refusal:
        return None, (cohort_check, model_check, Check("Council", "failed", str(refusal)))


def _check_cohort(owner: str, loaded: LoadedTrace) -> tuple[Cohort | None, Check]:
    stored, wanted = loaded.record.cohort, loaded.record.step_through.cohort_hash
    if stored.deleted_at is not None:
        return None, Check(
            "Cohort",
            "not checked",
            f"The data of '{stored.name}' were deleted on "
            f"{stored.deleted_at:%d %b %Y}; their content hash was {wanted[:16]}….",
        )
    try:
        frame = services.get().store.cohorts.frame(owner, stored.id)
        cohort = Cohort.restored(frame, Schema.from_yaml(stored.schema_yaml), wanted, stored.name)
    except L2MError as refusal:
        return None, Check("Cohort", "failed", str(refusal))
    return cohort, Check(
        "Cohort",
        "verified",
        f"'{stored.name}', version {stored.version}, read from the store again, has "
        f"the content hash that the record names ({wanted[:16]}…).",
    )


def _check_model(owner: str, loaded: LoadedTrace) -> tuple[l2m.L2M | None, Check]:
    wanted = loaded.record.step_through.model_fingerprint
    for name, folder in services.get().known_models(owner).items():
        try:
            model = l2m.load(str(folder), services.get().settings.device)
        except L2MError:
            continue
        if model.fingerprint == wanted:
            return model, Check(
                "Model",
                "verified",
                f"'{name}', read from its files again, has the fingerprint that the record names ({wanted[:16]}…).",
            )
    return None, Check(
        "Model",
        "not checked",
        f"The model of this step-through (fingerprint {wanted[:16]}…) is not "
        f"installed any more, or is another version by now ({installed(owner)}).",
    )


def _check_replay(loaded: LoadedTrace, patients: Sequence[Patient], device: Device) -> Check:
    # A record does not say where it was computed: where a GPU has a part in it, it may have been elsewhere.
    tolerance = SAME_BUILD if str(device) == CPU else OTHER_BUILD
    recorded = [(now, then) for now, then in zip(patients, loaded.record.believed, strict=True) if then is not None]
    shown = [(now, step.posterior) for now, step in zip(patients, loaded.trace.steps, strict=True)]
    worst = max(difference_from(now, then) for now, then in (*recorded, *shown))
    scale = max(1.0, *(abs(value) for now in patients for value in summarise(now).values()))
    missing = len(patients) - len(recorded)
    ending = f" For {missing} of {len(patients)} events no posterior was recorded." if missing else ""
    if not worst <= tolerance * scale:
        return Check(
            "Replay",
            "failed",
            f"Computed again, the posteriors differ by up to {worst:.2g} from those recorded: "
            f"another build or machine, or something was changed.{ending}",
        )
    return Check(
        "Replay",
        "verified",
        f"Computed again from table and model, {len(recorded)} of {len(recorded)} recorded "
        f"posteriors come out the same (largest difference {worst:.1g}).{ending}",
    )


def _check_suggestions(loaded: LoadedTrace, patients: Sequence[Patient]) -> Check:
    """Compares the suggestion stored with each event with the one made now."""
    followed = [number for number, event in enumerate(loaded.events) if number and event.suggested is not None]
    wrong = [
        number for number in followed if loaded.events[number].suggested not in _suggested_to(patients[number - 1])
    ]
    count = len(followed)
    if not count:
        return Check("Suggestions", "not checked", "No event of this step-through followed a suggestion.")
    if wrong:
        return Check(
            "Suggestions",
            "failed",
            f"Another test than the recorded one would be suggested before event "
            f"{wrong[0]}{f' and {len(wrong) - 1} others' if wrong[1:] else ''}.",
        )
    return Check(
        "Suggestions", "verified", f"{count} of {count} recorded suggestions are made again, at the same steps."
    )


def _suggested_to(patient: Patient) -> tuple[str | None, ...]:
    """Now; and what was ranked first, which earlier versions suggested whatever was left of a cost budget."""
    return patient.suggestion, patient.suggestion_by(Stopping())


def _check_events(loaded: LoadedTrace, incoming: Incoming) -> Check:
    """By the hashes of the record's chain where the file names it. Imported events are the same in another chain."""
    if incoming.chain is not None and incoming.chain[0] == loaded.record.id:
        _, length, head = incoming.chain
        if passes_through(loaded.stored, incoming.chain):
            return Check("File", "verified", _begins_with(length, len(loaded.stored) - length))
        return Check(
            "File",
            "failed",
            f"The record does not hold the {length} events of the file: it was cut or rewritten "
            f"since the export (head {head[:16]}…).",
        )
    told = told_by(loaded.stored, incoming)
    begins = told[: len(incoming.events)] == incoming.events
    if incoming.chain is None:
        basis = "It has no chain of events, so steps were compared, and no hashes."
        reason = f"The record does not begin with the steps of the file. {basis}"
    else:
        basis = (
            "It was exported from a copy in another chain, as importing makes one: events were compared, not hashes."
        )
        reason = "This file was exported from another step-through: the record does not begin with its events."
    if not begins:
        return Check("File", "failed", reason)
    count = len(incoming.events)
    return Check("File", "verified", f"{_begins_with(count, len(told) - count)} {basis}")


def _begins_with(count: int, later: int) -> str:
    since = f"; {later} came since" if later else ""
    return f"The record begins with exactly the {labels.counted(count, 'event')} of the file{since}."


def against_file(loaded: LoadedTrace, incoming: Incoming) -> tuple[Check, ...]:
    """Checks the record against a file exported earlier, which shows what was removed or rewritten since."""
    events = _check_events(loaded, incoming)
    if events.result != "verified":
        return (events,)
    same = [
        agree(now.posterior, was.posterior, SAME_BUILD)
        for was, now in zip(incoming.trace.steps, loaded.trace.steps, strict=False)
    ]
    result: Result = "verified" if all(same) else "failed"
    sentence = f"{sum(same)} of {len(same)} posteriors in the file are those of the record."
    return (events, Check("File's posteriors", result, sentence))
