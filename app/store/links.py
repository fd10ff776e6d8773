"""The next row of a chain, for step-throughs' events and for audit acts alike."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import Select, inspect, select

from . import chain, times
from .errors import StoreInputError
from .inputs import require_text, require_uuid
from .records import NewEvent
from .tables import LinkColumns

Row = TypeVar("Row", bound=LinkColumns)


def checked(event: NewEvent) -> NewEvent:
    if not isinstance(event.payload, dict):
        raise StoreInputError(f"The event's payload must be a dict, not {type(event.payload).__name__}.")
    return NewEvent(
        require_uuid("The event id", event.event_id), require_text("The event's kind", event.kind, 64), event.payload
    )


def next_link(row_type: type[Row], name: str, head: chain.Head, event: NewEvent, **columns: Any) -> Row:
    """The row that continues the chain `name` after `head`."""
    recorded_at = times.to_text(times.now())
    payload = chain.canonical_json(event.payload, limit=chain.LARGEST_PAYLOAD)
    digest = chain.link_hash(name, head.length, event.event_id, event.kind, recorded_at, payload, head.hash)
    link = chain.Link(head.length, event.event_id, event.kind, recorded_at, payload, head.hash, digest)
    return row_type(**columns, **link._asdict())


def select_links(row_type: type[LinkColumns], *first: str) -> Select[Any]:
    """The columns named `first`, then those of `chain.Link` in its order, in the order of their chains.

    Of the bare table: with the mapper in between, reading a link takes three times as long as hashing it.
    """
    table = inspect(row_type).local_table
    columns = [table.columns[name] for name in (*first, *chain.Link._fields)]
    return select(*columns).order_by(*table.primary_key.columns)
