"""A step-through's chain outside the store: as JSON in an exported trace, checked again before it is trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import chain, times
from .errors import StoreInputError
from .links import checked
from .records import NewEvent, StepThrough, StoredEvent
from .step_throughs import chain_origin

IDENTITY = ("id", "cohort_hash", "model_fingerprint")


def export_chain(step_through: StepThrough, events: Sequence[StoredEvent]) -> dict[str, Any]:
    """Everything that is hashed, and the head: whoever holds it can verify the chain without the store."""
    return {
        **{name: getattr(step_through, name) for name in IDENTITY},
        "head": {"length": step_through.length, "hash": step_through.head_hash},
        "events": [
            {
                "sequence": event.sequence,
                "event_id": event.event_id,
                "kind": event.kind,
                "recorded_at": times.to_text(event.recorded_at),
                "payload": event.payload,
                "previous_hash": event.previous_hash,
                "hash": event.hash,
            }
            for event in events
        ],
    }


def import_chain(document: Any) -> tuple[NewEvent, ...]:
    """The events of an exported chain, ready for `StepThroughs.create`. Refuses a chain that is not whole."""
    try:
        name, cohort_hash, model = (str(document[key]) for key in IDENTITY)
        head = chain.Head(int(document["head"]["length"]), str(document["head"]["hash"]))
        links = [
            chain.Link(**{**event, "payload": chain.canonical_json(event["payload"])}) for event in document["events"]
        ]
        events = tuple(
            checked(NewEvent(event["event_id"], event["kind"], event["payload"])) for event in document["events"]
        )
        found = chain.walk(name, chain_origin(name, cohort_hash, model), links, [head])
    except (KeyError, TypeError, ValueError, AttributeError):  # StoreInputError is a ValueError
        found = None
    if found is None:
        raise StoreInputError("This trace has no complete chain of events. Export it again from where it was made.")
    if found.reason or found.length != head.length:
        where = found.reason or f"link {head.length} lies beyond the recorded end"
        raise StoreInputError(f"This trace was changed after it was exported: {where}. Use the original export.")
    return events
