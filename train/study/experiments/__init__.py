"""The study's experiments: `python -m train reproduce NAME|all --scale small|study`. See `experiment.py` for the shape
that all of them have."""
