"""Settings: one reader of YAML text and one builder of dataclasses, for jobs, priors, experiments and model folders.

A settings dataclass describes itself by its fields: names, types and defaults. `build_settings` fills one from the plain
values that YAML or JSON gives. It refuses what does not fit and names the setting, what was given and what to give.
"""

from __future__ import annotations

import dataclasses
import json
import reprlib
import shlex
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from l2m_core.errors import ConfigError
from l2m_core.schema import did_you_mean
from l2m_core.tables.strict_yaml import LARGEST_TEXT, YamlProblem, read_values

T = TypeVar("T")

NO_LINES = "The settings must be lines of `name: value`."
LARGEST_OVERRIDE = 100_000  # characters
LONGEST_QUOTE = 100  # characters of what was given
EARLIER_NAME = "earlier_name"  # in the metadata of a field: what it was called in settings that are still read
WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", dict: "names and values"}


def parse_settings(text: str, longest: int = LARGEST_TEXT) -> dict[str, Any]:
    """The mapping that a YAML text of at most `longest` characters holds; empty where only comments are.

    Duplicate keys, aliases and tags of other types are refused.
    """
    try:
        settings = read_values(text, longest)
    except YamlProblem as problem:
        raise ConfigError(f"The settings cannot be read. {problem}") from None
    if not isinstance(settings, dict | None):
        raise ConfigError(NO_LINES)
    return settings or {}


def read_settings(path: str | Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The mapping in a YAML file, with `a.b=value` overrides applied."""
    try:
        settings = parse_settings(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"There is no config file {path}; see train/configs for those that come with L2M.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{Path(path).name} is not a text in UTF-8. Save it as one.") from error
    except ConfigError as error:
        raise ConfigError(f"{Path(path).name}: {error}") from None
    if not settings:
        raise ConfigError(f"{Path(path).name}: {NO_LINES}")
    for text in overrides:
        apply_override(settings, text)
    return settings


def apply_override(settings: dict[str, Any], text: str) -> None:
    """Applies `a.b=value` in place; the value is read as YAML, as strictly as a file."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(f"Override {text!r} must read key=value, for example loop.lr=0.001.")
    try:
        replace_setting(settings, key, read_values(value, LARGEST_OVERRIDE))
    except YamlProblem as problem:
        raise ConfigError(f"Override {key}: {problem}{_as_text(key, value)}") from None


def _as_text(key: str, value: str) -> str:
    """How a value is given that was meant as a text and is something else in YAML, such as a comma."""
    if len(value) > LONGEST_QUOTE:
        return ""
    quoted = json.dumps(value, ensure_ascii=False)
    return f" If it is meant as a text, quote it for YAML and the shell: {shlex.quote(f'{key}={quoted}')}"


def replace_setting(settings: dict[str, Any], key: str, value: Any) -> None:
    """Puts `value` at the dotted `key`: names of settings, and indices of lists counted from 0."""
    *path, last = key.split(".")
    inner: Any = settings
    for part in path:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else inner[_index(inner, part, key)]
        if not isinstance(inner, dict | list):
            raise ConfigError(f"Override {key}: {part!r} is not a group of settings.")
    inner[last if isinstance(inner, dict) else _index(inner, last, key)] = value


def build_settings(kind: type[T], given: Any, where: str = "config") -> T:
    """The dataclass `kind` from plain values; `where` is what messages call it.

    Nested mappings become nested dataclasses, lists become tuples and whole numbers become floats where the fields say
    so. Nothing else is converted: a single value does not stand for a list.

    >>> from l2m_core.tasks.missingness import Missingness
    >>> build_settings(Missingness, {"rate": [0, 0.2]}).rate
    (0.0, 0.2)
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        raise ConfigError(f"The settings of {where} are {_quote(given)}; give names and values.")
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    given = _under_present_names(given, fields, where)
    refuse_unknown(given, fields, where)
    types_of = typing.get_type_hints(kind)
    values = {name: _convert(types_of[name], value, f"{where}.{name}") for name, value in given.items()}
    for name, field in fields.items():
        if name not in values and field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"{where} needs the setting {name!r}.")
    return kind(**values)


def _under_present_names(given: Mapping, fields: Mapping[str, dataclasses.Field], where: str) -> Mapping:
    """What older versions wrote under a field's earlier name (`EARLIER_NAME` in its metadata), under the present one."""
    present = {field.metadata[EARLIER_NAME]: name for name, field in fields.items() if EARLIER_NAME in field.metadata}
    for earlier in filter(given.__contains__, present):
        if present[earlier] in given:
            raise ConfigError(f"{where}.{earlier} is the earlier name of {where}.{present[earlier]}; keep one of them.")
    return {present.get(name, name): value for name, value in given.items()}


def refuse_unknown(given: Iterable[Any], known: Iterable[str], where: str = "config") -> None:
    """Refuses the first name in `given` that is not known."""
    known = list(known)
    for name in given:
        if name not in known:
            raise ConfigError(f"There is no setting {where}.{_shorten(str(name))}.{did_you_mean(name, known)}")


def check_least(settings: Any, where: str, **least: float) -> None:
    """Refuses the first of the named settings that is below its least value."""
    for name, low in least.items():
        if not getattr(settings, name) >= low:  # NaN is neither
            raise ConfigError(f"{where}.{name} is {getattr(settings, name)}; it must be at least {low}.")


def check_most(settings: Any, where: str, **most: float) -> None:
    """Refuses the first of the named settings that is above its largest value."""
    for name, high in most.items():
        if not getattr(settings, name) <= high:
            raise ConfigError(f"{where}.{name} is {getattr(settings, name)}; it must be at most {high}.")


def to_plain(value: Any) -> Any:
    """A dataclass as the plain values that `build_settings` reads back; tuples become lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _convert(kind: Any, value: Any, where: str) -> Any:
    """The value as the type of its field has it."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return build_settings(kind, {} if value is None else value, where)  # `loop:` with nothing below it
    if origin is tuple:
        return _convert_list(arguments, value, where)
    if origin is dict:
        inner = _check(dict, value, where)
        return {name: _convert(arguments[1], item, f"{where}.{name}") for name, item in inner.items()}
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(option for option in arguments if option is not type(None)), value, where)
    return _check(kind, value, where)


def _convert_list(kinds: tuple[Any, ...], value: Any, where: str) -> tuple:
    if not isinstance(value, list | tuple):
        raise ConfigError(f"{where} is {_quote(value)}; give a list.")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise ConfigError(f"{where} is {_quote(value)}; give {len(kinds)} values.")
    return tuple(_convert(kind, item, f"{where}[{i}]") for i, (kind, item) in enumerate(zip(kinds, value, strict=True)))


def _check(kind: Any, value: Any, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # True is an int to Python, but not to a person who asked for a number.
    if kind is not Any and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        raise ConfigError(f"{where} is {_quote(value)}; give {WORDS.get(kind, kind.__name__)}.")
    return value


def _index(values: list, part: str, key: str) -> int:
    if not part.isdecimal() or int(part) >= len(values):
        raise ConfigError(f"Override {key}: {part!r} is no index of a list of {len(values)}; the first is 0.")
    return int(part)


def _quote(value: Any) -> str:
    """Short, so that what to give is still read behind it."""
    quoting = reprlib.Repr()
    quoting.maxstring = quoting.maxother = quoting.maxlong = LONGEST_QUOTE
    return quoting.repr(value)


def _shorten(name: str) -> str:
    return name if len(name) <= LONGEST_QUOTE else f"{name[: LONGEST_QUOTE - 1]}…"
