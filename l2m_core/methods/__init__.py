"""Other methods of prediction and acquisition, all with the same three verbs: fit, predict, rank."""

from l2m_core.methods import aaco, dime, dqn, gdfs, mlp_random, orders, sefa
from l2m_core.methods.interface import METHODS, Method, make_method
from l2m_core.tabular.predictions import Gaussian

__all__ = [
    "METHODS",
    "Gaussian",
    "Method",
    "aaco",
    "dime",
    "dqn",
    "gdfs",
    "make_method",
    "mlp_random",
    "orders",
    "sefa",
]
