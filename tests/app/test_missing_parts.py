"""A step where the installed Streamlit lacks the parts that batch a page and listen to clicks."""

import logging
from importlib import import_module

import pytest

from app.host.services import Services
from app.store import StoredCohort
from app.streamlit_contact import insides
from tests.app.conftest import texts
from tests.app.stepping import begin, enter, kinds


def test_a_step_is_taken_on_a_page_without_clicks_and_without_batches(
    shared_services: Services,
    owner: str,
    ward: StoredCohort,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(insides, "logged", set())
    monkeypatch.delattr("streamlit.runtime.scriptrunner.get_script_run_ctx")
    monkeypatch.delattr(
        import_module("streamlit.components.v2.get_bidi_component_manager"), "get_bidi_component_manager"
    )
    with caplog.at_level(logging.WARNING, "l2m.app"):
        app = enter(begin(ward), "lactate", 3.6)
    assert kinds(owner, app)[-1] == "observe" and "3.6 mmol/L" in texts(app)
    lines = [record.getMessage() for record in caplog.records if record.name == "l2m.app"]
    assert [line.partition(": ")[2] for line in sorted(lines)] == [
        "a comma that is typed into a number may be left out by the browser, as 45 of 4,5.",
        "a new view is shown as far down as the one before was scrolled.",
        "a server that does not answer is told of in Streamlit's words.",
        "charts do not react to clicks; the select boxes beside them do the same.",
        "what a button opens is reached by the Tab key only at the page's end.",
        "elements are sent one by one.",
    ]
