"""What must survive: cohorts, step-throughs, evidence, jobs and models, in SQLite or PostgreSQL."""

from .errors import Busy, Conflict, MigrationNeeded, NotFound, StoreError, StoreInputError, Unreachable
from .exchange import export_chain, import_chain
from .records import (
    Act,
    ChainCheck,
    DeletedStepThrough,
    Job,
    NewEvent,
    StepThrough,
    StoredCohort,
    StoredEvent,
    StoredEvidence,
    StoredModel,
)
from .signed_heads import SignedHeads
from .store import Store
from .verification import Verification

__all__ = [
    "Act",
    "Busy",
    "Conflict",
    "DeletedStepThrough",
    "Job",
    "MigrationNeeded",
    "NewEvent",
    "NotFound",
    "SignedHeads",
    "StepThrough",
    "Store",
    "StoreError",
    "StoreInputError",
    "StoredCohort",
    "StoredEvent",
    "StoredEvidence",
    "StoredModel",
    "Unreachable",
    "ChainCheck",
    "Verification",
    "export_chain",
    "import_chain",
]
