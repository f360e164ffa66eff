"""Pipelines: problems in stages, and what it costs to tune them."""

import benchmarks.problems  # noqa: F401  (first: the registry there names the problems here, which need its parts)
