"""The parts of the step-through page: what is stored, what is computed from it, what is shown, what can be done."""
