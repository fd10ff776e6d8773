"""Other methods of prediction and acquisition, all with the same three verbs: fit, predict, rank."""

from l2m_core.methods import dime, dqn, gdfs, mlp_random, orders
from l2m_core.methods.interface import METHODS, Gaussian, Method, make_method

__all__ = ["METHODS", "Gaussian", "Method", "dime", "dqn", "gdfs", "make_method", "mlp_random", "orders"]
