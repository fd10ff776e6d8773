"""The complete JSON file of a step-through: the core's trace, its label, and the chain of its stored events.

What comes in is checked before anything is stored: that it is a trace, that its chain is whole and tells the same as
the trace, that its cohort and model are here, and that it replays to the posteriors that it claims.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from app.host import services
from app.store import NewEvent, NotFound, StepThrough, StoredEvent, StoreInputError, export_chain, import_chain
from app.store.inputs import require_text, require_uuid
from app.ui import labels
from app.ui.step_through.stored_events import BELIEVED, COUNCIL, SETTINGS, Rules, new_event
from app.ui.traces.loading import LoadedTrace
from l2m_core.answering.devices import AGREEMENT
from l2m_core.errors import InputError, L2MError
from l2m_core.memory import L2M
from l2m_core.step_through.events import fold
from l2m_core.step_through.strict_json import read_json
from l2m_core.step_through.trace import SAME_DEVICE, Trace

LARGEST = 5_000_000  # bytes of a file
MOST_EVENTS = 1000
MOST_LINKS = 3 * MOST_EVENTS  # events of the chain, changes of the rules among them
SAME_BUILD = SAME_DEVICE  # posteriors of the same build on the same kind of machine
OTHER_BUILD = AGREEMENT  # … of another one, or on another device, whose sums may round otherwise
NAMESPACE = uuid.UUID("6a7c3e8e-5d0f-4b43-9a55-3f2f1f6f5e0b")


def to_json(loaded: LoadedTrace) -> str:
    plain = json.loads(loaded.trace.to_json())
    plain["label"] = loaded.record.step_through.title
    plain["chain"] = export_chain(loaded.record.step_through, loaded.stored)
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True)
class Incoming:
    """A trace file that passed its checks.

    events: ready to store; chain: id, length and newest hash of the original, if known.
    fingerprint: of the file's content, so that importing a file twice gives one step-through.
    """

    trace: Trace
    label: str
    events: tuple[NewEvent, ...]
    chain: tuple[str, int, str] | None
    fingerprint: str


def read_file(data: bytes) -> Incoming:
    """Read an exported file. InputError for anything that is not a complete trace."""
    if len(data) > LARGEST:
        raise InputError(f"The file has {len(data) / 1e6:.1f} MB; a trace has at most {LARGEST / 1e6:.0f} MB.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("The file is not text in UTF-8. Choose the JSON file that 'Export' wrote.") from None
    trace = Trace.from_json(text)
    if not 1 <= len(trace.steps) <= MOST_EVENTS:
        raise InputError(f"The trace has {len(trace.steps)} steps; from 1 to {MOST_EVENTS} can be imported.")
    plain = read_json(text, "The trace")
    label = plain.get("label", "")
    try:
        label = require_text("The label", label, longest=120, empty=True).strip()
        for event in trace.events:
            require_uuid("An event's id", event.id)
    except StoreInputError as refusal:
        raise InputError(f"The trace cannot be stored. {refusal}") from None
    chain = plain.get("chain")
    events = _chained(chain, trace) if chain is not None else _unchained(trace)
    head = (str(chain["id"]), int(chain["head"]["length"]), str(chain["head"]["hash"])) if chain is not None else None
    return Incoming(trace, label or "Imported trace", events, head, head[2] if head else _digest(trace))


def _chained(chain: Any, trace: Trace) -> tuple[NewEvent, ...]:
    _refuse_endless(chain)
    events = import_chain(chain)
    if (str(chain["cohort_hash"]), str(chain["model_fingerprint"])) != (trace.cohort_hash, trace.model_fingerprint):
        raise InputError("The trace and its chain of events name different cohorts or models; the file was changed.")
    core = [event for event in events if event.kind != SETTINGS]
    told = [(event.id, event.kind, event.to_dict()) for event in trace.events]
    if trace.council is not None and told:
        told[0][2][COUNCIL] = trace.council.to_data()
    if [(e.event_id, e.kind, {k: v for k, v in e.payload.items() if k != BELIEVED}) for e in core] != told:
        raise InputError("The steps of the trace are not the events of its chain; the file was changed.")
    for event, step in zip(core, trace.steps, strict=True):
        believed = event.payload.get(BELIEVED)
        if believed is not None and not _is_near(believed, step.posterior):
            raise InputError("A posterior of the trace is not the one in its chain of events; the file was changed.")
    for event in events:
        if event.kind == SETTINGS:
            _check_settings(event.payload)
    return events


def _refuse_endless(chain: Any) -> None:
    """Before any link is worked on: a chain may hold changes of rules between its steps, but no more than links are kept."""
    links = chain.get("events") if isinstance(chain, dict) else None
    if isinstance(links, list) and len(links) > MOST_LINKS:
        raise InputError(f"The trace's chain has {len(links):,} events; at most {MOST_LINKS:,} can be imported.")


def _is_near(believed: Any, posterior: Any) -> bool:
    if not isinstance(believed, dict):
        return False
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in believed.values())
    return numbers and agree(believed, posterior, OTHER_BUILD)


def agree(now: Mapping[str, float], then: Mapping[str, float], tolerance: float) -> bool:
    """Whether two posteriors name the same outcomes, with numbers as near as the tolerance, which grows with them."""
    return set(now) == set(then) and all(abs(now[k] - v) <= tolerance * max(1.0, abs(v)) for k, v in then.items())


def _check_settings(payload: dict[str, Any]) -> None:
    try:
        settings = Rules.from_payload(payload)
        known = settings.to_payload() == payload
    except (KeyError, TypeError, ValueError, AttributeError, L2MError):
        known = False
    if not known:
        raise InputError("The rules for ranking and stopping in this trace cannot be read; the file was changed.")


def _unchained(trace: Trace) -> tuple[NewEvent, ...]:
    """The events of a trace that a script wrote; its chain begins here."""
    first, *rest = trace.steps
    return (
        new_event(first.event, first.posterior, trace.council),
        *(new_event(step.event, step.posterior) for step in rest),
    )


def _digest(trace: Trace) -> str:
    return hashlib.sha256(trace.to_json().encode()).hexdigest()


# -- importing ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Imported:
    """sentence: the result of the checks, for the person who imports; exact: whether it replays exactly."""

    step_through: StepThrough
    sentence: str
    exact: bool = True


def import_trace(owner: str, incoming: Incoming) -> Imported:
    """Store the step-through for this owner; the same file again gives the same one."""
    store = services.get().store
    known = _known(owner, incoming)
    if known is not None:
        return Imported(known, f"You already have this step-through: '{known.title}'. It is open now.")
    trace = incoming.trace
    cohort = next((c for c in store.cohorts.list(owner) if c.content_hash == trace.cohort_hash), None)
    if cohort is None:
        raise InputError(
            f"This trace needs the cohort '{trace.cohort}' (outcome '{trace.outcome}', content hash "
            f"{trace.cohort_hash[:16]}…), which is not among yours. Open the same table with the same schema on the "
            "Cohort page, or have it shared with you, then import again."
        )
    model = _model(owner, trace)
    shared = services.get()
    memory = shared.under(shared.conditioned(owner, cohort, model), trace.council).memory
    apart = max(trace.differences(memory))  # checks every value too
    scale = max(1.0, *(abs(value) for step in trace.steps for value in step.posterior.values()))
    if not apart <= OTHER_BUILD * scale:
        raise InputError(
            f"This trace does not replay: model and cohort are the same, but its posteriors are not those that they give "
            f"(largest difference {apart:.2g}). The file was changed."
        )
    made = store.step_throughs.create(
        owner, cohort.id, model.fingerprint, incoming.label, _import_id(owner, incoming), incoming.events
    )
    if fold(trace.events).stopped and made.status != "finished":
        made = store.step_throughs.update(owner, made.id, made.version, status="finished")
    exact = apart <= SAME_BUILD * scale
    return Imported(made, f"{_found(incoming, apart, exact)}{_deleted_before(owner, incoming)}", exact)


def _known(owner: str, incoming: Incoming) -> StepThrough | None:
    """The owner's own step-through that this file was exported from, or that it became when it was imported."""
    step_throughs = services.get().store.step_throughs
    candidates = [_import_id(owner, incoming)]
    if incoming.chain is not None:
        candidates.append(incoming.chain[0])
    for candidate in candidates:
        try:
            step_through, events = step_throughs.read(owner, candidate)
        except NotFound:
            continue
        original = incoming.chain is not None and candidate == incoming.chain[0]
        if not original or passes_through(events, incoming.chain):
            return step_through
    return None


