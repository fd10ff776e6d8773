"""Named errors and warnings. Each message says what is wrong, where (column, row, setting) and what to do."""

import re
import warnings
from collections.abc import Sequence
from typing import Any

LONGEST_MESSAGE = 2000  # characters; beyond it nobody reads, and a page would have to show it


class L2MError(Exception):
    """Root of every error this library raises on purpose. What a message quotes may be long; the message is not."""

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…")


class InputError(L2MError, ValueError):
    """Something a person gave us cannot be used as it is."""


class SchemaError(InputError):
    """A schema contradicts itself or the table."""


class CohortError(InputError):
    """A table cannot serve as a cohort."""


class OutcomeError(CohortError):
    """An outcome holds what could change its kind or its classes; a person has to say whether that is meant."""


class FeatureError(InputError):
    """An unknown feature, or a value that is out of range or of the wrong type."""


class ConfigError(InputError):
    """A setting is unknown, of the wrong type or out of range."""


class ModelFileError(L2MError):
    """A model file is missing, damaged, of another version, or not safetensors."""


class TrainingError(L2MError):
    """A training job had to stop."""


class RangeWarning(UserWarning):
    """A cohort lies outside the range the model was trained on."""


class DeviceWarning(UserWarning):
    """A GPU failed, and the work goes on on the CPU."""


_WITH_AN = re.compile("[aeiouAEIO]|ndarray|[FHLMNRSX](?![a-z])")


def type_of(value: object) -> str:
    """The name of the value's type with its article, as it is said aloud: an int, a dict, an ndarray, an L2M."""
    name = type(value).__name__
    return f"{'an' if _WITH_AN.match(name) else 'a'} {name}"


def first_few(problems: Sequence[str]) -> str:
    """Problems of several columns in one message: five of them, and how many more there are."""
    more = f" (and {len(problems) - 5} more columns with a problem)" if len(problems) > 5 else ""
    return "\n".join(problems[:5]) + more


def tell_warnings_plainly() -> None:
    """From now on a warning of ours is one line, without the place in the code that it came from, which a command's user did
    not write. One of a package stays as it is."""
    full = warnings.formatwarning

    def told(message: Warning | str, category: type[Warning], *place: Any, **line: Any) -> str:
        return f"note: {message}\n" if issubclass(category, UserWarning) else full(message, category, *place, **line)

    warnings.formatwarning = told
