"""Probabilities of an outcome's classes that know the classes' names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from l2m_core.errors import InputError
from l2m_core.schema import did_you_mean


class ClassProbabilities(np.ndarray):
    """(classes,) an array like any other, which is also asked by a class's name: `posterior["died"]`.

    Whatever is computed from it is a plain array or number. A copy has the names; what is picked out of it, turned round or
    sorted has none, since its numbers may stand in another order than the classes.
    """

    classes: tuple[str, ...]

    def __new__(cls, probabilities: np.ndarray, classes: Sequence[str]) -> ClassProbabilities:
        named = np.array(probabilities).view(cls)
        named.classes = tuple(classes)
        return named

    def __array_finalize__(self, source: Any) -> None:
        # NumPy calls this for every new array, and does not say whether its numbers stand where the source's did.
        self.classes = ()

    def copy(self, order: Any = "C") -> ClassProbabilities:
        return ClassProbabilities(np.asarray(self), self.classes)

    def __copy__(self) -> ClassProbabilities:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ClassProbabilities:
        return self.copy()

    def sort(self, *arguments: Any, **options: Any) -> None:
        super().sort(*arguments, **options)
        self.classes = ()

    def partition(self, *arguments: Any, **options: Any) -> None:
        super().partition(*arguments, **options)
        self.classes = ()

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __reduce__(self) -> tuple[Any, ...]:
        return ClassProbabilities, (np.asarray(self), self.classes)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.classes:
            raise InputError(f"There is no class '{key}'.{did_you_mean(key, self.classes)}")
        return super().__getitem__(self.classes.index(key))

    def to_dict(self) -> dict[str, float]:
        """Class → probability."""
        return dict(zip(self.classes, self.tolist(), strict=True))

    def __repr__(self) -> str:
        return f"ClassProbabilities({self.to_dict()})" if self.classes else repr(np.asarray(self))

    def __str__(self) -> str:
        """As `print` shows it: 'no: 0.927, yes: 0.073'."""
        if not self.classes:
            return str(np.asarray(self))
        return ", ".join(f"{name}: {probability:.3g}" for name, probability in self.to_dict().items())
