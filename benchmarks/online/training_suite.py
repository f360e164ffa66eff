"""Tunes real trainings while they run: `python -m benchmarks.run online-training`.

Every method trains the same model on the same batches, from a plausible start and from a poor one. A round of training
costs 1, a validation its price; both go by on a clock that the tuner reads.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import cos, pi
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.baselines.bandits import EXP3R, UCB1, ArmBandit, EpsilonGreedy, Softmax
from benchmarks.online.runner import without_later
from benchmarks.online.training_report import as_text, report
from benchmarks.online.trainings import TASKS, TO_REPORT, Task, Training
from benchmarks.plan import matches
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from farthing.costs import FakeClock
from farthing.fields.serialization import to_json
from farthing.online import CEGPUCB, OnlineStrategy, PairedProbes
from farthing.online.probes import ProbingPlayer
from farthing.online.run import Decision
from farthing.online.tuner import OnlineTuner
from farthing.rules import Bernoulli, Every
from farthing.trials import Params

SUITE = "online-training"
SEEDS, REPORT_SEEDS, QUICK_SEEDS, FIRST_SEED = 8, 10, 2, 1000
"""The constants of `PairedProbes` were chosen on seeds 100 to 108 of digits, stream, satimage and magic, and on those
below 10 of `TO_CHOOSE`."""

PRICE, PRICES = 0.1, (0.01, 0.1, 1.0, 10.0)
"""What a validation costs, in rounds of training; the others are for the default alone, on the first task."""

LAST = 5
"""Rounds at the end over which the test accuracy is averaged, where the task does not drift."""

LEARNT = 10
"""Observations after which predictions are checked for their calibration."""

CUT_OFF = 16.0
"""Squared errors are cut off at four deviations, as the tuner cuts its differences off."""

PACKAGES = ("numpy", "scipy", "scikit-learn")


@dataclass(frozen=True)
class Outcome:
    accuracy: float
    validations: int = 0
    paid: float = 0.0
    undone: int = 0
    skill: float | None = None
    squares: tuple[float, ...] = ()
    """((value − prediction)/deviation)² of each one-step prediction after the first ten observations."""

    @property
    def calibration(self) -> dict[str, float] | None:
        """The mean of the squares, as they are and cut off at four deviations; about 1 where deviations are right."""
        if not self.squares:
            return None
        z = np.array(self.squares)
        cut = float(np.mean(np.minimum(z, CUT_OFF)))
        return {"n": len(z), "mean": float(np.mean(z)), "cut_off": cut, "median": float(np.median(z))}


@dataclass(frozen=True, eq=False)
class Session:
    """A training from a start, and what is measured of it."""

    task: Task
    start: Params
    seed: int
    price: float

    def played(self, choose: Callable[[int], Params]) -> Outcome:
        """Without a tuner: the params of each round are given."""
        training = self.task.begin(self.seed)
        return Outcome(self._accuracy([self._round(training, t, choose(t)) for t in range(1, self.task.rounds + 1)]))

    def tuned(
        self,
        strategy: OnlineStrategy | None,
        *,
        can_undo: bool,
        overhead: float | None = 0.1,
        knows_size: bool = False,
        is_guess: bool = False,
        reward: Literal["value", "gain"] = "value",
    ) -> Outcome:
        training, clock = self.task.begin(self.seed), FakeClock(0.0)
        tuner = OnlineTuner(
            self.task.space,
            rounds=self.task.rounds,
            strategy=strategy,
            initial=None if is_guess else self.start,
            guess=self.start if is_guess else None,
            seed=self.seed,
            clock=clock,
            overhead=overhead,
            reward=reward,
            validation_size=self.task.validated if knows_size else None,
            save=training.save if can_undo else None,
            restore=training.restore if can_undo else None,
        )
        accuracy, squares = [], []
        for decision in tuner:
            if decision.measure_before:
                clock.advance(self.price)
                decision.observe_before(training.validate(decision.round - 1))
            accuracy.append(self._round(training, decision.round, decision.params))
            clock.advance(1.0)
            if decision.measure:
                clock.advance(self.price)
                value = training.validate(decision.round)
                squares.append(_square(tuner, decision, value))
                decision.observe(value, cost=self.price * (1 + decision.measure_before))
        told = tuner.summary
        return Outcome(
            self._accuracy(accuracy),
            int(told["validations"]),
            told["paid"],
            int(told["undone"]),
            told.get("skill"),
            tuple(square for square in squares[LEARNT:] if square is not None),
        )

    def _round(self, training: Training, t: int, params: Params) -> float | None:
        """The accuracy, where it counts: testing takes as long as training."""
        training.train(t, params)
        counts = self.task.drifts or t > self.task.rounds - LAST
        return training.test(t) if counts else None

    def _accuracy(self, accuracy: Sequence[float | None]) -> float:
        return float(np.mean([each for each in accuracy if each is not None]))


def _square(tuner: OnlineTuner, decision: Decision, value: float) -> float | None:
    """How far the value is from its prediction, in squared deviations."""
    player = tuner._run.player
    if not isinstance(player, ProbingPlayer):
        return None
    place = tuner._online_problem.place(decision.params)
    predicted = player.predict(place, (decision.round - 1) // tuner.hold + 1)
    return None if predicted is None else ((value - predicted[0]) / predicted[1]) ** 2


# ------------------------------------------------------------------------------------------------------------- methods

Method: TypeAlias = Callable[[Session], Outcome]


def _random(session: Session) -> Outcome:
    space = session.task.space
    rng = np.random.default_rng([session.seed, 9])
    return session.played(lambda t: space.encoder.decode_unit(rng.random((1, space.encoder.dimension)))[0])


def _cosine(session: Session) -> Outcome:
    rate, rounds = session.task.rate, session.task.rounds
    lowest = session.start[rate] / 100.0

    def params(t: int) -> Params:
        return {**session.start, rate: max(lowest, session.start[rate] * 0.5 * (1.0 + cos(pi * t / rounds)))}

    return session.played(params)


def _best_fixed(session: Session) -> Outcome:
    """The best of the task's grid, by the test accuracy itself, which no user knows."""
    return Outcome(_best_accuracy(session.task, session.seed))


