"""Priors by name: settings are checked, and each is documented."""

import ast
import dataclasses
import inspect

import pytest

from l2m_core.errors import ConfigError
from l2m_core.settings import build_settings
from l2m_core.tasks.missingness import Missingness
from l2m_core.tasks.mixture import Part
from l2m_core.tasks.registry import PRIORS, build_prior

CONFIGS = [entry.config for entry in PRIORS.values()] + [Missingness, Part]


def test_settings_reach_the_config_and_nested_configs():
    config = build_prior("gp", {"length_scale": [1, 2], "missingness": {"scale": 0.5, "rate": [0.1, 0.2]}}).config
    assert config.length_scale == (1.0, 2.0)
    assert config.missingness == Missingness(scale=0.5, rate=(0.1, 0.2))


def test_a_config_survives_plain_settings_and_back():
    for entry in PRIORS.values():
        if entry.config is not PRIORS["mixture"].config:
            config = entry.config()
            assert build_settings(entry.config, dataclasses.asdict(config)) == config


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("gpp", {}, "no prior 'gpp'. Did you mean 'gp'"),
        ("gp", {"kernal": "rbf"}, "no setting gp.kernal. Did you mean 'kernel'"),
        ("gp", {"missingness": {"mcra": 1}}, "no setting gp.missingness.mcra. Did you mean 'mcar'"),
        ("gp", {"noise": "loud"}, "gp.noise is 'loud'; give a number"),
        ("gp", {"noise": True}, "gp.noise is True; give a number"),
        ("gp", {"informative": [1.5, 2]}, r"gp.informative\[0\] is 1.5; give a whole number"),
        ("gp", {"length_scale": [1]}, "gp.length_scale is .*; give 2 values"),
        ("gp", {"length_scale": 1}, "gp.length_scale is 1; give a list"),
        ("gp", {"missingness": 3}, "gp.missingness are 3; give names and values"),
        ("mixture", {}, "mixture needs the setting 'parts'"),
        ("mixture", {"parts": [{"prior": "bnm"}]}, "Did you mean 'bnn'"),
        ("mixture", {"parts": [{"prior": "bnn", "settings": {"hiden": 1}}]}, "no setting bnn.hiden"),
        ("digits", {}, "pass images and labels; images is missing"),
    ],
)
def test_what_is_unknown_or_wrong_is_refused_by_name(name, settings, message):
    with pytest.raises(ConfigError, match=message):
        build_prior(name, settings)


def test_data_that_a_prior_cannot_use_is_refused_by_name():
    with pytest.raises(ConfigError, match="'gp' cannot use the data 'x'"):
        build_prior("gp", {}, x=[[1.0]])


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_setting_explains_itself(config):
    body = ast.parse(inspect.getsource(config)).body[0].body
    for statement, following in zip(body, body[1:] + [None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            assert documented, f"{config.__name__}.{statement.target.id} has no docstring"
