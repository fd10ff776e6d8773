"""Which prior a job draws from: a name of the registry and its settings, one prior for each kind of outcome."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, replace
from typing import Any

from l2m_core.errors import ConfigError
from l2m_core.settings import build_settings
from l2m_core.tasks.mixture import MixtureConfig, MixturePrior, Prior
from l2m_core.tasks.registry import build_prior, find_prior
from train.prior_data import DataChoice, absent_data, load_prior_data


@dataclass(frozen=True)
class PriorChoice:
    """A prior of `l2m_core.tasks.registry`, or of another package."""

    name: str = "synthetic"
    """Its name; or one that an installed package offers, or `module:object`."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings in place of its defaults. One that names the `outcome` leaves out the other kind of outcome."""
    data: DataChoice | None = None
    """Where the prior draws its rows or pictures from, if it does. A part of a mixture cannot name data of its own."""


def priors_of(choice: PriorChoice) -> dict[str, Prior]:
    """{"classes": …, "continuous": …}; a kind of outcome that the prior does not know is left out.

    Of a mixture, each kind of outcome has the parts that know it.
    """
    if choice.name == "mixture":
        return _mixtures_of(choice.settings)
    kinds = _kinds_of(choice.name, choice.settings)
    if len(kinds) == 1:
        return {kinds[0]: build_prior(choice.name, choice.settings, **_data_of(choice))}
    return {kind: build_prior(choice.name, {**choice.settings, "outcome": kind}) for kind in kinds}


def _data_of(choice: PriorChoice) -> dict[str, Any]:
    if not find_prior(choice.name).data:
        if choice.data is not None:
            raise ConfigError(f"The prior {choice.name!r} draws from no data; leave out prior.data.")
        return {}
    if choice.data is None:
        raise ConfigError(absent_data(choice.name))
    return load_prior_data(choice.data)


def _kinds_of(name: str, settings: dict[str, Any]) -> tuple[str, ...]:
    if name == "mixture":
        parts = build_settings(MixtureConfig, settings, "mixture").parts
        known = {kind for part in parts for kind in _kinds_of(part.prior, part.settings)}
        return tuple(kind for kind in ("classes", "continuous") if kind in known)
    has_outcome = "outcome" in {f.name for f in dataclasses.fields(find_prior(name).config)}
    if has_outcome and "outcome" not in settings:
        return ("classes", "continuous")
    return (settings.get("outcome", "continuous" if name == "gp" else "classes"),)


def _mixtures_of(settings: dict[str, Any]) -> dict[str, Prior]:
    mixture: MixtureConfig = build_settings(MixtureConfig, settings, "mixture")
    priors: dict[str, Prior] = {}
    for kind in ("classes", "continuous"):
        parts = [part for part in mixture.parts if kind in _kinds_of(part.prior, part.settings)]
        if parts:
            ready = [priors_of(PriorChoice(part.prior, part.settings))[kind] for part in parts]
            priors[kind] = MixturePrior(replace(mixture, parts=tuple(parts)), priors=ready)
    return priors
