"""Every method by name. A new one is one entry in this list."""

from benchmarks.drivers.optuna import Optuna
from benchmarks.drivers.ours import Ours
from benchmarks.method import Method
from farthing.systems.baselines.halving import ASHA, Hyperband
from farthing.systems.baselines.random import Random, Sobol

_ENTRIES: tuple[Method, ...] = (
    Ours("random", Random()),
    Ours("sobol", Sobol()),
    Ours("asha", ASHA()),
    Ours("hyperband", Hyperband()),
    Optuna("optuna-random", "RandomSampler"),
    Optuna("optuna-tpe", "TPESampler"),
    Optuna("optuna-tpe-hyperband", "TPESampler", prunes=True),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
