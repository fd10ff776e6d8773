"""What a person stated of the columns, put together, and how columns are read by it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

from l2m_core.errors import CohortError, InputError, SchemaError, type_of
from l2m_core.schema import Feature, Overrides, Schema
from l2m_core.tables.cell_parsing import parse_both
from l2m_core.tables.column_reading import PAIRS
from l2m_core.tables.decimal_signs import first_in_doubt
from l2m_core.tables.strict_yaml import LARGEST_TEXT


def how_to_read(settings: Mapping[str, Any]) -> str | None:
    """As `read_column` has it: 'number'; 'levels', whose texts stay as they are; 'codes', which may be numbers; None
    where the cells decide."""
    kind = settings.get("kind")
    if kind is None:
        return None
    if kind in ("number", "continuous"):
        return "number"
    if kind == "category":
        return "levels"
    stated = settings.get("levels") or settings.get("classes") or ()
    if not stated:
        return "codes"
    return None if _are_codes(stated, pair="levels" in settings) else "levels"


def _are_codes(texts: Sequence[str], pair: bool) -> bool:
    """Levels that are different numbers, so that 1.0 in a cell is the level 1. A feature's two must be such as 0 and 1."""
    pairs = [parse_both(text) for text in texts]
    values = {point for point, _ in pairs if point is not None}
    plain = len(values) == len(texts) and first_in_doubt(texts, pairs) is None
    return plain and (not pair or values in PAIRS)


def levels_of(stated: Overrides) -> dict[str, Collection[str]]:
    """Column → its stated levels or classes."""
    levels = {name: settings.get("levels") or () for name, settings in stated.features.items()}
    return {**levels, stated.outcome["name"]: stated.outcome.get("classes") or ()}


def combine(schema: Any, outcome: str | None, positive: str | None, baseline, costs) -> Overrides:
    """One set of stated settings; the arguments win over the schema."""
    stated = as_overrides(schema)
    features = {name: dict(settings) for name, settings in stated.features.items()}
    target = dict(stated.outcome)
    if outcome is not None:
        if not isinstance(outcome, str):
            hint = f" Names of numbers are read as texts: outcome='{outcome}'." if isinstance(outcome, Integral) else ""
            raise CohortError(f"outcome must be the name of a column.{hint}")
        if target.get("name", outcome) != outcome:
            raise SchemaError(f"The outcome is '{outcome}', but the schema states '{target['name']}'. Make them equal.")
        target["name"] = outcome
    for name in [baseline] if isinstance(baseline, str) else baseline:
        features.setdefault(name, {"name": name})["role"] = "baseline"
    if not isinstance(costs, Mapping):
        raise CohortError("costs must map names of features to numbers, such as {'lactate': 12.0}.")
    for name, cost in costs.items():
        features.setdefault(name, {"name": name})["cost"] = cost
        Feature(name, cost=cost)
    return replace(stated, features=features, outcome=target, positive=positive)


def as_overrides(schema: Any) -> Overrides:
    """From None, a Schema, YAML text, a path to YAML, or nested dicts."""
    if schema is None:
        return Overrides.none()
    if isinstance(schema, Overrides):
        return schema
    if isinstance(schema, Schema):
        return Overrides.from_schema(schema)
    if isinstance(schema, Mapping):
        return Overrides.from_data(schema)
    if isinstance(schema, str) and ("\n" in schema or ": " in schema):
        return Overrides.from_yaml(schema)
    if not isinstance(schema, str | os.PathLike):
        raise SchemaError(f"The schema is {type_of(schema)}. Give a Schema, YAML text, a path to YAML, or a dict.")
    try:
        with open(schema, encoding="utf-8") as file:
            return Overrides.from_yaml(file.read(LARGEST_TEXT + 1))
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise SchemaError("The schema file cannot be opened. Give a path to YAML, or the YAML text itself.") from error
