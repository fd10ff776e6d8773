"""Priors by name, built from plain settings as a YAML file gives them."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from l2m_core.errors import ConfigError
from l2m_core.tasks.bnn import BNNConfig, BNNPlanConfig, BNNPlanPrior, BNNPrior
from l2m_core.tasks.digits import DigitsConfig, DigitsPrior
from l2m_core.tasks.findings import FindingsConfig, FindingsPrior
from l2m_core.tasks.gp import GPConfig, GPPrior
from l2m_core.tasks.mixture import MixtureConfig, MixturePrior, Prior
from l2m_core.tasks.semi_synthetic import SemiSyntheticConfig, SemiSyntheticPrior
from l2m_core.tasks.synthetic import SyntheticConfig, SyntheticPrior


@dataclass(frozen=True)
class Entry:
    """config, prior: classes; data, options: names of the arrays that the prior needs, or can use."""

    config: type
    prior: type
    data: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


PRIORS: dict[str, Entry] = {
    "gp": Entry(GPConfig, GPPrior),
    "bnn": Entry(BNNConfig, BNNPrior),
    "bnn_plan": Entry(BNNPlanConfig, BNNPlanPrior),
    "synthetic": Entry(SyntheticConfig, SyntheticPrior),
    "findings": Entry(FindingsConfig, FindingsPrior),
    "semi_synthetic": Entry(
        SemiSyntheticConfig, SemiSyntheticPrior, ("x",), ("y", "acquirable", "categorical", "n_classes")
    ),
    "digits": Entry(DigitsConfig, DigitsPrior, ("images", "labels")),
    "mixture": Entry(MixtureConfig, MixturePrior),
}


def build_prior(name: str, settings: Mapping[str, Any] | None = None, **data: Any) -> Prior:
    """The prior `name` with `settings` in place of its defaults.

    data: the arrays that some priors draw from, by keyword: x, y … for semi_synthetic; images, labels for digits.

    >>> build_prior("gp", {"kernel": "matern52", "missingness": {"scale": 0.5}}).config.kernel
    'matern52'
    """
    entry = _find(name)
    config = build_config(entry.config, settings or {}, where=name)
    if isinstance(config, MixtureConfig):
        parts = [build_prior(part.prior, part.settings, **_for_part(part.prior, data)) for part in config.parts]
        return MixturePrior(config, priors=parts)
    _check_data(name, entry, data)
    return entry.prior(config, **data)


def build_config(kind: type, settings: Mapping[str, Any], where: str = "") -> Any:
    """A config dataclass from plain settings; nested mappings become nested configs, lists tuples."""
    where = where or kind.__name__
    if not isinstance(settings, Mapping):
        raise ConfigError(f"The settings of {where} are {settings!r}; give names and values.")
    hints = typing.get_type_hints(kind)
    names = [config_field.name for config_field in dataclasses.fields(kind)]
    for name in settings:
        if name not in names:
            raise ConfigError(f"{where} has no setting {name!r}{_suggest(str(name), names)}")
    required = [f.name for f in dataclasses.fields(kind) if _is_required(f) and f.name not in settings]
    if required:
        raise ConfigError(f"{where} needs the setting {required[0]!r}.")
    return kind(**{name: _convert(value, hints[name], f"{where}.{name}") for name, value in settings.items()})


def _find(name: str) -> Entry:
    if name not in PRIORS:
        raise ConfigError(f"There is no prior {name!r}{_suggest(name, list(PRIORS))}")
    return PRIORS[name]


def _check_data(name: str, entry: Entry, data: Mapping[str, Any]) -> None:
    for key in entry.data:
        if key not in data:
            raise ConfigError(f"The prior {name!r} draws from data: pass {' and '.join(entry.data)}; {key} is missing.")
    for key in data:
        if key not in entry.data + entry.options:
            usable = ", ".join(entry.data + entry.options) or "none"
            raise ConfigError(f"The prior {name!r} cannot use the data {key!r}; it can use {usable}.")


def _for_part(name: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Of a mixture's data, what the part can use."""
    entry = _find(name)
    if entry.prior is MixturePrior:
        return dict(data)
    return {key: value for key, value in data.items() if key in entry.data + entry.options}


def _suggest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; choose one of {', '.join(known)}."


def _is_required(config_field: dataclasses.Field) -> bool:
    missing = dataclasses.MISSING
    return config_field.default is missing and config_field.default_factory is missing


def _convert(value: Any, hint: Any, where: str) -> Any:
    """The value as its annotation has it, or a ConfigError that names the setting."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return value if isinstance(value, hint) else build_config(hint, value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} is {value!r}; give a list.")
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            arguments = (arguments[0],) * len(value)
        if len(arguments) != len(value):
            raise ConfigError(f"{where} is {value!r}; give {len(arguments)} values.")
        pairs = zip(value, arguments, strict=True)
        return tuple(_convert(item, kind, f"{where}[{place}]") for place, (item, kind) in enumerate(pairs))
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(value, next(kind for kind in arguments if kind is not type(None)), where)
    return _check_plain(value, origin or hint, where)


_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a text", dict: "names and values"}


def _check_plain(value: Any, kind: Any, where: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    # True is an int to Python, but not to a person who asked for a number.
    if kind is not Any and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
        raise ConfigError(f"{where} is {value!r}; give {_WORDS.get(kind, kind.__name__)}.")
    return value
