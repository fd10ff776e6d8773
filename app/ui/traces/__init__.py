"""The parts of the traces page: list, replay, comparison, checks, exports and imports."""
