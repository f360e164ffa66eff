"""Decides by successive halving where a model has no skill, or would take too long.

A model that cannot tell good configurations from bad ones does harm: it looks at few, and spends on continuing them.
Halving looks at many and assumes nothing of them. It takes over the runs that are there. Some of the new configurations
stay the model's, so that its skill can be seen. Where trials are so short that workers would wait for the
model, halving decides in between.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.halving import ASHA, ParamsKey, Rungs
from farthing.strategies.multifidelity.runs import Run, recommendable, runs_of
from farthing.strategies.multifidelity.skill import FIRST, HALVING, ModelSkill, only_trace
from farthing.strategies.multifidelity.standings import KeptStandings, Standings
from farthing.strategies.shared.effort import share_left
from farthing.strategies.shared.starts import is_known
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Json, Prediction, Suggestion, Trial, noted
from farthing.trials.trial import THETA

if TYPE_CHECKING:
    from farthing.strategies.multifidelity.context import Settings

# ------------------------------------------------------------
# Rungs for runs of any length: halving takes over runs that something else began.


TINY = 1e-9
RECENT = 32
"""Runs whose costs stand for that of the next one. A limit on time, not tuned."""


@dataclass(frozen=True)
class TracedRungs(Rungs):
    """A run stands on every rung that its curve has passed, with its loss there. The fidelity is the only one.

    Nothing is promoted that is expected to cost more than `limit`, at the cost per fidelity of the run so far.
    """

    limit: float = inf

    @cached_property
    def standings(self) -> Standings:
        return self.history.memo(KeptStandings, self.reduction, self.fidelity, self.lowest)

    @property
    def highest(self) -> Mapping[ParamsKey, int]:
        return self.standings.highest

    def best(self, rung: int) -> Iterator[Trial]:
        """Without those that have a twin above, which in a long study are nearly all: no trials are made of them."""
        standing, keys, highest = self.standings.by_rung[rung], self.standings.keys, self.highest
        for _, number in standing[: len(standing) // self.reduction]:
            if highest.get(keys[number], 0) <= rung:
                yield self.stopped(self.history[number], rung)

    def may_go_on(self, trial: Trial) -> bool:
        """As the run really stands: a complete one has nothing to add."""
        last = self.history[trial.number]
        return self.history.reach(last) < 1.0 and super().may_go_on(last) and self._price(trial) <= self.limit

    @property
    def may_start(self) -> bool:
        """Whether another run to the lowest rung is expected to cost no more than the limit."""
        price = self._price_of_a_start
        return price is None or price <= self.limit

    def priced(self, suggestion: Suggestion) -> Suggestion:
        """The suggestion of a promotion or a start with the cost that runs so far let expect; as it is without any."""
        if suggestion.resume_from is None:
            price = self._price_of_a_start
        else:
            rung = bisect_right(self.levels, suggestion.fidelity[self.fidelity]) - 2
            price = self._price(self.stopped(self.history[suggestion.resume_from], rung))
        return replace(suggestion, predicted_cost=Prediction(price)) if price else suggestion

    @cached_property
    def _price_of_a_start(self) -> float | None:
        rates = [run.rate for run in runs_of(self.history)[-RECENT:] if run.last is not None]
        return median(rates) * self._share(0) if rates else None

    def _price(self, trial: Trial) -> float:
        """The expected cost of a promotion."""
        rung, run = self.rung_of(trial), self.standings.by_last[trial.number]
        assert rung is not None, "only trials on a rung are promoted"
        begun = starts_at(run, is_saving=self._is_saving)[0]
        return run.rate * float(self._share(rung + 1) - begun)

    def _share(self, rung: int) -> float:
        return self.levels[rung] / self.levels[-1]

    @cached_property
    def _is_saving(self) -> bool:
        return continuing_saves(self.history)

    def stopped(self, trial: Trial, rung: int) -> Trial:
        """The last trial of a run as if it had stopped at a rung that it passed."""
        return replace(trial, suggestion=replace(trial.suggestion, fidelity=self._fidelity(rung)))


FIRST_LOOK = 0.05
"""The share of a training that the first looks have; `docs/systems/multifidelity.md` lists others."""
FOR_LOOKS = 0.2
"""The share of a budget that all first looks may cost: with less than two trainings they are shorter. With a sixth,
which shortens them up to 2.4 trainings, one training gained .03 on those tables and two lost .02."""
EVERY = 4
"""One in this many new configurations stays the model's. A guess, no other is on record."""


def suggest_by_halving(
    settings: "Settings", history: History, budget: Remaining, count: int, rng: Randomness, *, skill: ModelSkill
) -> list[Suggestion]:
    """Suggests by asynchronous successive halving; the model chooses the params of some new configurations."""
    found: list[Suggestion] = []
    for one in _halved(history, budget, count, rng):
        new = [earlier for earlier in found if earlier.resume_from is None]
        is_models = _is_of_model(one, place=history.configurations + len(new))
        by_model = _by_model(settings, history, budget, rng, one, new) if is_models else None
        found.append(by_model or one)
    return [replace(one, note=_note(one, _doubt(skill)) | {HALVING: skill.share}) for one in found]


