"""Checks that config dataclasses make of themselves; each failure names the setting and what it allows."""

from __future__ import annotations

from typing import Any

from l2m_core.errors import ConfigError


def check_number(config: Any, name: str, low: float, high: float) -> None:
    value = getattr(config, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ConfigError(f"{type(config).__name__}.{name} is {value!r}; give a number from {low:g} to {high:g}.")


def check_range(config: Any, name: str, low: float, high: float) -> None:
    """A (smallest, largest) pair within [low, high]; a list from YAML becomes a tuple."""
    value = getattr(config, name)
    allowed = f"give two numbers, smallest first, from {low:g} to {high:g}"
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ConfigError(f"{type(config).__name__}.{name} is {value!r}; {allowed}.")
    numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in value)
    if not numbers or not low <= value[0] <= value[1] <= high:
        raise ConfigError(f"{type(config).__name__}.{name} is {value!r}; {allowed}.")
    object.__setattr__(config, name, tuple(value))


def check_choice(config: Any, name: str, choices: tuple[Any, ...]) -> None:
    value = getattr(config, name)
    if value not in choices:
        raise ConfigError(f"{type(config).__name__}.{name} is {value!r}; choose one of {', '.join(map(str, choices))}.")
