"""The predicted cost of a trial: declared by the user, learnt from the costs so far, or the amount of work itself.

A trial trains a configuration x to the fidelities s, from nothing or from where a paused run stands, b. With w the
product of all fidelities, its cost is

    t(x, s, b) = A + exp(g(x, s₂)) · (w(s) − w(b))

s₂ are the fidelities that are no traces: more of one is another run. A plain space is the case without fidelities.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from farthing.costs.expected import begun_at, has_paid, rate_of, work_of
from farthing.costs.learned import LearnedCost, Paid, Setup, learn_cost, learn_setup
from farthing.models.gp import GP, condition, leave_one_out
from farthing.models.kernels import Kernel, Matern52
from farthing.models.linalg import Array, BoolArray
from farthing.space import Space
from farthing.strategies.shared.modelling import kernel_over
from farthing.strategies.shared.surrogate import FRUGAL_GROWTH, GROWTH_BEFORE_REFIT, active_rows, last_fit
from farthing.trials import History, Json, Prediction, Problem, State, Suggestion, Trial
from farthing.trials.events import began_its_worker

FEWEST_COSTS = 3
"""Number of costs before they can count. Chosen as a short design on the tuning tables of `EIPerCost`; not recorded."""
LEAST_SPREAD = 0.1
"""Deviation of log cost, about a tenth of a cost, below which preferring the cheaper gains nothing. A guess."""
LEAST_SKILL = 0.5
"""Share of the variance of log cost that a model must explain when each cost is predicted from the others.

Chosen on `fcnet/parkinsons_telemonitoring` and `hpobench-mlp/segment`, where most designs of ten pass it, and on
lognormal noise of deviation 0.3, of which one in ten passes at five to eight costs and next to none at twenty.
"""
DESIGNED = 32
"""Number of rows by which a declared cost is judged; a guess, not tuned."""
JUDGED = 256
"""Number of costs by which a model is judged if there are more. A limit on time."""
LEAST_INCREMENT = 0.01
"""Of a full training: the least price, so that no ratio to the cost grows without bound. A guess, not tuned."""
MOST_LOW = 0.5
"""The largest lower end of a fidelity on the logarithmic scale of the cost model, which must not shrink to a point."""
STEP = 1e-4
"""Of differences that stand for derivatives of a declared cost."""
LEAST_DECLARED = np.finfo(float).tiny
TINY = 1e-12
SETUPS = 50
"""Trials that tell the set-up of a run which does not itself. A limit on time."""
LATEST = 200
"""Trials by which the cost of the next one is predicted where no model of the values is made. A limit on time."""
GROWTH_OF_KEPT = 1.25
"""Its hyperparameters are kept until this many times the trials have ended. A limit on time, not tuned."""
COVERED, QUANTILE = 0.8, 1.2816
"""The share of past errors that an interval is to cover, and the deviations within which a normal distribution does."""
PRIOR_ERRORS = 4.0
"""How many past errors of predictions the model's own deviation counts as. Chosen by `benchmarks.run predictions`."""


