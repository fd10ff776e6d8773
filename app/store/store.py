"""The store as the pages see it."""

from __future__ import annotations

import json
from pathlib import Path

from . import backup, schema, verification
from .audit import Audit
from .chain import Head
from .cohorts import Cohorts
from .database import Database
from .evidence_records import EvidenceRecords
from .jobs import Jobs
from .models import Models
from .signed_heads import Keeper, KnownHeads, SignedHeads, read_heads
from .step_throughs import StepThroughs


class Store:
    """Everything that must survive, behind one URL. Safe to share between threads; each process opens its own.

    Every thing belongs to an *owner*, an opaque text that stands for a browser session or a signed-in user; what is
    another owner's and not shared does not exist as far as the callers can tell.
    """

    def __init__(self, url: str, migrate: bool = False, signed: SignedHeads | None = None) -> None:
        """migrate: first bring the database, new or old, to the present schema. Otherwise it must be there already.

        signed: where heads are signed whenever a step-through is finished. A file that is not there begins with all heads.
        """
        self.database = Database(url, create=migrate)
        self.is_new = migrate and schema.migrate(self.database)
        """Whether the database held nothing, not even tables, when it was opened."""
        if not migrate:
            schema.check_up_to_date(self.database)
        self.cohorts = Cohorts(self.database)
        self._keeper = Keeper(signed)
        self.step_throughs = StepThroughs(self.database, self._keeper)
        self.evidence = EvidenceRecords(self.database)
        self.jobs = Jobs(self.database)
        self.models = Models(self.database)
        self.audit = Audit(self.database)
        if signed is not None and not signed.exists:
            signed.append(self.heads())

    def verify(self, heads: str | KnownHeads | None = None) -> verification.Verification:
        """Verify all chains, and all that the acts tell. heads: signed ones, or the text of an earlier `export_heads`, to
        notice what was cut off or written anew since."""
        known = read_heads(heads) if isinstance(heads, str) else heads
        with self.database.reading() as session:
            return verification.verify_everything(session, known)

    def heads(self) -> dict[str, Head]:
        with self.database.reading() as session:
            return verification.heads_of(session)

    def export_heads(self) -> str:
        """All heads as JSON. Kept away from the database, they make later removal at the end visible."""
        return json.dumps({name: head._asdict() for name, head in self.heads().items()}, indent=1) + "\n"

    def sign_what_waits(self) -> None:
        """Sign the heads that could not be written when they came."""
        self._keeper.try_again()

    def make_file_whole(self) -> None:
        """Move SQLite's write-ahead log into its file unless somebody reads just now. Nobody waits long for it."""
        self.database.empty_journal(patience=0)

    def back_up(self, target: Path) -> None:
        backup.back_up(self.database, target)

    def is_ready(self) -> bool:
        """Whether the database answers and has the right schema: for a readiness probe."""
        schema.check_up_to_date(self.database)
        return True

    def close(self) -> None:
        self.database.close()
