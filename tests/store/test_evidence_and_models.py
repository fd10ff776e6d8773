"""Evidence is found again by content, model and settings; models are listed for whoever may use them."""

import pytest

from app.store import NotFound, Store, StoreInputError
from tests.store.harness import OWNER, STRANGER, add_cohort

HASH = "a" * 64
SETTINGS = {"folds": 5, "budgets": [1, 2]}


def test_evidence_is_found_by_content_model_and_settings(store: Store) -> None:
    put = store.evidence.put(OWNER, HASH, "model-1", SETTINGS, {"auroc": [0.7, 0.8]})
    assert store.evidence.find(OWNER, HASH, "model-1", {"budgets": [1, 2], "folds": 5}) == put
    assert put.results == {"auroc": [0.7, 0.8]}
    assert store.evidence.find(OWNER, "b" * 64, "model-1", SETTINGS) is None
    assert store.evidence.find(OWNER, HASH, "model-2", SETTINGS) is None
    assert store.evidence.find(OWNER, HASH, "model-1", {"folds": 4}) is None


def test_newer_evidence_takes_the_place_of_older(store: Store) -> None:
    store.evidence.put(OWNER, HASH, "model-1", SETTINGS, {"auroc": 0.7})
    store.evidence.put(OWNER, HASH, "model-1", SETTINGS, {"auroc": 0.8})
    (only,) = store.evidence.list(OWNER, HASH)
    assert only.results == {"auroc": 0.8}


def test_evidence_is_private_until_its_owner_shares_the_cohort(store: Store) -> None:
    cohort = add_cohort(store)
    store.evidence.put(OWNER, HASH, "model-1", SETTINGS, {"auroc": 0.7})
    assert store.evidence.find(STRANGER, HASH, "model-1", SETTINGS) is None
    store.cohorts.share(OWNER, cohort.id)
    seen = store.evidence.find(STRANGER, HASH, "model-1", SETTINGS)
    assert seen is not None
    store.evidence.put(STRANGER, HASH, "model-1", SETTINGS, {"auroc": 0.1})
    own = store.evidence.find(OWNER, HASH, "model-1", SETTINGS)
    assert own is not None and own.results == {"auroc": 0.7}, "nobody overwrites what another owner shares"


def test_evidence_goes_with_the_cohort_it_was_drawn_from(store: Store) -> None:
    cohort, theirs = add_cohort(store, OWNER), add_cohort(store, STRANGER)
    for owner in (OWNER, STRANGER):
        store.evidence.put(owner, HASH, "model-1", SETTINGS, {"auroc": 0.7})
    store.cohorts.delete(OWNER, cohort.id)
    assert store.evidence.list(OWNER, HASH) == ()
    assert len(store.evidence.list(STRANGER, HASH)) == 1
    store.cohorts.delete(STRANGER, theirs.id)
    assert store.evidence.list(STRANGER, HASH) == ()


def test_results_that_are_not_json_are_refused(store: Store) -> None:
    with pytest.raises(StoreInputError, match="NaN"):
        store.evidence.put(OWNER, HASH, "model-1", SETTINGS, {"auroc": float("nan")})


def test_models_are_private_unless_shared(store: Store) -> None:
    store.models.register(OWNER, "mine", "print-1", "models/mine", card="# Mine")
    shared = store.models.register(OWNER, "ours", "print-2", "models/ours", shared=True)
    assert store.models.list(STRANGER) == (shared,)
    assert store.models.get(STRANGER, "print-2") == shared
    with pytest.raises(NotFound):
        store.models.get(STRANGER, "print-1")
    with pytest.raises(NotFound):
        store.models.forget(STRANGER, "print-2")


def test_registering_again_renews_and_forgetting_removes(store: Store) -> None:
    first = store.models.register(OWNER, "mine", "print-1", "models/a")
    again = store.models.register(OWNER, "renamed", "print-1", "models/b")
    assert store.models.list(OWNER) == (again,)
    assert (again.name, again.folder, again.created_at) == ("renamed", "models/b", first.created_at)
    store.models.forget(OWNER, "print-1")
    assert store.models.list(OWNER) == ()
