"""Farthing: cost-aware hyperparameter optimization. Every evaluation has a price.

Names are imported when they are first used, so that the command line and the workers stay light.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.platform == "win32":
    raise ImportError("Farthing needs Linux, or macOS, got Windows: run it in the Windows Subsystem for Linux.")

from farthing.names import ELSEWHERE, ONLINE_STRATEGIES, STRATEGIES

if TYPE_CHECKING:
    from farthing import rules as rules
    from farthing import trackers as trackers
    from farthing.analysis.best import Best as Best
    from farthing.analysis.diagnosis import Diagnosis as Diagnosis
    from farthing.analysis.outlook import Outlook as Outlook
    from farthing.costs import Budget as Budget
    from farthing.costs import FakeClock as FakeClock
    from farthing.costs import Ledger as Ledger
    from farthing.costs import Worth as Worth
    from farthing.errors import FarthingError as FarthingError
    from farthing.errors import Pruned as Pruned
    from farthing.execution import Command as Command
    from farthing.execution import Pipeline as Pipeline
    from farthing.execution import RunningTrial as RunningTrial
    from farthing.execution import Stage as Stage
    from farthing.execution import Trainable as Trainable
    from farthing.execution.ray import RayExecutor as RayExecutor
    from farthing.online import CEGPUCB as CEGPUCB
    from farthing.online import PairedProbes as PairedProbes
    from farthing.online.run import Decision as Decision
    from farthing.online.tuner import OnlineTuner as OnlineTuner
    from farthing.running.replay import replay as replay
    from farthing.running.stopping import Stopped as Stopped
    from farthing.running.stopping import StopReason as StopReason
    from farthing.running.verification import Verification as Verification
    from farthing.session.studies import delete_study as delete_study
    from farthing.session.studies import studies as studies
    from farthing.space import Choice as Choice
    from farthing.space import Fidelity as Fidelity
    from farthing.space import Float as Float
    from farthing.space import Int as Int
    from farthing.space import Space as Space
    from farthing.strategies.multifidelity.bohb import BOHB as BOHB
    from farthing.strategies.multifidelity.halving import ASHA as ASHA
    from farthing.strategies.multifidelity.halving import Hyperband as Hyperband
    from farthing.strategies.multifidelity.pareto import ParetoHalving as ParetoHalving
    from farthing.strategies.multifidelity.takg import TraceKG as TraceKG
    from farthing.strategies.pipeline.lambo import LaMBO as LaMBO
    from farthing.strategies.pipeline.prefix_ei import PrefixEI as PrefixEI
    from farthing.strategies.plain.bayesian import EIPerCost as EIPerCost
    from farthing.strategies.plain.bayesian import LogEI as LogEI
    from farthing.strategies.plain.cmaes import CMAES as CMAES
    from farthing.strategies.plain.grid import Grid as Grid
    from farthing.strategies.plain.hypervolume import LogEHVI as LogEHVI
    from farthing.strategies.plain.random import Random as Random
    from farthing.strategies.plain.random import Sobol as Sobol
    from farthing.strategies.population import PB2 as PB2
    from farthing.strategies.population.pbt import PBT as PBT
    from farthing.strategies.population.pbt import Clone as Clone
    from farthing.study import Study as Study
    from farthing.study import maximize as maximize
    from farthing.study import minimize as minimize
    from farthing.trials import State as State
    from farthing.trials import Trial as Trial
    from farthing.trials.objectives import AtLeast as AtLeast
    from farthing.trials.objectives import AtMost as AtMost
    from farthing.trials.objectives import Succeeds as Succeeds

__version__ = "0.1.0"

_HOMES = {
    "farthing.costs": ("Budget", "FakeClock", "Ledger", "Worth"),
    "farthing.errors": ("FarthingError", "Pruned"),
    "farthing.execution": ("Command", "Pipeline", "RunningTrial", "Stage", "Trainable"),
    "farthing.execution.ray": ("RayExecutor",),
    "farthing.space": ("Choice", "Fidelity", "Float", "Int", "Space"),
    "farthing.analysis.best": ("Best",),
    "farthing.running.replay": ("replay",),
    "farthing.running.stopping": ("StopReason", "Stopped"),
    "farthing.running.verification": ("Verification",),
    "farthing.session.studies": ("delete_study", "studies"),
    "farthing.study": ("Study", "maximize", "minimize"),
    "farthing.analysis.diagnosis": ("Diagnosis",),
    "farthing.online.run": ("Decision",),
    "farthing.online.tuner": ("OnlineTuner",),
    "farthing.analysis.outlook": ("Outlook",),
    "farthing.trials.objectives": ("AtLeast", "AtMost", "Succeeds"),
    "farthing.trials": ("State", "Trial"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_HOME_OF |= STRATEGIES | {name: ONLINE_STRATEGIES[name] for name in ("CEGPUCB", "PairedProbes")}
_MODULES = ("rules", "trackers")

__all__ = [
    "ASHA",
    "BOHB",
    "CEGPUCB",
    "CMAES",
    "PB2",
    "PBT",
    "AtLeast",
    "AtMost",
    "Best",
    "Budget",
    "Choice",
    "Clone",
    "Command",
    "Decision",
    "Diagnosis",
    "EIPerCost",
    "FakeClock",
    "FarthingError",
    "Fidelity",
    "Float",
    "Grid",
    "Hyperband",
    "Int",
    "LaMBO",
    "Ledger",
    "LogEHVI",
    "LogEI",
    "OnlineTuner",
    "Outlook",
    "PairedProbes",
    "ParetoHalving",
    "Pipeline",
    "PrefixEI",
    "Pruned",
    "Random",
    "RayExecutor",
    "RunningTrial",
    "Sobol",
    "Space",
    "Stage",
    "State",
    "StopReason",
    "Stopped",
    "Study",
    "Succeeds",
    "TraceKG",
    "Trainable",
    "Trial",
    "Verification",
    "Worth",
    "delete_study",
    "maximize",
    "minimize",
    "replay",
    "rules",
    "studies",
    "trackers",
]

if not TYPE_CHECKING:  # a checker that sees it takes every misspelt name for an attribute

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"farthing.{name}")
        if name not in _HOME_OF:
            from farthing.validation import no_attribute

            raise no_attribute("farthing", name, home=ELSEWHERE.get(name))
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME_OF, *_MODULES])
