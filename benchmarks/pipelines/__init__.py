"""Pipelines: problems in stages, and what it costs to tune them."""