def _import_id(owner: str, incoming: Incoming) -> str:
    """Of the step-through that this file becomes: the same one each time, until its owner deletes that."""
    for deleted in count():
        text = f"{owner} {incoming.fingerprint}" + (f" {deleted}" if deleted else "")
        name = str(uuid.uuid5(NAMESPACE, text))
        if services.get().store.step_throughs.deleted(owner, name) is None:
            break
    return name


def _deleted_before(owner: str, incoming: Incoming) -> str:
    """What there is to say where the owner deleted the step-through that the file names."""
    gone = services.get().store.step_throughs.deleted(owner, incoming.chain[0]) if incoming.chain else None
    if gone is None or incoming.chain is None:
        return ""
    _, length, head = incoming.chain
    day = f"{gone.deleted_at:%d %b %Y}"
    if gone.link_hashes[length - 1 : length] == (head,):
        return f" You deleted the step-through that this file was exported from on {day}; this is a new one."
    return f" It is not what you deleted under the same id on {day}: their events have other hashes."


def passes_through(events: Any, chain: tuple[str, int, str] | None) -> bool:
    """Whether the stored events hold the exported ones as their beginning."""
    if chain is None or chain[1] > len(events) or chain[1] < 1:
        return False
    return bool(events[chain[1] - 1].hash == chain[2])


def told_by(stored: Sequence[StoredEvent], incoming: Incoming) -> tuple[NewEvent, ...]:
    """The stored events that a file such as this tells of: without a chain, changes of the rules are not in it."""
    return tuple(
        NewEvent(event.event_id, event.kind, event.payload)
        for event in stored
        if incoming.chain is not None or event.kind != SETTINGS
    )


def _model(owner: str, trace: Trace) -> L2M:
    model = services.get().model_of(owner, trace.model_fingerprint)
    if model is None:
        raise InputError(
            f"This trace was made with the model '{trace.model}' (fingerprint {trace.model_fingerprint[:16]}…), which is "
            f"not installed here ({installed(owner)}). Install that model, then import again."
        )
    return model


def installed(owner: str) -> str:
    """The installed models with their fingerprints, in words."""
    known = []
    for name in services.get().known_models(owner):
        try:
            known.append(f"'{name}' with fingerprint {services.get().model(owner, name).fingerprint[:16]}…")
        except L2MError:
            continue
    return f"here: {', '.join(known)}" if known else "no model is"


def _found(incoming: Incoming, apart: float, exact: bool) -> str:
    steps = labels.counted(len(incoming.trace.steps), "step")
    chain = (
        "Its chain of events is whole. " if incoming.chain else "It came without a chain of events; one begins here. "
    )
    if exact:
        return f"Imported: {steps}. {chain}With the same model and cohort it replays to the same posteriors."
    return (
        f"Imported: {steps}. {chain}It was computed by another build or machine: its posteriors replay to within "
        f"{apart:.1g}, not exactly."
    )
