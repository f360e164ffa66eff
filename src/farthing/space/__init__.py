"""The search space: parameters, fidelities and stages. Importing this does not import NumPy."""

from farthing.space.fidelity import Fidelity
from farthing.space.parameters import Choice, Float, Int, Parameter
from farthing.space.space import Space, space_from_tables

__all__ = ["Choice", "Fidelity", "Float", "Int", "Parameter", "Space", "space_from_tables"]
