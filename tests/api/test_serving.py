"""Who may ask, for what, and how much: asked by a real client of a real server."""

from __future__ import annotations

import json
import os
import socket
import stat
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from app.api import bodies
from app.api.tokens import load_token
from app.host.services import Services
from l2m_core.acquire.stopping import Stopping
from l2m_core.errors import ConfigError
from l2m_core.step_through.verdict import verdict
from tests.api.conftest import OWNER, Served, holds, refusal, start, stop
from tests.patients.ward import bundle, observation, patient

PATIENCE = 60  # seconds; a busy machine is slow
KNOWN = {"age": 71, "sex": "M", "lactate": 3.5}


def advice(cohort: str) -> str:
    return f"/v1/cohorts/{cohort}/advice"


# -- the answer -------------------------------------------------------------------------------------------------------


def test_a_patient_is_answered_for_as_by_the_library(
    client: httpx.Client, cohorts: dict[str, str], services: Services
) -> None:
    said = holds(client.post(advice(cohorts["ward"]), json={"patient": KNOWN}), "Advice")
    (answer,) = said["patients"]
    stored = services.store.cohorts.get(OWNER, cohorts["ward"])
    here = services.model(OWNER).condition(services.cohort(OWNER, stored)).start(KNOWN)
    assert answer["belief"]["probabilities"] == pytest.approx(here.posterior.to_dict(), abs=1e-5)
    assert (answer["belief"]["positive"], answer["known"]) == ("yes", KNOWN)
    assert [test["feature"] for test in answer["ranking"]] == list(here.ranking.feature)
    assert answer["verdict"]["sentence"] and answer["not_used"] == []
    assert said["cohort"]["content_hash"] == stored.content_hash and "Research use only" in said["use"]


def test_a_continuous_outcome_has_quantiles(client: httpx.Client, cohorts: dict[str, str]) -> None:
    said = holds(client.post(advice(cohorts["uncoded"]), json={"patient": {"age": 60}}), "Advice")
    numbers = said["patients"][0]["belief"]["quantiles"]
    assert numbers["5% quantile"] < numbers["mean"] < numbers["95% quantile"]


def test_several_patients_come_in_a_list_or_a_table(client: httpx.Client, cohorts: dict[str, str]) -> None:
    listed = client.post(advice(cohorts["ward"]), json={"patients": [{"age": 71}, {"age": 44, "lactate": "<2"}]})
    headers = {"content-type": "text/csv"}
    table = client.post(advice(cohorts["ward"]), content="age,lactate\n71,\n44,<2\n", headers=headers)
    first, second = (holds(answer, "Advice")["patients"] for answer in (listed, table))
    assert [answer["limits"] for answer in first] == [{}, {"lactate": "below"}]
    assert [answer["belief"] for answer in first] == [answer["belief"] for answer in second]


def test_a_bundle_is_read_by_codes_and_what_was_not_used_is_told(client: httpx.Client, cohorts: dict[str, str]) -> None:
    sent = bundle(patient(gender="male"), observation("2524-7", 3.5), observation("2160-0", 1.1, "mg/dL"))
    inside = client.post(advice(cohorts["ward"]), json={"bundle": sent})
    headers = {"content-type": "application/fhir+json; charset=utf-8"}
    alone = client.post(advice(cohorts["ward"]), content=json.dumps(sent), headers=headers)
    for answer in (inside, alone):
        (said,) = holds(answer, "Advice")["patients"]
        assert said["known"] == {"sex": "M", "lactate": 3.5}
        assert [(left["what"], left["kind"]) for left in said["not_used"]] == [("2160-0", "unknown")]


def test_what_is_sent_as_fhir_and_is_none_gets_no_answer_about_nobody(
    client: httpx.Client, cohorts: dict[str, str]
) -> None:
    headers = {"content-type": "application/fhir+json"}
    for body in ({}, {"patient": KNOWN}):
        answer = client.post(advice(cohorts["ward"]), content=json.dumps(body), headers=headers)
        assert "not a FHIR Bundle: it has no resourceType" in refusal(answer, 422)
    table = client.post(advice(cohorts["ward"]), content="age,lactate\n71,2\n", headers=headers)
    assert "not valid JSON" in refusal(table, 422)


