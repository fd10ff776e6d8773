"""Schema: what each column of a cohort is, and what is predicted.

A schema can be inferred from a table, written by hand as YAML, or both: what the YAML leaves out is inferred.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from l2m_core.errors import SchemaError
from l2m_core.tables.cell_parsing import entered_text
from l2m_core.tables.strict_yaml import YamlProblem, read_yaml, write_yaml

FEATURE_KINDS = ("number", "category", "binary")
ROLES = ("baseline", "acquirable", "ignored")
OUTCOME_KINDS = ("binary", "multiclass", "continuous")
MOST_CLASSES = 10
MOST_LEVELS = 50
LONGEST_NAME = 200
OTHER = "other"


@dataclass(frozen=True)
class Feature:
    """One column. A panel (`group`) is measured as one action with one price: the dearest of its features' costs."""

    name: str
    kind: str = "number"
    role: str = "acquirable"
    unit: str = ""
    cost: float = 1.0
    turnaround: float | None = None  # minutes
    group: str | None = None
    minimum: float | None = None  # allowed range: a value outside is refused
    maximum: float | None = None
    reference_low: float | None = None  # reference range: shown, never enforced
    reference_high: float | None = None
    levels: tuple[str, ...] = ()  # texts in code order
    description: str = ""
    code: str = ""  # LOINC, by which results of other systems are recognised

    def __post_init__(self):
        _check_name(self.name, "A feature")
        where = f"Feature '{self.name}'"
        _check_choice(self.kind, FEATURE_KINDS, where, "kind")
        _check_choice(self.role, ROLES, where, "role")
        _check_texts(self, where, ("unit", "description", "code"))
        if self.code and not is_loinc(self.code):
            raise SchemaError(
                f"{where}: code is {_quote(self.code)}, which is no LOINC code: digits, a hyphen and the check digit that "
                "belongs to them, such as 2524-7 (lactate). Look it up at loinc.org, or leave it out."
            )
        if self.group is not None:
            _check_name(self.group, f"{where}: group")
        for setting in ("cost", "turnaround", "minimum", "maximum", "reference_low", "reference_high"):
            object.__setattr__(self, setting, _number_or_none(getattr(self, setting), where, setting))
        if self.cost is None or self.cost < 0:
            raise SchemaError(f"{where}: cost is {self.cost}; it must be a number of at least 0.")
        if self.turnaround is not None and self.turnaround < 0:
            raise SchemaError(f"{where}: turnaround is {self.turnaround}; it is in minutes and at least 0.")
        object.__setattr__(self, "levels", _texts(self.levels, where, "levels"))
        self._check_range(where)
        self._check_levels(where)

    def _check_range(self, where):
        for low, high in (("minimum", "maximum"), ("reference_low", "reference_high")):
            low_value, high_value = getattr(self, low), getattr(self, high)
            if self.kind != "number" and (low_value is not None or high_value is not None):
                raise SchemaError(f"{where} is a {self.kind}; {low} and {high} are for kind: number. Remove them.")
            if low_value is not None and high_value is not None and low_value > high_value:
                raise SchemaError(
                    f"{where}: {low} {entered_text(low_value)} is above {high} {entered_text(high_value)}. Swap them."
                )

    def _check_levels(self, where):
        if self.kind == "number" and self.levels:
            raise SchemaError(f"{where} is a number, which has no levels. Remove levels, or state kind: category.")
        if self.kind == "binary" and len(self.levels) not in (0, 2):
            raise SchemaError(f"{where} is binary and needs two levels; {len(self.levels)} are given.")
        if len(self.levels) > MOST_LEVELS:
            raise SchemaError(f"{where} has {len(self.levels)} levels; at most {MOST_LEVELS} are kept.")

    @property
    def used(self) -> bool:
        return self.role != "ignored"

    @property
    def range_text(self) -> str:
        """The allowed range in words, with the unit: '0 to 30 mmol/L', 'at least 0', or ''."""
        unit = f" {self.unit}" if self.unit else ""
        if self.minimum is not None and self.maximum is not None:
            return f"{entered_text(self.minimum)} to {entered_text(self.maximum)}{unit}"
        if self.minimum is not None:
            return f"at least {entered_text(self.minimum)}{unit}"
        return f"at most {entered_text(self.maximum)}{unit}" if self.maximum is not None else ""


