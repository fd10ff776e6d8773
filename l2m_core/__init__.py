"""Learning-to-Measure: what to believe and what to measure next, for any cohort with holes in it."""

__version__ = "0.1.0"

_HOMES = {
    "load": "l2m_core.memory",
    "L2M": "l2m_core.memory",
    "CohortMemory": "l2m_core.memory",
    "Cohort": "l2m_core.cohort",
    "Schema": "l2m_core.schema",
    "Feature": "l2m_core.schema",
    "Outcome": "l2m_core.schema",
    "Patient": "l2m_core.step_through.patient",
    "Event": "l2m_core.step_through.events",
    "Trace": "l2m_core.step_through.trace",
    "Stopping": "l2m_core.acquire.stopping",
    "L2MClassifier": "l2m_core.estimator",
    "L2MRegressor": "l2m_core.estimator",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str):
    """The public face, each name loaded on first use, so that training machines need no more than torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'l2m_core' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
