"""What every strategy is: a function of the history and of what is left of the budget."""

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.space import Space
from farthing.strategies.shared.randomness import Randomness
from farthing.trials import History, Json, Params, Prediction, Suggestion, Trial
from farthing.validation import refuse_unknown


@dataclass(frozen=True)
class Recommendation:
    """What a strategy would have the user take: params, the trial they come from, the value it predicts for them.

    `best_ever` is the trial with the best value of all, where a strategy sets it: a member of a population may have
    been better at an earlier interval than the best one is at the end.
    """

    params: Params
    trial: Trial
    predicted: Prediction | None = None
    best_ever: Trial | None = None


@dataclass(frozen=True)
class Strategy(ABC):
    """Base of all strategies: a frozen dataclass whose fields are its arguments, all of them plain JSON values.

    A strategy keeps nothing between calls. What it must remember rides as the `note` of its own suggestions, and the
    same history with the same seed gives the same suggestions, bit for bit.
    """

    has_end: ClassVar[bool] = False
    """Whether it finishes by itself, so that a run needs no budget."""

    needs_checkpoints: ClassVar[bool] = False
    """Whether what it resumes must go on from where it stopped: work that leaves no checkpoint is refused."""

    def shaped(self, space: Space) -> Space:
        """The space that a study of this strategy has: the given one, or that with what the strategy adds to it."""
        return space

    @abstractmethod
    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        """Up to `count` suggestions; they get the numbers `len(history)`, `len(history) + 1`, ….

        None while trials are in flight means *wait for one of them*; none with nothing in flight means *finished*.
        """

    def recommend(self, history: History) -> Recommendation | None:
        """By default the best value measured at the highest fidelity that any finished trial has."""
        return best_by_value(history)

    def resumable(self, history: History) -> set[int]:
        """Numbers of the finished trials that a later suggestion may resume; the checkpoints of others may go."""
        return set()

    def recommendable(self, history: History) -> set[int]:
        """Numbers of the finished trials that `recommend` may name, now or later: their checkpoints are kept.

        What was measured stays, so by default that is the trial recommended now. A strategy with a `recommend` of its
        own, such as by a model, may change its mind and come back to any run: the last checkpoint of each is kept.
        """
        if type(self).recommend is Strategy.recommend:
            best = self.recommend(history)
            return {best.trial.number} if best else set()
        left = [trial for trial in history.done if trial.checkpoint is not None]
        return {trial.number for trial in left} - {trial.resume_from for trial in left}

    def to_json(self) -> dict[str, Json]:
        return {"name": _name_of(type(self)), "arguments": asdict(self)}


def best_by_value(history: History) -> Recommendation | None:
    """The best value measured at the highest fidelity that any finished trial has."""
    if not history.done:
        return None
    top = max(map(history.reach, history.done))
    best = min(
        (trial for trial in history.done if history.reach(trial) == top),
        key=lambda trial: history.loss(trial.value if trial.value is not None else float("inf")),
    )
    return Recommendation(best.params, best)


def strategy_from_json(form: Json) -> Strategy:
    """The strategy that `to_json` wrote, or that a study file names: `{"name": "ASHA", "arguments": {…}}`."""
    if not isinstance(form, dict) or not isinstance(form.get("name"), str):
        raise InvalidArgument(f"A strategy must be named, got {form!r}. Write for example name = 'ASHA'.")
    cls = find_strategy(form["name"])
    arguments = form.get("arguments") or {}
    known = [field.name for field in fields(cls)]
    refuse_unknown(arguments, known, what=f"Arguments of {form['name']}", error=InvalidArgument)
    return cls(**arguments)


def find_strategy(name: str) -> type[Strategy]:
    """The class of that name: one of Farthing's, or `module:Class` for one of the user's."""
    if ":" in name:
        return _import_strategy(name)
    found = builtin_strategies()
    refuse_unknown([name], sorted(found), what="A strategy that is not given as 'module:Class'", error=InvalidArgument)
    return found[name]


def builtin_strategies() -> dict[str, type[Strategy]]:
    """Every strategy in this package, by name. A new file is found without being listed anywhere."""
    package = importlib.import_module("farthing.strategies")
    for module in pkgutil.walk_packages(package.__path__, "farthing.strategies."):
        importlib.import_module(module.name)
    ours: list[type[Strategy]] = [
        cls for cls in _subclasses(Strategy) if cls.__module__.startswith("farthing.strategies.")
    ]
    return {cls.__name__: cls for cls in ours if not inspect.isabstract(cls)}


def _subclasses(cls: type[Any]) -> list[type[Any]]:
    return [found for child in cls.__subclasses__() for found in [child, *_subclasses(child)]]


def _import_strategy(path: str) -> type[Strategy]:
    module, _, qualified = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidArgument(
            f"A strategy named 'module:Class' must be importable, got {path!r} ({error}). "
            "Put it in an importable module, or pass the strategy itself to Study(strategy=…)."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Strategy)):
        raise InvalidArgument(f"A strategy must be a subclass of farthing.Strategy, got {path!r}. Inherit from it.")
    return found


def _name_of(cls: type[Strategy]) -> str:
    return cls.__name__ if cls.__module__.startswith("farthing.strategies.") else f"{cls.__module__}:{cls.__qualname__}"
