"""Decides by successive halving where a model has no skill, or would take too long.

A model that cannot tell good configurations from bad ones does harm: it looks at few, and spends on continuing them.
Halving looks at many and assumes nothing of them. It takes over the runs that are there. Some of the new configurations
stay the model's, so that its skill can be seen. Where trials are so short that workers would wait for the
model, halving decides in between.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from farthing.costs import Remaining
from farthing.strategies.multifidelity.context import Settings, read_context
from farthing.strategies.multifidelity.halving import ASHA
from farthing.strategies.multifidelity.screening import best_new
from farthing.strategies.multifidelity.skill import ENOUGH, HALVING, Skill, only_trace
from farthing.strategies.multifidelity.traced_rungs import TracedRungs
from farthing.strategies.shared.randomness import Randomness
from farthing.strategies.shared.starts import is_known
from farthing.trials import History, Json, Suggestion

FIRST_LOOK = 0.05
"""The share of a training that the first looks have. Chosen on the tables of `real-curves-tuning`, see the docs."""
START = "a start, while nothing is known"
EVERY = 4
"""One in this many new configurations stays the model's. A guess, no other is on record."""


def suggest_by_halving(
    settings: Settings, history: History, budget: Remaining, count: int, rng: Randomness, *, skill: Skill
) -> list[Suggestion]:
    """What asynchronous successive halving suggests; some new configurations have params that the model chose."""
    found: list[Suggestion] = []
    for one in _halved(history, budget, count, rng):
        new = [earlier for earlier in found if earlier.resume_from is None]
        is_models = _is_of_model(one, place=history.configurations + len(new))
        by_model = _by_model(settings, history, budget, rng, one, new) if is_models else None
        found.append(by_model or one)
    return [replace(one, note=_note(one, _doubt(skill)) | {HALVING: skill.share}) for one in found]


def suggest_in_haste(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
    """What asynchronous successive halving suggests, without the model."""
    because = "the model would take more than its share of the trials' time"
    return [replace(one, note=_note(one, because)) for one in _halved(history, budget, count, rng)]


def suggest_starts(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
    """Short looks at configurations, and more of the best third of them: what there is before a model.

    Five looks at 13 % of a training, all of one length, cost as much and told less (`docs/systems/multifidelity.md`).
    """
    return [replace(one, note=_note(one, START)) for one in _halved(history, budget, count, rng, lowest=FIRST_LOOK)]


def _halved(
    history: History, budget: Remaining, count: int, rng: Randomness, *, lowest: float = 0.0
) -> Iterator[Suggestion]:
    asha, fidelity = ASHA(), only_trace(history)
    assert fidelity is not None, "halving takes over where the only fidelity is a trace"
    limit = budget.most_to_pay(in_seconds=history.problem.cost_unit == "seconds")
    rungs = TracedRungs(history, asha.reduction, fidelity, lowest, limit=limit)
    for one in asha.suggest_on(rungs, budget, count, rng):
        if one.resume_from is None and not rungs.may_start:
            return
        yield rungs.priced(one)


def _is_of_model(suggestion: Suggestion, *, place: int) -> bool:
    return suggestion.resume_from is None and not is_known(suggestion.note) and place % EVERY == 0


def _by_model(
    settings: Settings,
    history: History,
    budget: Remaining,
    rng: Randomness,
    start: Suggestion,
    chosen: Sequence[Suggestion],
) -> Suggestion | None:
    """A start with the params of highest expected improvement instead; None where no value is known."""
    context = read_context(settings, history, rng, chosen, effort=budget.effort or "ordinary")
    if context is None:
        return None
    [params] = context.encoder.decode(best_new(context))
    return replace(start, params=params, note=context.model.note())


def _doubt(skill: Skill) -> str:
    if skill.chosen < ENOUGH:
        return "random starts have learnt nothing, so there is little for a model to go by"
    return (
        f"random starts have learnt nothing, and the model's choices win {skill.share:.0%} of pairs with them, too few"
    )


def _note(suggestion: Suggestion, because: str) -> dict[str, Json]:
    known = suggestion.note if isinstance(suggestion.note, dict) else {}
    return {"why": f"{_what(suggestion)}: {because}", **known}


def _what(suggestion: Suggestion) -> str:
    if suggestion.resume_from is not None:
        return f"trial {suggestion.resume_from} carried on by successive halving, one of the best third at its rung"
    if isinstance(suggestion.note, dict) and "theta" in suggestion.note:
        return "a configuration of the model among those of successive halving, to see whether it chooses better now"
    return "a random configuration, by successive halving"