@cache
def _best_accuracy(task: Task, seed: int) -> float:
    """It is the same from every start."""
    return max(_fixed_accuracy(task, params, seed) for params in task.grid)


def _fixed_accuracy(task: Task, params: Params, seed: int) -> float:
    return Session(task, params, seed, PRICE).played(lambda t: params).accuracy


def _tuned(name: str, strategy: OnlineStrategy) -> Method:
    """Baselines measure as often as they like; the default keeps to its overhead."""
    overhead = 0.1 if isinstance(strategy, PairedProbes) else None
    return lambda session: session.tuned(
        strategy,
        can_undo="restore" in name,
        overhead=overhead,
        knows_size=name in KNOWING_SIZE,
        is_guess="from a guess" in name,
        reward="gain" if _is_for_gains(strategy) else "value",
    )


def _is_for_gains(strategy: OnlineStrategy) -> bool:
    return isinstance(strategy, ArmBandit) or (isinstance(strategy, CEGPUCB) and strategy.rewards == "gains")


SIZED, SIZED_UNDOING = "default, size given", "default, size given, with save and restore"
KNOWING_SIZE = (SIZED, SIZED_UNDOING)
"""Methods that are told how many examples a validation has."""

STRATEGIES: Mapping[str, OnlineStrategy] = {
    "default": PairedProbes(),
    "default, with save and restore": PairedProbes(),
    "default, from a guess": PairedProbes(),
    "default, from a guess, with save and restore": PairedProbes(),
    "step 0.2": PairedProbes(step=0.2),
    SIZED: PairedProbes(),
    SIZED_UNDOING: PairedProbes(),
    "CE-GP-UCB": CEGPUCB(),
    "CE-GP-UCB, every fifth round": CEGPUCB(rule=Every(5)),
    "CE-GP-UCB.paper()": CEGPUCB.paper(rewards="gains"),
}

