"""What can go wrong in the store. No message ever repeats a stored value: it may be a patient's."""

from __future__ import annotations

from l2m_core.errors import InputError, L2MError


class StoreError(L2MError):
    """The store could not do what was asked."""


class NotFound(StoreError):
    """No such thing for this owner. What exists for someone else reads exactly the same."""


class Conflict(StoreError):
    """Someone else (another tab, another worker) was first. Read again, then decide."""

    def __init__(self, message: str, current_length: int | None = None) -> None:
        super().__init__(message)
        self.current_length = current_length


class Busy(StoreError):
    """The database did not answer in time. The same call may be made again safely."""


class Unreachable(StoreError):
    """The database does not run, or the connection broke. What was being done may be sent again safely."""


class MigrationNeeded(StoreError):
    """The database's schema is not the one this program was written for."""


class StoreInputError(StoreError, InputError):
    """A name, an id or a payload cannot be stored as it is."""