def test_rules_and_what_cannot_be_had_are_kept_to(client: httpx.Client, cohorts: dict[str, str]) -> None:
    asked = {"patient": KNOWN, "unavailable": ["scan"], "stopping": {"budget": 0}, "policy": "gain per cost"}
    (said,) = holds(client.post(advice(cohorts["ward"]), json=asked), "Advice")["patients"]
    assert {test["feature"]: test["status"] for test in said["ranking"]}["scan"] == "unavailable"
    assert said["verdict"]["action"] == "stop" and "budget" in said["verdict"]["sentence"]


def test_stopping_is_advised_as_in_a_new_step_through_but_for_what_is_asked(
    client: httpx.Client, cohorts: dict[str, str], services: Services
) -> None:
    def verdict_by(stopping: dict[str, Any]) -> dict[str, Any]:
        asked = {"patient": KNOWN, "stopping": stopping}
        return holds(client.post(advice(cohorts["ward"]), json=asked), "Advice")["patients"][0]["verdict"]

    stored = services.store.cohorts.get(OWNER, cohorts["ward"])
    memory = services.model(OWNER).condition(services.cohort(OWNER, stored))
    first = Stopping.at_first(memory.cohort, memory.release)
    assert first.least_points == 1
    here = verdict(memory.start(KNOWN, stopping=first))
    for said in (verdict_by({}), verdict_by({"budget": 5}), verdict_by({"least_points": 1})):
        assert (said["action"], said["feature"], said["sentence"]) == (here.action, here.feature, here.sentence)
    assert verdict_by({"least_points": 100})["sentence"].endswith("likely to move this by more than 100 points.")
    assert verdict_by({"least_points": None})["action"] == "measure" == verdict(memory.start(KNOWN)).action


def test_nothing_known_is_a_question_too(client: httpx.Client, cohorts: dict[str, str]) -> None:
    assert holds(client.post(advice(cohorts["ward"]), json={"patient": {}}), "Advice")["patients"][0]["known"] == {}


# -- who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["", "wrong", "ü"])
@pytest.mark.parametrize("path", ["/v1/cohorts", "/cds-services", "/nowhere"])
def test_without_the_token_nothing_is_told(served: Served, token: str, path: str) -> None:
    headers = {"Authorization": f"Bearer {token}".encode()} if token else {}
    answer = httpx.get(served.address + path, headers=headers, timeout=PATIENCE, trust_env=False)
    assert "Authorization: Bearer" in refusal(answer, 401) and answer.headers["www-authenticate"] == "Bearer"


def test_the_token_counts_only_whole_and_as_a_bearer(served: Served) -> None:
    for header in (served.token, f"Basic {served.token}", f"Bearer {served.token[:-1]}", f"Bearer {served.token}x"):
        headers = {"Authorization": header}
        assert httpx.get(f"{served.address}/v1/cohorts", headers=headers, timeout=PATIENCE).status_code == 401


def test_health_and_the_document_are_open_and_tell_nothing_of_the_installation(
    served: Served, cohorts: dict[str, str]
) -> None:
    holds(httpx.get(f"{served.address}/health", timeout=PATIENCE), "Health")
    text = httpx.get(f"{served.address}/openapi.json", timeout=PATIENCE).text
    assert not any(identifier in text for identifier in cohorts.values()) and served.token not in text


def test_the_token_lies_in_a_file_of_its_own_and_its_value_is_never_printed(served: Served) -> None:
    assert f"token in {served.data_dir / 'http.token'}" in served.said[1]
    assert served.token not in "".join(served.said) + served.log.read_text()
    if os.name == "posix":
        assert stat.S_IMODE((served.data_dir / "http.token").stat().st_mode) == 0o600


def test_the_token_stays_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "http.token"
    assert load_token(file) == load_token(file) and len(load_token(file)) >= 32
    for damaged in ("", "short", "a b" * 20, "ü" * 40):
        file.write_text(damaged, encoding="utf-8")
        with pytest.raises(ConfigError, match="damaged. Delete it"):
            load_token(file)


def test_it_listens_on_loopback_and_under_its_own_names(served: Served, client: httpx.Client) -> None:
    assert urlsplit(served.address).hostname == "localhost"
    assert client.get("/v1/cohorts", headers={"Host": "rebound.example"}).status_code == 400


