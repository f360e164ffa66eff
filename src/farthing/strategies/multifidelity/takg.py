"""taKG: the trace-aware knowledge gradient (Wu, Toscano-Palmerin, Frazier and Wilson, 2020)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Literal

from farthing.costs import EFFORT_LEVELS, Remaining
from farthing.errors import InvalidArgument
from farthing.fields import share, whole
from farthing.strategies.shared.effort import can_pay_for_model, effort_level
from farthing.strategies.shared.starts import first_params, is_known, starts_in_vain
from farthing.strategies.shared.strategy import Randomness, Recommendation, Strategy
from farthing.trials import History, Json, Params, Suggestion, Trial
from farthing.trials.trial import is_by_model

if TYPE_CHECKING:
    from farthing.strategies.multifidelity.candidates import Candidates, ChosenEvaluation
    from farthing.strategies.multifidelity.context import CurveContext
    from farthing.strategies.multifidelity.published import PublishedTraceKG
    from farthing.strategies.multifidelity.skill import ModelSkill

log = logging.getLogger("farthing")

DROPPED = "dropped"
"""In a note: the runs that left the paper's basket with this suggestion, by the number of their first trial."""
STARTS = 5
"""Random configurations before the model is asked; along a single trace there are more, which are short looks, and the
best of them are continued (`handover.suggest_starts`)."""
START_SHARE = 0.13
"""Of the full fidelity, all fidelities multiplied, where there are several or none is a trace; a guess, not tuned."""
START_BUDGET = 0.5
"""Starts never take more than this share of the budget; a guess, not tuned."""


