"""`python -m train consistency`, on a few states: what is shown is the exact quantity, and the page says how far they agree."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from l2m_core.answering.release import load_release, save_model
from l2m_core.answering.settings import AnswerSettings
from l2m_core.answering.trained_range import TrainedRange
from l2m_core.errors import ConfigError
from l2m_core.memory import L2M
from l2m_core.metrics import paired_interval
from l2m_core.model.encoders import build_model
from l2m_core.model.interface import ModelConfig
from train.study import consistency, random_states
from train.study.markdown import markdown_table


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> L2M:
    """Tiny, with weights drawn at random, so that head and answers disagree."""
    config = ModelConfig(layers=1, width=16, heads=2, feedforward=16, bins=12, value_bins=6)
    torch.manual_seed(2)
    module = build_model(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_model(folder, module, config, TrainedRange(), AnswerSettings(gains="answers"), {})
    return L2M(load_release(folder))


@pytest.fixture(scope="module")
def gains(model: L2M) -> pd.DataFrame:
    chosen = [source for source in islice(consistency.sources(Path()), 3) if source.name != "breast_cancer"]
    assert [source.name for source in chosen] == ["wine", "diabetes"]
    return consistency.measure(model, chosen, states=4)


def test_what_is_shown_first_is_the_exact_quantity(gains: pd.DataFrame) -> None:
    assert gains.groupby(["cohort", "state"]).ngroups == 8 and (gains.exact >= 0).all() and (gains.reference >= 0).all()
    best = gains.loc[gains.groupby(["cohort", "state"]).shown.idxmax()]
    np.testing.assert_allclose(best.shown, best.exact, rtol=1e-5, atol=1e-9)
    assert not np.allclose(gains["head"], gains.exact)


def test_the_page_says_how_far_they_agree(gains: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "LEAST_TOLD", 0.0)
    agreement = consistency.agreement(gains).set_index(["gain", "against"])
    assert (agreement.states == 8).all() and agreement.given_up.between(0, 1).all() and (agreement.factor >= 1).all()
    assert agreement.loc[("shown", "exact"), "rank_agreement"] > agreement.loc[("head", "exact"), "rank_agreement"]
    deciles = consistency.realised(gains)
    assert len(deciles) == 10 and deciles.shown.is_monotonic_increasing
    assert "Previews average to the belief" in "\n".join(consistency.describe(gains))


def test_what_the_first_test_told_is_its_recorded_drop() -> None:
    state = {"cohort": ["a"] * 3 + ["b"] * 3, "state": [0, 0, 0, 1, 1, 1], "drop": [0.5, 0.1, np.nan, 0.3, 0.2, 0.0]}
    gains = pd.DataFrame(state).assign(head=[1, 2, 9, 1, 2, 3], shown=[2, 1, 9, 3, 1, 2], reference=[1, 2, 9, 1, 2, 3])
    told = consistency.followed(gains).set_index("first_by")
    # The third test of "a" was never recorded, so that nobody could follow it.
    assert told["drop"].to_dict() == pytest.approx({"head": 0.05, "shown": 0.4, "reference": 0.05})
    assert told.more.to_dict() == pytest.approx({"head": 0, "shown": 0.35, "reference": 0})
    assert told.low["shown"] < 0.35 < told.high["shown"] and told.cohorts["shown"] == 2


def test_a_reference_that_agrees_with_itself_can_be_agreed_with(gains: pd.DataFrame) -> None:
    # Lifted, so that each state tells enough to be compared.
    gains = gains.assign(reference=gains.reference + 1, half=gains.half + 1, other_half=gains.other_half + 1)
    assert consistency.reliability(gains.assign(half=gains.reference, other_half=gains.reference)) == pytest.approx(
        (1, 1)
    )
    again, most = consistency.reliability(gains)
    assert 0 <= again <= most <= 1


def test_where_nothing_tells_anything_nothing_is_compared(gains: pd.DataFrame) -> None:
    silent = gains.assign(reference=0.0)
    assert consistency.agreement(silent).set_index(["gain", "against"]).loc[("shown", "reference"), "states"] == 0


def test_what_recorded_results_told_is_as_sure_as_the_cohorts_are_many() -> None:
    """Ten copies of each state's test tell no more than one."""
    cohort = np.repeat(list("abcd"), 10)
    drop = np.random.default_rng(0).normal(size=40)
    once = pd.DataFrame({"cohort": cohort, "state": range(40), "drop": drop})
    often = pd.concat([once] * 10)
    both = pd.concat([often.assign(shown=float(decile)) for decile in range(10)])
    found = consistency.realised(both)
    expected = paired_interval(once["drop"].to_numpy(), groups=cohort)
    assert found["drop"].tolist() == [str(expected)] * 10 and (found.cohorts == 4).all()
    alone = consistency.realised(both[both.cohort == "a"])
    assert alone["drop"].str.contains("too few for an interval").all()


def test_one_cohort_has_no_interval_of_what_its_first_tests_told(gains: pd.DataFrame) -> None:
    told = consistency.followed(gains[gains.cohort == "wine"])
    assert told.more.notna().all() and told.low.isna().all() and told.high.isna().all()
    assert "| nan | nan |" in markdown_table(told)


def test_a_misspelt_cohort_is_refused_before_any_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(random_states, "bundled_cohort", lambda name: pytest.fail(f"{name} was read"))
    with pytest.raises(ConfigError, match="--only: there is no cohort 'wyne'. Did you mean 'wine'"):
        consistency.main(["--only", "wyne", "--data", str(tmp_path), "--out", str(tmp_path)])
    assert [trial.name for trial in random_states.sources(tmp_path, 2, ["generated_short_1"])] == ["generated_short_1"]
