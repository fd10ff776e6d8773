"""What sessions share, and what they must not."""

import gc
import shutil
import time
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app.host import services
from app.host.services import NOBODY, Services
from app.settings import AppSettings
from app.store import NotFound, StoredCohort
from app.ui import inputs, schema_editor
from l2m_core.cohort import Cohort
from l2m_core.errors import CohortError, ModelFileError
from l2m_core.paths import model_folders
from l2m_core.schema import Feature
from tests.app.conftest import small_cohort, small_frame


def test_a_cohort_is_encoded_once_for_all_who_hold_the_same_content(shared_services: Services, owner: str) -> None:
    mine = shared_services.add_cohort(owner, small_cohort())
    model = shared_services.model(owner)
    first = shared_services.conditioned(owner, mine, model)
    assert shared_services.conditioned(owner, mine, model) is first


def test_nobody_sees_the_name_that_another_gave_to_the_same_content(shared_services: Services, owner: str) -> None:
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


def numbered(first: int, column: str = "record") -> Cohort:
    """The same patients under other record numbers, which no model reads."""
    frame = small_frame().assign(**{column: [f"record {first + row}" for row in range(80)]})
    features = (*small_cohort().schema.features, Feature(column, role="ignored"))
    return Cohort.from_frame(frame, schema=replace(small_cohort().schema, features=features), name="numbered ward")


def test_what_is_ignored_in_a_table_stays_its_owners(shared_services: Services, owner: str) -> None:
    other = f"{owner}-other"
    mine, theirs = (shared_services.add_cohort(o, numbered(n)) for o, n in ((owner, 0), (other, 1000)))
    assert mine.content_hash == theirs.content_hash
    records = shared_services.cohort(other, theirs).frame()["record"]
    assert records.tolist() == [f"record {1000 + row}" for row in range(80)]
    memory = shared_services.conditioned(owner, mine, shared_services.model(owner)).memory
    assert shared_services.conditioned(other, theirs, shared_services.model(other)).memory is memory
    assert memory.cohort.source is None


def test_a_corrected_column_that_is_ignored_makes_a_new_version(shared_services: Services, owner: str) -> None:
    first, again, corrected = (shared_services.add_cohort(owner, numbered(number)) for number in (0, 0, 5))
    assert first.id == again.id and (first.version, corrected.version) == (1, 2)
    assert shared_services.cohort(owner, corrected).frame()["record"].iloc[0] == "record 5"


def test_a_cohort_that_is_no_longer_shared_is_not_computed_with(shared_services: Services, owner: str) -> None:
    guest, store = f"{owner}-guest", shared_services.store
    mine = shared_services.add_cohort(owner, small_cohort())
    shared = store.cohorts.share(owner, mine.id)
    shared_services.cohort(guest, shared)
    store.step_throughs.create(guest, mine.id, "model")  # so the guest still learns its name
    store.cohorts.share(owner, mine.id, False)
    with pytest.raises(NotFound, match="not shared with you any more"):
        shared_services.cohort(guest, store.cohorts.get(guest, mine.id))


def test_a_cohort_is_stored_as_it_was_read_with_the_rules_of_its_file(shared_services: Services, owner: str) -> None:
    rows = "\n".join(f"{'-999' if i % 4 == 0 else f'{i}.500,5'};{'?' if i % 5 else 'x'};{i % 2}" for i in range(1, 41))
    cohort = Cohort.from_csv(
        f"cells;mark;died\n{rows}".encode(),
        "died",
        missing=["-999", "x"],
        decimal=",",
        schema={"features": [{"name": "mark", "role": "ignored"}]},
    )
    stored = shared_services.add_cohort(owner, cohort)
    again = shared_services.cohort(owner, stored)
    assert again.content_hash == cohort.content_hash and again.rules == cohort.rules
    assert np.array_equal(again.x, cohort.x, equal_nan=True)
    for cell in (1500.5, "1.500,5"):
        assert again.encode({"cells": cell})[0, 0] == cohort.encode({"cells": cell})[0, 0] == 1500.5


