"""Streamlit's options beyond `st.get_option`: set by the app, or by environment variables."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from app.streamlit_contact.insides import InsideMissing, inside
from l2m_core.errors import ConfigError

YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def set_option(name: str, value: object) -> None:
    """Unlike `st.set_option`, for every option."""
    try:
        inside("streamlit.config", "set_option")(name, value)
    except InsideMissing as missing:
        missing.log(f"{name} stays as the configuration file has it")


def is_set(name: str) -> bool:
    """Whether somebody set the option, rather than leave it at its default."""
    try:
        return bool(inside("streamlit.config", "is_manually_set")(name))
    except InsideMissing as missing:
        missing.log(f"{name} counts as left at its default")
        return False


def take_environment() -> None:
    """Reads Streamlit's environment variables, which only its own command does by itself."""
    try:
        known = inside("streamlit.config", "get_config_options")()
        set_by = inside("streamlit.config", "set_option")
    except InsideMissing as missing:
        missing.log("the environment variables STREAMLIT_… are not read; use the configuration file")
        return
    for option in list(known.values()):
        text = os.environ.get(option.env_var)
        if text is not None and not option.sensitive:
            set_by(option.key, value_of(option, text.strip()), "environment variable")


def value_of(option: Any, text: str) -> object:
    """The variable's text as Streamlit's command reads it. option: Streamlit's `ConfigOption`."""
    if option.multiple:
        return text.split()
    if option.type is bool and text.lower() in (*YES, *NO):
        return text.lower() in YES
    if option.type in (int, float):
        with suppress(ValueError):
            return option.type(text)
    if option.type is str:
        return text
    raise ConfigError(f"{option.env_var} is {text!r}, which is no {option.type.__name__}.")
