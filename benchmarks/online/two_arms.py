"""Trainings with two settings as arms: `python -m benchmarks.run online-two-arms`.

The CE-GP-UCB paper has it with self-tuning networks (its Table A3): a round plays one of two arms, its reward is what
the round adds to the accuracy, and bandits measure with a coin. Here the arms are two policies of augmentation, and two
learning rates, of which the higher is better early and the lower late.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.online.training_report import as_text, report
from benchmarks.online.training_suite import BANDITS, METHODS_OF_ARMS, PRICE, Game, result_of
from benchmarks.online.trainings import TASKS, Task, Training
from benchmarks.plan import matches
from benchmarks.records import read_records, results_path
from benchmarks.resuming import make_missing, suite_options
from farthing.space import Choice, Space
from farthing.trials import Params

SUITE = "online-two-arms"
SEEDS, QUICK_SEEDS, FIRST_SEED = 10, 1, 5000
CHOSEN = ("keep the start", "default", "CE-GP-UCB", "CE-GP-UCB.paper()", "random params", *BANDITS)


@dataclass(frozen=True)
class Armed:
    """A training whose params are the name of an arm."""

    training: Training
    arms: Mapping[str, Params]

    def train(self, round: int, params: Params) -> None:
        self.training.train(round, self.arms[params["arm"]])

    def validate(self, round: int) -> float:
        return self.training.validate(round)

    def test(self, round: int) -> float:
        return self.training.test(round)

    def save(self) -> Any:
        return self.training.save()

    def restore(self, saved: Any) -> None:
        self.training.restore(saved)


def with_arms(task: Task, name: str, arms: Mapping[str, Params]) -> Task:
    return replace(
        task,
        name=f"{task.name}, {name}",
        space=Space({"arm": Choice(*arms)}),
        starts={arm: {"arm": arm} for arm in arms},
        begin=lambda seed: Armed(task.begin(seed), arms),
        grid=(),
    )


_BY_NAME = {task.name: task for task in TASKS}
ARMED = (
    with_arms(
        _BY_NAME["few digits"],
        "two policies",
        {"light": {"lr": 0.1, "shift": 1, "noise": 0.3}, "strong": {"lr": 0.1, "shift": 3, "noise": 1.5}},
    ),
    with_arms(
        _BY_NAME["letters"],
        "two rates",
        {
            "high": {"lr": 0.3, "momentum": 0.8, "weight_decay": 1e-4},
            "low": {"lr": 0.03, "momentum": 0.8, "weight_decay": 1e-4},
        },
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = suite_options([SUITE], description=__doc__).parse_args(arguments)
    name = f"{SUITE}-quick" if options.quick else SUITE
    path = options.output or results_path(name)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    games = [
        game
        for task in ARMED
        if task.missing() is None
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        for start in task.starts
        for game in (Game(task, start, method, seed, PRICE) for method in CHOSEN)
        if matches(game.problem, options.problems or ()) and matches(game.method, options.methods or ())
    ]
    make_missing(path, games, result_of=lambda game: result_of(game, suite=name))
    records = [record for record in read_records(path) if record["suite"] == name]
    if not records:
        sys.stderr.write(f"Nothing of {name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    print(as_text(report(name, records, order=tuple(METHODS_OF_ARMS)), as_json=options.json))
    return 0
