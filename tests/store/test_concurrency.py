"""Several writers, several tabs: nothing is overwritten, and whoever comes too late learns it."""

import random
import threading

import pytest

from app.store import Conflict, Store, StoreError
from tests.figures import Keep
from tests.store.harness import OWNER, add_cohort, append_many, begin, new_uuid
from tests.store.writers import migrate_and_begin, received, start, submit_once_all_together, write_together


def let_write(store: Store, url: str, writers_at_once: int, number: int) -> None:
    step_through = begin(store)
    writers = [start(write_together, url, step_through.id, number) for _ in range(writers_at_once)]
    written = [event_id for _, pipe in writers for event_id in received(pipe)]
    for process, _ in writers:
        process.join()
        assert process.exitcode == 0
    events = store.step_throughs.events(OWNER, step_through.id)
    assert len(written) == writers_at_once * number
    assert sorted(written) == sorted(event.event_id for event in events)
    assert store.verify().intact


def test_writers_at_once_keep_one_whole_chain(store: Store, url: str) -> None:
    let_write(store, url, writers_at_once=4, number=12)


@pytest.mark.reliability
def test_eight_writers_of_fifty_events_break_no_link(store: Store, url: str, figure: Keep) -> None:
    let_write(store, url, writers_at_once=8, number=50)
    check = f"hash chain: 8 writers of 50 events at once ({url.partition(':')[0]})"
    figure(check, "0 broken links, 0 events lost", "0 broken links, 400 of 400 events", True)


def test_the_same_event_submitted_by_several_processes_is_stored_once(store: Store, url: str) -> None:
    step_through, event_id = begin(store), new_uuid()
    senders = [start(submit_once_all_together, url, step_through.id, event_id) for _ in range(4)]
    answers = [answer for _, pipe in senders for answer in received(pipe)]
    (event,) = store.step_throughs.events(OWNER, step_through.id)
    assert answers == [event.hash] * 4


def play_two_tabs(tabs: list[Store], draw: random.Random) -> int:
    """Two tabs act in a random order, each on what it last saw. Returns the number of conflicts."""
    step_through = begin(tabs[0])
    seen, accepted, refused = [0, 0], [], []
    for _ in range(8):
        tab = draw.randrange(2)
        event_id, repeats = new_uuid(), draw.choice([1, 1, 2])  # some actions are double clicks
        for _ in range(repeats):
            try:
                tabs[tab].step_throughs.append_event(
                    OWNER, step_through.id, event_id, seen[tab], "observe", {"tab": tab, "seen": seen[tab]}
                )
            except Conflict as conflict:
                refused.append(event_id)
                assert conflict.current_length == len(accepted) != seen[tab]
            else:
                if event_id not in accepted:
                    assert seen[tab] == len(accepted)
                    accepted.append(event_id)
        if event_id in accepted:
            seen[tab] += 1
        elif draw.random() < 0.7:  # most users load the page again; some try once more
            seen[tab] = tabs[tab].step_throughs.get(OWNER, step_through.id).length
    final, events = tabs[0].step_throughs.read(OWNER, step_through.id)
    assert [event.event_id for event in events] == accepted
    assert final.length == len(accepted)
    assert not set(refused) & set(accepted)
    assert tabs[1].step_throughs.verify(OWNER, step_through.id).intact
    return len(set(refused))


def play_many(url: str, games: int) -> int:
    tabs, draw = [Store(url), Store(url)], random.Random(3)
    conflicts = sum(play_two_tabs(tabs, draw) for _ in range(games))
    for tab in tabs:
        tab.close()
    return conflicts


def test_two_tabs_never_overwrite_each_other(url: str) -> None:
    assert play_many(url, games=25) > 10


@pytest.mark.reliability
def test_two_tabs_in_a_thousand_interleavings(url: str, figure: Keep) -> None:
    conflicts = play_many(url, games=1000)
    check = f"two tabs on one step-through, 1,000 interleavings ({url.partition(':')[0]})"
    figure(check, "0 lost updates, losers told", f"0 lost updates, {conflicts} conflicts shown", conflicts > 500)
    assert conflicts > 500


def test_two_tabs_at_the_very_same_moment(url: str) -> None:
    """Both decided on the same state and send at once: one is stored, the other learns of the conflict."""
    tabs = [Store(url), Store(url)]
    step_through = begin(tabs[0])
    for length in range(20):
        outcomes: list[str] = []
        together = threading.Barrier(2)

        def act(tab: Store, length: int, together: threading.Barrier, outcomes: list[str]) -> None:
            together.wait()
            try:
                tab.step_throughs.append_event(OWNER, step_through.id, new_uuid(), length, "observe", {})
                outcomes.append("stored")
            except Conflict:
                outcomes.append("conflict")

        threads = [threading.Thread(target=act, args=(tab, length, together, outcomes)) for tab in tabs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["conflict", "stored"]
    for tab in tabs:
        tab.close()


def test_renaming_and_appending_do_not_undo_each_other(url: str) -> None:
    one, two = Store(url), Store(url)
    step_through = begin(one, title="bed 4")
    append_many(two, step_through, 1)
    with pytest.raises(Conflict):
        one.step_throughs.update(OWNER, step_through.id, step_through.version, title="bed 5")
    current = one.step_throughs.get(OWNER, step_through.id)
    assert (current.title, current.length) == ("bed 4", 1)
    one.close()
    two.close()


def test_versions_of_a_cohort_are_counted_once_each(url: str) -> None:
    stores, failures = [Store(url) for _ in range(4)], []

    def upload(store: Store, content: str) -> None:
        try:
            add_cohort(store, content=content)
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=upload, args=pair) for pair in zip(stores, "abca", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(cohort.version for cohort in stores[0].cohorts.list(OWNER)) == [1, 2, 3]
    assert stores[0].verify().intact
    for store in stores:
        store.close()


def test_several_processes_can_make_the_same_new_database(empty_url: str) -> None:
    starters = [start(migrate_and_begin, empty_url) for _ in range(4)]
    assert [received(pipe) for _, pipe in starters] == [[0]] * 4
    for process, _ in starters:
        process.join()
        assert process.exitcode == 0