@dataclass(frozen=True)
class TraceKG(Strategy):
    """The most information about the best configuration at full fidelity, per unit of cost (taKG and taKG⁰).

    Each suggestion is a configuration, how far to train it in every fidelity, and the paused run to continue, if that
    is the better buy. A Gaussian process over params and fidelities learns from the curves; a second model learns
    costs. It recommends the tried configuration that measured best along a single trace, and elsewhere the one that it
    expects to be best at full fidelity (`recommending`).

    Along a single trace a study begins with a small bracket of short looks (`handover`), takes no leaps (`screening`),
    and spends the end of its budget on comparing the runs at hand, if it is in doubt which is best (`finishing`). If
    random starts have learnt nothing, successive halving decides until the model's choices are better than random ones
    (`skill`).

    Args:
        zero_avoiding: information that is free at fidelity zero does not count (taKG⁰). "auto" measures whether cost
            and information vanish together; the note names the form that was used.
        retain: points of each curve that enter the model, spread evenly, its end among them. All are in the history.
        floor: the least share of each fidelity that is suggested, because the first steps of training mislead; None
            for the fidelity's own `low`.
        batch_cost: the cost of suggestions made together: the largest, as they run side by side, or the sum.
        fidelity_kernel: "decays" for a learning-curve kernel for traces and a data-size kernel for others, as in the
            paper; "curves" adds a small Matérn part to each; "auto" is "decays" along a single trace and "curves"
            elsewhere; or "matern".
        halving: whether successive halving may decide instead of a model without skill, or one that takes too long.
    """

    zero_avoiding: bool | Literal["auto"] = "auto"
    retain: int = whole(4, least=1)
    floor: float | None = share(0.1)
    batch_cost: Literal["max", "sum"] = "max"
    fidelity_kernel: Literal["auto", "curves", "decays", "matern"] = "auto"
    halving: bool = True

    takes_starts: ClassVar[bool] = True
    thinking: ClassVar[float] = 0.06
    imports_later: ClassVar[str | None] = "farthing.strategies.multifidelity.screening"
    former: ClassVar[Mapping[str, Json]] = {"samples": "map", "basket": None, "search": "screen", "recommends": "seen"}

    @classmethod
    def paper(cls, *, zero_avoiding: bool = True, samples: int = 10, retain: int = 2) -> "PublishedTraceKG":
        """The method to the letter of the paper; its differences from `TraceKG()` are in `PublishedTraceKG`."""
        from farthing.strategies.multifidelity.published import PublishedTraceKG

        return PublishedTraceKG(zero_avoiding=zero_avoiding, samples=samples, retain=retain)

    @classmethod
    def of_former(cls, arguments: Mapping[str, Json]) -> Strategy:
        """`TraceKG.paper()` as it was stored before: Matérn, transformed losses, the mode, the oldest dropped."""
        from farthing.strategies.multifidelity.published import PublishedTraceKG

        if arguments.get("recommends") == "anywhere":
            log.warning(
                "TraceKG.paper() follows the paper to the letter now, which this study's form did not: %s",
                PublishedTraceKG.differences,
            )
            return PublishedTraceKG(arguments.get("zero_avoiding") is not False, retain=arguments.get("retain", 2))
        found: Strategy = super().of_former(arguments)
        return found

    @property
    def samples(self) -> int:
        """Of the hyperparameters: none, the most probable ones stand for all."""
        return 0

    @property
    def basket(self) -> int | None:
        """The most paused runs that may be continued: all."""
        return None

    def suggest(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        require_fidelities(history)
        budget = replace(budget, effort=effort_level(self, history, budget))
        if bracket := _bracket(history, budget, count, rng):
            return bracket
        starts = random_starts(history, budget, min(count, starts_left(history, budget)), rng)
        if len(starts) == count:
            return starts
        from farthing.models.linalg import one_thread

        with one_thread():
            is_in_haste = budget.effort == EFFORT_LEVELS[-1]
            hurried = [] if starts else self._hurried(history, budget, count, rng)
            return hurried or self._modelled(history, budget, len(starts) + 1 if is_in_haste else count, rng, starts)

    def recommend(self, history: History) -> Recommendation | None:
        """The best value measured along a single trace, elsewhere predicted at full fidelity, with its prediction."""
        if not history.done:
            return None
        from farthing.models.linalg import one_thread
        from farthing.strategies.multifidelity.recommending import recommend_seen

        with one_thread():
            return recommend_seen(self, history)

    def resumable(self, history: History) -> set[int]:
        from farthing.strategies.multifidelity.basket import Basket
        from farthing.strategies.multifidelity.levels import Fidelities
        from farthing.strategies.multifidelity.runs import runs_of

        basket = Basket.of(history, runs_of(history), Fidelities(history.problem.space))
        return basket.last_trials

    def _skill(self, history: History) -> "ModelSkill | None":
        """Returns the model's skill, if successive halving may decide in its place."""
        from farthing.strategies.multifidelity.skill import skill_of

        return skill_of(history) if self.halving else None

    def _hurried(self, history: History, budget: Remaining, count: int, rng: Randomness) -> Sequence[Suggestion]:
        """Suggestions of successive halving where the model would take too long; none elsewhere."""
        from farthing.strategies.multifidelity.handover import suggest_in_haste
        from farthing.strategies.multifidelity.skill import only_trace

        effort = effort_level(self, history, budget)
        may_halve = self.halving and only_trace(history) is not None
        if not may_halve or can_pay_for_model(self, history, is_by_model, effort=effort):
            return []
        return suggest_in_haste(history, budget, count, rng)

    def _modelled(
        self, history: History, budget: Remaining, count: int, rng: Randomness, starts: list[Suggestion]
    ) -> Sequence[Suggestion]:
        """The starts, and what the model chooses after them; what halving does while the model has no skill."""
        from farthing.strategies.multifidelity.context import read_context
        from farthing.strategies.multifidelity.finishing import NOTE, affordable, finishing
        from farthing.strategies.multifidelity.handover import suggest_by_halving
        from farthing.strategies.multifidelity.screening import choose_one_by_one

        context = read_context(self, history, rng, starts, effort=effort_level(self, history, budget))
        if context is None:
            return [*starts, *random_starts(history, budget, count - len(starts), rng, after=starts)]
        skill = self._skill(history)
        if not starts:
            ending = finishing(context, budget, count, trusts_model=skill is None or not skill.is_missing)
            if ending is not None:
                found = [suggestion_of(context, choice) for choice in ending]
                return [replace(one, note={**(one.note or {}), NOTE: True}) for one in found]
            if skill is not None and skill.is_missing:
                return suggest_by_halving(self, history, budget, count, rng, skill=skill)
        limit, new_left = affordable(context, budget), budget.trials - len(starts)
        chosen = choose_one_by_one(context, count - len(starts), limit=limit, new_left=new_left)
        return [*starts, *(suggestion_of(context, choice) for choice in chosen)]


# ------------------------------------------------------------------------------------------------------- the start


def _bracket(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
    """The first configurations along a single trace; none elsewhere, or once there are enough of them."""
    from farthing.strategies.multifidelity.handover import suggest_starts
    from farthing.strategies.multifidelity.skill import FIRST, only_trace

    left = FIRST + starts_in_vain(history) - history.configurations
    if left <= 0 or only_trace(history) is None:
        return []
    found = suggest_starts(history, budget, count, rng)
    new = [one for one in found if one.resume_from is None]
    return [one for one in found if one not in new[left:]]


def starts_left(history: History, budget: Remaining) -> int:
    """The number of random starts still to make; none if another like the last would take too much of the budget."""
    begun = _begun(history)
    if begun and _for_starts(history, budget) < begun[-1].cost:
        return 0
    return max(0, STARTS + starts_in_vain(history) - history.configurations)


def _begun(history: History) -> list[Trial]:
    new = (trial for trial in history if trial.is_finished and trial.resume_from is None)
    return list(islice(new, STARTS))


def _for_starts(history: History, budget: Remaining) -> float:
    """The rest of the share of the budget that starts may take."""
    return START_BUDGET * (history.cost + budget.cost) - sum(trial.cost for trial in _begun(history))


def start_share(history: History, budget: Remaining) -> float:
    """The share of a full training that a start has: less where what is left for starts would not pay for all."""
    begun = _begun(history)
    prices = [trial.cost / reach for trial in begun if trial.cost > 0.0 and (reach := history.reach(trial)) > 0.0]
    if not prices:
        return START_SHARE
    left = max(0.0, _for_starts(history, budget))
    return min(START_SHARE, left / median(prices) / max(1, STARTS - len(begun)))


def random_starts(
    history: History, budget: Remaining, count: int, rng: Randomness, *, after: Sequence[Suggestion] = ()
) -> list[Suggestion]:
    """Configurations at a modest fidelity: what was learnt from earlier studies, then random ones."""
    import numpy as np

    first, space = len(history) + len(after), history.problem.space
    numbers = range(first, first + int(min(count, max(0, budget.trials - len(after)))))
    share = start_share(history, budget) ** (1.0 / len(space.fidelities))
    fidelity = space.encoder.decode_fidelity(np.full((1, len(space.fidelities)), share))[0]
    note = {"why": "a start: nothing is known yet"}
    taken = sum(is_known(start.note) for start in after)
    found = first_params(history, numbers, rng, taken=taken)
    return [Suggestion(one.params, fidelity, note=one.noted(note)) for one in found]


# ------------------------------------------------------------------------------------------------------ the result


def suggestion_of(context: "CurveContext", choice: "ChosenEvaluation") -> Suggestion:
    import numpy as np

    problem, candidate = context.history.problem, choice.candidate
    source = context.source(candidate)
    fidelity = problem.space.encoder.decode_fidelity(candidate.S)[0]
    row = np.hstack([candidate.X, candidate.S])[0]
    return Suggestion(
        _params(context, candidate),
        fidelity,
        resume_from=source.number if source else None,
        predicted_cost=context.cost.predicted(candidate.X, candidate.S, candidate.begun),
        predicted_value=context.model.predicted(row, sign=problem.sign),
        note={**context.model.note(), **context.cost.note(), **_reasons(context, choice, fidelity)},
    )


def _params(context: "CurveContext", candidate: "Candidates") -> Params:
    """Takes the params of the run that is continued or begun again, to the bit; else the candidate's own."""
    source = context.source(candidate) or context.twin(candidate)
    return context.encoder.decode(candidate.X)[0] if source is None else source.params


def _reasons(context: "CurveContext", choice: "ChosenEvaluation", fidelity: dict[str, float]) -> dict[str, Json]:
    """Why this was suggested, for people and for `farthing show`."""
    source = context.source(choice.candidate)
    amounts = ", ".join(f"{amount:g} {name}" for name, amount in fidelity.items())
    what = _what(context, choice.candidate) if source is None else f"trial {source.number} carried on"
    return {
        "why": f"{what}, to {amounts}: {choice.reason}",
        "form": context.form,
        **({"information_per_cost": choice.information / choice.cost} if choice.information else {}),
        **({} if choice.retained is None else {"retained": choice.retained.tolist()}),
        **({DROPPED: list(choice.drops)} if choice.drops else {}),
    }


def _what(context: "CurveContext", candidate: "Candidates") -> str:
    """Whether something that is trained from nothing is new, more of a configuration seen, or an exact repeat."""
    twin = context.twin(candidate)
    if twin is None:
        return "a new configuration"
    number = twin.trials[0].number
    if context.bought.has(candidate.X, candidate.S)[0]:
        return f"the params of trial {number} once more, because every configuration was tried"
    return f"the params of trial {number} again with more"


def require_fidelities(history: History) -> None:
    if not history.problem.space.fidelities:
        raise InvalidArgument(
            "TraceKG needs at least one fidelity, got a space without. Add fidelities={…} to it, or use EIPerCost()."
        )
