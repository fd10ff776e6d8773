"""The hash chain by itself: what it is made of, and that nothing about a past link changes unnoticed."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store import StoreInputError, chain

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
START = chain.origin(step_through="one")


def make_links(payloads: list[object]) -> list[chain.Link]:
    links: list[chain.Link] = []
    for sequence, payload in enumerate(payloads):
        head = links[-1].hash if links else START
        fields = (sequence, f"id-{sequence}", "observe", f"2025-01-{sequence:02}", chain.canonical_json(payload), head)
        links.append(chain.Link(*fields, chain.link_hash("one", *fields)))
    return links


@given(JSON)
def test_canonical_json_is_ascii_and_comes_back_equal(value: object) -> None:
    text = chain.canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value


@given(st.dictionaries(st.text(), st.integers(0, 9), min_size=2))
def test_canonical_json_does_not_depend_on_the_order_of_keys(value: dict) -> None:
    assert chain.canonical_json(value) == chain.canonical_json(dict(reversed(value.items())))


@given(JSON, st.text(), st.text(), st.integers(0, 10**6))
def test_a_link_hashes_the_canonical_json_of_its_fields(payload: object, event_id: str, kind: str, number: int) -> None:
    fields = {
        "at": "2025-01-31T12:00:00.000000Z",
        "chain": "one",
        "event_id": event_id,
        "kind": kind,
        "payload": payload,
        "previous": START,
        "sequence": number,
    }
    expected = sha256(chain.canonical_json(fields).encode()).hexdigest()
    assert (
        chain.link_hash(
            "one", number, event_id, kind, "2025-01-31T12:00:00.000000Z", chain.canonical_json(payload), START
        )
        == expected
    )


def test_a_whole_chain_is_whole() -> None:
    links = make_links([{"value": number} for number in range(5)])
    assert chain.walk("one", START, links) == chain.Walk(5, links[-1].hash)
    assert chain.walk("one", START, []) == chain.Walk(0, START)


@pytest.mark.parametrize("field", chain.Link._fields)
def test_a_change_of_any_field_is_named(field: str) -> None:
    links = make_links([{"value": number} for number in range(5)])
    value = getattr(links[2], field)
    changed = value + 1 if field == "sequence" else value[:-1] + ("0" if value[-1] != "0" else "1")
    links[2] = links[2]._replace(**{field: changed})
    found = chain.walk("one", START, links)
    assert found.broken_at == 2
    assert found.reason


def test_text_cannot_move_between_fields() -> None:
    """kind 'a' with payload '{"x":"b","payload":1}' reads as another link when the border between them moves."""
    (honest,) = make_links([{"x": "b", "payload": 1}])
    moved = honest._replace(kind='observe","payload":{"payload":1,"x":"b', payload='"}')
    assert chain.walk("one", START, [moved]).broken_at == 0


def test_links_hold_in_their_own_chain_only() -> None:
    links = make_links([{"value": 1}])
    assert chain.walk("two", START, links).broken_at == 0
    assert chain.walk("one", chain.origin(step_through="two"), links).broken_at == 0


def test_a_cut_at_the_end_shows_against_a_head_kept_elsewhere() -> None:
    links = make_links([{"value": number} for number in range(5)])
    anchor = chain.Head(5, links[-1].hash)
    assert chain.walk("one", START, links[:3]).reason == ""
    cut = chain.walk("one", START, links[:3], [anchor])
    assert (cut.broken_at, cut.reason) == (3, "link 3 is missing: 2 cut off at the end")
    assert chain.walk("one", START, links, [anchor]).reason == ""


def test_a_rewritten_chain_shows_against_a_head_kept_elsewhere() -> None:
    links, rewritten = make_links([{"value": 1}, {"value": 2}]), make_links([{"value": 1}, {"value": 3}, {"value": 4}])
    assert chain.walk("one", START, rewritten, [chain.Head(2, links[1].hash)]).broken_at == 1
    both = [chain.Head(2, links[1].hash), chain.Head(2, rewritten[1].hash)]
    assert chain.walk("one", START, links, both).broken_at == 1


def test_deep_nesting_is_refused_rather_than_overflowing() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(StoreInputError, match="nested"):
        chain.canonical_json(value)
