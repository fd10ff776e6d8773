"""JSON from files that anybody may have made: bounded in size and depth, with finite numbers and whole texts only."""

from __future__ import annotations

import json
import math
from typing import Any

from l2m_core.errors import InputError

LARGEST = 50_000_000  # characters; ten thousand steps of a hundred features have about 40 million
DEEPEST = 60  # a chain's payload may have 50 levels
HINT = "Choose the JSON file that 'Export' or Trace.to_json wrote."


def read_json(text: str, what: str, hint: str = HINT, repeats: bool = True) -> Any:
    """The value that the text holds. `what` is what messages call it, hint: what to do.

    Refuses what is no JSON value (NaN and infinity, written out or too large), halves of surrogate pairs, and nesting
    deeper than any file of ours. repeats: whether an object may have a name twice, of which the last counts.
    """
    if len(text) > LARGEST:
        raise InputError(f"{what} has {len(text):,} characters; at most {LARGEST:,} are read. {hint}")
    try:
        pairs = None if repeats else _once
        value = json.loads(
            text, parse_constant=_refuse_number, parse_float=_finite, parse_int=_finite_whole, object_pairs_hook=pairs
        )
        _refuse_depth(value)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a ValueError too
        raise InputError(f"{what} holds half of a surrogate pair, which is no text. {hint}") from None
    except _NotFinite as refusal:
        raise InputError(f"{what} holds {refusal}; every number must be finite. {hint}") from None
    except _TooDeep:
        raise InputError(f"{what} is nested more than {DEEPEST} levels deep. {hint}") from None
    except _Repeated as refusal:
        raise InputError(
            f"{what} has '{refusal}' twice in one object, so it is not clear which counts. {hint}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not valid JSON: {error}. {hint}") from error
    return value


class _NotFinite(Exception):
    """The message is the number as it was written."""


class _TooDeep(Exception):
    pass


class _Repeated(Exception):
    """The message is the name."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for name, value in pairs:
        if name in whole:
            raise _Repeated(f"{name:.60}")
        whole[name] = value
    return whole


def _refuse_number(written: str) -> float:
    raise _NotFinite(f"the number {written:.20}")


def _finite(written: str) -> float:
    value = float(written)
    return value if math.isfinite(value) else _refuse_number(written)


def _finite_whole(written: str) -> int:
    """Python's whole numbers have no end, but whatever is computed with one of 309 digits fails."""
    _finite(written)
    return int(written)


def _refuse_depth(value: Any) -> None:
    """Level by level and not by recursion, which ends sooner than the reader's own."""
    level = [value]
    for _ in range(DEEPEST):
        inner = [item for item in level if isinstance(item, list | dict)]
        level = [part for item in inner for part in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return
    if any(isinstance(item, list | dict) for item in level):
        raise _TooDeep
