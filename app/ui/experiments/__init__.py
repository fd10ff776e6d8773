"""The parts of the Experiments page: starting jobs, watching them, and the models they make."""
