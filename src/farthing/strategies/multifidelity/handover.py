"""Decides by successive halving where a model has no skill, or would take too long.

A model that cannot tell good configurations from bad ones does harm: it looks at few, and spends on continuing them.
Halving looks at many and assumes nothing of them. It takes over the runs that are there. Some of the new configurations
stay the model's, so that its skill can be seen. Where trials are so short that workers would wait for the
model, halving decides in between.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf
from statistics import median
from typing import TYPE_CHECKING

from farthing.costs import Remaining
from farthing.strategies.multifidelity.basket import continuing_saves, starts_at
from farthing.strategies.multifidelity.halving import ASHA, ParamsKey, Rungs, params_key
from farthing.strategies.multifidelity.runs import Run, recommendable, runs_of
from farthing.strategies.multifidelity.skill import FIRST, HALVING, ModelSkill, only_trace
from farthing.strategies.shared.effort import share_left
from farthing.strategies.shared.starts import is_known
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Json, Prediction, Problem, State, Suggestion, Trial, noted
from farthing.trials.memos import places_changed
from farthing.trials.trial import THETA

if TYPE_CHECKING:
    from farthing.strategies.multifidelity.context import Settings

# ------------------------------------------------------------
# The standings of a history's runs on the rungs of one fidelity, kept up to date as the history grows.


Standing = tuple[float, int]
"""A loss, and the number of the trial that stands for it."""


@dataclass(frozen=True)
class Standings:
    """A run stands on every rung that its curve has passed, with its loss there; failures stand last.

    `by_rung` has the standings of each rung, the best first: each is of the last trial of a run, or of one that failed.
    `keys` are those of the params of these trials, `highest` says how high each configuration stands that has not
    failed, and `by_last` has the runs by the numbers of their last trials.
    """

    by_rung: Sequence[Sequence[Standing]]
    keys: Mapping[int, ParamsKey]
    highest: Mapping[ParamsKey, int]
    by_last: Mapping[int, Run]


@dataclass(frozen=True)
class _OfRun:
    """One run's share: standings with their rungs, and its trials' params and rungs as far as none failed."""

    run: Run
    standings: Sequence[tuple[int, Standing]]
    keys: Mapping[int, ParamsKey]
    trained: Mapping[int, int]

    @classmethod
    def of(cls, run: Run, rungs: Rungs) -> "_OfRun":
        standings = [] if run.last is None else list(enumerate(_on_its_way(run, run.last, rungs)))
        for failed in run.failed:
            if (rung := rungs.rung_of(failed)) is not None:
                standings.append((rung, (inf, failed.number)))
        keys = {trial.number: params_key(trial.params) for trial in run.trials}
        going = [trial for trial in run.trials if trial.state not in (State.FAILED, State.LOST)]
        return cls(run, standings, keys, {trial.number: rungs.rung_of(trial) or 0 for trial in going})


def _on_its_way(run: Run, last: Trial, rungs: Rungs) -> list[Standing]:
    """The loss of a run at its first report from each level on, as far as it has come."""
    reached = rungs.history.fidelity_known(last)[rungs.fidelity]
    passed = [level for level in rungs.levels if level <= reached]
    if last.state is not State.DONE or not rungs.history.is_current(last):
        return [(inf, last.number) for _ in passed]
    points = sorted((point.fidelity[rungs.fidelity], point.loss) for point in run.curve)
    return [(points[bisect_left(points, (level, -inf))][1], last.number) for level in passed]


class KeptStandings:
    """The standings of the history that was asked about last: of the next one only the runs that changed move."""

    def __init__(self, reduction: int, fidelity: str, lowest: float) -> None:
        self._reduction = reduction
        self._fidelity = fidelity
        self._lowest = lowest
        self._problem: Problem | None = None
        self._runs: list[Run] = []

    def of(self, history: History) -> Standings:
        rungs, runs = Rungs(history, self._reduction, self._fidelity, self._lowest), runs_of(history)
        if history.problem is not self._problem or len(runs) < len(self._runs):
            self._begin(history.problem, levels=len(rungs.levels))
        changed = places_changed(self._runs, runs)
        for place in changed:
            self._take_back(place)
        for place in changed:
            self._enter(place, _OfRun.of(runs[place], rungs))
        self._runs = runs
        return Standings(
            [standings.copy() for standings in self._by_rung],
            self._keys.copy(),
            self._highest.copy(),
            self._by_last.copy(),
        )

    def _begin(self, problem: Problem, *, levels: int) -> None:
        self._problem = problem
        self._runs = []
        self._kept: dict[int, _OfRun] = {}
        self._by_rung: list[list[Standing]] = [[] for _ in range(levels)]
        self._keys: dict[int, ParamsKey] = {}
        self._trained: dict[ParamsKey, dict[int, int]] = {}
        self._highest: dict[ParamsKey, int] = {}
        self._by_last: dict[int, Run] = {}

    def _enter(self, place: int, now: _OfRun) -> None:
        self._kept[place] = now
        for rung, standing in now.standings:
            insort(self._by_rung[rung], standing)
        self._keys |= now.keys
        for number, rung in now.trained.items():
            self._train(now.keys[number], {**self._trained.get(now.keys[number], {}), number: rung})
        if now.run.last is not None:
            self._by_last[now.run.last.number] = now.run

    def _take_back(self, place: int) -> None:
        if (before := self._kept.pop(place, None)) is None:
            return
        for rung, standing in before.standings:
            del self._by_rung[rung][bisect_left(self._by_rung[rung], standing)]
        for number in before.trained:
            trained = self._trained[before.keys[number]]
            self._train(before.keys[number], {other: rung for other, rung in trained.items() if other != number})
        for number in before.keys:
            del self._keys[number]
        if before.run.last is not None:
            del self._by_last[before.run.last.number]

    def _train(self, key: ParamsKey, rungs: dict[int, int]) -> None:
        """Says which trials of a configuration have not failed, and on which rungs they stand."""
        self._trained[key] = rungs
        if rungs:
            self._highest[key] = max(rungs.values())
        else:
            self._highest.pop(key, None)


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
