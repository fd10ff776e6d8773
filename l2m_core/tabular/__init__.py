"""Regressions and boosted trees that are fitted to one cohort and predict from partly known rows of it."""
