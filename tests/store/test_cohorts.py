"""Cohorts: versioned by content, private unless shared, and gone when deleted."""

from contextlib import closing
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import text

from app.store import NotFound, Store, StoreError, StoreInputError
from tests.store.harness import OWNER, SCHEMA, STRANGER, add_cohort, append_many, table


def test_a_table_comes_back_with_values_and_types(store: Store) -> None:
    frame = pd.DataFrame(
        {
            "age": np.array([71, 34], dtype=np.int64),
            "lactate": [1.5, np.nan],
            "sex": ["F", None],
            "flag": [True, False],
            "grade": pd.Categorical(["low", "high"]),
            "=1+1 ![x](http://x)": ["naïve 💉", ""],
        }
    )
    cohort = store.cohorts.add(OWNER, "triage", frame, SCHEMA, "a" * 64)
    pd.testing.assert_frame_equal(store.cohorts.frame(OWNER, cohort.id), frame)
    assert (cohort.schema_yaml, cohort.content_hash, cohort.version, cohort.shared) == (SCHEMA, "a" * 64, 1, False)
    assert cohort.size > 0


def test_the_same_content_is_stored_once_and_new_content_is_a_new_version(store: Store) -> None:
    first = add_cohort(store, content="a")
    assert add_cohort(store, content="a") == first
    second = add_cohort(store, content="b")
    assert (first.version, second.version) == (1, 2)
    assert [cohort.id for cohort in store.cohorts.list(OWNER)] == [second.id, first.id]


def test_versions_are_counted_for_each_owner(store: Store) -> None:
    add_cohort(store, OWNER)
    assert add_cohort(store, STRANGER).version == 1
    assert len(store.cohorts.list(OWNER)) == 1


def test_a_private_cohort_does_not_exist_for_others(store: Store) -> None:
    cohort = add_cohort(store)
    assert store.cohorts.list(STRANGER) == ()
    for attempt in (store.cohorts.get, store.cohorts.frame, store.cohorts.share, store.cohorts.delete):
        with pytest.raises(NotFound):
            attempt(STRANGER, cohort.id)
    assert store.cohorts.get(OWNER, cohort.id) == cohort


def test_a_shared_cohort_can_be_used_but_not_managed_by_others(store: Store) -> None:
    cohort = add_cohort(store)
    shared = store.cohorts.share(OWNER, cohort.id)
    assert store.cohorts.list(STRANGER) == (shared,)
    assert len(store.cohorts.frame(STRANGER, cohort.id)) == 6
    for attempt in (store.cohorts.share, store.cohorts.delete):
        with pytest.raises(NotFound):
            attempt(STRANGER, cohort.id)
    store.cohorts.share(OWNER, cohort.id, False)
    assert store.cohorts.list(STRANGER) == ()


def test_what_a_step_through_is_based_on_stays_known_when_it_is_shared_no_more(store: Store) -> None:
    cohort = add_cohort(store, shared=True)
    step_through = store.step_throughs.create(STRANGER, cohort.id, "model-1")
    store.cohorts.share(OWNER, cohort.id, False)
    assert store.cohorts.get(STRANGER, step_through.cohort_id).schema_yaml == SCHEMA
    with pytest.raises(NotFound):
        store.cohorts.frame(STRANGER, cohort.id)


def test_deleting_erases_the_data_and_keeps_the_step_throughs(store: Store) -> None:
    cohort = add_cohort(store)
    step_through = store.step_throughs.create(OWNER, cohort.id, "model-1")
    append_many(store, step_through, 2)
    store.cohorts.delete(OWNER, cohort.id)
    assert store.cohorts.list(OWNER) == ()
    assert store.cohorts.get(OWNER, cohort.id).deleted_at is not None
    for attempt in (store.cohorts.frame, store.cohorts.delete, store.cohorts.share):
        with pytest.raises(NotFound):
            attempt(OWNER, cohort.id)
    with pytest.raises(NotFound):
        store.step_throughs.create(OWNER, cohort.id, "model-1")
    assert len(store.step_throughs.events(OWNER, step_through.id)) == 2
    with store.database.engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM cohort_data")).scalar() == 0


def test_a_schema_goes_with_the_last_step_through_that_is_read_by_it(store: Store) -> None:
    cohort = add_cohort(store, shared=True)
    own, theirs = (store.step_throughs.create(owner, cohort.id, "model-1") for owner in (OWNER, STRANGER))
    store.step_throughs.delete(OWNER, [own.id])
    assert store.cohorts.get(OWNER, cohort.id).schema_yaml == SCHEMA, "the cohort is there"
    last = store.step_throughs.create(OWNER, cohort.id, "model-1")
    store.cohorts.delete(OWNER, cohort.id)
    store.step_throughs.delete(OWNER, [last.id])
    assert store.cohorts.get(STRANGER, cohort.id).schema_yaml == SCHEMA, "another is read by it"
    assert store.verify().intact
    store.step_throughs.delete(STRANGER, [theirs.id])
    assert store.cohorts.get(OWNER, cohort.id).schema_yaml == ""
    alone = add_cohort(store, content="b")
    store.cohorts.delete(OWNER, alone.id)
    assert store.cohorts.get(OWNER, alone.id).schema_yaml == ""
    assert store.verify().intact, "the acts tell of both"


