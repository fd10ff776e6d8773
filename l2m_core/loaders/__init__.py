"""The study's data sets, each from a path that the user gives. None of them comes with the software."""

from l2m_core.loaders.meds import HOSPITAL_OUTCOMES, load_hospital
from l2m_core.loaders.metabric import load_metabric
from l2m_core.loaders.miniboone import load_miniboone
from l2m_core.loaders.mnist import load_mnist

__all__ = ["HOSPITAL_OUTCOMES", "load_hospital", "load_metabric", "load_miniboone", "load_mnist"]
