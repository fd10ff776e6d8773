"""A council: the model's predictions blended with those of models that were fitted to the cohort's own rows.

A cohort is context, and it is also a training set: the longer it is, the more a model fitted to all of its rows knows
that a pretrained model, which reads some of them, does not. Boosted trees are fitted to the cohort under random masks; where
the outcome is a class also a Bayesian regression, which averages over how much each feature may count, and where it is continuous
a regression and a Gaussian process, which knows smooth functions of several features. The blend is a product,

    p(y | x⊙a) ∝ p_model(y | x⊙a)^w_0 · Π_m p_m(y | x⊙a)^w_m,

the base rate among its members, with weights that predicted best on rows left out. The model's own weight makes it surer or less
sure than it was, where this cohort is unlike those that it was trained on. In a short cohort the others get little weight or
none. A council is fitted again to the same numbers from the cohort and its `Recipe`.

The first councils were mixtures, w_0 p_model + Σ_m w_m p_m with weights that sum to 1; a trace that names one replays with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch

from l2m_core.answering.predictive import Predictive
from l2m_core.council.weights import logs_of, product
from l2m_core.errors import InputError
from l2m_core.model.density import Density
from l2m_core.tabular.predictions import Gaussian, Prediction

MODEL = "model"  # its name among the voices
MEMBERS = ("base rate", "regression", "shallow trees", "trees", "Gaussian process", "Bayesian regression")
"""Voices beside the model's; see members.py. Recipes name them, so a name keeps its meaning for good."""
PRODUCT, MIXTURE = "product", "mixture"
"""How voices are blended."""


class Member(Protocol):
    """What was fitted to the cohort's rows."""

    def predict(self, x: np.ndarray, a: np.ndarray) -> Prediction:
        """x, a: (n, d); a value where a is false does not matter."""


@dataclass(frozen=True)
class Recipe:
    """A council in plain settings, as a trace holds it: with the cohort, all that it takes to fit it again."""

    weights: Mapping[str, float] = field(default_factory=lambda: {MODEL: 1.0})
    """Voice → its weight, the model's among them."""
    seed: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of the packages that fitted the members: another version may fit them a little otherwise."""
    notes: tuple[str, ...] = ()
    """What was left out, and why."""
    blend: str = PRODUCT
    """PRODUCT or MIXTURE."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.weights) - {MODEL, *MEMBERS})
        if unknown:
            raise InputError(f"A council names the member '{unknown[0]}'; known: {', '.join(MEMBERS)}.")
        numbers = np.array(list(self.weights.values()), dtype=np.float64)
        if MODEL not in self.weights or not ((numbers >= 0) & np.isfinite(numbers)).all():
            raise InputError("The weights of a council must be numbers from 0 up, the model's among them.")
        if self.blend not in (PRODUCT, MIXTURE):
            raise InputError(f"A council blends by '{self.blend}'; known: {PRODUCT}, {MIXTURE}.")
        if self.blend == MIXTURE and abs(numbers.sum() - 1) > 1e-6:
            raise InputError("The weights of a council that is a mixture must be shares that sum to 1.")
        if not 0 <= self.seed < 2**63:
            raise InputError("The seed of a council must be a whole number, 0 or more.")

    @property
    def key(self) -> str:
        """The same for equal recipes, and for no others."""
        return json.dumps(self.to_data(), sort_keys=True)

    @property
    def members(self) -> tuple[str, ...]:
        """Those that are heard beside the model."""
        return tuple(name for name, weight in self.weights.items() if weight > 0 and name != MODEL)

    @property
    def changes_nothing(self) -> bool:
        """Whether the model is heard alone, and as it is."""
        return not self.members and self.weights[MODEL] == 1

    @property
    def in_brief(self) -> str:
        """What is told beside the model's name: those who are heard most first."""
        if not self.members:
            return "sharpened to this cohort" if self.weights[MODEL] > 1 else "softened to this cohort"
        *first, last = sorted(self.members, key=lambda name: -self.weights[name])
        return f"with {', '.join(first)} and {last}" if first else f"with {last}"

    @property
    def in_words(self) -> str:
        """Each voice with its weight."""
        return ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights.items() if weight > 0)

    def to_data(self) -> dict[str, Any]:
        return {
            "weights": dict(self.weights),
            "seed": self.seed,
            "versions": dict(self.versions),
            "notes": list(self.notes),
            "blend": self.blend,
        }

    @classmethod
    def from_data(cls, plain: Any) -> Recipe:
        """Refuses what `to_data` does not write."""
        try:
            weights = {str(name): float(weight) for name, weight in plain["weights"].items()}
            versions = {str(name): str(version) for name, version in plain["versions"].items()}
            seed = plain["seed"]
            if isinstance(seed, bool) or not isinstance(seed, int):
                raise ValueError("its seed is no whole number")
            blend = str(plain.get("blend", MIXTURE))  # those who wrote no such word were mixtures
            return cls(weights, seed, versions, tuple(map(str, plain["notes"])), blend)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"A council is incomplete or was changed by hand: {error}.") from error