def suggest_in_haste(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
    """Suggests by asynchronous successive halving, without the model; near the end of a budget its leaders first."""
    because = "the model would take more than its share of the trials' time"
    leaders = _leaders(history, budget, count)
    taken = {one.resume_from for one in leaders}
    others = (
        one for one in _halved(history, budget, count, rng) if one.resume_from is None or one.resume_from not in taken
    )
    found = [replace(one, note=_note(one, because)) for one in islice(others, count - len(leaders))]
    return [*leaders, *found]


def _leaders(history: History, budget: Remaining, count: int) -> list[Suggestion]:
    """The runs that measured best, each to its next rung: one of them is recommended, and a low loss early in a run may
    be chance, or rise again. It is what the reserve is spent on that `finishing` compares runs with.
    """
    runs = runs_of(history)
    if budget.trials >= 1 and not is_reserve(history, runs, budget):
        return []
    rungs = _rungs(history, budget)
    last = [run.last for run in recommendable(runs) if run.is_paused and run.last is not None]
    best = (trial for trial in rungs.ranked(last) if rungs.may_go_on(trial))
    found = (rungs.priced(rungs.promotion(trial)) for trial in islice(best, count))
    because = "it is among the best so far, and the budget ends"
    return [replace(one, note={"why": f"trial {one.resume_from} carried on: {because}"}) for one in found]


RESERVE, BEGINNING = 0.35, 2.0
"""The share of a budget beyond so many trainings that is kept for comparing. The second number was chosen on the tables
of `real-curves-tuning`; of the first, none and a half were level there (`docs/systems/multifidelity.md`)."""


def is_reserve(history: History, runs: Sequence[Run], budget: Remaining) -> bool:
    """Whether no more is left than what is kept for comparing."""
    whole = max(history.cost + money_left(history, budget), TINY)
    trainings = BEGINNING * median([run.rate for run in runs if run.last is not None] or [0.0])
    return share_left(history, replace(budget, trials=inf)) <= RESERVE * max(0.0, 1.0 - trainings / whole)


def money_left(history: History, budget: Remaining) -> float:
    """The cost that is left. Every worker has the seconds that are left; those in flight, and a free one, count."""
    workers = len(history.in_flight) + 1
    return min(budget.cost, budget.seconds * workers if history.problem.cost_unit == "seconds" else inf)


def suggest_starts(history: History, budget: Remaining, count: int, rng: Randomness) -> list[Suggestion]:
    """Short looks at configurations, and more of the best third of them: what there is before a model."""
    found = _halved(history, budget, count, rng, lowest=_first_look(history, budget))
    return [replace(one, note=_note(one, "a start, while nothing is known")) for one in found]


def _first_look(history: History, budget: Remaining) -> float:
    rates = [run.rate for run in runs_of(history) if run.last is not None and run.cost > 0.0]
    if not rates:
        return FIRST_LOOK
    whole = (history.cost + budget.most_to_pay(in_seconds=history.problem.cost_unit == "seconds")) / median(rates)
    return min(FIRST_LOOK, FOR_LOOKS * whole / FIRST)


def _halved(
    history: History, budget: Remaining, count: int, rng: Randomness, *, lowest: float = 0.0
) -> Iterator[Suggestion]:
    rungs = _rungs(history, budget, lowest=lowest)
    for one in ASHA().suggest_on(rungs, budget, count, rng):
        if one.resume_from is None and not rungs.may_start:
            return
        yield rungs.priced(one)


def _rungs(history: History, budget: Remaining, *, lowest: float = 0.0) -> TracedRungs:
    fidelity = only_trace(history)
    assert fidelity is not None, "halving takes over where the only fidelity is a trace"
    limit = budget.most_to_pay(in_seconds=history.problem.cost_unit == "seconds")
    return TracedRungs(history, ASHA().reduction, fidelity, lowest, limit=limit)


def _is_of_model(suggestion: Suggestion, *, place: int) -> bool:
    return suggestion.resume_from is None and not is_known(suggestion.note) and place % EVERY == 0


def _by_model(
    settings: "Settings",
    history: History,
    budget: Remaining,
    rng: Randomness,
    start: Suggestion,
    chosen: Sequence[Suggestion],
) -> Suggestion | None:
    """A start with the params of highest expected improvement instead; None where no value is known."""
    from farthing.strategies.multifidelity.context import read_context
    from farthing.strategies.multifidelity.screening import best_new

    context = read_context(settings, history, rng, chosen, effort=budget.effort or "ordinary")
    if context is None:
        return None
    [params] = context.encoder.decode(best_new(context))
    return replace(start, params=params, note=context.model.note())


def _doubt(skill: ModelSkill) -> str:
    if skill.is_unknown:
        return "random starts have learnt nothing, so there is little for a model to go by"
    return (
        f"random starts have learnt nothing, and the model's choices win {skill.share:.0%} of pairs with them, too few"
    )


def _note(suggestion: Suggestion, because: str) -> dict[str, Json]:
    return {"why": f"{_what(suggestion)}: {because}", **noted(suggestion.note)}


def _what(suggestion: Suggestion) -> str:
    if suggestion.resume_from is not None:
        return f"trial {suggestion.resume_from} carried on by successive halving, one of the best third at its rung"
    if THETA in noted(suggestion.note):
        return "a configuration of the model among those of successive halving, to see whether it chooses better now"
    return "a random configuration, by successive halving"
