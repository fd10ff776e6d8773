"""Methods, priors and data sets of other packages, by name.

A name is one that an installed package offers as an entry point, or `module:object`, which is imported. Importing runs the
module's code: whoever may write such a name may run anything that lies on the import path. So the app lets its jobs use
offered names only (`L2M_PLUGINS=offered`), which whoever installs packages has chosen.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

from l2m_core.errors import ConfigError

METHODS, PRIORS, DATA = "l2m.methods", "l2m.priors", "l2m.data"
"""Groups of entry points."""
SWITCH, ANY, OFFERED = "L2M_PLUGINS", "any", "offered"
_ADDRESS = re.compile(r"[A-Za-z_]\w*(\.\w+)*:[A-Za-z_]\w*(\.\w+)*")


def is_address(name: str) -> bool:
    """Whether this is `module:object`."""
    return _ADDRESS.fullmatch(name) is not None


def offered(group: str) -> list[str]:
    """The names that installed packages offer."""
    return sorted({entry.name for entry in entry_points(group=group)})


def find_plugin(group: str, name: str, fits: Callable[[Any], bool], shape: str) -> Any:
    """The object of this name, None where there is none. shape: what it must be, for the refusal of one that does not fit."""
    if is_address(name):
        if os.environ.get(SWITCH, ANY) != ANY:
            raise ConfigError(
                f"{name!r} names code to import, which is not done here. Use a name that an installed package offers"
                f" ({', '.join(offered(group)) or 'none does'}), or run it from the command line."
            )
        found = _load(EntryPoint(name, name, group), f"{name!r}", fits)
    else:
        entries = {entry.value: entry for entry in entry_points(group=group, name=name)}
        if len(entries) > 1:
            raise ConfigError(
                f"Several packages offer {name!r}: {', '.join(sorted(entries))}. Give one of these instead."
            )
        if not entries:
            return None
        value, entry = next(iter(entries.items()))
        found = _load(entry, f"{name!r}, which an installed package offers as {value!r},", fits)
    if not fits(found):
        raise ConfigError(f"{name!r} is {_what(found)}; it must be {shape}.")
    return found


def _load(entry: EntryPoint, called: str, fits: Callable[[Any], bool]) -> Any:
    try:
        module = importlib.import_module(entry.module)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{called} cannot be found: there is no module {error.name!r} here. Install its package, or put its folder on"
            f" PYTHONPATH."
        ) from error
    except Exception as error:
        raise ConfigError(f"{called} cannot be imported: {type(error).__name__}: {error}") from error
    found: Any = module
    for part in entry.attr.split("."):
        if not hasattr(found, part):
            public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
            fitting = [name for name, value in public.items() if fits(value) and _is_own(value, module)]
            such = f"It has {', '.join(fitting)}." if fitting else "Nothing in it would do."
            raise ConfigError(f"{called} cannot be found: {entry.module} has no {entry.attr!r}. {such}")
        found = getattr(found, part)
    return found


def _is_own(value: Any, module: ModuleType) -> bool:
    """Whether a class or function is the module's, and not one that it imports."""
    return not callable(value) or getattr(value, "__module__", module.__name__) == module.__name__


def _what(found: Any) -> str:
    return f"the class {found.__name__}" if isinstance(found, type) else f"of type {type(found).__name__}"
