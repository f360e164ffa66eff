"""Plays a strategy on a made-up task, through its own `suggest`, on a history that is kept here."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.population.tasks import State as Score
from benchmarks.population.tasks import Task
from farthing.costs import Remaining
from farthing.strategies import Randomness, Strategy
from farthing.trials import History, Problem, State, Suggestion, Trial


@dataclass(frozen=True)
class Outcome:
    """The regret of the recommended agent's run, that of the best agent there was, and what deciding took."""

    regret: float
    best_regret: float
    trials: int
    suggest_cpu_seconds: float


def play(strategy: Strategy, task: Task, *, population: int, seed: int) -> Outcome:
    """One run to its end; `population` also limits how many configurations are begun."""
    problem = Problem(task.space(), value="score", minimize=False, seed=seed, cost_unit="intervals")
    states: dict[int | None, Score] = {None: task.start(seed)}
    history, rng, spent = History(problem), Randomness(seed), 0.0
    while True:
        began = time.process_time()
        budget = Remaining(trials=population - history.configurations)
        suggestions = list(strategy.suggest(history, budget, population, rng))
        spent += time.process_time() - began
        if not suggestions or (budget.trials <= 0 and all(each.resume_from is None for each in suggestions)):
            break
        trials = list(trained(suggestions, history, states, task, seed))
        history = history.updated(trials, version=history.version + 1)
    ended = {trial.number: task.regret(states[trial.number], seed) for trial in history if history.is_full(trial)}
    recommended = strategy.recommend(history)
    assert recommended is not None, "every made-up run succeeds"
    return Outcome(ended[recommended.trial.number], min(ended.values()), len(history), spent)


def trained(
    suggestions: list[Suggestion], history: History, states: dict[int | None, Score], task: Task, seed: int
) -> Iterator[Trial]:
    """The suggestions as trials that have ended, with the noisy scores of the states they lead to."""
    for number, suggestion in enumerate(suggestions, start=len(history)):
        source = suggestion.resume_from
        first = 0 if source is None else int(history[source].fidelity["steps"])
        state = states[source]
        for interval in range(first + 1, int(suggestion.fidelity["steps"]) + 1):
            state = task.train(state, suggestion.params, interval, seed)
        states[number] = state
        noise = task.noise * np.random.default_rng([seed, number]).standard_normal()
        as_stored = replace(suggestion, note=json.loads(json.dumps(suggestion.note)))
        yield Trial(number, as_stored, State.DONE, value=task.score(state) + float(noise))
