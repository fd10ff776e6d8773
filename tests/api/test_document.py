"""The OpenAPI document tells of every address, and of no other; and the server bounds what it does at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import fields

import httpx
import jsonschema
import pytest

from app.api import application, openapi
from app.api.application import make_app
from app.host.services import Services
from l2m_core.acquire.stopping import Stopping
from tests.api.conftest import refusal

Ask = Callable[..., list[httpx.Response]]


@pytest.fixture
def ask(services: Services, cohorts: dict[str, str]) -> Ask:
    """Asks the application in this process."""
    app = make_app(services, "t" * 40, ["*"])

    async def together(times: int) -> list[httpx.Response]:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        headers = {"Authorization": "Bearer " + "t" * 40}
        async with httpx.AsyncClient(transport=transport, base_url="http://l2m", headers=headers, timeout=60) as client:
            path = f"/v1/cohorts/{cohorts['ward']}/advice"
            return await asyncio.gather(*(client.post(path, json={"patient": {"age": 71}}) for _ in range(times)))

    return lambda times=1: asyncio.run(together(times))


def test_the_document_and_the_routes_name_the_same(services: Services) -> None:
    app = make_app(services, "t" * 40, ["*"])
    routed = {(route.path, method.lower()) for route in app.routes for method in route.methods - {"HEAD"}}
    paths = openapi.document()["paths"]
    told = {(path, method) for path, item in paths.items() for method in item if method != "parameters"}
    assert routed == told


def test_the_schemas_are_schemas_and_the_example_is_one_of_them() -> None:
    document = openapi.document()
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator({**document, "$ref": f"#/components/schemas/{name}"})
        for example in schema.get("examples", []):
            validator.validate(example)
        assert not validator.is_valid("something else")


def test_every_rule_for_stopping_is_in_the_document() -> None:
    stopping = openapi.document()["components"]["schemas"]["Question"]["properties"]["stopping"]
    assert set(stopping["properties"]) == {rule.name for rule in fields(Stopping)}
    validator = jsonschema.Draft202012Validator(stopping)
    for rule in fields(Stopping):
        assert validator.is_valid({rule.name: None}) and not validator.is_valid({rule.name: -1})


def test_more_questions_than_may_wait_are_asked_to_come_again(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "MOST_WAITING", 1)
    answers = ask(4)
    assert 200 in [answer.status_code for answer in answers]
    late = [answer for answer in answers if answer.status_code == 503]
    assert late and all(answer.headers["retry-after"] == "5" for answer in late)
    assert "Too many questions" in refusal(late[0], 503)


def test_a_cohort_that_is_still_read_says_how_far(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Services, "has_read", lambda *_: True)
    monkeypatch.setattr(Services, "reading", lambda *_: 0.4)
    monkeypatch.setattr(application, "READING_PATIENCE", 0.2)
    assert "still being read, 40% so far. Ask again" in refusal(ask()[0], 503)


def test_an_answer_that_takes_too_long_is_not_waited_for(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "PATIENCE", 0.0)
    assert "no answer within 0 seconds" in refusal(ask()[0], 503)


def test_a_fault_of_the_program_tells_nothing_of_the_patient(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("age is 71")

    monkeypatch.setattr(application, "answer_about", fail)
    answer = ask()[0]
    assert "71" not in refusal(answer, 500) and "Something went wrong" in answer.text
