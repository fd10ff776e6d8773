"""The parts of the step-through page: stored events, the model's answers to them, what is shown, and the actions."""
