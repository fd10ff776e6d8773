"""Methods, priors and data sets of other packages, by the name that they offer or as module:object."""

from __future__ import annotations

import linecache
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.errors import ConfigError
from l2m_core.methods import make_method
from l2m_core.plugins import is_address
from l2m_core.tasks.registry import build_prior
from tests.methods.cohorts import learnable
from tests.plugin_package import install
from train.prior_data import DataChoice, load_prior_data
from train.priors import PriorChoice, priors_of
from train.study.evaluate import main
from train.study.evaluation.versions import code_version
from train.study.experiments.datasets import find_cohort


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(install(tmp_path))
    yield tmp_path
    code_version.cache_clear()
    sys.modules.pop("ward_tools", None)


@pytest.mark.parametrize("name", ["by_share", "ward_tools:ByShare"])
def test_a_method_of_another_package_is_made_by_its_name(name):
    method = make_method(name, seed=3, smoothing=0.5).fit(learnable("binary"))
    x, a = learnable("binary", rows=5).x, np.zeros((5, 6), dtype=bool)
    assert method.predict(x, a).shape == (5, 2) and (method.rank(x, a).argmax(1) == 5).all()


@pytest.mark.parametrize("name", ["sign", "ward_tools:SIGN"])
def test_a_prior_of_another_package_draws_for_any_job_with_its_settings(name):
    prior = priors_of(PriorChoice(name, {"shift": 5.0}))["classes"]
    assert prior.sample(torch.Generator().manual_seed(0), 2, 30, 3).y.sum() == 0
    mixed = build_prior("mixture", {"parts": [{"prior": name, "settings": {"shift": -5.0}}]})
    assert mixed.sample(torch.Generator().manual_seed(0), 2, 30, 3).y.all()
    with pytest.raises(ConfigError, match="no setting .*shfit. Did you mean 'shift'"):
        build_prior(name, {"shfit": 1.0})


@pytest.mark.parametrize("name", ["ward", "ward_tools:ward"])
def test_a_data_set_of_another_package_is_a_source_of_priors_and_experiments(name, tmp_path):
    assert load_prior_data(DataChoice(name, pool=100))["x"].shape == (100, 4)
    found = find_cohort(name, tmp_path)
    assert len(found.load()) == 150 and not found.note


@pytest.mark.parametrize("method", ["by_share", "ward_tools:ByShare"])
def test_methods_are_compared_on_a_data_set_with_nothing_of_ours(method, tmp_path):
    given = ["--methods", method, "--cohorts", "ward_tools:ward", "--contexts", "60", "--seeds", "0", "--missing", "0"]
    folders = ["--data", str(tmp_path), "--partial", str(tmp_path / "partial"), "--out", str(tmp_path / "out")]
    assert main([*given, *folders, "--workers", "1"]) == 0
    table = pd.read_csv(tmp_path / "out" / "real.csv")
    assert table["method"].tolist() == [method] and table["cohort"].tolist() == ["ward_tools:ward"]
    assert table["log_loss"].between(0.6, 0.8).all()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ward_toils:ByShare", "no module 'ward_toils' here. Install its package, or put its folder on PYTHONPATH"),
        ("ward_tools:BySharing", r"ward_tools has no 'BySharing'. It has (?!.*\b(Cohort|Entry|dataclass)\b).*ByShare"),
        ("errno:BySharing", "has no 'BySharing'. Nothing in it would do"),
        ("ward_tools:settings", "'ward_tools:settings' is of type dict; it must be a class or function"),
        ("ward_tools:no_method", "gives an object, which is no method: it has no fit, predict, rank"),
        ("broken", "'broken', which an installed package offers as 'ward_tools:Gone', cannot be found"),
        ("by_shares", "no method 'by_shares'. Choose one of: .*by_share.*module:object"),
    ],
)
def test_what_is_not_there_or_is_no_method_is_refused_with_the_remedy(name, words):
    with pytest.raises(ConfigError, match=words):
        make_method(name)


def test_a_module_that_fails_says_how(package):
    (package / "fails_at_once.py").write_text("import ward_toils")
    with pytest.raises(ConfigError, match="no module 'ward_toils' here"):
        make_method("fails_at_once:Thing")
    (package / "fails_later.py").write_text("1 / 0")
    with pytest.raises(ConfigError, match="cannot be imported: ZeroDivisionError: division by zero"):
        make_method("fails_later:Thing")


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: build_prior("ward_tools:SignPrior"), "is the class SignPrior; it must be an Entry"),
        (lambda: build_prior("sing"), "no prior 'sing'. Did you mean 'sign'"),
        (lambda: DataChoice("wards"), "prior.data.source is 'wards'.*Did you mean 'ward'"),
        (
            lambda: load_prior_data(DataChoice("ward_tools:no_method")),
            "gave an object; it must give an l2m_core.Cohort",
        ),
    ],
)
def test_a_prior_or_data_set_of_the_wrong_shape_is_refused(ask, words):
    with pytest.raises(ConfigError, match=words):
        ask()


def test_a_name_that_two_packages_offer_is_refused_with_both(package):
    other = package / "other_tools-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-tools\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[l2m.methods]\nby_share = other_tools:ByShare\n")
    with pytest.raises(ConfigError, match="Several packages offer 'by_share': other_tools:ByShare, ward_tools:ByShare"):
        make_method("by_share")


def test_where_only_offered_names_may_be_used_no_module_is_imported(monkeypatch):
    monkeypatch.setenv("L2M_PLUGINS", "offered")
    for ask in (lambda: make_method("ward_tools:ByShare"), lambda: build_prior("ward_tools:SIGN")):
        with pytest.raises(ConfigError, match="names code to import, which is not done here"):
            ask()
    assert "ward_tools" not in sys.modules
    make_method("by_share")


def test_results_of_such_a_method_are_known_to_be_of_other_code_once_it_changed(package):
    before = code_version("by_share")
    assert before == code_version("ward_tools:ByShare") != ""
    path = package / "ward_tools.py"
    path.write_text(path.read_text() + "\nMORE = 1\n")
    sys.modules.pop("ward_tools")
    code_version.cache_clear()
    linecache.checkcache()
    assert code_version("by_share") != before


@pytest.mark.parametrize("name", ["a:b", "tools.deep:Class.method"])
def test_an_address_is_a_module_and_an_object(name):
    assert is_address(name)


@pytest.mark.parametrize("name", ["gdfs", "12:30", "a:", ":b", "c:\\folder", "a: b", "https://x"])
def test_nothing_else_is_an_address(name):
    assert not is_address(name)
