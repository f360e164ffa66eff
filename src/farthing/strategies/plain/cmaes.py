"""CMA-ES: an evolution strategy that learns the shape of the landscape; its cost does not grow with the trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from farthing.costs import Remaining
from farthing.errors import MissingExtra
from farthing.fields import number, whole
from farthing.strategies.shared.strategy import Randomness, Strategy
from farthing.trials import History, Json, State, Suggestion, Trial

if TYPE_CHECKING:
    import numpy as np

NOTE = "cmaes"
EVOLVING = {"mean": "_mean", "sigma": "_sigma", "C": "_c_1d", "p_sigma": "_p_sigma", "p_c": "_pc", "generation": "_g"}
"""The state that changes with a generation, in the paper's letters, and its name in the pickled state of `CMA`."""

SMALLEST_STEP = 1e-9
"""In the unit cube: a distribution that is narrower has converged, to about the precision that parameters have."""


@dataclass(frozen=True)
class CMAES(Strategy):
    """Covariance matrix adaptation (Hansen, 2016), at full fidelity: for many cheap trials, on many workers.

    Points of the unit cube are drawn from a normal distribution, which moves and changes its shape with every
    generation of results. No worker waits: while results are missing, more points are drawn from the same distribution,
    and results that come after their generation has ended are left out. Failed trials count as the worst of their
    generation. When the distribution has shrunk to a point, the search begins again at a random place, and in a space
    that was extended at the best configuration so far.

    Whole numbers and steps are rounded; categories are equal parts of their axis, in the order in which they are
    listed; a parameter that is inactive keeps its axis, along which nothing is learnt. Needs `farthing[cmaes]`.

    Args:
        population: the number of results in a generation; None is 4 + 3 log d for d parameters.
        sigma: the standard deviation at the beginning, in the unit cube; the tutorial advises 0.3 of the range.
    """

    population: int | None = whole(None, least=4)
    sigma: float = number(0.3, above=0.0, most=1.0)

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        from farthing.models.threads import one_thread

        with one_thread():
            generation = self._generation(history, rng)
            numbers = range(len(history), len(history) + count)
            return [_suggestion(history, generation, self._drawn(generation, each, rng), each) for each in numbers]

    def _generation(self, history: History, rng: Randomness) -> "Generation":
        """The one that points are drawn from now: the latest, or the one after it where its results are there."""
        latest = _latest_generation(history)
        if latest is None:
            return Generation(len(history), self._start(history, mean=_beginning(history)))
        optimizer = self._optimizer(latest.state)
        selected = latest.selected(optimizer.population_size)
        return latest if selected is None else self._following(history, optimizer, selected, rng)

    def _following(self, history: History, optimizer: Any, selected: Sequence[Trial], rng: Randomness) -> "Generation":
        import numpy as np

        optimizer.tell([(np.array(trial.note[NOTE]["point"]), _loss(history, trial)) for trial in selected])
        state = _state_of(optimizer)
        if _has_converged(state):
            mean = rng.at("restart", len(history)).random(history.problem.space.encoder.dimension)
            state = self._start(history, mean=mean)
        return Generation(len(history), state)

    def _start(self, history: History, *, mean: "float | np.ndarray") -> dict[str, Json]:
        import numpy as np

        d = history.problem.space.encoder.dimension
        beginning = {"mean": np.broadcast_to(mean, (d,)).tolist(), "sigma": self.sigma}
        return _state_of(self._optimizer(beginning))

    def _drawn(self, generation: "Generation", number: int, rng: Randomness) -> list[float]:
        """The point of the trial that will have that number, within the unit cube."""
        optimizer = self._optimizer(generation.state)
        optimizer.reseed_rng(int(rng.at("trial", number).integers(2**32)))
        point: list[float] = optimizer.ask().tolist()
        return point

    def _optimizer(self, state: Mapping[str, Json]) -> Any:
        """A `cmaes.CMA` in that state; what the state does not have is as at the beginning."""
        import numpy as np

        mean = np.array(state["mean"], dtype=float)
        bounds = np.tile([0.0, 1.0], (mean.size, 1))
        optimizer = _cma()(mean, state["sigma"], bounds=bounds, population_size=self.population)
        known = {EVOLVING[name]: np.array(value) if isinstance(value, list) else value for name, value in state.items()}
        optimizer.__setstate__({**optimizer.__getstate__(), **known})
        return optimizer


@dataclass(frozen=True)
class Generation:
    """Trials drawn from one distribution. `first` is the number of the first of them, whose note has the state."""

    first: int
    state: Mapping[str, Json]
    members: Sequence[Trial] = ()

    def selected(self, size: int) -> Sequence[Trial] | None:
        """The trials that the distribution learns from, measured ones first; None while too few have ended."""
        ended = [trial for trial in self.members if trial.is_finished]
        measured = [trial for trial in ended if _is_measured(trial)]
        if len(ended) < size or len(measured) < size // 2:
            return None
        return [*measured, *(trial for trial in ended if not _is_measured(trial))][:size]


def _latest_generation(history: History) -> Generation | None:
    """Read backwards from the last trial to the one that began it: the trials before it are not looked at.

    A generation of before the space was extended is none: its points are those of another cube.
    """
    members: list[Trial] = []
    for index in range(len(history) - 1, history.extended_at - 1, -1):
        trial = history[index]
        if isinstance(trial.note, dict) and NOTE in trial.note:
            members.append(trial)
            if "state" in trial.note[NOTE]:
                return Generation(index, trial.note[NOTE]["state"], members[::-1])
    return None


def _beginning(history: History) -> "float | np.ndarray":
    """The middle of the unit cube; in an extended space the best configuration so far, as a point of the new cube."""
    measured = [trial for trial in history.eligible if trial.value is not None] if history.extended_at else []
    if not measured:
        return 0.5
    import numpy as np

    encoder = history.problem.space.encoder
    [point] = encoder.encode([min(measured, key=lambda trial: _loss(history, trial)).params])
    for column, count in encoder.categories.items():
        point[column] = (point[column] + 0.5) / count
    return np.asarray(np.nan_to_num(point, nan=0.5))


def _suggestion(history: History, generation: Generation, point: list[float], number: int) -> Suggestion:
    import numpy as np

    space = history.problem.space
    [params] = space.encoder.decode_unit(np.array([point]))
    state = {"state": generation.state} if number == generation.first else {}
    return Suggestion(params, space.full_fidelity, note={NOTE: {"point": point, **state}})


def _is_measured(trial: Trial) -> bool:
    return trial.state is State.DONE and trial.value is not None


def _loss(history: History, trial: Trial) -> float:
    return history.loss(trial.value) if _is_measured(trial) and trial.value is not None else float("inf")


def _state_of(optimizer: Any) -> dict[str, Json]:
    pickled = optimizer.__getstate__()
    values = {name: pickled[attribute] for name, attribute in EVOLVING.items()}
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}


def _has_converged(state: Mapping[str, Json]) -> bool:
    """Whether the widest step is too small, or numbers have overflowed."""
    widest = state["sigma"] * max(abs(entry) for entry in state["C"]) ** 0.5
    return not isfinite(widest) or widest < SMALLEST_STEP


def _cma() -> Any:
    try:
        from cmaes import CMA
    except ImportError as error:
        raise MissingExtra(
            "CMAES needs the package cmaes, which is absent. Install it: pip install 'farthing[cmaes]'."
        ) from error
    return CMA