class CostModel(Protocol):
    """The cost of training rows X (N, d) to S (N, m), `begun` (N, m) being where each stands already, or zero."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        """The price (N,): what is expected to be paid, and at least `LEAST_INCREMENT` of a full training."""
        ...

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        """log price (N,) and its gradients in X (N, d) and S (N, m)."""
        ...

    @property
    def is_in_units(self) -> bool:
        """Whether costs are in the unit of the budget."""
        ...

    @property
    def steers(self) -> bool:
        """Whether costs differ much and can be predicted: only then is a search guided by them.

        The seconds of short work differ much because of the machine, which no model of the parameters predicts.
        """
        ...

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction | None:
        """The expected cost of the trial of one row."""
        ...

    def note(self) -> dict[str, Json]: ...


class Fit(NamedTuple):
    """The hyperparameters of an earlier fit, if there was one, and whether they are kept as they are."""

    theta: Array | None = None
    is_kept: bool = False

    @classmethod
    def noted(cls, history: History, *, growth: float | None) -> "Fit":
        """The fit that the latest suggestion noted, kept until there are `growth` times the finished trials."""
        size = len(cost_kernel(history.problem.space).parameters) + 1
        theta, fitted_on = last_fit(history, "cost_theta", size=size)
        return cls(theta, growth is None or history.finished <= growth * fitted_on)


def cost_model(history: History, trials: Sequence[Trial], fit: Fit, *, saves: bool = False) -> CostModel:
    """The declared cost, else one that is learnt from these trials, else the amount of work itself.

    `saves` says that programs keep the state of their runs themselves.
    """
    space = history.problem.space
    if history.problem.declared_cost is not None:
        return DeclaredCost(history.problem, space.encoder.encode([trial.params for trial in trials[:DESIGNED]]))
    in_order = sorted(trials, key=lambda trial: trial.number)
    paying = [trial for trial in in_order if has_paid(history, trial, saves=saves)]
    if not paying:
        return WorkAsCost()
    paid = Paid.by(history, paying, saves=saves)
    rows = with_sizes(space, *_rows(history, paying))
    learnt = learn_cost(rows, paid, cost_kernel(space), warm_start=fit.theta, keeps_theta=fit.is_kept)
    return LearntCost(learnt, space, PastErrors.of(history))


def _rows(history: History, trials: Sequence[Trial]) -> tuple[Array, Array]:
    encoder = history.problem.space.encoder
    X = encoder.encode([trial.params for trial in trials])
    return X, encoder.encode_fidelity([history.fidelity_known(trial) for trial in trials])


def cost_kernel(space: Space) -> Kernel:
    kernel, sizes = kernel_over(space.encoder), int(np.sum(~_is_trace(space)))
    d = space.encoder.dimension
    return kernel * Matern52(tuple(range(d, d + sizes))) if sizes else kernel


def with_sizes(space: Space, X: Array, S: Array) -> Array:
    """Rows as the cost model sees them: fidelities that are no traces are columns, on a logarithmic scale."""
    low = _low(space)
    return np.hstack([X, (1.0 - np.log(np.maximum(S, low)) / np.log(low))[:, ~_is_trace(space)]])


def _low(space: Space) -> Array:
    low = np.array([fidelity.low / fidelity.high for fidelity in space.fidelities.values()])
    return np.asarray(np.minimum(low, MOST_LOW))


def _is_trace(space: Space) -> BoolArray:
    return np.array([fidelity.trace for fidelity in space.fidelities.values()], dtype=bool)


def _is_new(begun: Array) -> BoolArray:
    return np.asarray(~np.any(begun > 0.0, axis=1))


def _new_work(S: Array, begun: Array) -> Array:
    """w(s) − w(b)."""
    return np.asarray(np.prod(S, axis=1) - np.where(_is_new(begun), 0.0, np.prod(begun, axis=1)))


# --------------------------------------------------------------------------------------------------- learnt


@dataclass(frozen=True)
class PastErrors:
    """By how much the predictions of a study's own past were off: log(paid/predicted), of new runs and of continued."""

    new: tuple[float, ...] = ()
    continued: tuple[float, ...] = ()

    @classmethod
    def of(cls, history: History) -> "PastErrors":
        found: tuple[list[float], list[float]] = ([], [])
        for trial in history:
            predicted = trial.suggestion.predicted_cost
            if predicted is None or predicted.mean <= 0.0 or trial.state is not State.DONE or trial.cost <= 0.0:
                continue
            if not began_its_worker(history, trial):
                found[trial.resume_from is not None].append(float(np.log(trial.cost / predicted.mean)))
        return cls(tuple(found[0]), tuple(found[1]))

    def seen(self, *, is_new: bool) -> float | None:
        """The deviation of log cost within whose quantiles a share of `COVERED` of the errors lie; None without any."""
        errors = np.abs(self.new if is_new else self.continued)
        return float(np.quantile(errors, COVERED)) / QUANTILE if errors.size else None

    def combined(self, deviation: float, *, is_new: bool) -> float:
        """The deviation of log cost: the model's own, and what past errors show, the more of them the more."""
        count, seen = len(self.new if is_new else self.continued), self.seen(is_new=is_new) or 0.0
        return float(np.sqrt((PRIOR_ERRORS * deviation**2 + count * seen**2) / (PRIOR_ERRORS + count)))


