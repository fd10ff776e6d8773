"""CDS Hooks: discovery, one card for an open chart, and refusals."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.api import cds_hooks
from tests.api.conftest import refusal
from tests.patients.ward import bundle, observation, patient

OUTCOME = {"resourceType": "OperationOutcome", "issue": [{"severity": "error", "code": "timeout"}]}


def chart(*entries: dict, **facts: Any) -> dict:
    return {
        "hook": "patient-view",
        "hookInstance": "5f8c0d0e-0000-4000-8000-000000000000",
        "context": {"userId": "Practitioner/1", "patientId": "a"},
        "prefetch": {
            "patient": patient(gender="male")["resource"],
            "observations": {**bundle(*entries), "type": "searchset"},
        },
        **facts,
    }


def service(cohorts: dict[str, str], name: str = "ward") -> str:
    return f"/cds-services/l2m-{cohorts[name]}"


def test_discovery_lists_the_shared_cohorts_that_have_codes(client: httpx.Client, cohorts: dict[str, str]) -> None:
    (told,) = client.get("/cds-services").json()["services"]
    assert told["hook"] == "patient-view" and told["id"] == f"l2m-{cohorts['ward']}"
    assert told["title"] and "Research use only" in told["description"]
    assert told["prefetch"]["patient"] == "Patient/{{context.patientId}}"
    assert "code=http://loinc.org|30525-0," in told["prefetch"]["observations"]


def test_an_open_chart_gets_one_card_that_ranks(client: httpx.Client, cohorts: dict[str, str]) -> None:
    sent = chart(
        observation("2524-7", 3.5),
        observation("2951-2", 133, of="https://ehr.example/fhir/Patient/a"),
        observation("2160-0", 1.1, "mg/dL"),
        observation("2524-7", 29.0, of="Patient/b"),
    )
    (card,) = client.post(service(cohorts), json=sent).json()["cards"]
    assert 0 < len(card["summary"]) <= 140 and card["indicator"] == "info" and "ward" in card["source"]["label"]
    assert "**died**: yes" in card["detail"] and "\n1. " in card["detail"]
    assert "2160\\-0: No feature of this cohort has this code" in card["detail"]
    assert "1 × resource of another patient" in card["detail"] and "Research use only" in card["detail"]
    assert "suggestions" not in card  # it ranks, and proposes no order
    asked = {"patient": {"sex": "M", "lactate": 3.5, "sodium": 133}}
    advice = client.post(f"/v1/cohorts/{cohorts['ward']}/advice", json=asked).json()["patients"][0]
    assert card["summary"] == advice["verdict"]["sentence"]


@pytest.mark.parametrize(
    "prefetch", [None, {}, {"patient": None, "observations": None}, {"patient": patient()["resource"]}]
)
def test_without_its_resources_the_service_asks_nobody(
    client: httpx.Client, cohorts: dict[str, str], prefetch: Any
) -> None:
    answer = client.post(service(cohorts), json=chart(prefetch=prefetch))
    assert "This server asks nobody" in refusal(answer, 412)


@pytest.mark.parametrize(
    "sent", [OUTCOME, {"resourceType": "Observation", "status": "final"}, {}], ids=["outcome", "observation", "empty"]
)
def test_a_search_that_gave_no_bundle_is_not_read_as_a_patient_without_results(
    client: httpx.Client, cohorts: dict[str, str], sent: dict
) -> None:
    prefetch = {"patient": patient(gender="male")["resource"], "observations": sent}
    answer = client.post(service(cohorts), json=chart(prefetch=prefetch))
    assert "not a Bundle: what was measured is not known" in refusal(answer, 412)


def test_a_card_tells_what_a_search_said_and_that_it_goes_on(client: httpx.Client, cohorts: dict[str, str]) -> None:
    sent = chart(observation("2524-7", 3.5), {"resource": OUTCOME, "search": {"mode": "outcome"}})
    sent["prefetch"]["observations"]["link"] = [{"relation": "next", "url": "https://ehr.example/fhir?page=2"}]
    (card,) = client.post(service(cohorts), json=sent).json()["cards"]
    assert "1 × OperationOutcome" in card["detail"] and "another patient" not in card["detail"]
    assert "goes on on a next page, which was not sent" in card["detail"] and "ehr" not in card["detail"]


def test_a_result_may_name_the_version_of_its_patient(client: httpx.Client, cohorts: dict[str, str]) -> None:
    plainly = client.post(service(cohorts), json=chart(observation("2524-7", 3.5)))
    versioned = client.post(service(cohorts), json=chart(observation("2524-7", 3.5, of="Patient/a/_history/3")))
    assert versioned.json() == plainly.json()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"hook": "order-sign"}, "answers the hook 'patient-view'"),
        ({"context": {}}, "no patientId"),
        ({"context": []}, "no patientId"),
        ({"context": {"patientId": "b"}}, "not the one whose chart is open"),
    ],
)
def test_a_request_that_is_not_for_this_chart_is_refused(
    client: httpx.Client, cohorts: dict[str, str], changed: dict, words: str
) -> None:
    assert words in refusal(client.post(service(cohorts), json=chart(**changed)), 422)


def test_somebody_elses_service_reads_like_none(client: httpx.Client, cohorts: dict[str, str]) -> None:
    for path in (service(cohorts, "private"), "/cds-services/l2m-x", "/cds-services/other"):
        refusal(client.post(path, json=chart()), 404)


def test_a_name_is_never_markdown() -> None:
    assert cds_hooks.plain("![x](http://evil) <b>*sodium*</b>\n# head") == (
        r"\!\[x\]\(http\://evil\) \<b\>\*sodium\*\</b\> \# head"
    )


def test_a_long_verdict_is_cut_to_what_a_summary_may_have() -> None:
    quantiles = {"mean": 6, "5% quantile": 1, "50% quantile": 4, "95% quantile": 19.5}
    answer = {
        "verdict": {"sentence": "x" * 300},
        "belief": {"outcome": "length of stay", "quantiles": quantiles},
        "ranking": [],
        "not_used": [{"what": f"c{number}", "why": "why."} for number in range(9)],
        "notes": [],
    }
    made = cds_hooks.card("ward", answer, ())
    assert len(made["summary"]) == 140 and "mean 6, median 4, 90 of 100 between 1 and 19.5" in made["detail"]
    assert "And 4 more that were not used" in made["detail"]


def test_what_is_said_of_values_that_were_used_is_not_listed_as_unused() -> None:
    answer = {
        "verdict": {"sentence": "Measure sodium."},
        "belief": {"outcome": "died", "probabilities": {"yes": 0.9, "no": 0.1}},
        "ranking": [],
        "not_used": [{"what": "sodium", "why": "It has no value."}],
        "notes": ["age is known"],
    }
    told, left_out = cds_hooks.card("ward", answer, ("Not read",))["detail"].split("What was not used, and why:")
    assert "- age is known\n- Not read" in told and "age" not in left_out and "- sodium: It has no value" in left_out
    nothing_left_out = cds_hooks.card("ward", {**answer, "not_used": []}, ())["detail"]
    assert "age is known" in nothing_left_out and "not used" not in nothing_left_out


def test_a_test_that_was_rarely_measured_is_named_without_a_number() -> None:
    common = {"status": "open", "cost": 1.0}
    ranking = [
        {"feature": "sodium", "gain_nats": 0.0123, "recorded_in": 80, **common},
        {"feature": "copper", "gain_nats": None, "recorded_in": 6, **common},
    ]
    answer = {
        "verdict": {"sentence": "Measure sodium."},
        "belief": {"outcome": "died", "probabilities": {"yes": 0.9, "no": 0.1}},
        "ranking": ranking,
        "not_used": [],
        "notes": [],
    }
    detail = cds_hooks.card("c", answer, ())["detail"]
    assert "1. sodium: 0.012 nats, cost 1" in detail
    assert "2. copper: too rarely measured to say, cost 1, recorded in 6 patients" in detail
