"""Strategies that evaluate every configuration in full: random, Sobol, Bayesian."""
