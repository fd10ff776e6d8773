"""How a model answers: released models, class codings, calibration, batching and predictive distributions."""
