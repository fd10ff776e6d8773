"""Training loops, losses, optimisers and checkpoints: what every training job shares."""
