"""Whatever is brought: patients whose values the cohort accepts, or a refusal in words; never another error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from l2m_core.cohort import Cohort
from l2m_core.errors import InputError
from l2m_core.patients import BroughtPatients, read_patients
from tests.patients.ward import ward

pytestmark = pytest.mark.filterwarnings("ignore::l2m_core.cohort.UnseenLevelWarning")
COHORT = ward()
NAMES = st.sampled_from([*COHORT.schema.names, "died", "other", ""])
CELLS = st.text("0123456789.,<>≤-+eE \t;|\"'FMclear∞½٣\u2212\u00a0\x00", max_size=12)
PLAIN = st.none() | st.booleans() | st.floats() | st.integers() | CELLS
WORDS = st.sampled_from(
    "resourceType Bundle entry resource Patient Observation id subject reference Patient/a code coding system "
    "http://loinc.org 2524-7 8480-6 valueQuantity valueString valueCodeableConcept value unit mmol/L comparator status "
    "final birthDate 1955-03-01 gender male effectiveDateTime 2026-02-28T24:61:00Z 2026-13 component".split()
)
ANY_JSON = st.recursive(
    PLAIN | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | NAMES, inner, max_size=5),
    max_leaves=20,
)
OBSERVATIONS = st.fixed_dictionaries(
    {"resourceType": st.just("Observation"), "status": WORDS, "code": ANY_JSON},
    optional={
        "subject": st.fixed_dictionaries({"reference": WORDS | CELLS}),
        "valueQuantity": st.fixed_dictionaries(
            {}, optional={n: PLAIN | WORDS for n in ("value", "unit", "code", "comparator")}
        ),
        "valueCodeableConcept": ANY_JSON,
        "effectiveDateTime": WORDS | CELLS,
        "component": ANY_JSON,
    },
)
CODES = st.sampled_from(["2524-7", "2951-2", "24627-2", "30525-0", "46098-0", "2160-0"])


@st.composite
def bundles(draw: st.DrawFn) -> object:
    entries = draw(st.lists(OBSERVATIONS | ANY_JSON, max_size=6))
    for entry in entries:
        if isinstance(entry, dict) and draw(st.booleans()):
            entry["code"] = {"coding": [{"system": "http://loinc.org", "code": draw(CODES)}]}
            entry["status"] = "final"
    return {"resourceType": "Bundle", "entry": [{"resource": entry} for entry in entries]}


def accepted(found: BroughtPatients, cohort: Cohort) -> bool:
    """Whether every value is one that a step-through takes, and no limit stands without its value."""
    for record in found.patients:
        cohort.encode(dict(record.values))
        assert set(record.limits) <= set(record.values) <= set(cohort.names)
        assert all(left.why and len(left.what) <= 80 for left in record.unused)
    return True


def try_to_read(source: str | bytes) -> None:
    try:
        found = read_patients(source, COHORT)
    except InputError as refusal:
        assert str(refusal)
    else:
        assert found.patients and accepted(found, COHORT)


@settings(max_examples=300, deadline=None)
@given(bundles() | ANY_JSON | st.lists(st.dictionaries(NAMES, PLAIN, max_size=5), max_size=3))
def test_any_json_is_read_or_refused(value: object) -> None:
    try_to_read(json.dumps(value))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(NAMES, min_size=1, max_size=5),
    st.lists(st.lists(CELLS, min_size=1, max_size=5), max_size=4),
    st.sampled_from(",;\t|"),
)
def test_any_table_is_read_or_refused(names: list[str], rows: list[list[str]], sign: str) -> None:
    try_to_read("\n".join(sign.join(row) for row in [names, *rows]))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try_to_read(data)
    try_to_read(b"age,lactate\n" + data)
    try_to_read(b'{"resourceType":"Bundle","entry":[' + data + b"]}")