def test_a_connection_is_kept_for_longer_than_clients_keep_theirs(served: Served) -> None:
    kept = HTTPConnection("127.0.0.1", urlsplit(served.address).port or 0, timeout=60)
    kept.connect()
    first = kept.sock
    for _ in range(2):
        kept.request("GET", "/health")
        answer = kept.getresponse()  # raises where the server has let go
        answer.read()
        assert (answer.status, kept.sock) == (200, first), "what httpx asks within its five seconds is answered"
        time.sleep(6)
    kept.close()


def test_only_shared_cohorts_are_there(client: httpx.Client, cohorts: dict[str, str]) -> None:
    listed = holds(client.get("/v1/cohorts"), "Cohorts")["cohorts"]
    assert {cohort["id"] for cohort in listed} == {cohorts["ward"], cohorts["uncoded"]}
    schema = holds(client.get(f"/v1/cohorts/{cohorts['ward']}"), "CohortWithSchema")
    codes = {feature["name"]: feature["code"] for feature in schema["features"]}
    assert codes["lactate"] == "2524-7" and "bed" not in codes


@pytest.mark.parametrize("ending", ["", "/advice"])
def test_somebody_elses_cohort_reads_like_none(client: httpx.Client, cohorts: dict[str, str], ending: str) -> None:
    def ask(identifier: str) -> httpx.Response:
        path = f"/v1/cohorts/{identifier}{ending}"
        return client.post(path, json={"patient": KNOWN}) if ending else client.get(path)

    words = {refusal(ask(identifier), 404) for identifier in (cohorts["private"], str(uuid4()), "x" * 500)}
    assert len(words) == 1


def test_a_cohort_that_is_no_longer_shared_is_gone_at_once(
    client: httpx.Client, cohorts: dict[str, str], services: Services
) -> None:
    path = advice(cohorts["uncoded"])
    assert client.post(path, json={"patient": {}}).status_code == 200
    services.store.cohorts.share(OWNER, cohorts["uncoded"], False)
    try:
        refusal(client.post(path, json={"patient": {}}), 404)
    finally:
        services.store.cohorts.share(OWNER, cohorts["uncoded"], True)


def test_asking_is_told_in_the_audit_trail(client: httpx.Client, cohorts: dict[str, str], services: Services) -> None:
    assert client.post(advice(cohorts["ward"]), json={"patient": KNOWN}).status_code == 200
    acts = [(act.kind, act.subject) for act in services.store.audit.list("nobody")]
    assert ("cohort asked over HTTP", cohorts["ward"]) in acts


# -- what does not fit ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"patient": {"lactat": 3}}, "None of the names is one of this cohort's"),
        ({"patient": {"age": 71, "lactat": 3}}, "Did you mean 'lactate'?"),
        ({"patient": {"lactate": 300}}, "outside the allowed range"),
        ({"patient": {"lactate": "high"}}, "must be a number"),
        ({"patient": {"lactate": [3]}}, "more than one value"),
        ({"patient": {"lactate": True}}, "a truth value is not"),
        ({"patient": [{"age": 3}]}, "must be an object"),
        ({"patients": {"age": 3}}, "must be a list"),
        ({"patients": [{"age": 3}] * 21}, "at most 20"),
        ({"patient": {}, "bundle": {}}, "must hold one of"),
        ({}, "must hold one of"),
        ({"patient": {}, "modell": "general"}, "Did you mean 'model'?"),
        ({"patient": {}, "model": "none"}, "There is no model 'none'"),
        ({"patient": {}, "model": 3}, "must be a model's name"),
        ({"patient": {}, "policy": "best"}, "must be one of gain"),
        ({"patient": {}, "policy": []}, "must be one of gain"),
        ({"patient": {}, "stopping": {"budged": 3}}, "Did you mean 'budget'?"),
        ({"patient": {}, "stopping": {"budget": "3"}}, "must be a number"),
        ({"patient": {}, "stopping": {"confidence": 3}}, "between 0 and 1"),
        ({"patient": {}, "unavailable": ["sc"]}, "There is no feature 'sc'"),
        ({"patient": {}, "unavailable": "scan"}, "list of features"),
        ({"bundle": {"resourceType": "Patient"}}, "Give a Bundle"),
        ({"bundle": {"age": 3}}, "not a FHIR Bundle"),
        ({"patient": {"resourceType": "Bundle"}}, "Give it as 'bundle'"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(
    client: httpx.Client, cohorts: dict[str, str], asked: dict[str, Any], words: str
) -> None:
    assert words in refusal(client.post(advice(cohorts["ward"]), json=asked), 422)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[1]", "must be a JSON object"),
        (b'{"patient": {"age": NaN}}', "must be finite"),
        (b'{"patient": {"age": 1, "age": 2}}', "'age' twice"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"patient": ' + b"[" * 100 + b"]" * 100 + b"}", "nested"),
        (b'{"patient": ' + b"[" * 50000, "not valid JSON"),
    ],
)
def test_what_is_no_json_is_refused_in_words(
    client: httpx.Client, cohorts: dict[str, str], body: bytes, words: str
) -> None:
    headers = {"content-type": "application/json"}
    assert words in refusal(client.post(advice(cohorts["ward"]), content=body, headers=headers), 422)


