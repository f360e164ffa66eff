"""Searches for several rows at once."""

import numpy as np
import pytest

import farthing as ft
from farthing.acquisition.expected_improvement import LogExpectedImprovement
from farthing.costs import Remaining
from farthing.models.fitting import fit, hyperparameter_posterior
from farthing.models.gp import GP
from farthing.strategies import Randomness
from farthing.strategies.shared.modelling import Observations, domain_of, incumbent, kernel_over
from farthing.strategies.shared.searching import search_batch
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space({name: ft.Float(0, 1) for name in "abc"})


def bowl(X: np.ndarray) -> np.ndarray:
    return np.sum((X - 0.3) ** 2, axis=1)


def observed(n: int) -> tuple[GP, Observations]:
    X = np.random.default_rng(3).random((n, 3))
    loss = bowl(X)
    posterior = hyperparameter_posterior(kernel_over(SPACE.encoder), X, (loss - loss.mean()) / loss.std())
    return posterior.process(fit(posterior)), Observations(X, loss, np.full(n, np.nan), X[:0])


def searched(gp: GP, seen: Observations, count: int, effort: str) -> np.ndarray:
    return search_batch(
        gp,
        count,
        lambda one: LogExpectedImprovement(one, best=incumbent(one, SPACE.encoder)),
        domain=domain_of(SPACE.encoder),
        seen=seen,
        rng=np.random.default_rng(0),
        effort=effort,  # type: ignore[arg-type]
    )


def test_rows_chosen_together_differ_and_the_first_is_as_good_as_one_searched_alone() -> None:
    gp, seen = observed(40)
    improvement = LogExpectedImprovement(gp, best=incumbent(gp, SPACE.encoder))
    together, alone = searched(gp, seen, 8, "several"), searched(gp, seen, 1, "screen")
    assert len(np.unique(together, axis=0)) == 8
    assert improvement(together[:1])[0] >= improvement(alone)[0] - 0.1


def test_rows_chosen_together_are_spread_as_those_searched_one_after_the_other() -> None:
    """Each is chosen as if those before it had been observed: the best row is not measured eight times."""
    gp, seen = observed(12)
    apart = [distance(searched(gp, seen, 8, effort)) for effort in ("several", "screen")]
    assert apart[0] > 0.3 * apart[1]


def distance(rows: np.ndarray) -> float:
    """The median distance of a row from the nearest other one."""
    squares = np.sum((rows[:, None] - rows[None]) ** 2, axis=2) + np.diag(np.full(len(rows), np.inf))
    return float(np.median(np.sqrt(squares.min(axis=1))))


@pytest.mark.parametrize("options", [3, 5])
def test_of_a_small_space_every_configuration_is_chosen_once(options: int) -> None:
    space = ft.Space({name: ft.Int(1, options) for name in "ab"})
    trials = [
        Trial(
            i,
            Suggestion({"a": 1 + i % options, "b": 1}),
            State.DONE,
            value=float(i),
            measurements=(Measurement(value=float(i), cost={"training": 1.0}),),
        )
        for i in range(options)
    ]
    history = History(Problem(space), trials)
    left = options**2 - options
    found = ft.LogEI(initial=2).suggest(history, Remaining(effort="several"), left, Randomness(0))
    assert len({(one.params["a"], one.params["b"]) for one in found}) == left
    assert all(one.params["b"] != 1 for one in found)
