"""The priors: distributions over tasks, from which pretraining draws."""