def test_nothing_of_a_deleted_table_is_left_in_the_files_of_sqlite(tmp_path: Path) -> None:
    """Nor in the write-ahead log, although other connections are open."""
    path = tmp_path / "store.sqlite3"
    with closing(Store(f"sqlite:///{path}", migrate=True)) as store, closing(Store(f"sqlite:///{path}")) as other:
        frame = pd.DataFrame({"lactate": np.random.default_rng(0).normal(size=4000)})  # so that it is many pages
        cohort = store.cohorts.add(OWNER, "triage", frame, SCHEMA, "a" * 64)
        other.cohorts.frame(OWNER, cohort.id)
        with store.database.engine.connect() as connection:
            parquet = connection.execute(text("SELECT parquet FROM cohort_data")).scalar_one()
        pieces = [parquet[start : start + 64] for start in range(1000, len(parquet) - 1000, 1000)]
        assert all(any(piece in held for held in contents(path)) for piece in pieces)
        store.cohorts.delete(OWNER, cohort.id)
        assert not any(piece in held for held in contents(path) for piece in pieces)


def contents(path: Path) -> list[bytes]:
    return [file.read_bytes() for file in path.parent.glob(f"{path.name}*")]


def test_the_same_content_in_another_table_is_a_new_version(store: Store) -> None:
    first = store.cohorts.add(OWNER, "triage", table(), SCHEMA, "a" * 64)
    other = store.cohorts.add(OWNER, "triage", table().assign(record=range(6)), SCHEMA, "a" * 64)
    assert (first.version, other.version) == (1, 2)
    assert "record" in store.cohorts.frame(OWNER, other.id)


def test_a_table_that_another_release_wrote_in_other_bytes_is_the_same(store: Store) -> None:
    first = add_cohort(store)
    buffer = BytesIO()
    table().to_parquet(buffer, index=False, compression="snappy")
    data = {"parquet": buffer.getvalue(), "sha256": sha256(buffer.getvalue()).hexdigest()}
    with store.database.engine.begin() as connection:
        connection.execute(text("UPDATE cohort_data SET parquet = :parquet, sha256 = :sha256"), data)
    assert add_cohort(store) == first


def test_what_is_still_in_use_of_deleted_cohorts_is_known(store: Store) -> None:
    gone, there = (add_cohort(store, content=content) for content in "ab")
    store.cohorts.delete(OWNER, gone.id)
    assert store.cohorts.deleted([gone.id, there.id]) == {gone.id} and store.cohorts.deleted([]) == frozenset()
    assert store.cohorts.still_stored(["a" * 64, "b" * 64, "c" * 64]) == {"b" * 64}


def test_a_deleted_cohort_can_be_uploaded_again(store: Store) -> None:
    cohort = add_cohort(store)
    store.cohorts.delete(OWNER, cohort.id)
    again = add_cohort(store)
    assert (again.version, again.deleted_at) == (2, None)
    assert len(store.cohorts.frame(OWNER, again.id)) == 6


def test_damaged_data_are_noticed(store: Store) -> None:
    cohort = add_cohort(store)
    with store.database.engine.begin() as connection:
        connection.execute(text("UPDATE cohort_data SET sha256 = 'other'"))
    with pytest.raises(StoreError, match="damaged"):
        store.cohorts.frame(OWNER, cohort.id)


@pytest.mark.parametrize(
    ("frame", "where"),
    [
        (pd.DataFrame({"fine": [1, 2], "mixed": ["SECRET", 3.5]}), "column 2 of 2"),
        (pd.DataFrame([[1]], columns=pd.Index(["half \ud800"], dtype=object)), "column 1 of 1"),
        (pd.DataFrame([[1, 2]], columns=["same", "same"]), "name"),
    ],
)
def test_a_table_that_cannot_be_stored_is_refused_without_quoting_it(
    store: Store, frame: pd.DataFrame, where: str
) -> None:
    with pytest.raises(StoreInputError, match=where) as caught:
        store.cohorts.add(OWNER, "triage", frame, SCHEMA, "a" * 64)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__context__ is None
    assert store.cohorts.list(OWNER) == ()


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "nul \x00"])
def test_a_cohort_needs_a_name_that_can_be_stored(store: Store, name: str) -> None:
    with pytest.raises(StoreInputError, match="name"):
        store.cohorts.add(OWNER, name, table(), SCHEMA, "a" * 64)
