"""What sessions share, and what they must not."""

from pathlib import Path

import numpy as np
import pytest

from app.settings import Settings
from app.store import NotFound
from app.ui import services
from app.ui.services import NOBODY, Services
from l2m_core.cohort import Cohort
from l2m_core.columns import Rules
from l2m_core.errors import ModelFileError
from tests.app.conftest import small_cohort


def test_a_cohort_is_encoded_once_for_all_who_hold_the_same_content(shared_services: Services, owner: str) -> None:
    mine = shared_services.add_cohort(owner, small_cohort())
    model = shared_services.model(owner)
    first = shared_services.conditioned(owner, mine, model)
    assert shared_services.conditioned(owner, mine, model) is first


def test_nobody_sees_the_name_that_another_gave_to_the_same_content(shared_services: Services, owner: str) -> None:
    from dataclasses import replace

    other = f"{owner}-other"
    mine = shared_services.add_cohort(owner, small_cohort())
    theirs = shared_services.add_cohort(other, replace(small_cohort(), name="ward of Dr. Who"))
    assert mine.content_hash == theirs.content_hash
    model = shared_services.model(owner)
    memory = shared_services.conditioned(owner, mine, model).memory
    their_memory = shared_services.conditioned(other, theirs, model).memory
    assert (memory.cohort.name, their_memory.cohort.name) == ("ward", "ward of Dr. Who")
    assert memory.memories is their_memory.memories
    x = np.full((1, 6), np.nan, dtype=np.float32)
    assert np.array_equal(memory.answer(x).prediction, their_memory.answer(x).prediction)


def test_a_cohort_is_stored_as_it_was_read_and_needs_its_rules_no_more(shared_services: Services, owner: str) -> None:
    rows = "\n".join(f"{'-999' if i % 4 == 0 else f'{i}.500,5'};{'?' if i % 5 else 'x'};{i % 2}" for i in range(1, 41))
    cohort = Cohort.from_csv(f"cells;mark;died\n{rows}".encode(), "died", missing=["-999", "x"], decimal=",",
                             schema={"features": [{"name": "mark", "role": "ignored"}]})  # fmt: skip
    stored = shared_services.add_cohort(owner, cohort)
    again = shared_services.cohort(owner, stored)
    assert again.content_hash == cohort.content_hash and again.rules == Rules()
    assert np.array_equal(again.x, cohort.x, equal_nan=True)
    assert again.encode({"cells": 1500.5})[0, 0] == cohort.encode({"cells": "1.500,5"})[0, 0] == 1500.5


def test_a_deleted_cohort_is_not_computed_with_any_more(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, small_cohort())
    shared_services.cohort(owner, stored)
    shared_services.store.cohorts.delete(owner, stored.id)
    with pytest.raises(NotFound, match="deleted"):
        shared_services.cohort(owner, shared_services.store.cohorts.get(owner, stored.id))


def test_a_model_is_found_by_its_fingerprint(shared_services: Services) -> None:
    model = shared_services.model(NOBODY)
    assert shared_services.model_of(NOBODY, model.fingerprint) is model
    assert shared_services.model_of(NOBODY, "0" * 64) is None
    with pytest.raises(ModelFileError, match="no model 'unheard of'"):
        shared_services.model(NOBODY, "unheard of")


def test_a_cohort_too_large_for_resampling_gets_no_band(
    shared_services: Services, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = shared_services.add_cohort(owner, small_cohort())
    conditioned = shared_services.conditioned(owner, stored, shared_services.model(owner))
    monkeypatch.setattr(services, "RESAMPLE_BYTES", conditioned.memory.nbytes)
    assert shared_services.resampled(conditioned) == ()


def test_the_same_data_folder_serves_again_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}")
    first = Services(settings)
    stored = first.add_cohort("me", small_cohort())
    cookie = first.signer.sign("0" * 32)
    first.store.close()
    second = Services(settings)
    assert second.signer.read(cookie) == "0" * 32
    assert second.cohort("me", second.store.cohorts.get("me", stored.id)).content_hash == stored.content_hash
    second.store.close()
