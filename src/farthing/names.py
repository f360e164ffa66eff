"""The one table of names: where strategies, online strategies, query rules and trackers live. It imports nothing.

It is at the bottom of the layers, so that `farthing` itself, studies and study files all look a name up here.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farthing.errors import InvalidArgument
from farthing.validation import refuse_unknown, shown

STRATEGIES = {
    "ASHA": "farthing.strategies.multifidelity.halving",
    "BOHB": "farthing.strategies.multifidelity.bohb",
    "CMAES": "farthing.strategies.plain.cmaes",
    "Clone": "farthing.strategies.population.pbt",
    "EIPerCost": "farthing.strategies.plain.bayesian",
    "Grid": "farthing.strategies.plain.grid",
    "Hyperband": "farthing.strategies.multifidelity.halving",
    "LaMBO": "farthing.strategies.pipeline.lambo",
    "LogEHVI": "farthing.strategies.plain.hypervolume",
    "LogEI": "farthing.strategies.plain.bayesian",
    "PB2": "farthing.strategies.population.pbt",
    "PBT": "farthing.strategies.population.pbt",
    "ParetoHalving": "farthing.strategies.multifidelity.pareto",
    "PrefixEI": "farthing.strategies.pipeline.prefix_ei",
    "Random": "farthing.strategies.plain.random",
    "Sobol": "farthing.strategies.plain.random",
    "TraceKG": "farthing.strategies.multifidelity.takg",
}

ONLINE_STRATEGIES = {
    "CEGPUCB": "farthing.online.ce_gp_ucb",
    "PairedProbes": "farthing.online.probes",
}

QUERY_RULES = {
    "Bernoulli": "farthing.online.query_rules",
    "Capped": "farthing.online.query_rules",
    "Confidence": "farthing.online.query_rules",
    "Every": "farthing.online.query_rules",
    "ExpectedRegret": "farthing.online.query_rules",
    "Floor": "farthing.online.query_rules",
    "Overlap": "farthing.online.query_rules",
    "Quota": "farthing.online.query_rules",
    "ValueOfInformation": "farthing.online.query_rules",
}


TRACKERS = {
    "MLflow": "farthing.trackers.mlflow",
    "TensorBoard": "farthing.trackers.tensorboard",
    "WandB": "farthing.trackers.wandb",
}

ELSEWHERE = dict.fromkeys(
    [
        "Executor",
        "History",
        "Measurement",
        "OnlineStrategy",
        "Prediction",
        "QueryRule",
        "Randomness",
        "Recommendation",
        "Remaining",
        "Storage",
        "Strategy",
        "Suggestion",
    ],
    "farthing.extending",
) | {
    "Checked": "farthing.running.verification",
    "Deleted": "farthing.session.studies",
    "Schedule": "farthing.analysis.runs",
}
"""Public names that are not in `farthing` itself: what only extensions need, and results that no program makes."""

BASELINES = {
    "BOCA": "benchmarks.baselines.curve_guided:BOCA",
    "EEIPU": "benchmarks.baselines.staged:EEIPU",
    "EXP3S": "benchmarks.baselines.bandits:EXP3S",
    "EpsilonGreedy": "benchmarks.baselines.bandits:EpsilonGreedy",
    "FreezeThawEI": "benchmarks.baselines.curve_guided:FreezeThawEI",
    "GPBandit": "benchmarks.baselines.bandits:GPBandit",
    "RestartedGPUCB": "benchmarks.baselines.bandits:RestartedGPUCB",
    "Softmax": "benchmarks.baselines.bandits:Softmax",
    "StagedBO": "benchmarks.baselines.staged:StagedBO",
    "UCB1": "benchmarks.baselines.bandits:UCB1",
}
"""Methods to compare with that were in the package once: they are in its repository, and stored studies name them."""

FORMER_NAMES = {"farthing.study.online.stored:Online": "farthing.online.log:Online"} | BASELINES
"""Names in stored studies, which keep them, and where those classes live now."""


@dataclass(frozen=True)
class Kind:
    """A kind of named thing: how errors call it, the method that makes it one, where its names are, and its user.

    `written_in` is where users find its names.
    """

    what: str
    method: str
    homes: Mapping[str, str]
    example: str
    used_by: str
    written_in: str = "ft"

    @property
    def example_call(self) -> str:
        """One of them with its usual arguments, as code."""
        return f"{self.written_in}.{self.example}()"

    def matches(self, thing: object) -> bool:
        """Whether it is one, and not a class of them."""
        return not isinstance(thing, type) and callable(getattr(thing, self.method, None))


STRATEGY = Kind("a strategy", "suggest", STRATEGIES, "ASHA", "ft.Study(strategy=…)")
ONLINE_STRATEGY = Kind("an online strategy", "begin", ONLINE_STRATEGIES, "CEGPUCB", "ft.OnlineTuner(strategy=…)")
QUERY_RULE = Kind("a query rule", "ask", QUERY_RULES, "Every", "ft.CEGPUCB(rule=…)", "ft.rules")
TRACKER = Kind("a tracker", "begin", TRACKERS, "MLflow", "study.run(trackers=[…])", "ft.trackers")
KINDS = (STRATEGY, ONLINE_STRATEGY, QUERY_RULE)


def find_class(name: str, kind: Kind) -> type[Any]:
    """The class of that name: one of Farthing's, or `module:Class` for one of the user's. Imports its module alone."""
    found: type[Any]
    if ":" in name or name in BASELINES:
        return _import_class(name, kind)
    name = {_simplified(known): known for known in kind.homes}.get(_simplified(name), name)
    what = f"{kind.what.capitalize()} that is not given as 'module:Class'"
    refuse_unknown([name], sorted(kind.homes), what=what, error=InvalidArgument)
    found = getattr(importlib.import_module(kind.homes[name]), name)
    return found


def _simplified(name: str) -> str:
    """The name without what people vary: `trace_kg` and `cma-es` are TraceKG and CMAES."""
    return name.lower().replace("-", "").replace("_", "")


def name_of(cls: type[Any]) -> str:
    """The name under which `find_class` finds it."""
    full = f"{cls.__module__}:{cls.__qualname__}"
    former = [name for name, now in FORMER_NAMES.items() if now == full]
    is_listed = any(kind.homes.get(cls.__name__) == cls.__module__ for kind in KINDS)
    return former[0] if former else cls.__name__ if is_listed else full


def _import_class(path: str, kind: Kind) -> type[Any]:
    module, _, qualified = FORMER_NAMES.get(path, path).partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        if path in BASELINES:
            raise InvalidArgument(
                f"{kind.what.capitalize()} must be in the package, got {path!r}, a baseline that moved to "
                f"benchmarks/baselines in Farthing's repository. Run from a clone of it, or pass another strategy=."
            ) from error
        raise InvalidArgument(
            f"{kind.what.capitalize()} named 'module:Class' must be importable, got {shown(path)} ({error}). "
            "Put it in an importable module, or pass the object itself."
        ) from error
    if not (isinstance(found, type) and callable(getattr(found, kind.method, None))):
        raise InvalidArgument(
            f"{kind.what.capitalize()} must be a class with {kind.method}(…), got {shown(path)}. Name such a class."
        )
    return found