def test_a_cohort_that_is_not_read_back_as_it_is_is_refused_and_nothing_is_stored(
    shared_services: Services, owner: str
) -> None:
    cohort = small_cohort()
    changed = replace(cohort, x=np.nan_to_num(cohort.x) + 1)  # its table still says otherwise
    with pytest.raises(CohortError, match="'ward' cannot be stored.*Read it anew"):
        shared_services.add_cohort(owner, changed)
    assert shared_services.store.cohorts.list(owner) == ()
    assert shared_services.store.cohorts.still_stored([changed.content_hash]) == frozenset()
    stored = shared_services.add_cohort(owner, cohort)
    assert (stored.version, shared_services.store.cohorts.list(owner)) == (1, (stored,))


def test_what_was_verified_is_what_is_opened_later(tmp_path: Path) -> None:
    first = Services(AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}"))
    stored = first.add_cohort("me", small_cohort())
    verified = first.cohort("me", stored)
    first.store.close()
    second = Services(first.settings)
    opened = second.cohort("me", stored)
    second.store.close()
    assert (opened.schema, opened.warnings, opened.name) == (verified.schema, verified.warnings, verified.name)
    assert np.array_equal(opened.x, verified.x, equal_nan=True) and np.array_equal(opened.y, verified.y)
    assert opened.frame().equals(verified.frame())


def test_a_deleted_cohort_is_not_computed_with_any_more(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, small_cohort())
    shared_services.cohort(owner, stored)
    shared_services.store.cohorts.delete(owner, stored.id)
    with pytest.raises(NotFound, match="deleted"):
        shared_services.cohort(owner, shared_services.store.cohorts.get(owner, stored.id))


def test_a_table_that_is_uploaded_again_is_said_to_begin_anew(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, small_cohort())
    shared_services.store.cohorts.delete(owner, stored.id)
    again = shared_services.add_cohort(owner, small_cohort())
    assert again.id != stored.id and again.content_hash == stored.content_hash
    with pytest.raises(NotFound, match="again to begin anew"):
        shared_services.cohort(owner, shared_services.store.cohorts.get(owner, stored.id))


def in_memory(here: Services, stored: StoredCohort) -> tuple[bool, bool]:
    """Whether the cohort is, and what a model read of it."""
    return here.has_loaded(stored), here.has_read(stored, here.model(NOBODY))


def test_a_deleted_cohort_leaves_memory_and_what_others_have_too_stays(shared_services: Services, owner: str) -> None:
    other, model = f"{owner}-other", shared_services.model(owner)
    mine, theirs = (shared_services.add_cohort(o, numbered(n, "case")) for o, n in ((owner, 0), (other, 1000)))
    shared_services.conditioned(owner, mine, model)
    shared_services.delete_cohort(owner, mine.id)
    assert in_memory(shared_services, mine) == (False, True) and in_memory(shared_services, theirs) == (True, True)
    shared_services.store.cohorts.delete(other, theirs.id)  # as another process does it
    shared_services.forget_deleted()
    assert in_memory(shared_services, theirs) == (False, False)


def test_a_model_is_found_by_its_fingerprint(shared_services: Services) -> None:
    model = shared_services.model(NOBODY)
    assert shared_services.model_of(NOBODY, model.fingerprint) is model
    assert shared_services.model_of(NOBODY, "0" * 64) is None
    with pytest.raises(ModelFileError, match="no model 'unheard of'"):
        shared_services.model(NOBODY, "unheard of")


@pytest.mark.parametrize(
    ("rows", "nbytes", "count", "of_rows"),
    [
        (500, 50_000_000, 8, None),  # as many rows as the cohort has
        (4096, 1_170_000_000, 8, 437),  # of 10,000 rows and 30 features
        (2376, 2_210_000_000, 8, 134),  # of 10,000 rows and 100 features
        (800, 2_200_000_000, 4, 90),  # of 300 features: fewer samples before there are fewer than 100 rows
        (480, 2_200_000_000, 4, 54),  # of 500 features, the most that a table may have
        (50, 225_000_000, 4, 50),  # of as few rows: as many as the cohort has
        (1000, 6_300_000_000, 0, None),  # of a model that keeps more of a row
    ],
)
def test_samples_of_a_large_cohort_are_smaller(rows: int, nbytes: int, count: int, of_rows: int | None) -> None:
    assert services.fitting_samples(rows, nbytes) == (count, of_rows)


