"""Training a population: the strong are copied over the weak, and a schedule of params is learnt in one run."""

from farthing.strategies.population.pbt import PB2
from farthing.strategies.population.strategy import PopulationStrategy

__all__ = ["PB2", "PopulationStrategy"]