@dataclass(frozen=True, eq=False)
class Council:
    """The fitted members of a recipe."""

    recipe: Recipe
    members: Mapping[str, Member]

    def blend(self, prediction: np.ndarray | Predictive, x: np.ndarray) -> np.ndarray | Predictive:
        """The model's prediction for (n, d) rows, NaN where unknown, blended with the members' for the same rows."""
        if self.recipe.changes_nothing:
            return prediction
        a = ~np.isnan(x)
        told = [in_form_of(prediction, member.predict(x, a)) for member in self.members.values()]
        masses = np.stack([masses_of(one) for one in (prediction, *told)])  # (voices, n, K)
        weights = np.array([self.recipe.weights[name] for name in (MODEL, *self.members)])
        if self.recipe.blend == MIXTURE:
            return _of_masses(np.tensordot(weights, masses, axes=1), prediction)
        return _of_masses(np.exp(product(logs_of(masses), weights)), prediction)


# -- one form for all predictions -------------------------------------------------------------------------------------


class NoBins(InputError):
    """The model's predictive distribution has no bins to mix."""


def _bins_of(prediction: Predictive) -> Density:
    if not isinstance(prediction.distribution, Density):
        raise NoBins("This model predicts a normal distribution, which stays one only alone: the council is not heard.")
    return prediction.distribution


def masses_of(prediction: np.ndarray | Predictive) -> np.ndarray:
    """(n, K) probabilities of the classes, or of the bins of a continuous outcome."""
    if isinstance(prediction, np.ndarray):
        return prediction
    return _bins_of(prediction).logits[0].double().softmax(-1).numpy()


def happened_of(prediction: np.ndarray | Predictive, y: np.ndarray) -> np.ndarray:
    """(n,) which of the classes, or of the bins, outcomes (n,) are."""
    if isinstance(prediction, np.ndarray):
        return np.asarray(y, dtype=np.int64)
    return _bins_of(prediction).bins_of(torch.from_numpy(np.array(y, dtype=np.float32))[None])[0].numpy()


def _of_masses(masses: np.ndarray, like: np.ndarray | Predictive) -> np.ndarray | Predictive:
    """Probabilities as a prediction of the same form as `like`."""
    if isinstance(like, np.ndarray):
        return masses
    logits = torch.from_numpy(masses).clamp_min(1e-30).log().float()[None]
    return Predictive(replace(_bins_of(like), logits=logits))


def in_form_of(prediction: np.ndarray | Predictive, member: Prediction) -> np.ndarray | Predictive:
    """What a member predicts, in the form of the model's prediction: a normal distribution as masses of its bins."""
    if not isinstance(member, Gaussian):
        return member
    assert isinstance(prediction, Predictive)
    density = _bins_of(prediction)
    edges = (density.shift + density.scale * density.edges).double()  # (1, bins - 1)
    z = (edges - torch.from_numpy(member.mean)[:, None]) / torch.from_numpy(member.std)[:, None]
    # Φ at the edges; differences are the masses of the bins, the outermost two open.
    below = torch.special.ndtr(z)
    ends = below.new_zeros(len(below), 1), below.new_ones(len(below), 1)
    return _of_masses(torch.diff(torch.cat([ends[0], below, ends[1]], 1), dim=1).numpy(), prediction)
