"""Training a population: the strong are copied over the weak, and a schedule of params is learnt in one run."""

from farthing.systems.population.pb2 import PB2
from farthing.systems.population.strategy import PopulationStrategy

__all__ = ["PB2", "PopulationStrategy"]
