"""About: what somebody who has to answer for an installation looks for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import l2m_core
from app.host import services
from tests.app.conftest import open_app, texts
from tests.app.test_experiments_page import turn_to


def test_limits_intended_use_data_protection_versions_and_licence_are_there(
    shared_services: services.Services, owner: str
) -> None:
    app = open_app("about")
    headings = {element.value for element in app.subheader}
    assert {"What it is for", "What it is not for", "Limits to keep in mind", "Data protection", "Versions"} <= headings
    page = texts(app) + str(app.table[0].value)
    assert "Research use only" in page and "Licence: Apache-2.0" in page.replace("**", "")
    assert l2m_core.__version__ in page and shared_services.model(owner).fingerprint[:16] in page


def test_it_says_what_is_fitted_to_a_table_and_what_stays_when_that_is_deleted(
    shared_services: services.Services, owner: str
) -> None:
    page = texts(open_app("about"))
    assert (
        "Nothing is trained on your table" not in page and "fitted to your table's own rows are heard beside it" in page
    )
    assert "unless you share a cohort or a model" in page and "fine-tuned on it carries traces of its patients" in page


def test_a_model_card_holds_no_link_that_leads_nowhere(
    shared_services: services.Services, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = shared_services.model(owner)
    card = "# Card\nLoss as [measured](../../docs/results/care.md)."
    model = replace(model, release=replace(model.release, card=card))
    monkeypatch.setattr(shared_services, "model", lambda *_: model)
    assert "Loss as measured." in texts(open_app("about"))
    assert "Loss as measured." in texts(turn_to(open_app("experiments"), "Models"))
