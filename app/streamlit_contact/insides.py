"""Looks up the parts of Streamlit that its documentation does not promise."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

import streamlit as st

logger = logging.getLogger("l2m.app")
logged: set[str] = set()


class InsideMissing(Exception):
    """The installed version of Streamlit lacks a part that is used here. name: the part."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Streamlit {st.__version__} has no {name}")
        self.name = name

    def log(self, instead: str) -> None:
        """Says so once in the life of the process. instead: the plainer way that is taken."""
        line = f"{self}: {instead}."
        if line not in logged:
            logged.add(line)
            logger.warning("%s", line)


def inside(module: str, name: str) -> Any:
    """An object of one of Streamlit's modules."""
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        raise InsideMissing(f"{module}.{name}") from None


def attribute(owner: object, name: str) -> Any:
    """An attribute of one of Streamlit's objects."""
    try:
        return getattr(owner, name)
    except AttributeError:
        raise InsideMissing(f"{type(owner).__name__}.{name}") from None
