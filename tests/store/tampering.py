"""Someone with full rights on the database, who removes the triggers and then changes what is stored."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from app.store import Store

LINK_COLUMNS = ("event_id", "kind", "recorded_at", "payload", "previous_hash", "hash")


@contextmanager
def tampered(store: Store) -> Iterator[Connection]:
    """A connection without the triggers, whose changes are taken back at the end."""
    with store.database.engine.connect() as connection:
        remove_triggers(connection)
        yield connection
        connection.rollback()


@contextmanager
def without_triggers(connection: Connection) -> Iterator[None]:
    """The triggers are back afterwards, as somebody who hides what was done would leave them."""
    made = []
    if connection.dialect.name == "sqlite":
        made = list(connection.execute(text("SELECT sql FROM sqlite_master WHERE type = 'trigger'")).scalars())
    remove_triggers(connection)
    yield
    for table in () if made else ("events", "audit"):
        made.append(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    for statement in made:
        connection.execute(text(statement))


def remove_triggers(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in names:
            connection.execute(text(f"DROP TRIGGER {name}"))
        return
    for table in ("events", "audit"):
        connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))


def flip(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    """Change one character of one field of one event."""
    where = {"id": chosen, "sequence": draw.randrange(length)}
    column = draw.choice(LINK_COLUMNS)
    select = text(f"SELECT {column} FROM events WHERE step_through_id = :id AND sequence = :sequence")
    old = connection.execute(select, where).scalar_one()
    place = draw.randrange(len(old))
    letter = draw.choice([letter for letter in '0123456789abcdef"{}:' if letter != old[place]])
    new = old[:place] + letter + old[place + 1 :]
    update = text(f"UPDATE events SET {column} = :new WHERE step_through_id = :id AND sequence = :sequence")
    connection.execute(update, {**where, "new": new})


def delete(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    statement = text("DELETE FROM events WHERE step_through_id = :id AND sequence = :sequence")
    connection.execute(statement, {"id": chosen, "sequence": draw.randrange(length)})


def close_the_gap(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    """Delete an event and renumber those after it, the head's length too."""
    gone = draw.randrange(length)
    connection.execute(
        text("DELETE FROM events WHERE step_through_id = :id AND sequence = :gone"), {"id": chosen, "gone": gone}
    )
    for sequence in range(gone + 1, length):
        move(connection, chosen, sequence, sequence - 1)
    connection.execute(text("UPDATE step_throughs SET length = length - 1 WHERE id = :id"), {"id": chosen})


def reorder(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    """Let two events change places."""
    one, two = draw.sample(range(length), 2)
    move(connection, chosen, one, length + 1)
    move(connection, chosen, two, one)
    move(connection, chosen, length + 1, two)


def move(connection: Connection, chosen: str, old: int, new: int) -> None:
    statement = text("UPDATE events SET sequence = :new WHERE step_through_id = :id AND sequence = :old")
    connection.execute(statement, {"id": chosen, "old": old, "new": new})


def borrow(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    """Say that the events hold for another cohort, or another model."""
    column = draw.choice(["cohort_hash", "model_fingerprint"])
    connection.execute(text(f"UPDATE step_throughs SET {column} = 'other' WHERE id = :id"), {"id": chosen})


def cut_the_tail(connection: Connection, chosen: str, length: int, draw: random.Random) -> None:
    """Remove the newest events and make the step-through's own row agree."""
    keep = draw.randrange(1, length)
    newest = text("SELECT hash FROM events WHERE step_through_id = :id AND sequence = :last")
    head = connection.execute(newest, {"id": chosen, "last": keep - 1}).scalar_one()
    connection.execute(
        text("DELETE FROM events WHERE step_through_id = :id AND sequence >= :keep"), {"id": chosen, "keep": keep}
    )
    connection.execute(
        text("UPDATE step_throughs SET length = :keep, head_hash = :head WHERE id = :id"),
        {"id": chosen, "keep": keep, "head": head},
    )


TAMPERINGS: tuple[Callable[[Connection, str, int, random.Random], None], ...] = (
    flip,
    delete,
    close_the_gap,
    reorder,
    borrow,
)
