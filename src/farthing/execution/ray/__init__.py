"""Runs jobs on the machines of a Ray cluster. Ray places workers and notices that nodes die; all else is ours."""

from farthing.execution.ray.declaration import RayExecutor
from farthing.execution.ray.resources import Resources

__all__ = ["RayExecutor", "Resources"]
