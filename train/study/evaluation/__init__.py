"""Comparing methods on the same rows: cohorts and tasks to compare on, one runner, scores and reports."""
