"""What another system is told is what the page would show: the model with its council, once that is fitted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.types import ASGIApp

from app.api.application import make_app
from app.host.services import Services
from app.settings import AppSettings
from l2m_core.council import fitting
from l2m_core.council.council import Recipe
from l2m_core.council.members import members_of
from tests.api.conftest import holds
from tests.patients.ward import ward

OWNER = "browser-of-somebody"
TOKEN = "of this test"
WEIGHTS = {"model": 0.4, "Bayesian regression": 0.35, "trees": 0.25}
KNOWN = {"age": 51, "sex": "M", "lactate": 2.4}
PATIENCE = 120  # seconds


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """Members are heard in a small cohort too, whatever they foresee."""
    monkeypatch.setattr(fitting, "FEWEST_ROWS", 20)
    shares = np.array([WEIGHTS.get(name, 0.0) for name in ("model", *members_of("binary"))])
    monkeypatch.setattr(fitting, "find_weights", lambda p, happened, spread, copies, expected: shares)
    made = Services(AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}"))
    yield made
    made.shut_down()
    made.store.close()


def ask(app: ASGIApp, cohort_id: str) -> Any:
    async def post() -> httpx.Response:
        transport, headers = httpx.ASGITransport(app), {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://l2m", headers=headers, timeout=60) as client:
            return await client.post(f"/v1/cohorts/{cohort_id}/advice", json={"patient": KNOWN})

    return holds(asyncio.run(post()), "Advice")


def test_an_answer_is_the_blend_and_names_its_recipe(services: Services) -> None:
    stored = services.add_cohort(OWNER, ward())
    services.store.cohorts.share(OWNER, stored.id, True)
    alone = services.model(OWNER).condition(services.cohort(OWNER, stored))
    app, until = make_app(services, TOKEN, ["*"]), time.monotonic() + PATIENCE
    while (told := ask(app, stored.id))["council"] is None:
        plain = told["patients"][0]["belief"]["probabilities"]["yes"]
        assert plain == pytest.approx(alone.start(KNOWN).posterior[1], abs=1e-6)
        assert time.monotonic() < until, "no council was fitted"
        time.sleep(0.05)
    assert told["council"]["weights"] == WEIGHTS
    believed = told["patients"][0]["belief"]["probabilities"]["yes"]
    again = alone.under(Recipe.from_data(told["council"])).start(KNOWN)
    assert believed == pytest.approx(again.posterior[1], abs=1e-9)
    assert believed != pytest.approx(alone.start(KNOWN).posterior[1], abs=1e-6)
