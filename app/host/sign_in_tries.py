"""Counts tries to sign in that failed, tells them in the audit trail, and stops an address that goes on trying.

The identity provider checks passwords, not this app. What fails here is the way back from it: a made-up or replayed answer,
or one that the provider itself refused. Counts are kept by each process for itself, and forgotten when it stops.
"""

from __future__ import annotations

import ipaddress
import logging
import time
from collections import OrderedDict, deque
from threading import Lock

from app.host import services
from app.store import StoreError

MOST = 10  # of one address, within SECONDS
SECONDS = 15 * 60.0
MOST_ADDRESSES = 10_000  # remembered
MOST_ACTS = 200  # within SECONDS, of all addresses: strangers must not fill the database
REFUSED = "Too many tries to sign in from this address have failed. Try again in a quarter of an hour."

logger = logging.getLogger("l2m.app")


class Tries:
    """Failed tries by network address. Those of one IPv6 network count together, since it has more addresses than anyone."""

    def __init__(self) -> None:
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()
        self._told: deque[float] = deque(maxlen=MOST_ACTS)
        self._lock = Lock()

    def are_used_up(self, address: str) -> bool:
        with self._lock:
            failed = self._failed.get(network_of(address))
            return failed is not None and len(failed) == MOST and failed[0] > time.monotonic() - SECONDS

    def fail(self, address: str) -> None:
        """Counts one more, and records it as an act."""
        now, network = time.monotonic(), network_of(address)
        with self._lock:
            self._failed.setdefault(network, deque(maxlen=MOST)).append(now)
            self._failed.move_to_end(network)
            if len(self._failed) > MOST_ADDRESSES:
                self._failed.popitem(last=False)
            is_told = len(self._told) < MOST_ACTS or self._told[0] < now - SECONDS
            if is_told:
                self._told.append(now)
        if is_told:
            _record(network)


def network_of(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:  # a socket file, or none
        return address
    if found.version == 4:
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network(f"{found}/64", strict=False))


def _record(network: str) -> None:
    """Without the address: a name for it that only this installation can make tells the tries of one from those of others."""
    here = services.get()
    try:
        here.store.audit.record(services.NOBODY, "sign-in failed", here.signer.derive(f"network {network}")[:16])
    except StoreError as problem:
        logger.error("A failed sign-in is not in the audit trail. %s", problem)
