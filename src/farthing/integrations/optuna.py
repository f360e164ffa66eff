"""Farthing's strategies inside an Optuna study, its model of curves as a pruner, and studies that change sides.

study = optuna.create_study(sampler=FarthingSampler(), pruner=FarthingPruner(max_steps=50))
"""

import logging
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from farthing.costs import Remaining
from farthing.errors import InvalidArgument, MissingExtra
from farthing.fields import Number, Whole
from farthing.models.linalg import IntArray, one_thread
from farthing.models.sobol import BITS
from farthing.session.strategy import default_strategy
from farthing.space import Space
from farthing.space.encoding import Array, Encoder
from farthing.strategies import Randomness, Strategy, as_strategy
from farthing.strategies.multifidelity.curve_model import CurveModel, model_of_curves
from farthing.strategies.multifidelity.levels import Fidelities
from farthing.strategies.shared.starts import sobol_unit
from farthing.trials import History, Params

try:
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import Study as OptunaStudy
    from optuna.trial import FrozenTrial, TrialState

    from farthing.integrations.optuna_history import CHOSEN, LIMITS, NOTE, Translation, amount_at, read_trials
    from farthing.integrations.optuna_studies import export_study as export_study
    from farthing.integrations.optuna_studies import import_study as import_study
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.optuna needs Optuna, which is absent. Run: pip install 'farthing[optuna]'."
    ) from error

log = logging.getLogger("farthing")


