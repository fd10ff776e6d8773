"""A job's prior, by kind of outcome."""

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.errors import L2MError
from l2m_core.settings import build_settings
from train.prior_data import DataChoice, load_prior_data
from train.priors import PriorChoice, priors_of

PARTS = [{"prior": "synthetic", "weight": 1.0, "settings": {"binary_share": 1.0}}, {"prior": "findings", "weight": 3.0}]


def test_each_kind_of_outcome_has_the_parts_of_a_mixture_that_know_it():
    priors = priors_of(PriorChoice("mixture", {"parts": PARTS}))
    generator = torch.Generator().manual_seed(0)
    classes = priors["classes"].sample(generator, 40, 30, 5)
    continuous = priors["continuous"].sample(generator, 4, 30, 5)
    # Only the findings part draws more than two classes.
    assert classes.n_classes is not None and 2 < int(classes.n_classes.max())
    assert continuous.continuous


def test_a_kind_that_no_part_knows_is_left_out():
    assert list(priors_of(PriorChoice("mixture", {"parts": [PARTS[1]]}))) == ["classes"]
    only = [{"prior": "synthetic", "settings": {"outcome": "continuous"}}, PARTS[1]]
    priors = priors_of(PriorChoice("mixture", {"parts": only}))
    assert sorted(priors) == ["classes", "continuous"]
    assert len(priors["classes"].priors) == len(priors["continuous"].priors) == 1


def write_table(folder, rows: int = 60):
    generator = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": generator.uniform(20, 80, rows).round(2), "lactate": generator.normal(size=rows).round(4)}
    )
    table.assign(died=np.arange(rows) % 2).to_csv(folder / "icu.csv", index=False)
    return folder / "icu.csv"


def test_a_prior_draws_from_the_table_that_its_settings_name(tmp_path):
    path = write_table(tmp_path)
    data = DataChoice("table", str(path), outcome="died", baseline=("age",))
    prior = priors_of(PriorChoice("semi_synthetic", {"labels": "study"}, data))["classes"]
    batch = prior.sample(torch.Generator().manual_seed(0), 3, 40, 2)
    assert batch.acquirable.tolist() == [[False, True]] * 3
    rows = set(pd.read_csv(path)["lactate"].astype("float32"))
    assert {float(v) for v in batch.x[:, :, 1].flatten()} <= {float(v) for v in rows}


def test_the_pool_s_rows_are_never_among_those_of_tests(tmp_path):
    path = str(write_table(tmp_path))
    part = {
        name: load_prior_data(DataChoice("table", path, outcome="died", pool=40, part=name, seed=3))["x"][:, 1]
        for name in ("train", "test")
    }
    assert len(part["train"]) == 40 and len(part["test"]) == 20
    assert not set(part["train"].tolist()) & set(part["test"].tolist())


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("semi_synthetic", None, ("prior.data", "metabric", "METABRIC_RNA_Mutation.csv", "schema")),
        ("study_digits", None, ("prior.data", "mnist", "images and labels")),
        ("semi_synthetic", {"source": "metabric"}, ("path", "METABRIC_RNA_Mutation.csv")),
        ("semi_synthetic", {"source": "metabric", "path": "nowhere.csv"}, ("nowhere.csv", "Kaggle")),
        ("semi_synthetic", {"source": "table", "path": "nowhere.csv"}, ("nowhere.csv", "CSV", "schema")),
        ("semi_synthetic", {"source": "metabrics", "path": "x"}, ("metabrics", "Did you mean")),
        ("study_bnn", {"source": "mnist", "path": "x"}, ("draws from no data",)),
    ],
)
def test_a_prior_without_its_data_says_which_file_from_where_and_how_it_is_laid_out(name, data, words):
    with pytest.raises(L2MError) as refused:
        priors_of(build_settings(PriorChoice, {"name": name, **({"data": data} if data else {})}))
    assert all(word in str(refused.value) for word in words)


def test_a_mixture_within_a_mixture_has_the_kinds_of_its_parts():
    inner = {"prior": "mixture", "settings": {"parts": PARTS}}
    priors = priors_of(PriorChoice("mixture", {"by": "batch", "parts": [{"prior": "additive"}, inner]}))
    assert list(priors) == ["classes", "continuous"]
    assert [len(prior.priors) for prior in priors.values()] == [2, 2]
