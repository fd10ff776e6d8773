"""Priors by name, built from plain settings as a YAML file gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from l2m_core import plugins
from l2m_core.errors import ConfigError
from l2m_core.schema import did_you_mean
from l2m_core.settings import build_settings
from l2m_core.tasks.additive import AdditiveConfig, AdditivePrior
from l2m_core.tasks.bnn import BNNConfig, BNNPlanConfig, BNNPlanPrior, BNNPrior
from l2m_core.tasks.categories import CategoriesConfig, CategoriesPrior
from l2m_core.tasks.digits import DigitsConfig, DigitsPrior
from l2m_core.tasks.discriminant import DiscriminantConfig, DiscriminantPrior
from l2m_core.tasks.findings import FindingsConfig, FindingsPrior
from l2m_core.tasks.gp import GPConfig, GPPrior
from l2m_core.tasks.mixture import MixtureConfig, MixturePrior, Prior
from l2m_core.tasks.patterns import PatternsConfig, PatternsPrior
from l2m_core.tasks.semi_synthetic import SemiSyntheticConfig, SemiSyntheticPrior
from l2m_core.tasks.signs import SignsConfig, SignsPrior
from l2m_core.tasks.study import StudyBNNConfig, StudyBNNPlanConfig, StudyBNNPlanPrior, StudyBNNPrior
from l2m_core.tasks.study_digits import StudyDigitsConfig, StudyDigitsPrior
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
    "study_bnn": Entry(StudyBNNConfig, StudyBNNPrior),
    "study_bnn_plan": Entry(StudyBNNPlanConfig, StudyBNNPlanPrior),
    "synthetic": Entry(SyntheticConfig, SyntheticPrior),
    "additive": Entry(AdditiveConfig, AdditivePrior),
    "categories": Entry(CategoriesConfig, CategoriesPrior),
    "discriminant": Entry(DiscriminantConfig, DiscriminantPrior),
    "findings": Entry(FindingsConfig, FindingsPrior),
    "signs": Entry(SignsConfig, SignsPrior),
    "patterns": Entry(PatternsConfig, PatternsPrior),
    "semi_synthetic": Entry(
        SemiSyntheticConfig, SemiSyntheticPrior, ("x",), ("y", "acquirable", "categorical", "n_classes")
    ),
    "digits": Entry(DigitsConfig, DigitsPrior, ("images", "labels")),
    "study_digits": Entry(StudyDigitsConfig, StudyDigitsPrior, ("images", "labels")),
    "mixture": Entry(MixtureConfig, MixturePrior),
}


def build_prior(name: str, settings: Mapping[str, Any] | None = None, **data: Any) -> Prior:
    """The prior `name` with `settings` in place of its defaults.

    data: the arrays that some priors draw from, by keyword: x, y … for semi_synthetic; images, labels for digits.

    >>> build_prior("gp", {"kernel": "matern52", "missingness": {"scale": 0.5}}).config.kernel
    'matern52'
    """
    entry = find_prior(name)
    config: Any = build_settings(entry.config, settings or {}, name)
    if isinstance(config, MixtureConfig):
        parts = [build_prior(part.prior, part.settings, **_for_part(part.prior, data)) for part in config.parts]
        return MixturePrior(config, priors=parts)
    _check_data(name, entry, data)
    return entry.prior(config, **data)


def find_prior(name: str) -> Entry:
    """One of PRIORS, one that an installed package offers, or `module:object`."""
    found = PRIORS.get(name) or plugins.find_plugin(
        plugins.PRIORS, name, _is_entry, "an Entry of a config's dataclass and a prior's class"
    )
    if found is None:
        raise ConfigError(
            f"There is no prior {name!r}.{did_you_mean(name, [*PRIORS, *plugins.offered(plugins.PRIORS)])}"
        )
    return found


def _is_entry(found: Any) -> bool:
    return isinstance(found, Entry) and is_dataclass(found.config) and hasattr(found.prior, "sample")


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
    entry = find_prior(name)
    if entry.prior is MixturePrior:
        return dict(data)
    return {key: value for key, value in data.items() if key in entry.data + entry.options}
