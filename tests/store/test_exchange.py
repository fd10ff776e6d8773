"""An exported chain is verified without the store, imported whole, and refused once anything in it was changed."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store import Store, StoreInputError, export_chain, import_chain
from tests.store.harness import OWNER, append_many, begin


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('exchange') / 'store.sqlite3'}", migrate=True)
    step_through = begin(store)
    append_many(store, step_through, 5)
    document = export_chain(*store.step_throughs.read(OWNER, step_through.id))
    store.close()
    return json.loads(json.dumps(document))


def test_an_export_is_imported_with_its_event_ids(exported: dict[str, Any], store: Store) -> None:
    events = import_chain(exported)
    cohort = store.step_throughs.get(OWNER, begin(store).id).cohort_id
    copied = store.step_throughs.create(OWNER, cohort, "model-1", events=events)
    stored = store.step_throughs.events(OWNER, copied.id)
    wanted = [(event["event_id"], event["kind"], event["payload"]) for event in exported["events"]]
    assert [(event.event_id, event.kind, event.payload) for event in stored] == wanted
    import_chain(export_chain(*store.step_throughs.read(OWNER, copied.id)))


@pytest.mark.parametrize("key", ["sequence", "event_id", "kind", "recorded_at", "payload", "previous_hash", "hash"])
def test_a_changed_event_is_named(exported: dict[str, Any], key: str) -> None:
    changed = copy.deepcopy(exported)
    changed["events"][2][key] = "undo" if key == "kind" else changed["events"][3][key]
    with pytest.raises(StoreInputError, match="link 2"):
        import_chain(changed)


@pytest.mark.parametrize("key", ["id", "cohort_hash", "model_fingerprint"])
def test_events_do_not_pass_for_those_of_another_cohort_or_model(exported: dict[str, Any], key: str) -> None:
    with pytest.raises(StoreInputError, match="changed"):
        import_chain({**exported, key: "another"})


def test_a_cut_or_extended_export_is_refused(exported: dict[str, Any]) -> None:
    with pytest.raises(StoreInputError, match="cut off"):
        import_chain({**exported, "events": exported["events"][:-1]})
    shorter = {"length": 4, "hash": exported["events"][3]["hash"]}
    with pytest.raises(StoreInputError, match="beyond"):
        import_chain({**exported, "head": shorter})


@given(st.sampled_from(["id", "head", "events"]), st.none() | st.integers() | st.text() | st.lists(st.integers()))
def test_a_malformed_document_is_refused_in_a_sentence(exported: dict[str, Any], key: str, value: object) -> None:
    for document in (value, {}, {**exported, key: value}, {**exported, "events": [value]}):
        with pytest.raises(StoreInputError):
            import_chain(document)