def test_an_uncoded_cohort_takes_no_bundle(client: httpx.Client, cohorts: dict[str, str]) -> None:
    answer = client.post(advice(cohorts["uncoded"]), json={"bundle": bundle(patient())})
    assert "No feature of this cohort has a LOINC code" in refusal(answer, 422)


def test_other_types_addresses_and_methods_are_refused(client: httpx.Client, cohorts: dict[str, str]) -> None:
    answer = client.post(advice(cohorts["ward"]), content="<a/>", headers={"content-type": "text/xml"})
    assert "application/json" in refusal(answer, 415)
    assert "openapi.json" in refusal(client.get("/v2"), 404)
    assert "openapi.json" in refusal(client.get(advice(cohorts["ward"])), 405)


# -- how much ---------------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_is_refused(client: httpx.Client, cohorts: dict[str, str]) -> None:
    headers = {"content-type": "application/json"}
    announced = client.post(advice(cohorts["ward"]), content=b" " * (bodies.LARGEST + 1), headers=headers)
    assert "larger than 5 MB" in refusal(announced, 413)
    pieces = (b" " * 100_000 for _ in range(bodies.LARGEST // 100_000 + 2))
    refusal(client.post(advice(cohorts["ward"]), content=pieces, headers=headers), 413)
    taken: list[int] = []
    endless = (taken.append(size) or b" " * size for size in [1_000_000] * 1000)  # type: ignore[func-returns-value]
    with suppress(httpx.TransportError):  # cut off, whether or not the client hears why
        client.post(advice(cohorts["ward"]), content=endless, headers=headers)
    assert sum(taken) < 4 * bodies.DISCARDED
    assert client.get("/health").status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(served: Served, cohorts: dict[str, str]) -> None:
    place = urlsplit(served.address)
    head = (
        f"POST {advice(cohorts['ward'])} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {served.token}\r\n"
        'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"pat'
    )
    began = time.monotonic()
    with socket.create_connection((place.hostname, place.port), timeout=bodies.PATIENCE + 20) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536)
    assert b" 408 " in answer.partition(b"\r\n")[0] and time.monotonic() - began < bodies.PATIENCE + 10


# -- what is kept of it -----------------------------------------------------------------------------------------------


def test_no_value_reaches_the_log_or_the_store(served: Served, client: httpx.Client, cohorts: dict[str, str]) -> None:
    canary = "Kanarienvogel"
    for sent in ({"age": 71, "scan": canary}, {canary: 1}, {"lactate": canary}):
        client.post(advice(cohorts["ward"]), json={"patient": sent}, params={"name": canary})
    client.get(f"/v1/cohorts/{canary}")
    kept = b"".join(path.read_bytes() for path in served.data_dir.glob("l2m.sqlite3*"))
    log = served.log.read_text()
    assert kept and canary.encode() not in kept and canary not in log and cohorts["ward"] not in log


def test_a_second_start_keeps_the_token(served: Served, cohorts: dict[str, str]) -> None:
    other = start(served.data_dir, "other")
    try:
        with other.client() as asks:
            assert other.token == served.token and asks.get("/v1/cohorts").status_code == 200
    finally:
        stop(other)


def test_a_server_that_is_stopped_leaves_a_whole_database_file(tmp_path: Path) -> None:
    running = start(tmp_path)
    with running.client() as asks:
        assert asks.get("/v1/cohorts").json() == {"cohorts": []}
    stop(running)
    left = tmp_path / "l2m.sqlite3-wal"
    assert (tmp_path / "l2m.sqlite3").stat().st_size and (not left.exists() or not left.stat().st_size)
