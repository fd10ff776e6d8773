"""The store as the pages see it."""

from __future__ import annotations

from pathlib import Path

from . import backup, schema, verification
from .audit import Audit
from .cohorts import Cohorts
from .database import Database
from .evidence_records import Evidence
from .jobs import Jobs
from .models import Models
from .step_throughs import StepThroughs


class Store:
    """Everything that must survive, behind one URL. Safe to share between threads; each process opens its own.

    Every thing belongs to an *owner*, an opaque text that stands for a browser session or a signed-in user; what is
    another owner's and not shared does not exist as far as the callers can tell.
    """

    def __init__(self, url: str, migrate: bool = False) -> None:
        """migrate: first bring the database, new or old, to the present schema. Otherwise it must be there already."""
        self._database = Database(url, create=migrate)
        self.is_new = migrate and schema.migrate(self._database)
        """Whether the database held nothing, not even tables, when it was opened."""
        if not migrate:
            schema.check_up_to_date(self._database)
        self.cohorts = Cohorts(self._database)
        self.step_throughs = StepThroughs(self._database)
        self.evidence = Evidence(self._database)
        self.jobs = Jobs(self._database)
        self.models = Models(self._database)
        self.audit = Audit(self._database)

    def verify(self, heads: str | None = None) -> verification.Verification:
        """Verify all chains, and all that the acts tell. heads: the text of an earlier `export_heads`, to notice what was
        cut off since."""
        known = verification.read_heads(heads) if heads is not None else None
        with self._database.reading() as session:
            return verification.verify_everything(session, known)

    def export_heads(self) -> str:
        with self._database.reading() as session:
            return verification.export_heads(session)

    def make_file_whole(self) -> None:
        """Move SQLite's write-ahead log into its file unless somebody reads just now. Nobody waits long for it."""
        self._database.empty_journal(patience=0)

    def back_up(self, target: Path) -> None:
        backup.back_up(self._database, target)

    def is_ready(self) -> bool:
        """Whether the database answers and has the right schema: for a readiness probe."""
        schema.check_up_to_date(self._database)
        return True

    def close(self) -> None:
        self._database.close()
