"""A FHIR Bundle: codes and units decide what is used; nothing is guessed, all else is listed."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients import read_patients
from l2m_core.schema import Feature, Outcome, Schema
from tests.patients.ward import FEATURES, bundle, observation, patient, quantity, ward


@pytest.fixture(scope="module")
def cohort():
    return ward()


def read(cohort, *entries):
    return read_patients(json.dumps(bundle(*entries)), cohort)


def only(cohort, *entries):
    (record,) = read(cohort, *entries).patients
    return record


def reasons(record) -> list[tuple[str, str]]:
    return [(left.what, left.kind) for left in record.unused]


def test_results_are_found_by_code_and_unit(cohort):
    record = only(
        cohort,
        patient(gender="male", birthDate="1955-03-01"),
        observation("2524-7", 3.2, effectiveDateTime="2026-02-28T08:00:00Z"),
        observation("24627-2", valueCodeableConcept={"text": "Dense"}),
    )
    assert record.values == {"age": 70, "sex": "M", "lactate": 3.2, "scan": "dense"} and record.unused == ()
    assert record.notes == ("age is the age on 2026-02-28, the day of the newest result.",)


@pytest.mark.parametrize(
    ("levels", "male", "female"),
    [
        (("F", "M"), "M", "F"),
        (("m", "w"), "m", "w"),
        (("H", "M"), "H", "M"),  # hombre, mujer
        (("F", "H"), "H", "F"),  # femme, homme
        (("F", "N"), None, None),  # férfi is a man
        (("F", "H", "M"), None, None),
        (("1", "2"), None, None),
    ],
)
def test_a_letter_stands_for_a_gender_only_beside_the_other_ones(levels, male, female):
    sex = Feature("sex", kind="category", levels=levels, code="46098-0")
    frame = pd.DataFrame({"sex": np.resize(levels, 40), "died": np.resize(["no", "yes", "yes"], 40)})
    cohort = Cohort.from_frame(frame, schema=Schema((sex,), Outcome("died", classes=("no", "yes"))))
    for gender, level in (("male", male), ("female", female)):
        record = only(cohort, patient(gender=gender))
        assert record.values.get("sex") == level and bool(record.unused) is (level is None)


def test_a_reference_to_a_version_of_a_patient_is_one_to_the_patient(cohort):
    record = only(cohort, patient(gender="male"), observation("2524-7", 3.2, of="Patient/a/_history/2"))
    assert record.values == {"sex": "M", "lactate": 3.2}


def test_a_page_of_results_is_said_to_be_one(cohort):
    page = bundle(patient(), observation("2524-7", 3.2)) | {"link": [{"relation": "self"}, {"relation": "next"}]}
    assert "goes on on a next page" in read_patients(json.dumps(page), cohort).notes[0]


def test_without_a_time_the_age_is_todays(cohort):
    born = datetime.now(UTC).year - 50
    assert only(cohort, patient(birthDate=f"{born}-01-01")).values["age"] == 50


@pytest.mark.parametrize(
    ("born", "used"), [("1955", False), ("1955-03", False), ("no date", False), ("1955-03-01", True)]
)
def test_an_age_needs_a_whole_birth_date(cohort, born, used):
    record = only(cohort, patient(birthDate=born))
    assert ("age" in record.values) is used and bool(record.unused) is not used


@pytest.mark.parametrize(
    ("born", "age"), [("2026-03-01", 0.0), ("2026-02-28", 0.0), ("2026-03-02", None), ("2062-03-01", None)]
)
def test_nobody_is_born_after_the_newest_result(cohort, born, age):
    result = observation("2524-7", 3.2, effectiveDateTime="2026-02-28T08:00:00Z")
    record = only(cohort, patient(birthDate=born), result)
    assert record.values.get("age") == age
    told = f"Patient.birthDate: {born} is after the newest result, of 2026-02-28, so the age is not known."
    assert [str(left) for left in record.unused] == ([told] if age is None else [])


def test_a_result_that_does_not_count_makes_nobody_older(cohort):
    results = [
        observation("2524-7", 3.2, effectiveDateTime="2026-02-28T08:00:00Z"),
        observation("2524-7", 3.9, effectiveDateTime="2036-02-28T08:00:00Z", status="entered-in-error"),
    ]
    assert only(cohort, patient(birthDate="1956-01-01"), *results).values["age"] == 70


def test_unknown_codes_and_units_are_listed(cohort):
    record = only(
        cohort,
        patient(gender="unknown"),
        observation("2160-0", 1.1, "mg/dL"),
        observation("2524-7", 30, "mg/dL"),
        observation("2951-2", valueQuantity={"value": 140}),
        observation("8480-6", valueString="high"),
        {
            "resource": {
                "resourceType": "Observation",
                "status": "final",
                "code": {"text": "Mood"},
                "valueString": "low",
            }
        },
    )
    assert record.values == {}
    assert reasons(record) == [
        ("2160-0", "unknown"),
        ("Mood", "unknown"),
        ("2524-7", "unit"),
        ("2951-2", "unit"),
        ("8480-6", "unit"),
        ("Patient.gender", "value"),
    ]
    assert "in mg/dL, but 'lactate' is in mmol/L. Nothing was converted." in record.unused[2].why


def test_a_panel_gives_each_of_its_components(cohort):
    coding = {"coding": [{"system": "http://loinc.org", "code": "8480-6"}]}
    other = {"coding": [{"system": "http://loinc.org", "code": "8462-4"}]}
    parts = [
        {"code": coding, "valueQuantity": quantity(118, "mm[Hg]")},
        {"code": other, "valueQuantity": quantity(70, "mm[Hg]")},
    ]
    record = only(cohort, observation("85354-9", component=parts))
    assert record.values == {"systolic": 118} and reasons(record) == [("8462-4", "unknown")]


def test_the_latest_of_several_results_counts(cohort):
    record = only(
        cohort,
        observation("2524-7", 9.0, effectiveDateTime="2026-02-28T08:00:00+09:00"),
        observation("2524-7", 3.0, effectiveDateTime="2026-02-28T08:00:00Z"),
        observation("2524-7", 7.0, effectiveDateTime="2026-01"),
    )
    assert record.values == {"lactate": 3.0} and "of 3 results the latest" in record.notes[0]


@pytest.mark.parametrize(
    "times", [(None, None), ("2026-02-28", "2026-02-28T08:00:00Z"), ("2026", "2026-05-01"), ("2026-02-28", None)]
)
def test_results_whose_order_is_not_told_are_not_chosen_between(cohort, times):
    entries = [
        observation("2524-7", value, **({"effectiveDateTime": time} if time else {}))
        for value, time in zip((3.0, 4.0), times, strict=True)
    ]
    record = only(cohort, *entries)
    assert record.values == {} and reasons(record) == [("2524-7", "doubt")]


def test_results_that_say_the_same_need_no_order(cohort):
    assert only(cohort, observation("2524-7", 3.0), observation("2524-7", 3.0)).values == {"lactate": 3.0}


@pytest.mark.parametrize(
    ("status", "used"), [("final", True), ("preliminary", True), ("entered-in-error", False), ("", False)]
)
def test_a_result_counts_by_its_status(cohort, status, used):
    record = only(cohort, observation("2524-7", 3.0, status=status))
    assert ("lactate" in record.values) is used
    assert any("preliminary" in note for note in record.notes) is (status == "preliminary")


@pytest.mark.parametrize(("sign", "limit"), [("<", "below"), (">=", "above")])
def test_a_comparator_is_a_detection_limit(cohort, sign, limit):
    record = only(cohort, observation("2524-7", valueQuantity=quantity(0.3, "mmol/L", comparator=sign)))
    assert record.values == {"lactate": 0.3} and record.limits == {"lactate": limit}
    unknown = only(cohort, observation("2524-7", valueQuantity=quantity(0.3, "mmol/L", comparator="ad")))
    assert unknown.values == {} and reasons(unknown) == [("2524-7", "value")]


def test_a_value_out_of_range_is_listed(cohort):
    record = only(cohort, observation("2524-7", 300))
    assert record.values == {} and "outside the allowed range" in record.unused[0].why


def test_each_patient_has_their_own_results(cohort):
    found = read(
        cohort,
        patient("a"),
        {"fullUrl": "urn:uuid:7", **patient("b")},
        observation("2524-7", 1.0, of="Patient/b"),
        observation("2951-2", 141, of="urn:uuid:7"),
        observation("2524-7", 2.0),
        observation("2524-7", 9.0, of=None),
        observation("2524-7", 5.0, of="Patient/stranger"),
        {"resource": {"resourceType": "MedicationRequest"}},
    )
    assert [dict(record.values) for record in found.patients] == [
        {"lactate": 2.0},
        {"lactate": 1.0, "sodium": 141},
        {"lactate": 5.0},
    ]
    assert found.notes == (
        "Not read: 1 × MedicationRequest.",
        "Not read: 1 × Observation that says of no patient whose it is.",
    )


def test_a_full_address_means_the_patient_of_that_name_whose_own_address_is_not_told(cohort):
    far = "https://there.example/fhir/Patient"
    known, other = (
        {"fullUrl": f"{far}/b", **patient("b")},
        observation("2524-7", 5.0, of="https://else.example/fhir/Patient/b"),
    )
    found = read(cohort, patient("a"), known, observation("2524-7", 1.0, of=f"{far}/a"), other)
    assert [dict(record.values) for record in found.patients] == [{"lactate": 1.0}, {}, {"lactate": 5.0}]


def test_of_two_servers_neither_patient_is_taken_for_one_whose_server_is_not_told(cohort):
    here, there = (f"https://{name}.example/fhir/Patient/a" for name in ("here", "there"))
    found = read(cohort, patient("a"), observation("2524-7", 1.0, of=here), observation("2524-7", 5.0, of=there))
    assert [dict(record.values) for record in found.patients] == [{}, {"lactate": 1.0}, {"lactate": 5.0}]


def test_an_observation_of_the_only_patient_may_leave_out_whose_it_is(cohort):
    assert only(cohort, patient("a"), observation("2524-7", 2.0, of=None)).values == {"lactate": 2.0}
    assert only(cohort, observation("2524-7", 2.0, of=None)).values == {"lactate": 2.0}


@pytest.mark.parametrize(("value", "level"), [(True, "positive"), (False, "negative")])
def test_a_truth_value_is_called_what_the_cohort_calls_it(value, level):
    factor = Feature("factor", kind="category", levels=("positive", "negative"), code="11572-5")
    frame = pd.DataFrame({"factor": ["positive", "negative"] * 10, "died": ["no", "no", "yes", "yes"] * 5})
    cohort = Cohort.from_frame(frame, schema=Schema((factor,), Outcome("died", classes=("no", "yes"))))
    record = only(cohort, observation("11572-5", valueBoolean=value))
    assert record.values == {"factor": level} and record.notes == ()


def test_a_code_of_two_features_is_in_doubt():
    features = (*FEATURES, Feature("lactate later", unit="mmol/L", code="2524-7"))
    with_later = ward(lactate_later=True, schema=Schema(features, Outcome("died", classes=("no", "yes"))))
    record = only(with_later, observation("2524-7", 2.0))
    assert record.values == {} and reasons(record) == [("2524-7", "doubt")]


def test_a_code_of_an_ignored_feature_is_not_read():
    bed = Feature("bed", role="ignored", code="2160-0")
    features = tuple(bed if feature.name == "bed" else feature for feature in FEATURES)
    record = only(ward(schema=Schema(features, Outcome("died", classes=("no", "yes")))), observation("2160-0", 2.0))
    assert reasons(record) == [("2160-0", "not read")]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"resourceType": "Patient"}, "Give a Bundle"),
        ({"resourceType": 5}, "Give a Bundle"),
        ({"resourceType": "Bundle"}, "neither a Patient nor an Observation"),
        ({"resourceType": "Bundle", "entry": {"resource": 1}}, "neither"),
        ({"resourceType": "Bundle", "entry": [1, None, {"resource": []}]}, "neither"),
    ],
)
def test_what_is_no_bundle_of_patients_is_refused(cohort, broken, words):
    with pytest.raises(InputError, match=words):
        read_patients(json.dumps(broken), cohort)


@pytest.mark.parametrize(
    "spoilt", [None, [], "x", 5, {"coding": 1}, {"coding": [1]}, {"coding": [{"system": 1, "code": 2}]}]
)
def test_what_has_another_shape_is_listed_and_never_a_crash(cohort, spoilt):
    found = read(
        cohort,
        {"resource": {**observation("2524-7", 2.0)["resource"], "subject": spoilt, "code": spoilt}},
        observation("2951-2", valueQuantity=spoilt, effectivePeriod=spoilt, component=spoilt),
        {"resource": {"resourceType": "Patient", "id": spoilt, "birthDate": spoilt, "gender": spoilt}},
    )
    assert not any(record.values for record in found.patients) and any(record.unused for record in found.patients)


def test_a_cohort_without_codes_says_what_to_do():
    bare = Schema((Feature("age"), Feature("lactate")), Outcome("died", classes=("no", "yes")))
    with pytest.raises(InputError, match="No feature of this cohort has a LOINC code"):
        read_patients(json.dumps(bundle(patient())), ward(schema=bare))
