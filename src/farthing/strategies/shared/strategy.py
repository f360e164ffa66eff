"""The base of every strategy: a function of the history and the rest of the budget."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from zlib import crc32

from farthing.costs import Remaining
from farthing.errors import InvalidArgument
from farthing.fields import Declaration
from farthing.fields.serialization import as_one, from_json, to_json
from farthing.names import STRATEGY, find_class
from farthing.space import Space
from farthing.trials import History, Json, Params, Prediction, Suggestion, Trial
from farthing.validation import shown

if TYPE_CHECKING:
    import numpy as np


# ------------------------------------------------------------
# Random numbers that depend on what they are for, never on how many were drawn before.


class Randomness:
    """Generators keyed by the study's seed and by what the strategy names: `rng.at("trial", 12)`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def at(self, *key: str | int) -> "np.random.Generator":
        """The generator for that key: the same in every process and after every resume."""
        import numpy as np

        words = [crc32(part.encode()) if isinstance(part, str) else part for part in key]
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, *words])))


@dataclass(frozen=True)
class Recommendation:
    """The configuration that a strategy recommends: params, the trial they come from, their predicted value.

    `best_ever` is the trial with the best value of all, if a strategy sets it: a member of a population may have
    been better at an earlier interval than the best one is at the end. `ranking` has the configurations seen, the best
    first, if a model ranks them.
    """

    params: Params
    trial: Trial
    predicted: Prediction | None = None
    best_ever: Trial | None = None
    ranking: "tuple[Recommendation, ...]" = ()


@dataclass(frozen=True)
class Strategy(Declaration):
    """Base of all strategies: a frozen dataclass whose fields are its arguments, all of them plain JSON values.

    The fields carry their rules (`farthing.fields`), which are checked when a strategy is made.

    A strategy keeps nothing between calls. It stores its memory in the `note` of its own suggestions, and the
    same history with the same seed gives the same suggestions, bit for bit.
    """

    has_end: ClassVar[bool] = False
    """Whether it finishes by itself, so that a run needs no budget."""

    when_finished: ClassVar[str] = "the strategy has nothing more to suggest"
    """Why a run ended when it suggests nothing more."""

    needs_checkpoints: ClassVar[bool] = False
    """Whether a resumed trial must continue from a checkpoint: work that leaves none is refused."""

    takes_starts: ClassVar[bool] = False
    """Whether it begins with known starts itself (`shared/starts.py`): what was learnt, guesses and cheap ends. Before
    other strategies are asked, what was learnt is tried at full fidelity."""

    takes_objectives: ClassVar[bool] = False
    """Whether it suits problems with several objectives, or with constraints; others are refused with it."""

    thinking: ClassVar[float] = 0.0
    """About the CPU seconds of a suggestion with all effort, early in a study. Where trials are short beside it,
    suggestions get less (`shared/effort.py`); with zero they always get all of it."""

    haste: ClassVar[float] = 0.45
    """The share of these seconds that a suggestion with the least effort takes."""

    imports_later: ClassVar[str | None] = None
    """A module that its first suggestions do without: a thread that suggests loads it while the first trials run."""

    @property
    def is_blind(self) -> bool:
        """Whether a suggestion follows from its number alone: it is made in the transaction that gives it one."""
        return False

    def shaped(self, space: Space) -> Space:
        """The space of a study with this strategy: the given one, or with additions by the strategy."""
        return space

    @abstractmethod
    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        """Up to `count` suggestions; they get the numbers `len(history)`, `len(history) + 1`, ….

        None while trials are in flight means *wait for one of them*; none with nothing in flight means *finished*.
        """

    def to_come(self, history: History) -> Sequence[Suggestion] | None:
        """Everything that it will still suggest, if no result can change that; None for all who learn or never end."""
        return None

    def recommend(self, history: History) -> Recommendation | None:
        """By default the best value measured at the highest fidelity that any finished trial has."""
        return best_by_value(history)

    def resumable(self, history: History) -> set[int]:
        """Numbers of the finished trials that a later suggestion may resume; the checkpoints of others may go."""
        return set()

    def recommendable(self, history: History) -> set[int]:
        """Numbers of the finished trials that `recommend` may name, now or later: their checkpoints are kept.

        Measured values do not change, so by default it is the trial recommended now. A strategy with its own
        `recommend`, such as by a model, may come back to any run, and so may a front: the last checkpoint of each is
        kept.
        """
        if type(self).recommend is Strategy.recommend and history.problem.is_simple:
            best = self.recommend(history)
            return {best.trial.number} if best else set()
        left = [trial for trial in history.done if trial.checkpoint is not None]
        return {trial.number for trial in left} - {trial.resume_from for trial in left}

    def to_json(self) -> dict[str, Json]:
        form: dict[str, Json] = to_json(self)
        return form


def best_by_value(history: History) -> Recommendation | None:
    """The best value measured at the highest fidelity that any finished trial has; of several values, the first place.

    With one objective under limits that is the best that keeps them.
    """
    if not history.eligible:
        return None
    reaches = list(map(history.reach, history.eligible))
    top = max(reaches)
    if not history.problem.is_simple:
        from farthing.strategies.shared.several import ordered

        furthest = [trial for trial, reach in zip(history.eligible, reaches, strict=True) if reach == top]
        first = ordered(history, furthest)[0]
        return Recommendation(first.params, first)
    best = min(
        (trial for trial, reach in zip(history.eligible, reaches, strict=True) if reach == top),
        key=lambda trial: history.loss(trial.value if trial.value is not None else float("inf")),
    )
    return Recommendation(best.params, best)


def strategy_from_json(form: Json) -> Strategy:
    """The strategy that `to_json` wrote, or that a study file names: `{"name": "ASHA", "arguments": {…}}`."""
    return _strategy(from_json(form, STRATEGY))


def as_strategy(given: Strategy | str) -> Strategy:
    """The strategy that was given, or that of a name, with its usual arguments."""
    return _strategy(as_one(given, STRATEGY))


def find_strategy(name: str) -> type[Strategy]:
    """The class of that name: one of Farthing's, or `module:Class` for one of the user's."""
    return find_class(name, STRATEGY)


def _strategy(found: object) -> Strategy:
    if not isinstance(found, Strategy):
        raise InvalidArgument(
            f"A strategy must inherit from farthing.extending.Strategy, got {shown(found)}. Inherit from it."
        )
    return found
