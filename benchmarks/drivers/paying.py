"""What an evaluation adds to what was paid: the same rule for every method that can continue a run."""

from collections.abc import Mapping

from benchmarks.problems import Evaluation, Params, Problem


def added_cost(
    problem: Problem,
    params: Params,
    evaluation: Evaluation,
    fidelity: Mapping[str, float],
    before: Mapping[str, float] | None,
    *,
    seed: int,
) -> float:
    """The difference to the run that is continued, if there was one and it can be: only along a trace."""
    if before is None or not _continues(problem, before, fidelity):
        return evaluation.cost
    return max(0.0, evaluation.cost - problem.evaluate(params, before, seed=seed).cost)


def _continues(problem: Problem, before: Mapping[str, float], after: Mapping[str, float]) -> bool:
    """A run goes on along its trace; with more data, or another amount of anything else, it starts from nothing."""
    fidelities = problem.space().fidelities
    return any(fidelity.trace for fidelity in fidelities.values()) and all(
        before[name] <= after[name] if fidelity.trace else before[name] == after[name]
        for name, fidelity in fidelities.items()
    )
