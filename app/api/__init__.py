"""The HTTP face: other systems ask for belief, ranking and verdict of a patient of a stored cohort. `l2m serve` starts it."""
