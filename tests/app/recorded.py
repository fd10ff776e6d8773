"""Step-throughs put into the store as the step-through page does it, without driving the page."""

from app.store import StepThrough, StoredCohort
from app.ui.services import Services
from app.ui.steps.record import new_event
from l2m_core.memory import CohortMemory
from l2m_core.session import Patient
from l2m_core.trace import summarise


def memory_of(shared: Services, owner: str, cohort: StoredCohort) -> CohortMemory:
    return shared.conditioned(owner, cohort, shared.model(owner)).memory


def keep(shared: Services, owner: str, cohort: StoredCohort, patient: Patient, title: str = "Bed 4") -> StepThrough:
    events = [
        new_event(event, summarise(Patient.replay(patient.memory, patient.events[: number + 1])))
        for number, event in enumerate(patient.events)
    ]
    return shared.store.step_throughs.create(
        owner, cohort.id, patient.memory.model.fingerprint, title, events=events
    )


def eventful(memory: CohortMemory) -> Patient:
    """Seven events: a panel in place of the suggestion, something not to be had, its undoing, a result, a limit, and the end."""
    salts = {"sodium": 131.0, "potassium": 4.4}  # they say nothing of the outcome, so no good model suggests them first
    patient = memory.start({"age": 71.0, "sex": "f"}).observe(salts, reason="drawn already")
    patient = patient.unavailable("scan", reason="broken").undo().observe("lactate", 3.6)
    return patient.correct("lactate", 0.5, limit="below").stop("clear enough")
