"""Every method by name. A new one is one entry in this list."""

from benchmarks.drivers.botorch import BoTorch
from benchmarks.drivers.botorch_mf import BoTorchMFKG
from benchmarks.drivers.neps import NePS
from benchmarks.drivers.optuna import Optuna
from benchmarks.drivers.ours import Ours
from benchmarks.drivers.smac import SMAC
from benchmarks.method import Method
from farthing.systems.baselines.bayesian import EIPerCost, LogEI
from farthing.systems.baselines.boca import BOCA
from farthing.systems.baselines.bohb import BOHB
from farthing.systems.baselines.freeze_thaw import FreezeThawEI
from farthing.systems.baselines.halving import ASHA, Hyperband
from farthing.systems.baselines.random import Random, Sobol
from farthing.systems.multifidelity import TraceKG

_ENTRIES: tuple[Method, ...] = (
    Ours("random", Random()),
    Ours("sobol", Sobol()),
    Ours("asha", ASHA()),
    Ours("hyperband", Hyperband()),
    Ours("TraceKG", TraceKG()),
    Ours("TraceKG-plain", TraceKG(zero_avoiding=False)),
    Ours("TraceKG-paper", TraceKG.paper()),
    Ours("TraceKG-paper-plain", TraceKG.paper(zero_avoiding=False)),
    Ours("TraceKG-gradients", TraceKG(), gradients=True),
    Ours("kg", TraceKG(zero_avoiding=False, floor=1.0)),
    Ours("bohb", BOHB()),
    Ours("boca", BOCA()),
    Ours("freeze-thaw-ei", FreezeThawEI()),
    Ours("log-ei", LogEI()),
    Ours("ei-per-cost", EIPerCost()),
    Ours("ei-per-cost-without-cooling", EIPerCost(cooling=False)),
    Ours("TraceKG-8", TraceKG(), batch=8),
    Ours("kg-8", TraceKG(zero_avoiding=False, floor=1.0), batch=8),
    Ours("log-ei-8", LogEI(), batch=8),
    Ours("hyperband-8", Hyperband(), batch=8),
    Optuna("optuna-random", "RandomSampler"),
    Optuna("optuna-tpe", "TPESampler"),
    Optuna("optuna-gp", "GPSampler", packages=("optuna", "numpy", "torch")),
    Optuna("optuna-tpe-hyperband", "TPESampler", prunes=True),
    BoTorch("botorch-log-ei"),
    BoTorchMFKG("botorch-qmfkg"),
    SMAC("smac-multi-fidelity"),
    NePS("neps"),
    NePS("neps-asha", optimizer="asha"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