class FarthingSampler(BaseSampler):  # type: ignore[misc]
    """Suggests the params of an Optuna study by a strategy of Farthing's.

    Everything it decides from is in the study: values, durations as costs, and the strategy's notes, which it keeps as
    system attributes of trials. So a study may be continued, and several processes may share it.

    Args:
        strategy: a strategy for spaces without fidelities, or its name; by default `EIPerCost`, which weighs durations,
            and in a study of several objectives or with constraints `LogEHVI`, which does too. `LogEI` is blind to
            them: with it and a seed a study can be repeated exactly.
        space: the space of the objective. Without it, it is what all finished trials had in common, as for Optuna's own
            samplers; other params are drawn at random, and a warning says so once.
        seed: of everything random; by default another one each time.
        constraints_func: as of Optuna's samplers: takes a finished trial, and returns numbers that should be at most 0.
            What a trial says with `set_constraint` counts without it.
    """

    def __init__(
        self,
        strategy: Strategy | str | None = None,
        *,
        space: Space | None = None,
        seed: int | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        self._strategy = None if strategy is None else as_strategy(strategy)
        self._limits = constraints_func
        if constraints_func is not None and not self._takes_limits:
            raise InvalidArgument(
                f"A sampler with constraints_func needs a strategy for constraints, got {strategy!r}. "
                "Leave it out, or use ft.LogEHVI()."
            )
        self._declared = None if space is None else Translation.of_space(space)
        if seed is not None:
            Whole(least=0).checked(seed, what="The seed", advice="Use for example seed=0.")
        self._seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
        self._common = IntersectionSearchSpace(include_pruned=True)
        self._one_at_a_time = Lock()
        self._said: set[str] = set()

    @property
    def _takes_limits(self) -> bool:
        return self._strategy is None or self._strategy.takes_objectives

    def after_trial(
        self, study: OptunaStudy, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """Keeps what `constraints_func` says of a trial, where Optuna's own samplers keep it."""
        if self._limits is None or state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        advice = "constraints_func returns a list of numbers, each at most 0 where the trial keeps it."
        said = [Number().checked(one, what="A constraint", advice=advice) for one in self._limits(trial)]
        study._storage.set_trial_system_attr(trial._trial_id, LIMITS, said)  # noqa: SLF001 - its own samplers do so

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name != "_one_at_a_time"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= {**state, "_one_at_a_time": Lock()}

    def reseed_rng(self) -> None:
        """Called in each process of several that work on one study with copies of this sampler."""
        self._seed = int(np.random.SeedSequence().generate_state(1)[0])

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        if self._declared is not None:
            return dict(self._declared.distributions)
        common = self._common.calculate(study)
        return {name: distribution for name, distribution in common.items() if not distribution.single()}

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        self._refuse_several(study)
        if not search_space:
            return {}
        translation = self._declared or Translation.of_distributions(search_space)
        with self._one_at_a_time:  # a thread must see what the other has just been given
            return self._suggested(study, trial, translation)

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        self._refuse_several(study)
        if trial.number and param_name not in self._said and study.get_trials(deepcopy=False)[0].state.is_finished():
            self._say_what_is_hidden(param_name)
        rng = Randomness(self._seed).at("optuna", trial.number, param_name)
        return _drawn(param_distribution, rng)

    def _refuse_several(self, study: OptunaStudy) -> None:
        """Raises for a study of several objectives if the strategy that was given knows one only."""
        if self._strategy is not None and not self._strategy.takes_objectives:
            self._raise_error_if_multi_objective(study)

    def _suggested(self, study: OptunaStudy, trial: FrozenTrial, translation: Translation) -> dict[str, Any]:
        others = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        read = read_trials(others, translation, study, seed=self._seed, is_limited=self._takes_limits)
        history = read.history
        strategy = self._strategy or default_strategy(history.problem)
        suggestions = strategy.suggest(history, Remaining(), 1, Randomness(self._seed))
        if not suggestions:
            raise InvalidArgument(
                f"A sampler's strategy must always have a suggestion, got none from {strategy!r}. "
                "Use ft.LogEI() or ft.EIPerCost()."
            )
        suggestion = suggestions[0]
        params = suggestion.params if self._declared else _beside_the_first(history, suggestion.params, self._seed)
        chosen = translation.external(params)
        inner = {name: translation.distributions[name].to_internal_repr(value) for name, value in chosen.items()}
        for name, value in ((CHOSEN, inner), (NOTE, suggestion.note)):
            study._storage.set_trial_system_attr(trial._trial_id, name, value)  # noqa: SLF001 - its own samplers do so
        return chosen

    def _say_what_is_hidden(self, name: str) -> None:
        self._said.add(name)
        log.warning(
            "The parameter %r is drawn at random where it is: trials before had no such parameter or another range, so "
            "the model cannot see it. Declare the space: FarthingSampler(space=ft.Space(…)).",
            name,
        )


def _beside_the_first(history: History, params: Params, seed: int) -> Params:
    """A point of the initial design, moved as the first trial is beside the design's first point; others stay.

    Optuna asks for the first trial's params one by one, so they are drawn before there is a space to spread them in. A
    Sobol sequence is as good after a digital shift, and the one that takes its first point there makes it a design
    around that trial: in distribution it is the design of a study that knows its space.
    """
    encoder, rng = history.problem.space.encoder, Randomness(seed)
    point = sobol_unit(history, 1, rng)
    if not len(history) or encoder.decode_unit(point)[0] != params:
        return params
    drawn = _unit_row(encoder, history[0].params)
    start = sobol_unit(History(history.problem), 1, rng)[0]
    shift = np.where(np.isnan(drawn), 0, _bits(np.nan_to_num(drawn)) ^ _bits(start))
    moved = np.asarray((_bits(point) ^ shift) * 2.0**-BITS, dtype=np.float64)
    return encoder.decode_unit(moved)[0]


def _bits(u: Array) -> IntArray:
    """The leading bits of uniform coordinates, as whole numbers."""
    return np.asarray(np.minimum(u * 2.0**BITS, 2**BITS - 1), dtype=np.int64)


def _unit_row(encoder: Encoder, params: Params) -> Array:
    """The uniform coordinates of params, NaN where they are inactive."""
    row: Array = encoder.encode([params])[0]
    for j, count in encoder.categories.items():
        row[j] = (row[j] + 0.5) / count
    return row


def _drawn(distribution: BaseDistribution, rng: np.random.Generator) -> Any:
    if distribution.single():
        return distribution.to_external_repr(_only(distribution))
    translation = Translation.of_distributions({"x": distribution})
    encoder = translation.space.encoder
    [params] = encoder.decode(encoder.from_unit(rng.random((1, encoder.dimension))))
    return translation.external(params)["x"]


def _only(distribution: BaseDistribution) -> float:
    assert isinstance(distribution, FloatDistribution | IntDistribution | CategoricalDistribution)
    return 0.0 if isinstance(distribution, CategoricalDistribution) else distribution.low


class FarthingPruner(BasePruner):  # type: ignore[misc]
    """Prunes a trial that will hardly be the best one, by a model of the curves of all trials.

    The model, that of `TraceKG`, predicts from params and intermediate values where the trial would end. It is pruned
    when it has less than `chance` of ending better than the best trial that is complete. It is asked at steps that
    grow by a factor of 1.5, once `startup` trials are complete.

    Args:
        max_steps: the number of intermediate values of a whole trial. Steps may begin at 0 or at 1.
        chance: the probability below which a trial is pruned. The default is a guess, not tuned.
        startup: trials that are completed before any is pruned.
    """

    def __init__(self, max_steps: int, *, chance: float = 0.05, startup: int = 5) -> None:
        self._max_steps = Whole(least=2).checked(max_steps, what="max_steps", advice="Count the reports of a trial.")
        self._chance = Number(above=0, below=1).checked(chance, what="The chance", advice="Write for example 0.05.")
        self._startup = Whole(least=2).checked(startup, what="startup", advice="Write for example 5.")
        self._common = IntersectionSearchSpace(include_pruned=True)
        self._fit: dict[str, Any] | None = None

    def prune(self, study: OptunaStudy, trial: FrozenTrial) -> bool:
        amount = 0 if trial.last_step is None else amount_at(trial.last_step, self._max_steps)
        common = {name: one for name, one in self._common.calculate(study).items() if not one.single()}
        if amount not in _levels(self._max_steps) or not common:
            return False
        trials, translation = study.get_trials(deepcopy=False), Translation.of_distributions(common)
        read = read_trials(trials, translation, study, max_steps=self._max_steps, note=self._fit)
        done = [one.value for one in read.history.done if one.value is not None]
        if len(done) < self._startup or trial.number not in read.numbers:
            return False
        with one_thread():
            return bool(self._chance_of(read.history, read.numbers[trial.number], done) < self._chance)

    def _chance_of(self, history: History, number: int, done: list[float]) -> float:
        """Φ((y* − μ)/σ), by the prediction of its value at the end."""
        model = self._model(history)
        space = history.problem.space
        row = Fidelities(space).at_full(space.encoder.encode([history[number].params]))[0]
        predicted = model.predicted(row, sign=history.problem.sign)
        short = min(map(history.loss, done)) - history.loss(predicted.mean)
        return 0.5 * math.erfc(-short / (math.sqrt(2.0) * max(predicted.deviation or 0.0, 1e-300)))

    def _model(self, history: History) -> CurveModel:
        """Hyperparameters are kept until there are 12 % more finished trials, as in `TraceKG`."""
        found = model_of_curves(history, fidelity_kernel="curves")
        assert found is not None, "asked only where trials are complete"
        self._fit = found[0].note()
        return found[0]


@lru_cache
def _levels(most: int) -> frozenset[int]:
    """The amounts at which a trial is judged: 1, and from there the next whole number after a factor of 1.5."""
    levels, amount = [], 1
    while amount < most:
        levels.append(amount)
        amount = math.ceil(1.5 * amount)
    return frozenset(levels)
