"""Patients as other programs write them: a row of a table, a JSON record or a FHIR Bundle, read for one cohort."""

from l2m_core.patients.reading import MEGABYTES, from_plain, read_patients
from l2m_core.patients.records import BroughtPatients, PatientRecord, Unused

__all__ = ["MEGABYTES", "BroughtPatients", "PatientRecord", "Unused", "from_plain", "read_patients"]