@dataclass(frozen=True, eq=False)
class LearntCost:
    """t(x, s, b) with A and g learnt from what was paid."""

    model: LearnedCost
    space: Space
    errors: PastErrors = field(default_factory=PastErrors)

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        rate = self._rate(X, S)
        return np.maximum(self._expected(rate, S, begun), self._least(rate))

    def _rate(self, X: Array, S: Array) -> Array:
        return self.model.rate(with_sizes(self.space, X, S))

    def _parts(self, rate: Array, S: Array, begun: Array) -> tuple[Array, Array]:
        return self.model.parts(rate, _new_work(S, begun), ~_is_new(begun))

    def _expected(self, rate: Array, S: Array, begun: Array) -> Array:
        setup, work = self._parts(rate, S, begun)
        return setup + work

    def _least(self, rate: Array) -> Array:
        return np.asarray(LEAST_INCREMENT * (self.model.setup.new + rate))

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        """Of a price that is not the least: ∂ log t = (rate·work · ∂g + rate · ∂work)/t; the least has no work."""
        trace = _is_trace(self.space)
        log_rate, slope = self.model.log_rate_and_gradient(with_sizes(self.space, X, S))
        rate = np.exp(log_rate)
        setup, work = self._parts(rate, S, begun)
        least = self._least(rate)
        is_least, price = least > setup + work, np.maximum(setup + work, least)
        by_rate = np.where(is_least, LEAST_INCREMENT * rate, work) / price
        _, whole = self.model.parts(rate, np.prod(S, axis=1), ~_is_new(begun))
        by_work = np.where(is_least, 0.0, whole) / price
        S_bar = by_work[:, None] / np.maximum(S, TINY)
        S_bar[:, ~trace] -= by_rate[:, None] * slope[:, X.shape[1] :] / np.log(_low(self.space)[~trace]) / S[:, ~trace]
        return np.log(price), by_rate[:, None] * slope[:, : X.shape[1]], S_bar

    is_in_units = True

    @property
    def steers(self) -> bool:
        return self._steers

    @cached_property
    def _steers(self) -> bool:
        """Whether there are enough costs that differ by much, and each is predicted from the others."""
        rates = self.model.scale.undo(self.model.gp.y)
        return _vary(rates) and leave_one_out(_of_few(self.model.gp)).explained >= LEAST_SKILL

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction:
        """The deviation is that of the rate, of the set-up, and of what past predictions were off by."""
        rate, is_new = self._rate(X, S), bool(_is_new(begun)[0])
        setup, work = (float(part[0]) for part in self._parts(rate, S, begun))
        cost = setup + work
        of_rate = float(self.model.rate_deviation(with_sizes(self.space, X, S))[0])
        own = np.hypot(work * of_rate, self.model.setup.deviation) / cost
        return Prediction(cost, cost * self.errors.combined(float(own), is_new=is_new))

    def note(self) -> dict[str, Json]:
        return {"cost_theta": [float(value) for value in self.model.theta]}


def _vary(log_cost: Array) -> bool:
    """Whether there are enough costs to see that they differ by much."""
    return log_cost.size >= FEWEST_COSTS and float(np.std(log_cost)) >= LEAST_SPREAD


