"""NA among the codes of regions and countries: North America, or Namibia, or not recorded."""

from __future__ import annotations

import re
from collections.abc import Collection

_REGIONS = frozenset(("AF", "AN", "AS", "EU", "OC", "SA", "LA", "APAC", "EMEA", "LATAM", "MENA", "AMER"))
_SHORT_CODE = re.compile(r"[A-Z]{2}")


def is_a_region(text: str, column: Collection[str]) -> bool:
    """Whether a text that could mean "not recorded" stands among at least two regions, and among nothing else."""
    others = {*column} - {text, ""}
    return text in column and len(others) >= 2 and others <= _REGIONS


def are_short_codes(column: Collection[str]) -> bool:
    """Codes of two capital letters, as countries and states have, three or more of them."""
    others = {*column} - {"NA", ""}
    return len(others) >= 3 and all(map(_SHORT_CODE.fullmatch, others))
