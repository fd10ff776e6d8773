"""Hash chains: each link carries the hash of the one before it, so that no past link changes unnoticed.

    hash = sha256(canonical JSON of {at, event_id, kind, payload, previous, sequence, chain})

The first link follows the chain's *origin*, a hash of what the chain is about; links therefore cannot be moved to
another chain. Cutting off the newest links leaves a valid, shorter chain: only a head kept elsewhere (in the chain's
own row, in an exported trace, in a file of heads) gives that away, which is why `walk` accepts such anchors.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring_ascii as quote
from typing import Any, NamedTuple

from .errors import StoreInputError

LARGEST_PAYLOAD = 1_000_000  # characters of canonical JSON
DEEPEST_PAYLOAD = 50


class Link(NamedTuple):
    """One link exactly as it is stored: every field but `sequence` is text."""

    sequence: int
    event_id: str
    kind: str
    recorded_at: str
    payload: str
    previous_hash: str
    hash: str


class Head(NamedTuple):
    """How long a chain was, and its newest hash, at some moment."""

    length: int
    hash: str


@dataclass(frozen=True)
class Walk:
    """What a walk along a chain found. `broken_at` is the sequence number of the first broken link, `back_at` of the first
    one that is dated before the link before it."""

    length: int
    head: str
    broken_at: int | None = None
    reason: str = ""
    back_at: int | None = None


def canonical_json(value: Any, limit: int | None = None) -> str:
    """The one text of a JSON value: sorted keys, no spaces, ASCII only, no NaN. Refuses what would not come back
    equal."""
    _require_plain(value, depth=0)
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    if limit is not None and len(text) > limit:
        raise StoreInputError(f"The payload has {len(text)} characters as JSON; at most {limit} can be stored.")
    return text


def _require_plain(value: Any, depth: int) -> None:
    """Messages name types only: keys and values may be a patient's."""
    if depth > DEEPEST_PAYLOAD:
        raise StoreInputError(f"The payload is nested deeper than {DEEPEST_PAYLOAD} levels.")
    if value is None or isinstance(value, (str, bool)):
        return
    if isinstance(value, int):
        if value.bit_length() > 63:
            raise StoreInputError("The payload holds a whole number beyond 64 bits; write it as text.")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise StoreInputError("The payload holds NaN or an infinity; use null for a value that is not there.")
    elif isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise StoreInputError(f"The payload has a key of type {type(key).__name__}; keys must be text.")
            _require_plain(item, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _require_plain(item, depth + 1)
    else:
        raise StoreInputError(
            f"The payload holds a {type(value).__name__}; only text, numbers, booleans, null, lists and dicts "
            "can be stored."
        )


def origin(**identity: str) -> str:
    """The hash that a chain starts from."""
    return sha256(canonical_json(identity).encode()).hexdigest()


def link_hash(
    chain: str, sequence: int, event_id: str, kind: str, recorded_at: str, payload: str, previous_hash: str
) -> str:
    """`payload` is canonical JSON already, so the link's own canonical JSON is put together around it, unparsed."""
    text = (
        f'{{"at":{quote(recorded_at)},"chain":{quote(chain)},"event_id":{quote(event_id)},"kind":{quote(kind)},'
        f'"payload":{payload},"previous":"{previous_hash}","sequence":{sequence}}}'
    )
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def walk(chain: str, start: str, links: Iterable[Any], anchors: Iterable[Head] = ()) -> Walk:
    """Follow a chain from its origin `start`; stop at the first link that is missing, moved or altered.

    links: anything with the fields of `Link`, in order.
    anchors: heads known from elsewhere, which the chain must pass through.
    """
    wanted: dict[int, set[str]] = {}
    for anchor in anchors:
        wanted.setdefault(anchor.length, set()).add(anchor.hash)
    if wanted.get(0, {start}) != {start}:
        return Walk(0, start, 0, "the chain does not start from its origin")
    head, expected = start, 0
    latest, back_at = "", None
    for sequence, event_id, kind, recorded_at, payload, previous_hash, stored_hash in links:
        if sequence != expected:
            return Walk(expected, head, expected, f"link {expected} is missing")
        if previous_hash != head:
            return Walk(expected, head, expected, f"link {expected} does not follow the link before it")
        try:
            computed = link_hash(chain, sequence, event_id, kind, recorded_at, payload, head)
        except TypeError:  # a field that is no text any more
            computed = ""
        if computed != stored_hash:
            return Walk(expected, head, expected, f"link {expected} was altered")
        if recorded_at < latest and back_at is None:
            back_at = sequence
        head, expected, latest = stored_hash, expected + 1, recorded_at
        if expected in wanted and wanted[expected] != {head}:
            return Walk(expected, head, expected - 1, f"link {expected - 1} is not the one known from elsewhere")
    longest = max(wanted, default=0)
    if longest > expected:
        return Walk(expected, head, expected, f"link {expected} is missing: {longest - expected} cut off at the end")
    return Walk(expected, head, back_at=back_at)
