"""Studies whose user says at which end of some parameters a run costs least."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.drivers.ours import Ours
from benchmarks.problems import Problem
from farthing.space import Space

CHEAP: Mapping[str, Mapping[str, Any]] = {
    "fcnet": {"batch_size": 64, "n_units_1": 16, "n_units_2": 16},
    "hpobench-mlp": {"batch_size": 256, "depth": 1, "width": 16},
    "nasbench-201": {f"Op{place}": "skip_connect" for place in range(6)},
    "rbv2_xgboost": {"nrounds": "low", "max_depth": "low"},
    "rows/finetune_cifar": {"batch": 64, "frozen": "high"},
    "rows/gru_code": {"batch": 128, "layers": "low", "width": 64},
    "rows/resnet_cifar": {"batch": 512, "width": 16},
}
"""What anybody knows who trains such a model: fewer and smaller layers, larger batches, fewer trees cost less."""


@dataclass(frozen=True)
class OursCheap(Ours):
    """A strategy in a space with the cheap ends of some parameters."""

    @property
    def settings(self) -> Mapping[str, Any]:
        return {**super().settings, "cheap": True}

    def _space(self, problem: Problem) -> Space:
        return cheap_space(problem)


def cheap_space(problem: Problem) -> Space:
    """The problem's space with its cheap ends, by way of its tables."""
    ends = CHEAP[problem.name] if problem.name in CHEAP else CHEAP[problem.name.partition("/")[0]]
    form = problem.space().to_json()
    tables = {name: table | ({"cheap": ends[name]} if name in ends else {}) for name, table in form["params"].items()}
    return Space.from_json({**form, "params": tables})
