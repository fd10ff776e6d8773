"""The study's experiments: `python -m train reproduce NAME|all --scale small|reduced|study`. See `experiment.py` for the shape
that all of them have."""