@dataclass(frozen=True)
class Outcome:
    """What is predicted. `classes` are texts in code order; of a binary outcome, classes[1] is the positive one."""

    name: str
    kind: str = "binary"
    classes: tuple[str, ...] = ()
    unit: str = ""
    description: str = ""

    def __post_init__(self):
        _check_name(self.name, "The outcome")
        where = f"Outcome '{self.name}'"
        _check_choice(self.kind, OUTCOME_KINDS, where, "kind")
        _check_texts(self, where, ("unit", "description"))
        object.__setattr__(self, "classes", _texts(self.classes, where, "classes"))
        if self.kind == "continuous" and self.classes:
            raise SchemaError(f"{where} is continuous, which has no classes. Remove classes.")
        if self.kind == "binary" and len(self.classes) not in (0, 2):
            raise SchemaError(f"{where} is binary and needs two classes; {len(self.classes)} are given.")
        if len(self.classes) > MOST_CLASSES or (self.kind == "multiclass" and len(self.classes) == 1):
            raise SchemaError(f"{where} has {len(self.classes)} classes; 2 to {MOST_CLASSES} are possible.")


@dataclass(frozen=True)
class Schema:
    """The features in column order, and the outcome."""

    features: tuple[Feature, ...]
    outcome: Outcome

    def __post_init__(self):
        object.__setattr__(self, "features", tuple(self.features))
        if not isinstance(self.outcome, Outcome) or not all(isinstance(f, Feature) for f in self.features):
            raise SchemaError("A Schema is made of Feature objects and one Outcome.")
        seen = set()
        for feature in self.features:
            if feature.name in seen:
                raise SchemaError(f"Feature '{feature.name}' is described twice. Keep one.")
            if feature.name == self.outcome.name:
                raise SchemaError(f"'{feature.name}' is both a feature and the outcome. Remove the feature.")
            seen.add(feature.name)
        self._check_groups()

    def _check_groups(self):
        for group, names in self.groups.items():
            roles = {self.feature(name).role for name in names}
            if len(roles) > 1:
                raise SchemaError(
                    f"Group '{group}' mixes roles ({', '.join(sorted(roles))}): {', '.join(names)}. "
                    "What is measured together needs one role."
                )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def used(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features if feature.used)

    @property
    def baseline(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features if feature.role == "baseline")

    @property
    def acquirable(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features if feature.role == "acquirable")

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Names of the used features of each panel."""
        members: dict[str, list[str]] = {}
        for feature in self.features:
            if feature.group is not None and feature.used:
                members.setdefault(feature.group, []).append(feature.name)
        return {group: tuple(names) for group, names in members.items()}

    @property
    def prices(self) -> dict[str, float]:
        """Feature → price of the action that measures it; a panel's is the dearest of its acquirable members'."""
        dearest: dict[str | None, float] = {}
        for feature in self.features:
            if feature.group is not None and feature.role == "acquirable":
                dearest[feature.group] = max(feature.cost, dearest.get(feature.group, 0.0))
        return {f.name: max(f.cost, dearest.get(f.group, 0.0)) for f in self.features}

    def spent(self, actions: Iterable[Iterable[str]]) -> float:
        """What these actions cost, each the features that it measured: an action pays once for every panel, and for
        every test by itself."""
        groups = {feature.name: feature.group for feature in self.features}
        prices, total = self.prices, 0.0
        for action in actions:
            paid: dict[tuple[str, str | None], float] = {}
            for name in action:
                group = groups[name]
                key = ("feature", name) if group is None else ("group", group)
                paid[key] = max(prices[name], paid.get(key, 0.0))
            total += sum(paid.values())
        return total

    def feature(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise SchemaError(f"There is no feature '{name}'.{did_you_mean(name, self.names)}")

    def to_yaml(self) -> str:
        """A text that `from_yaml` reads back exactly; settings at their default are left out, kind and role never."""
        return write_yaml(
            {
                "outcome": _stated(self.outcome, always=("name", "kind")),
                "features": [_stated(feature, always=("name", "kind", "role")) for feature in self.features],
            }
        )

    @classmethod
    def from_yaml(cls, text: str) -> Schema:
        overrides = Overrides.from_yaml(text)
        if "name" not in overrides.outcome:
            raise SchemaError("The schema does not name the outcome. Add 'outcome:' with 'name: …'.")
        outcome = Outcome(**overrides.outcome)
        return cls(tuple(Feature(**stated) for stated in overrides.features.values()), outcome)


@dataclass(frozen=True)
class Overrides:
    """The settings that a person stated: per feature name and for the outcome. Everything else is inferred.

    complete: they come from a whole Schema, so its features are used even where this table has no use for them;
    positive: the class that counts as the positive one.
    """

    features: Mapping[str, Mapping[str, Any]]
    outcome: Mapping[str, Any]
    complete: bool = False
    positive: str | None = None

    @classmethod
    def none(cls) -> Overrides:
        return cls({}, {})

    @classmethod
    def from_schema(cls, schema: Schema) -> Overrides:
        return cls({feature.name: _settings(feature) for feature in schema.features}, _settings(schema.outcome), True)

    @classmethod
    def from_yaml(cls, text: str) -> Overrides:
        try:
            return cls.from_data(read_yaml(text))
        except YamlProblem as problem:
            raise SchemaError(f"The schema cannot be read. {problem}") from problem

    @classmethod
    def from_data(cls, data: Any) -> Overrides:
        """From nested dicts, as YAML gives them: {'outcome': {…}, 'features': [{'name': …, …}, …]}."""
        data = _mapping(data, "The schema", ("outcome", "features"))
        outcome = data.get("outcome")
        outcome = {} if outcome is None else {"name": outcome} if isinstance(outcome, str) else outcome
        outcome = _convert(outcome, Outcome, "outcome")
        described = data.get("features")
        described = [] if described is None else described
        if not isinstance(described, list | tuple):
            raise SchemaError("'features' must be a list, each item starting with '- name: …'.")
        features: dict[str, dict[str, Any]] = {}
        for number, entry in enumerate(described, 1):
            stated = _convert(entry, Feature, f"feature {number}")
            if "name" not in stated:
                raise SchemaError(f"Feature {number} of the schema has no name. Add 'name: …'.")
            if "levels" in stated:
                stated.setdefault("kind", "binary" if len(stated["levels"]) == 2 else "category")
            Feature(**stated)  # the checks of each setting, before any table is read
            if stated["name"] in features:
                raise SchemaError(f"Feature '{stated['name']}' is described twice. Keep one.")
            features[stated["name"]] = stated
        if "name" in outcome:
            Outcome(**outcome)
        return cls(features, outcome)


def did_you_mean(name: Any, choices: Iterable[str]) -> str:
    """' Did you mean …?' with the closest names, or a short list of what there is."""
    choices = list(choices)
    if not isinstance(name, str) and str(name) in choices:  # as columns that pandas numbers
        return f" Names of numbers are read as texts: '{name}'."
    by_folded = {choice.casefold(): choice for choice in choices}
    close = difflib.get_close_matches(str(name).strip().casefold()[:LONGEST_NAME], by_folded, n=3, cutoff=0.6)
    if close:
        return " Did you mean " + " or ".join(f"'{by_folded[match]}'" for match in close) + "?"
    listed = ", ".join(f"'{choice}'" for choice in choices[:10])
    return f" There are: {listed}{', …' if len(choices) > 10 else ''}." if choices else ""


def is_loinc(text: str) -> bool:
    """Whether a text is a LOINC code, by its form and its check digit (Luhn's, from the right)."""
    if re.fullmatch(r"[0-9]{1,7}-[0-9]", text) is None:
        return False
    number, check = text.split("-")
    doubled = (int(digit) * (2 - position % 2) for position, digit in enumerate(reversed(number)))
    return (sum(value - 9 * (value > 9) for value in doubled) + int(check)) % 10 == 0


def _check_name(name, what):
    if not isinstance(name, str) or not name.strip():
        raise SchemaError(f"{what} needs a name: a text that is not empty.")
    if len(name) > LONGEST_NAME:
        raise SchemaError(f"{what} has a name of {len(name)} characters; at most {LONGEST_NAME} are possible.")
    if name != name.strip() or any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise SchemaError(f"{what} has the name {name!r}: remove outer blanks, line breaks and control characters.")


def _check_choice(value, choices, where, setting):
    if value not in choices:
        raise SchemaError(f"{where}: {setting} is {_quote(value)}; it must be one of {', '.join(choices)}.")


def _check_texts(record, where, settings):
    for setting in settings:
        if not _is_text(getattr(record, setting)):
            raise SchemaError(f"{where}: {setting} must be a text.")


def _is_text(value) -> bool:
    return isinstance(value, str) and not any(unicodedata.category(c) == "Cs" for c in value)


def _texts(value, where, setting) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise SchemaError(f"{where}: {setting} must be a list of texts, such as [no, yes].")
    for item in value:
        if not _is_text(item) or not item.strip():
            raise SchemaError(f"{where}: {setting} holds {_quote(item)}; each must be a text that is not empty.")
    if len(set(value)) != len(value):
        raise SchemaError(f"{where}: {setting} holds a text twice. Keep one of each.")
    return tuple(value)


def _number_or_none(value, where, setting) -> float | None:
    if value is None:
        return None
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SchemaError(f"{where}: {setting} is {_quote(value)}; it must be a number.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SchemaError(f"{where}: {setting} is {number}; it must be a finite number.")
    return number


def _quote(value) -> str:
    text = str(value) if isinstance(value, str | int | float | bool) or value is None else type(value).__name__
    return f"'{text[:60]}'"


def _default(setting):
    return None if setting.default is MISSING else setting.default


def _settings(record) -> dict[str, Any]:
    return {setting.name: getattr(record, setting.name) for setting in fields(record)}


def _stated(record, always) -> dict[str, Any]:
    stated = {}
    for setting in fields(record):
        value = getattr(record, setting.name)
        if setting.name in always or value != _default(setting):
            stated[setting.name] = list(value) if isinstance(value, tuple) else value
    return stated


def _mapping(data, what, allowed) -> Mapping:
    if not isinstance(data, Mapping):
        raise SchemaError(f"{what} must be a list of 'key: value' lines.")
    for key in data:
        if key not in allowed:
            raise SchemaError(f"{what} has an unknown key {_quote(key)}.{did_you_mean(key, allowed)}")
    return data


_NUMERIC = {"cost", "turnaround", "minimum", "maximum", "reference_low", "reference_high"}


def _convert(data, record, what) -> dict[str, Any]:
    """Settings of `record` with numbers made from their texts; an empty setting counts as not stated."""
    data = _mapping(data, f"The schema's {what}", [setting.name for setting in fields(record)])
    stated = {}
    for key, value in data.items():
        if value is None:
            continue
        if key in _NUMERIC and isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise SchemaError(f"The schema's {what}: {key} is {_quote(value)}; it must be a number.") from None
        stated[key] = tuple(value) if isinstance(value, list) else value
    return stated