@pytest.mark.parametrize(("times", "count"), [(1.0, 4), (0.01, 0)])
def test_a_cohort_too_large_for_resampling_gets_no_band(
    shared_services: Services, owner: str, monkeypatch: pytest.MonkeyPatch, times: float, count: int
) -> None:
    own = Cohort.from_frame(small_frame(84), outcome="died")  # of no other test, which might have its samples already
    stored = shared_services.add_cohort(owner, own)
    conditioned = shared_services.conditioned(owner, stored, shared_services.model(owner))
    rows = conditioned.memory.rows_read
    monkeypatch.setattr(services, "FEWEST_ROWS", rows // 4)
    monkeypatch.setattr(services, "RESAMPLE_BYTES", int(times * conditioned.memory.nbytes) + 1)
    while (samples := shared_services.resampled(conditioned)) is None:
        time.sleep(0.05)
    assert len(samples) == count and {len(sample.cohort) for sample in samples} <= {rows // 4}


def test_the_same_data_folder_serves_again_after_a_restart(tmp_path: Path) -> None:
    settings = AppSettings(tmp_path, f"sqlite:///{tmp_path / 'l2m.sqlite3'}")
    first = Services(settings)
    stored = first.add_cohort("me", small_cohort())
    cookie = first.signer.sign("0" * 32)
    first.store.close()
    second = Services(settings)
    assert second.signer.read(cookie) == "0" * 32
    assert second.cohort("me", second.store.cohorts.get("me", stored.id)).content_hash == stored.content_hash
    second.store.close()


def with_visits() -> Cohort:
    """Four visits of each of 60 patients."""
    draw, visits = np.random.default_rng(0), np.repeat(np.arange(60), 4)
    frame = pd.DataFrame(draw.normal(size=(240, 4)).round(3), columns=list("abcd"))
    frame["died"] = np.where(frame["a"] + draw.normal(size=240) > 0, "yes", "no")
    return Cohort.from_frame(frame.assign(patient_id=[f"P{visit}" for visit in visits]), outcome="died")


def test_the_memory_of_visits_knows_whose_they_are(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, with_visits())
    memory = shared_services.conditioned(owner, stored, shared_services.model(owner)).memory
    assert memory.cohort.source is None and len(set(memory.cohort.patients.tolist())) == 60
    assert memory.fit_council().recipe is not None


def test_cells_that_are_left_out_are_shown_to_their_owner_only(shared_services: Services, owner: str) -> None:
    """Two tables that differ in a column of record numbers only have one content."""
    other = f"{owner}-other"
    for whose, first in ((owner, 0), (other, 1000)):
        stored = shared_services.add_cohort(whose, numbered(first))
        look = schema_editor.look_at(stored, shared_services.cohort(whose, stored))
        assert look["record"].summary.examples[0] == f"record {first}"


def test_nothing_of_a_deleted_cohort_stays_in_memory(shared_services: Services, owner: str) -> None:
    stored = shared_services.add_cohort(owner, numbered(0))
    cohort = shared_services.cohort(owner, stored)
    schema_editor.look_at(stored, cohort)
    assert inputs.recorded_range(cohort, "age") and inputs.written(cohort, "age")
    still_there = weakref.ref(cohort)
    del cohort
    shared_services.delete_cohort(owner, stored.id)
    gc.collect()
    assert still_there() is None


def test_a_model_that_was_made_here_is_called_by_its_name(
    shared_services: Services, owner: str, tmp_path: Path
) -> None:
    folder = tmp_path / "d000895e-9b77-4955-af72-d801019af63a"  # of the job that made it
    shutil.copytree(model_folders()["general"], folder)
    fingerprint = shared_services.model(owner).fingerprint
    shared_services.store.models.register(owner, "my fine-tuned", fingerprint, str(folder), "card")
    assert shared_services.model(owner, "my fine-tuned").name == "my fine-tuned"
    assert shared_services.model(owner).name == "general"


def test_models_of_one_name_are_told_apart_and_ones_own_comes_first(shared_services: Services, owner: str) -> None:
    models = shared_services.store.models
    models.register(owner, "predictor", f"mine-of-{owner}", "/models/mine")
    models.register(f"{owner}-other", "predictor", "theirs-and-more", "/models/theirs", shared=True)
    models.register(f"{owner}-other", "general", "no-release-of-ours", "/models/other", shared=True)
    found = shared_services.stored_models(owner)
    assert found["predictor"].owner == owner and found["predictor (theirs-a)"].folder == "/models/theirs"
    assert "general" not in found and shared_services.model_names(owner)["general (no-relea)"] == Path("/models/other")
    for fingerprint in ("theirs-and-more", "no-release-of-ours"):
        models.forget(f"{owner}-other", fingerprint)
