"""Learns from earlier studies: reads them once, as a study begins, and freezes what is used into its own history."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeAlias

from farthing.analysis.best import find_best
from farthing.errors import InvalidArgument, InvalidParams, NoResult
from farthing.scalars import as_float
from farthing.session import HasSession, Session, session_if_any
from farthing.session.records import Records
from farthing.space import Choice, Float, Int, Parameter, Space
from farthing.storage import Storage, StudySummary
from farthing.strategies import Randomness
from farthing.strategies.shared.starts import is_drawn
from farthing.trials import History, Params, Problem, State, Trial
from farthing.trials.events import EarlierCost, Learned, LearnedStart, RandomResult
from farthing.trials.objectives import COST, latest_metrics
from farthing.trials.trial import ADDED, is_by_model
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.knowledge.portfolio import EarlierBest


LearnFrom: TypeAlias = str | HasSession | Sequence[str | HasSession]
"""Earlier studies: names in the same storage, `ADDRESS#NAME` in another one, studies, or "all" that suit."""

MOST_COSTS = 64
"""Costs that are kept for the first predictions, of all earlier studies together. A limit on size, not tuned."""
MOST_RANDOM = 10
"""Results of an initial design that are kept, of each earlier study: as many as the longest default design has."""

SUFFIXES = (".db", ".sqlite", ".sqlite3")
"""Endings of a storage's file, before the name of a study in it."""
ADVICE = 'Write learn_from=["digits-may"], a study, "sqlite:///old.db#digits", or "all".'


def begin_with(records: Records, given: object) -> None:
    """Freezes what the earlier studies say into a study that has not begun; one that has keeps what it knows.

    The event comes before the first trial, so a program that is killed and started again goes on with the same starts.
    """
    history = records.refresh()
    if history.learned is not None:
        return
    if len(history):
        raise InvalidArgument(
            f"A study learns from others before its first trial, got learn_from= for {records.name!r}, which has "
            f"{len(history)}. Give it another name=, or leave learn_from out."
        )
    records.learn(learn(given, records.problem, name=records.name, storage=records.storage))


def learn(given: object, problem: Problem, *, name: str, storage: Storage) -> Learned:
    """The knowledge of these earlier studies about the problem."""
    with _opened(given, problem, name=name, storage=storage) as studies:
        return learned_from(studies, problem)


def learned_from(studies: Sequence[Session], problem: Problem) -> Learned:
    for study in studies:
        _require_suitable(study, problem)
    names = tuple(study.name for study in studies)
    if not problem.is_simple:
        return Learned(names, tuple(_from_fronts(studies, problem)), (), tuple(_costs(studies, problem)))
    bests = [best for place, study in enumerate(studies) if (best := _best_of(study, problem, place)) is not None]
    if not bests:
        return Learned(names)
    from farthing.knowledge.portfolio import ordered_by_cover

    return Learned(
        names,
        tuple(LearnedStart(best.params, best.source) for best in ordered_by_cover(bests)),
        tuple(result for study in studies for result in _random_results(study.name, study.records.refresh())),
        tuple(_costs(studies, problem)),
    )


# ------------------------------------------------------------------------------------------------ which studies


@contextmanager
def _opened(given: object, problem: Problem, *, name: str, storage: Storage) -> Iterator[list[Session]]:
    """The studies that were named, each once; those that are opened here are closed at the end."""
    with ExitStack() as stack:
        found: list[Session] = []
        for one in _named(given, problem, name=name, storage=storage):
            if isinstance(one, Session):
                found.append(one)
                continue
            address, _, other = one.rpartition("#")
            is_elsewhere = "://" in address or address.endswith(SUFFIXES)
            place: str | Storage = address if is_elsewhere else storage
            found.append(Session.loaded(other if is_elsewhere else one, place))
            stack.callback(found[-1].records.let_go)
        yield found


def _named(given: object, problem: Problem, *, name: str, storage: Storage) -> list[str | Session]:
    if given == "all":
        return [one.record.name for one in storage.list_studies() if _suits(one, problem, name=name)]
    several: Any = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    listed = [one if isinstance(one, str) else session_if_any(one) for one in several]
    if None in listed:
        raise InvalidArgument(f"learn_from must be names or studies, got {shown(given)}. {ADVICE}")
    if name in listed:
        raise InvalidArgument(f"A study learns from others, got its own name, {name!r}, in learn_from. {ADVICE}")
    return list(dict.fromkeys(one for one in listed if one is not None))


def _suits(other: StudySummary, problem: Problem, *, name: str) -> bool:
    """Whether "all" takes it: it has ended with results, and tuned the same value in a space that is partly ours."""
    theirs, trials = other.record.problem, other.trials
    is_finished = trials.get(State.DONE, 0) > 0 and not (trials.get(State.RUNNING, 0) or trials.get(State.PENDING, 0))
    is_alike = _are_alike(theirs, problem) and bool(in_common(problem.space, theirs.space))
    return other.record.name != name and is_finished and is_alike


def _require_suitable(study: Session, problem: Problem) -> None:
    theirs = study.records.problem
    if not _are_alike(theirs, problem):
        raise InvalidArgument(
            f"A study learns from studies of the same value, got {study.name!r}, which has {_named_aims(theirs)}, "
            f"for {_named_aims(problem)}. Leave it out."
        )
    if not in_common(problem.space, theirs.space):
        raise InvalidArgument(
            f"A study learns from studies with parameters in common, got {study.name!r}, which has none. Leave it out."
        )


