"""Step-throughs put into the store as the step-through page does it, without driving the page."""

from app.host.services import Services
from app.store import StepThrough, StoredCohort
from app.ui.step_through.stored_events import new_event
from l2m_core.memory import CohortMemory
from l2m_core.step_through.patient import Patient
from l2m_core.step_through.trace import summarise


def memory_of(shared: Services, owner: str, cohort: StoredCohort) -> CohortMemory:
    return shared.conditioned(owner, cohort, shared.model(owner)).memory


def keep(shared: Services, owner: str, cohort: StoredCohort, patient: Patient, title: str = "Bed 4") -> StepThrough:
    events = [
        new_event(event, summarise(Patient.replay(patient.memory, patient.events[: number + 1])))
        for number, event in enumerate(patient.events)
    ]
    return shared.store.step_throughs.create(owner, cohort.id, patient.memory.model.fingerprint, title, events=events)


def eventful(memory: CohortMemory) -> Patient:
    """Seven events: a panel in place of the suggestion, something not to be had, its undoing, a result, a limit, and the end."""
    # The salts say nothing of the outcome; should a model suggest them first all the same, it does not at every age.
    salts = {"sodium": 131.0, "potassium": 4.4}
    begun = (memory.start({"age": age, "sex": "f"}) for age in (71.0, 45.0, 60.0, 80.0, 30.0))
    patient = next(patient for patient in begun if patient.suggestion not in salts)
    patient = patient.observe(salts, reason="drawn already")
    patient = patient.unavailable("scan", reason="broken").undo().observe("lactate", 3.6)
    return patient.correct("lactate", 0.5, limit="below").stop("clear enough")


def changing_their_mind(memory: CohortMemory) -> Patient:
    """Of three classes (`outcome_cohort`), one leads at first, and another after a correction."""
    return memory.start({"age": 60.0}).observe("lactate", 0.3).correct("lactate", 5.0)