def _of_few(gp: GP) -> GP:
    """The process of at most `JUDGED` of its observations: who leaves one out of each pays the cube of their number."""
    step = -(-gp.n // JUDGED)
    if step <= 1:
        return gp
    return condition(gp.kernel, gp.theta, gp.X[::step], gp.y[::step], noise=gp.noise, m=gp.m)


# ------------------------------------------------------------------------------------------------- declared


@dataclass(frozen=True, eq=False)
class DeclaredCost:
    """The user's own function, and differences of it: it may be any Python code, and slow, so nothing is asked twice.

    `designed` are rows that are spread over the space.
    """

    problem: Problem
    designed: Array
    _known: dict[bytes, float] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.maximum(self._expected(X, S, begun), LEAST_INCREMENT * self._cost(X, np.ones_like(S)))

    def _expected(self, X: Array, S: Array, begun: Array) -> Array:
        goes_on = ~_is_new(begun)
        before = np.zeros(X.shape[0])
        before[goes_on] = self._cost(X[goes_on], begun[goes_on])
        return np.maximum(self._cost(X, S) - before, 0.0)

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        here = np.log(self(X, S, begun))
        encoder = self.problem.space.encoder
        X_bar, S_bar = np.zeros_like(X), np.zeros_like(S)
        for j in set(range(X.shape[1])) - encoder.categories.keys() - encoder.discrete.keys():
            step = np.where(X[:, j] > 0.5, -STEP, STEP)
            moved = X.copy()
            moved[:, j] += np.nan_to_num(step)
            X_bar[:, j] = np.where(np.isnan(X[:, j]), 0.0, (np.log(self(moved, S, begun)) - here) / step)
        for j, fidelity in enumerate(self.problem.space.fidelities.values()):
            back = 1.0 / fidelity.high if fidelity.integer else STEP
            moved = S.copy()
            moved[:, j] -= back
            S_bar[:, j] = (here - np.log(self(X, moved, begun))) / back
        return here, X_bar, S_bar

    is_in_units = True

    @property
    def steers(self) -> bool:
        return self._steers

    @cached_property
    def _steers(self) -> bool:
        """Whether it differs by much among the first rows seen, which are spread over the space."""
        return _vary(
            np.log(self._cost(self.designed, np.ones((len(self.designed), len(self.problem.space.fidelities)))))
        )

    def predicted(self, X: Array, S: Array, begun: Array) -> Prediction:
        return Prediction(float(self._expected(X, S, begun)[0]))

    def note(self) -> dict[str, Json]:
        return {}

    def _cost(self, X: Array, S: Array) -> Array:
        encoder = self.problem.space.encoder
        rows = encoder.snap(X)
        keys = [x.tobytes() + s.tobytes() for x, s in zip(rows, S, strict=True)]
        new = list({key: i for i, key in enumerate(keys) if key not in self._known}.values())
        runs = zip(encoder.decode(rows[new]), encoder.decode_fidelity(S[new]), strict=True)
        self._known.update((keys[i], self.problem.cost_of(*run)) for i, run in zip(new, runs, strict=True))
        return np.maximum([self._known[key] for key in keys], LEAST_DECLARED)


# ------------------------------------------------------------------------------------------------- unknown


@dataclass(frozen=True, eq=False)
class WorkAsCost:
    """For unknown costs: the share of the full work."""

    def __call__(self, X: Array, S: Array, begun: Array) -> Array:
        return np.maximum(_new_work(S, begun), LEAST_INCREMENT)

    def log_cost_and_gradient(self, X: Array, S: Array, begun: Array) -> tuple[Array, Array, Array]:
        cost, done = self(X, S, begun), np.prod(S, axis=1)
        moves = (cost > LEAST_INCREMENT)[:, None]
        return np.log(cost), np.zeros_like(X), np.where(moves, (done / cost)[:, None] / np.maximum(S, TINY), 0.0)

    is_in_units = steers = False

    def predicted(self, X: Array, S: Array, begun: Array) -> None:
        return None

    def note(self) -> dict[str, Json]:
        return {}


# ------------------------------------------------------------------------------------------- at full fidelity


@dataclass(frozen=True, eq=False)
class FullCost:
    """A cost model of new runs at full fidelity, as an acquisition function over params sees it: log t of each row."""

    model: CostModel
    fidelities: int = 0

    def __call__(self, X: Array) -> Array:
        return np.asarray(np.log(self.model(X, *self._levels(X))))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        value, gradient, _ = self.model.log_cost_and_gradient(X, *self._levels(X))
        return value, gradient

    @property
    def steers(self) -> bool:
        return self.model.steers

    def predicted(self, row: Array) -> Prediction | None:
        return self.model.predicted(row[None, :], *self._levels(row[None, :]))

    def note(self) -> dict[str, Json]:
        return self.model.note()

    def _levels(self, X: Array) -> tuple[Array, Array]:
        return np.ones((X.shape[0], self.fidelities)), np.zeros((X.shape[0], self.fidelities))


def full_cost(history: History, loss: Array, *, is_frugal: bool = False) -> FullCost | None:
    """The cost of a configuration by the trials at full fidelity; None where costs hardly vary, or too few are known.

    Of many trials, which have this `loss`, those count by which the loss is modelled.
    """
    trials = [trial for trial in history.full if trial.is_finished]
    fidelities = len(history.problem.space.fidelities)
    if history.problem.declared_cost is None:
        paying = [i for i, trial in enumerate(trials) if has_paid(history, trial)]
        if not _vary(np.log([trials[i].cost for i in paying])):
            return None
        trials = [trials[paying[i]] for i in active_rows(loss[paying])]
    growth = FRUGAL_GROWTH if is_frugal else GROWTH_BEFORE_REFIT
    return FullCost(cost_model(history, trials, Fit.noted(history, growth=growth)), fidelities)


# ----------------------------------------------------------------------------------------- of any suggestion


def predicted_cost(history: History, suggestion: Suggestion) -> Prediction | None:
    """The cost of a trial that a strategy suggests without a word of it; None while nothing was paid.

    By the latest trials, and those of the run that it continues.
    """
    latest = history[-LATEST:]
    run = [] if suggestion.resume_from is None else history.lineage(suggestion.resume_from)
    trials = list({trial.number: trial for trial in [*latest, *run]}.values())
    saves = not history.left_checkpoints
    model, space = history.memo(KeptCost).learnt(history, trials, saves=saves), history.problem.space
    encoder = space.encoder
    begun = np.zeros((1, len(space.fidelities)))
    if run and (saves or run[-1].checkpoint is not None):
        begun = encoder.encode_fidelity([history.fidelity_known(run[-1])])
    return model.predicted(encoder.encode([suggestion.params]), encoder.encode_fidelity([suggestion.fidelity]), begun)


class KeptCost:
    """The hyperparameters of the model of any suggestion's cost, fitted again as trials end: a memo of a history."""

    def __init__(self) -> None:
        self._theta: Array | None = None
        self._fitted_on = 0

    def of(self, history: History) -> "KeptCost":
        return self

    def learnt(self, history: History, trials: Sequence[Trial], *, saves: bool) -> CostModel:
        keeps = history.finished <= GROWTH_OF_KEPT * self._fitted_on
        model = cost_model(history, trials, Fit(self._theta, keeps), saves=saves)
        if isinstance(model, LearntCost) and not keeps:
            self._theta, self._fitted_on = model.model.theta, history.finished
        return model


# -------------------------------------------------------------------------- of a full run, by what a run has paid


def full_price(history: History, trial: Trial) -> float:
    """The cost of a run with these params from nothing to the full fidelity, judged by what this run has paid so far.

    That is what it paid, without the set-ups of continuing, and the rest at its own rate. The set-up of a run that has
    shown no rate is that of other trials.
    """
    problem = history.problem
    if problem.declared_cost is not None:
        return problem.cost_of(trial.params, problem.space.full_fidelity)
    saves = not history.left_checkpoints
    run = _since_nothing(history, trial, saves=saves)
    paid, done = [one.cost - one.costs.get("failed", 0.0) for one in run], history.reach(trial)
    if done <= 0.0 or (len(run) == 1 and done >= 1.0):
        return math.fsum(paid)
    rates = [rate for one in run if not math.isnan(rate := rate_of(history, one))]
    if rates:
        work = [work_of(history, one, saves=saves) for one in run[1:]]
        again = [max(0.0, cost - rates[-1] * share) for cost, share in zip(paid[1:], work, strict=True)]
        return math.fsum(paid) - math.fsum(again) + rates[-1] * (1.0 - done)
    setup = _latest_setup(history, saves=saves)
    once = math.fsum(paid) - math.fsum(min(cost, setup.continued) for cost in paid[1:])
    return once + max(0.0, once - setup.new) * (1.0 / done - 1.0)


def _since_nothing(history: History, trial: Trial, *, saves: bool) -> list[Trial]:
    """The trials of a run from the one that began from nothing to this one."""
    run = [trial]
    while begun_at(history, run[0], saves=saves) > 0.0:
        run.insert(0, history[run[0].resume_from or 0])
    return run


def _latest_setup(history: History, *, saves: bool) -> Setup:
    """The set-up that the latest trials have shown; none while nothing was paid."""
    paying = [trial for trial in history.done[-SETUPS:] if has_paid(history, trial, saves=saves)]
    if not paying:
        return Setup()
    space = history.problem.space
    rows = with_sizes(space, *_rows(history, paying))
    return learn_setup(rows, Paid.by(history, paying, saves=saves), cost_kernel(space))