COIN = Bernoulli(0.2)
BANDITS: Mapping[str, OnlineStrategy] = {
    "EXP3.R, Ber(0.2)": EXP3R(rule=COIN),
    "ε-greedy, Ber(0.2)": EpsilonGreedy(rule=COIN),
    "softmax, Ber(0.2)": Softmax(rule=COIN),
    "UCB, Ber(0.2)": UCB1(rule=COIN),
    "GP-UCB, Ber(0.2)": CEGPUCB.paper(rewards="gains", kernel="independent", rule=COIN),
    "CE κ=0.8": CEGPUCB.paper(0.8, rewards="gains", kernel="independent"),
}
"""What the CE-GP-UCB paper compares on its two arms (Table A3), for tasks whose params are a few arms."""

METHODS: Mapping[str, Method] = {
    "keep the start": lambda session: session.played(lambda t: session.start),
    **{name: _tuned(name, each) for name, each in STRATEGIES.items()},
    "random params": _random,
    "cosine": _cosine,
    "best fixed of a grid": _best_fixed,
}
REPORTED = (
    "keep the start",
    "default",
    "default, with save and restore",
    "default, from a guess",
    "default, from a guess, with save and restore",
    "best fixed of a grid",
)
"""Methods on the tasks that nothing was chosen on."""

METHODS_OF_ARMS: Mapping[str, Method] = {**METHODS, **{name: _tuned(name, each) for name, each in BANDITS.items()}}


@dataclass(frozen=True)
class Game:
    """One method on one task from one start, with one seed and price."""

    task: Task
    start: str
    method: str
    seed: int
    price: float

    @property
    def problem(self) -> str:
        return f"{self.task.name}, {self.start} start, price {self.price:g}"

    @property
    def title(self) -> str:
        return f"{self.problem} · {self.method} · seed {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        strategy = {**STRATEGIES, **BANDITS}.get(self.method)
        form = None if strategy is None else without_later(to_json(strategy))
        settings: dict[str, Any] = {"strategy": form, "start": self.task.starts[self.start]}
        if "from a guess" in self.method:
            settings["trusted"] = False
        if self.method in KNOWING_SIZE:
            settings["validation_size"] = self.task.validated
        if self.method == "best fixed of a grid":
            settings["grid"] = list(self.task.grid)
        return {"problem": self.problem, "method": self.method, "seed": self.seed, "settings": settings}


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(arguments)
    name = f"{SUITE}-quick" if options.quick else SUITE
    path = options.output or results_path(name)
    given = options.seeds or (QUICK_SEEDS if options.quick else None)
    played = [games(TASKS[:2] if options.quick else TASKS, METHODS, seeds=given or SEEDS)]
    if not options.quick:
        played.append(games(TO_REPORT, REPORTED, seeds=given or REPORT_SEEDS))
    chosen = [
        game
        for game in chain(*played)
        if matches(game.problem, options.problems or ()) and matches(game.method, options.methods or ())
    ]
    make_missing(path, chosen, result_of=lambda game: result_of(game, suite=name))
    records = [record for record in read_records(path) if record["suite"] == name]
    if not records:
        sys.stderr.write(f"Nothing of {name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    print(as_text(report(name, records, order=tuple(METHODS)), as_json=options.json))
    return 0


def games(tasks: Sequence[Task], methods: Iterable[str], *, seeds: int) -> Iterator[Game]:
    """For each task, start and seed these methods, one after another; then the default at other prices."""
    for task in tasks:
        if reason := task.missing():
            sys.stderr.write(f"left out: {task.name}: {reason}\n")
            continue
        for start in task.starts:
            for seed in range(FIRST_SEED, FIRST_SEED + seeds):
                yield from (Game(task, start, method, seed, PRICE) for method in methods)
                if task is TASKS[0]:
                    yield from (Game(task, start, "default", seed, price) for price in PRICES if price != PRICE)


def result_of(game: Game, *, suite: str) -> Record:
    session = Session(game.task, game.task.starts[game.start], game.seed, game.price)
    outcome = METHODS_OF_ARMS[game.method](session)
    return {
        "suite": suite,
        **game.identity,
        "rounds": game.task.rounds,
        "accuracy": outcome.accuracy,
        "validations": outcome.validations,
        "spent": (outcome.paid + outcome.undone) / game.task.rounds,
        "undone": outcome.undone,
        "skill": outcome.skill,
        "calibration": outcome.calibration,
        "versions": versions(PACKAGES),
        **commit(),
    }
