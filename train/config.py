"""Job configs: YAML read safely, `key=value` overrides, unknown keys refused by name."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

import yaml

from l2m_core.errors import ConfigError

T = TypeVar("T")


def read_config(path: Path, overrides: list[str]) -> dict[str, Any]:
    """The YAML file's mapping with `a.b=value` overrides applied; values are read as YAML."""
    try:
        settings = yaml.safe_load(Path(path).read_text())
    except FileNotFoundError as error:
        raise ConfigError(f"There is no config file {path}; see train/configs for those that come with L2M.") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(settings, dict):
        raise ConfigError(f"{path} must hold a mapping of settings.")
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise ConfigError(f"Override {override!r} must read key=value, for example loop.lr=0.001.")
        assign(settings, key.split("."), yaml.safe_load(value), key)
    return settings


def build(kind: type[T], settings: Any, where: str = "config") -> T:
    """A (nested) dataclass from plain settings; every problem names the setting."""
    if not isinstance(settings, dict):
        raise ConfigError(f"{where} must be a mapping of settings, not {settings!r}.")
    hints = typing.get_type_hints(kind)
    known = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key in settings:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            hint = f" Did you mean {close[0]!r}?" if close else f" Known: {', '.join(sorted(known))}."
            raise ConfigError(f"Unknown setting {where}.{key}.{hint}")
    values = {key: _convert(hints[key], value, f"{where}.{key}") for key, value in settings.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ConfigError(f"{where}: {error}.") from error


def to_plain(value: Any) -> Any:
    """A dataclass as plain YAML-able settings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint):
        return build(hint, value or {}, where)  # type: ignore[arg-type]
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return _convert(next(t for t in typing.get_args(hint) if t is not type(None)), value, where)
    if origin is tuple:
        inner = typing.get_args(hint)
        if not isinstance(value, list | tuple):
            value = [value]
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_convert(inner[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) != len(inner):
            raise ConfigError(f"{where} takes {len(inner)} values, not {len(value)}.")
        return tuple(_convert(t, item, f"{where}[{i}]") for i, (t, item) in enumerate(zip(inner, value, strict=True)))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint in (int, float, str, bool) and (not isinstance(value, hint) or (hint is int and isinstance(value, bool))):
        raise ConfigError(f"{where} must be {hint.__name__}, not {value!r}.")
    return value


def assign(settings: dict, path: list[str], value: Any, key: str) -> None:
    """Puts a value at a path of keys and list places; `key` is what messages call it."""
    for part in path[:-1]:
        settings = settings.setdefault(part, {}) if isinstance(settings, dict) else settings[int(part)]
        if not isinstance(settings, dict | list):
            raise ConfigError(f"Override {key}: {part!r} is not a group of settings.")
    if isinstance(settings, list):
        settings[int(path[-1])] = value
    else:
        settings[path[-1]] = value
