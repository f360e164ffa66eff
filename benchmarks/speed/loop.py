"""Measures the loop itself: random trials of an empty function, in memory and in this process.

The same number of trials of the same space is run by Farthing and by `optuna.Study.optimize`, which take turns; each
begins equally often. With a callback Optuna reads its trials for it, which a plain `optimize` does not: both ratios are
shown. No bar is on them: Optuna keeps a list, and we a study that can be replayed, so that we take longer either way.
Growth is the CPU of a trial late in a long study divided by that of an early one, with a callback. A budget of cost
asks before each trial what all of them cost so far, which must not grow either.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.bars import Result, at_most
from benchmarks.problems.data import missing_package
from benchmarks.spread import Spread
from farthing import Budget, Choice, Float, Int, Random, RunningTrial, Space, Study

TRIALS = 1000
LONG, QUICK_LONG = 5000, 2000
LIMIT_MS = 1.0
MOST_GROWTH = 1.5
"""When a budget of cost added up all trials before each, its growth was 2.4."""
NO_LIMIT = 1e9
BY_COST = "farthing, Budget(cost=)"
SPACE = Space(
    {
        "rate": Float(1e-5, 1.0, log=True),
        "dropout": Float(0.0, 1.0),
        "layers": Int(1, 10),
        "activation": Choice("relu", "tanh", "gelu"),
    }
)


class Marks:
    """A callback for both libraries: notes the CPU time at the end of each trial."""

    def __init__(self) -> None:
        self.times = [time.process_time()]

    def __call__(self, study: object, trial: object) -> None:
        self.times.append(time.process_time())

    def over(self, trials: int) -> "Marks":
        """The whole time, evenly over the trials, where nothing was called at their ends."""
        taken = time.process_time() - self.times[0]
        self.times = [self.times[0] + taken * place / trials for place in range(trials + 1)]
        return self

    def milliseconds(self, first: int, last: int) -> float:
        """CPU milliseconds a trial, from trial `first` to trial `last`."""
        return 1000 * (self.times[last] - self.times[first]) / (last - first)


def ours(trials: int, *, seed: int, is_called: bool = True, cost: float | None = None) -> Marks:
    study = Study(SPACE, minimize="value", strategy=Random(), seed=seed)
    marks = Marks()
    called = [marks] if is_called else []
    budget = Budget(trials=trials, cost=cost)
    study.run(_nothing, budget=budget, executor="inline", callbacks=called, progress=False)
    return marks if is_called else marks.over(trials)


def optunas(trials: int, *, seed: int, is_called: bool = True) -> Marks:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    marks = Marks()
    study.optimize(_nothing_for_optuna, n_trials=trials, callbacks=[marks] if is_called else [])
    return marks if is_called else marks.over(trials)


def run(*, seeds: int, quick: bool) -> Result:
    missing = missing_package("optuna")
    farthings: dict[str, Callable[..., Marks]] = {"farthing": ours, BY_COST: partial(ours, cost=NO_LIMIT)}
    contenders = farthings if missing else {**farthings, "optuna": optunas}
    short = _in_turns(contenders, TRIALS, seeds=seeds)
    plain = _in_turns({name: partial(one, is_called=False) for name, one in contenders.items()}, TRIALS, seeds=seeds)
    long = _in_turns(contenders, QUICK_LONG if quick else LONG, seeds=min(seeds, 3))
    own = Spread.of(marks.milliseconds(0, TRIALS) for marks in short["farthing"])
    grown = {name: _growth(long[name]) for name in farthings}
    return Result(
        figures={
            **{name: _figures(short[name], long[name]) for name in contenders},
            **{
                f"{name}, CPU ms a trial without a callback": Spread.of(
                    marks.milliseconds(0, TRIALS) for marks in plain[name]
                ).to_json()
                for name in contenders
            },
            **({} if missing else {"CPU time, farthing / optuna, with a callback": _ratio(short).to_json()}),
            **({} if missing else {"CPU time, farthing / optuna, without a callback": _ratio(plain).to_json()}),
        },
        bars=[
            at_most(f"a trial, over {TRIALS} empty ones", limit=LIMIT_MS, measured=own.median, unit="CPU ms"),
            *(
                at_most(f"{name}, growth, late / early", limit=MOST_GROWTH, measured=growth.median, unit="times")
                for name, growth in grown.items()
            ),
        ],
        left_out=[missing] if missing else [],
    )


def _in_turns(contenders: dict[str, Callable[..., Marks]], trials: int, *, seeds: int) -> dict[str, list[Marks]]:
    """A run of each with every seed, after a short one that only fills caches."""
    marks: dict[str, list[Marks]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender(10, seed=0)
    for seed in range(seeds):
        for name in sorted(contenders, reverse=bool(seed % 2)):
            marks[name].append(contenders[name](trials, seed=seed))
    return marks


def _figures(short: list[Marks], long: list[Marks]) -> dict[str, Any]:
    last = len(long[0].times) - 1
    late, early = (last - TRIALS, last), (0, TRIALS)
    return {
        f"CPU ms a trial, 1–{TRIALS}": Spread.of(marks.milliseconds(*early) for marks in short).to_json(),
        f"CPU ms a trial, {late[0] + 1}–{last} of a long study": Spread.of(
            marks.milliseconds(*late) for marks in long
        ).to_json(),
        "growth, late / early": _growth(long).to_json(),
    }


def _growth(long: list[Marks]) -> Spread:
    last = len(long[0].times) - 1
    return Spread.of(marks.milliseconds(last - TRIALS, last) / marks.milliseconds(0, TRIALS) for marks in long)


def _ratio(short: dict[str, list[Marks]]) -> Spread:
    pairs = zip(short["farthing"], short["optuna"], strict=True)
    return Spread.of(own.milliseconds(0, TRIALS) / other.milliseconds(0, TRIALS) for own, other in pairs)


def _nothing(trial: RunningTrial) -> float:
    return 0.0


def _nothing_for_optuna(trial: Any) -> float:
    """Only asks for its parameters: Optuna draws one when the objective asks for it."""
    trial.suggest_float("rate", 1e-5, 1.0, log=True)
    trial.suggest_float("dropout", 0.0, 1.0)
    trial.suggest_int("layers", 1, 10)
    trial.suggest_categorical("activation", ("relu", "tanh", "gelu"))
    return 0.0
