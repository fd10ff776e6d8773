"""Stepping through one patient: events, the immutable patient, and the trace that is exported."""
