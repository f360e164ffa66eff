"""Learned cost: a set-up, and a rate for the work, of which a Gaussian process models the logarithm.

    t(x, w) = A + exp(g(x)) · w,    g ~ GP

w is the share of the full work that a trial does. A is its set-up, the same for every configuration: a program loads
its libraries and its data before it knows what it trains. Set-ups and rates are seen apart where trials report as they
train; where only sums are known, the likeliest A is taken. The cost grows with w by construction, so that continuing a
run never has a negative cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from farthing.costs.expected import WorkRates, begun_at, work_of
from farthing.models.fitting import Standardise, fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.models.kernels import Kernel
from farthing.models.linalg import Array, BoolArray, IntArray
from farthing.trials import History, Trial
from farthing.trials.events import began_its_worker

FIXED_SHARES: Sequence[float] = tuple(part / 50 for part in range(50))
"""Values of A that are tried where only sums are known, as shares of the least cost; the likeliest is taken."""
LEAST_SPREAD = 0.01
"""Of log costs, where values of A are compared: costs that are known within 1 % need no better explanation.
Else the best A on the grid, which leaves next to nothing, would be refused for what it leaves. A guess, not tuned."""
LEAST_WORK = 0.3
"""The share of a sum that must be left for the work once the set-up is taken off: of less, little can be said."""
LATELY = 5
"""Trials of a kind that show how fast the machine is of late: others use it too, and the later rounds of boosting take
longer than the first. Of 5, 8 and 10 it has the least errors over the recorded studies of `benchmarks.predictions`."""
MAD = 1.4826
"""From the median absolute deviation to the standard deviation of a normal distribution."""


@dataclass(frozen=True, eq=False)
class Paid:
    """Trials row by row: `work` is the share of the full work that each did, `cost` what it paid in all.

    `rate` is what the full work would cost at the rate between its reports, NaN where a trial has too few of them.
    `is_first` says that the trial was the first of its process, `is_continued` that it began from a checkpoint.
    """

    work: Array
    cost: Array
    rate: Array
    is_first: BoolArray
    is_continued: BoolArray

    @classmethod
    def whole(cls, cost: Array, work: Array | None = None) -> "Paid":
        """Costs of which nothing is known but their sums; of the full work, unless `work` says otherwise."""
        none = np.zeros(cost.size, dtype=bool)
        return cls(np.ones(cost.size) if work is None else work, cost, np.full(cost.size, np.nan), none, none)

    @classmethod
    def by(cls, history: History, trials: Sequence[Trial], *, saves: bool = False) -> "Paid":
        """The costs of these trials, each of which `has_paid`; `saves` says that programs keep their own state."""
        rates = history.memo(WorkRates)
        return cls(
            work=np.array([work_of(history, trial, saves=saves) for trial in trials], dtype=float),
            cost=np.array([trial.cost for trial in trials], dtype=float),
            rate=np.array([rates[trial.number] for trial in trials], dtype=float),
            is_first=np.array([began_its_worker(history, trial) for trial in trials], dtype=bool),
            is_continued=np.array([begun_at(history, trial, saves=saves) > 0.0 for trial in trials], dtype=bool),
        )

    def take(self, rows: BoolArray | IntArray) -> "Paid":
        return Paid(self.work[rows], self.cost[rows], self.rate[rows], self.is_first[rows], self.is_continued[rows])

    @cached_property
    def setup(self) -> Array:
        """The cost beyond the rate, at least zero; NaN where no rate is known."""
        return np.maximum(self.cost - self.rate * self.work, 0.0)


@dataclass(frozen=True)
class Setup:
    """The set-up of a trial in a process that has run one before: of new runs, of continued ones, and their spread."""

    new: float = 0.0
    continued: float = 0.0
    deviation: float = 0.0

    @classmethod
    def seen(cls, paid: Paid) -> "Setup":
        """The medians of those that are known: a few trials are hit by something else that the machine does."""
        known = np.isfinite(paid.setup)
        warm = known & ~paid.is_first
        used = warm if np.any(warm) else known
        new, continued = (paid.setup[used & chosen] for chosen in (~paid.is_continued, paid.is_continued))
        every = paid.setup[used]
        middle = float(np.median(every))
        return cls(
            new=float(np.median(new)) if new.size else middle,
            continued=float(np.median(continued)) if continued.size else middle,
            deviation=MAD * float(np.median(np.abs(every - middle))),
        )

    def of(self, is_continued: BoolArray) -> Array:
        return np.where(is_continued, self.continued, self.new)


@dataclass(frozen=True, eq=False)
class LearnedCost:
    """Predicts the cost of a trial, in the unit of the costs it was learnt from.

    The rate is never predicted to be less than `least`, the least seen.
    """

    gp: GP
    scale: Standardise
    setup: Setup
    least: float
    theta: Array
    """The fitted hyperparameters, to start the next fit from."""
    slower: float = 1.0
    """How many times as much of everything a continued run pays."""

    def at_pace(self, new: float, continued: float) -> "LearnedCost":
        """The same where new runs pay `new` times as much for everything, and continued ones `continued` times."""
        setup = Setup(self.setup.new * new, self.setup.continued * new, self.setup.deviation * new)
        scale = Standardise(self.scale.offset + float(np.log(new)), self.scale.scale)
        return replace(self, setup=setup, scale=scale, least=self.least * new, slower=continued / new)

    def parts(self, rate: Array, work: Array, is_continued: BoolArray) -> tuple[Array, Array]:
        """The cost of the set-up of a run of that rate, and of its work."""
        pace = np.where(is_continued, self.slower, 1.0)
        return pace * self.setup.of(is_continued), pace * rate * work

    def cost(self, X: Array, work: float | Array = 1.0) -> Array:
        """t of a new run at each row of X."""
        return np.asarray(self.setup.new + self.rate(X) * work)

    def rate(self, X: Array) -> Array:
        """exp(g): what the full work costs beyond the set-up."""
        return np.asarray(np.exp(self._log_rate(X)))

    def rate_deviation(self, X: Array) -> Array:
        """The standard deviation of the logarithm of a rate that is yet to be seen."""
        _, variance = self.gp.predict(X)
        return np.asarray(np.sqrt(self.scale.undo_variance(variance + self.gp.noise)))

    def __call__(self, X: Array) -> Array:
        """log t of the full work."""
        return np.asarray(np.log(self.cost(X)))

    def value_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """log t of the full work, as an acquisition function sees it."""
        log_rate, slope = self.log_rate_and_gradient(X)
        rate = np.exp(log_rate)
        cost = self.setup.new + rate
        return np.log(cost), (rate / cost)[:, None] * slope

    def log_rate_and_gradient(self, X: Array) -> tuple[Array, Array]:
        """g and its gradient."""
        mean, slope = self.gp.mean_with_gradient(X)
        log_rate = self.scale.undo(mean)
        is_free = (log_rate > np.log(self.least))[:, None]
        return np.maximum(log_rate, np.log(self.least)), np.where(is_free, self.scale.scale * slope, 0.0)

    def _log_rate(self, X: Array) -> Array:
        return np.maximum(self.scale.undo(self.gp.mean(X)), np.log(self.least))


def learn_cost(
    X: Array, paid: Paid, kernel: Kernel, *, warm_start: Array | None = None, keeps_theta: bool = False
) -> LearnedCost:
    """The cost model of trials at X that paid that, in the order in which they ran.

    Hyperparameters are fitted from `warm_start` and the usual starts, or taken from it as they are with `keeps_theta`.
    """
    X, paid = _without_first(X, paid)
    if np.any(np.isfinite(paid.rate)):
        learnt = _learnt(X, paid, Setup.seen(paid), kernel, warm_start, keeps_theta)
    else:
        learnt = _learnt_from_sums(X, paid, kernel, warm_start, keeps_theta)
    return learnt.at_pace(*_paces(learnt, X, paid))


def learn_setup(X: Array, paid: Paid, kernel: Kernel) -> Setup:
    """The set-up alone; a model is needed only where no trial has shown its rate."""
    X, paid = _without_first(X, paid)
    if np.any(np.isfinite(paid.rate)):
        return Setup.seen(paid)
    return _learnt_from_sums(X, paid, kernel, None, False).setup


def _learnt(
    X: Array, paid: Paid, setup: Setup, kernel: Kernel, warm_start: Array | None, keeps_theta: bool
) -> LearnedCost:
    rate = _rates(paid, setup)
    used = np.isfinite(rate)
    g = np.log(rate[used])
    scale = _standardised(g, LEAST_SPREAD if np.ptp(paid.work) > 0.0 else 0.0)
    posterior = hyperparameter_posterior(kernel, X[used], scale.apply(g))
    theta = warm_start if keeps_theta and warm_start is not None else fit(posterior, warm_start=warm_start)
    return LearnedCost(posterior.process(theta), scale, setup, float(np.min(rate[used])), theta)


def _learnt_from_sums(X: Array, paid: Paid, kernel: Kernel, warm_start: Array | None, keeps_theta: bool) -> LearnedCost:
    """New runs show the set-up where they differ in length; what continued ones paid beyond their work is theirs."""
    new = ~paid.is_continued
    differ = bool(np.any(new)) and np.ptp(paid.work[new]) > 0.0
    rows, known = (X[new], paid.take(new)) if differ else (X, paid)
    learnt = _learnt(rows, known, _likeliest_setup(rows, known, kernel, warm_start), kernel, warm_start, keeps_theta)
    if not differ or np.all(new):
        return learnt
    again = np.maximum(paid.cost - learnt.rate(X) * paid.work, 0.0)[~new]
    return replace(learnt, setup=replace(learnt.setup, continued=float(np.median(again))))


def _paces(learnt: LearnedCost, X: Array, paid: Paid) -> tuple[float, float]:
    """Of new runs and of continued ones; of a kind that has not run yet it is that of the other.

    Where only sums are known it is one for both: what continued runs paid beyond their work is their set-up already.
    """
    kinds = (~paid.is_continued, paid.is_continued) if np.any(np.isfinite(paid.rate)) else (paid.cost > 0.0,)
    found = [_pace(learnt, X[late], paid.take(late)) for kind in kinds if (late := _latest(kind & ~paid.is_first)).size]
    return (found[0], found[-1]) if found else (1.0, 1.0)


def _latest(chosen: BoolArray) -> IntArray:
    return np.flatnonzero(chosen)[-LATELY:]


def _pace(learnt: LearnedCost, X: Array, paid: Paid) -> float:
    """The factor by which these trials paid more than the model says; of few it is nearer to 1."""
    expected = sum(learnt.parts(learnt.rate(X), paid.work, paid.is_continued))
    return float(np.exp(np.sum(np.log(paid.cost / expected)) / (paid.cost.size + 1.0)))


def _without_first(X: Array, paid: Paid) -> tuple[Array, Paid]:
    """Without the sums that the first trials of their processes paid: what starting a process costs is in them."""
    tells = ~paid.is_first | np.isfinite(paid.rate)
    return (X[tells], paid.take(tells)) if np.any(tells) else (X, paid)


def _rates(paid: Paid, setup: Setup) -> Array:
    """The rates that are known, and of sums what is left once the set-up is taken off; NaN where that is too little."""
    left = paid.cost - setup.of(paid.is_continued)
    known = np.isfinite(paid.rate)
    is_enough = left > (LEAST_WORK * paid.cost if np.any(known) else 0.0)
    return np.where(known, paid.rate, np.where(is_enough, left, np.nan) / paid.work)


def _likeliest_setup(X: Array, paid: Paid, kernel: Kernel, warm_start: Array | None) -> Setup:
    """The set-up of highest density where only sums are known, at the better of an earlier fit and the prior's mode.

    The earlier fit may have been one of another set-up. Set-ups differ in what was observed, not in where, so that each
    of the two needs one factor for all of them. The process sees g, standardised; as densities of log t all set-ups can
    be compared: ∂g/∂ log t = t/(t − A).
    """
    cost, work = paid.cost, paid.work
    if np.ptp(work) == 0.0:
        return Setup()
    fixed = float(np.min(cost)) * np.array(FIXED_SHARES)
    G = np.log(cost[:, None] - fixed) - np.log(work)[:, None]
    scales = [_standardised(g, LEAST_SPREAD) for g in G.T]
    Y = np.stack([scale.apply(g) for scale, g in zip(scales, G.T, strict=True)], axis=1)
    stretch = np.sum(np.log(cost)[:, None] - np.log(cost[:, None] - fixed), axis=0)
    posterior = hyperparameter_posterior(kernel, X, Y[:, 0])
    places = [posterior.priors.mean, *([] if warm_start is None else [warm_start])]
    density = np.max([posterior.values_of(theta, Y) for theta in places], axis=0)
    on_log_scale = density + stretch - cost.size * np.log([scale.scale for scale in scales])
    likeliest = float(fixed[int(np.argmax(on_log_scale))])
    return Setup(likeliest, likeliest, _spread(fixed, on_log_scale))


def _spread(fixed: Array, log_density: Array) -> float:
    """The standard deviation over the values that were tried, each with its density."""
    weight = np.exp(log_density - np.max(log_density))
    mean = np.average(fixed, weights=weight)
    return float(np.sqrt(np.average((fixed - mean) ** 2, weights=weight)))


def _standardised(g: Array, least_spread: float) -> Standardise:
    standard = Standardise.of(g)
    return Standardise(standard.offset, max(standard.scale, least_spread))