def _are_alike(one: Problem, other: Problem) -> bool:
    """Whether both have the same objectives, by name: in which order they are named says nothing."""
    return set(one.objectives) == set(other.objectives)


def _named_aims(problem: Problem) -> str:
    return ", ".join(f"{one.direction}={one.name!r}" for one in problem.objectives)


# --------------------------------------------------------------------------------------------- what they leave


def _from_fronts(studies: Sequence[Session], problem: Problem) -> list[LearnedStart]:
    """Of each study's front within today's limits its knee, then the best of each objective, the studies in turn."""
    from farthing.analysis.front import Front, starts_of
    from farthing.knowledge.portfolio import MOST_STARTS

    offered: list[list[LearnedStart]] = []
    for place, study in enumerate(studies):
        history = _within_limits(study.records.refresh(), problem)
        found = starts_of(Front.of(history)) if history.results else []
        carried = [_with_drawn(params, problem, "learned", place) for params in found]
        offered.append([LearnedStart(params, study.name) for params in carried])
    chosen: list[LearnedStart] = []
    for turn in zip_longest(*offered):
        for start in turn:
            if start is not None and all(start.params != other.params for other in chosen):
                chosen.append(start)
    return chosen[:MOST_STARTS]


def _within_limits(history: History, problem: Problem) -> History:
    """An earlier study under the limits of this problem, as far as its results say whether they keep them."""
    theirs = history.problem
    if theirs.best_so_far or theirs.space.stages:  # which have no limits
        return history
    taken = {*theirs.space.parameters, *theirs.space.fidelities}
    taken |= set() if theirs.cost_unit == problem.cost_unit else {COST}
    metrics = [latest_metrics(trial) for trial in history.done]
    known = {
        name: limit
        for name, limit in problem.constraints.items()
        if name not in taken and (name == theirs.value or all(found.get(name) is not None for found in metrics))
    }
    return History(replace(theirs, constraints=known), history, events=history.events, version=history.version)


def _best_of(study: Session, problem: Problem, place: int) -> "EarlierBest | None":
    """The study's recommendation; None if it has none. What it did not tune is drawn."""
    from farthing.knowledge.portfolio import EarlierBest

    try:
        best = find_best(study)
    except NoResult:
        return None
    return EarlierBest(
        study.name, best.params, _with_drawn(best.params, problem, "learned", place), study.records.refresh()
    )


def _with_drawn(params: Params, problem: Problem, *key: str | int) -> Params:
    encoder = problem.space.encoder
    drawn = encoder.unit_values(Randomness(problem.seed).at(*key).random(encoder.dimension).tolist())
    return carried_over(params, problem.space, fill=drawn.__getitem__)


def _random_results(source: str, history: History) -> list[RandomResult]:
    """Results of the initial design; of a study that learnt itself, those that it was given, if it has no others."""
    drawn: list[Trial] = []
    for trial in history:
        if is_by_model(trial):
            break
        if is_drawn(trial, added=ADDED) and trial.state is State.DONE and trial.value is not None:
            drawn.append(trial)
    own = [RandomResult(source, history.reach(one), float(one.value or 0.0)) for one in drawn[:MOST_RANDOM]]
    return own or list(history.learned.random if history.learned else ())


def _costs(studies: Sequence[Session], problem: Problem) -> list[EarlierCost]:
    """Costs of runs from nothing, in today's unit; the same number of each study, spread over its trials."""
    same = [study for study in studies if study.records.problem.cost_unit == problem.cost_unit]
    each = max(1, MOST_COSTS // max(1, len(same)))
    found: list[EarlierCost] = []
    for study in same:
        history = study.records.refresh()
        paid = [one for one in history.done if one.resume_from is None and one.cost > 0.0]
        for trial in paid[:: -(-len(paid) // each) or 1]:
            params = _with_drawn(trial.params, problem, "costs", len(found))
            found.append(EarlierCost(params, history.reach(trial), trial.cost))
    return found[:MOST_COSTS]


# ------------------------------------------------------------
# Params of one space as params of another: what both have is kept, what only the new one has is filled in.


MISSING = object()
"""Stands for a value that the parameter cannot take; None may be an option."""


def in_common(one: Space, other: Space) -> list[str]:
    return [name for name in one.parameters if name in other.parameters]


def carried_over(params: Params, space: Space, *, fill: Callable[[str], Any]) -> Params:
    """The params in that space: values outside its bounds are moved to them, missing ones are filled in by name."""
    whole: dict[str, Any] = {}
    while missing := [name for name in space.active_names(whole) if name not in whole]:
        for name in missing:
            value = _moved(params[name], space.parameters[name]) if name in params else MISSING
            whole[name] = fill(name) if value is MISSING else value
    return space.check(whole)


def _moved(value: Any, parameter: Parameter) -> Any:
    """The nearest value that the parameter can take, if there is one."""
    if isinstance(parameter, Choice):
        return _option(value, parameter)
    number = as_float(value)
    if number is None:
        return MISSING
    within = min(max(number, parameter.low), parameter.high)
    return _on_grid(within, parameter)


def _on_grid(number: float, parameter: Float | Int) -> float | int:
    if isinstance(parameter, Float) and parameter.step is None:
        return float(number)
    step = parameter.step or 1
    return parameter.value_at(round((number - parameter.low) / step))


def _option(value: Any, parameter: Choice) -> Any:
    try:
        return parameter.check(value, name="option")
    except InvalidParams:
        return MISSING
