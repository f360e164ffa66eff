"""Creates a study, continues the one of that name, or extends its space."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

from farthing.costs import PricesGiven, ResourcePrices
from farthing.errors import InvalidArgument, InvalidParams, InvalidSpace, StudyExists, StudyMismatch
from farthing.fields import Number, Whole
from farthing.session.records import IS_EXTENDED
from farthing.session.strategy import is_at_hand
from farthing.space import Space
from farthing.storage import Storage, StudyRecord
from farthing.strategies import Strategy, strategy_from_json
from farthing.trials import History, Params, Problem, Trial
from farthing.trials.events import Extension
from farthing.trials.measurement import LARGEST_WHOLE
from farthing.validation import listed, refuse_non_mapping, refuse_unknown, shown


@contextmanager
def closed_on_error(opened: Storage, *, given: object) -> Iterator[None]:
    """Closes the storage if what follows fails, unless it was given open."""
    try:
        yield
    except BaseException:
        if opened is not given:
            opened.close()
        raise


def require_space(space: object) -> None:
    if not isinstance(space, Space):
        raise InvalidSpace(f"A study needs a space, got {shown(space)}. Write ft.Space({{'rate': ft.Float(0.1, 1)}}).")


def read_lease(lease: float, *, lost_retries: int) -> float:
    """The lease as a plain number, once both are checked."""
    check_retries(lost_retries, name="lost_retries")
    return float(Number(above=0.0).checked(lease, what="A lease, in seconds,", advice="60 suits most work."))


def unit_of_cost(given: str | None, prices: PricesGiven | None, *, cost: object) -> str:
    """The unit as given; by default seconds, or dollars where seconds have prices."""
    if prices is None:
        return "seconds" if given is None else given
    ResourcePrices(prices)
    if cost is not None or given == "seconds":
        what = "a declared cost" if cost is not None else "cost_unit='seconds'"
        raise InvalidArgument(
            f"Prices turn measured seconds into another unit of cost, got prices with {what}. "
            "Write prices={…}, cost_unit='dollars', and no cost=."
        )
    return "dollars" if given is None else given


def check_retries(retries: int, *, name: str) -> None:
    Whole(least=0, most=LARGEST_WHOLE).checked(retries, what=f"The number of {name}", advice="Use 0 for none.")


Create: TypeAlias = Callable[[Storage, StudyRecord], StudyRecord]
"""Stores a new study; raises `StudyExists` when the name is taken."""


def create_or_continue(
    storage: Storage, wanted: StudyRecord, *, seed: int | None, create: Create | None = None
) -> StudyRecord:
    try:
        return storage.create_study(wanted) if create is None else create(storage, wanted)
    except StudyExists:
        found = storage.load_study(wanted.name)
    expected = wanted.problem if seed is not None else replace(wanted.problem, seed=found.problem.seed)
    require_same_problem(_of_today(storage, found), replace(expected, space=_shaped(expected.space, found)))
    return found


def _of_today(storage: Storage, found: StudyRecord) -> StudyRecord:
    """The study with the space that it was extended to, if it was."""
    if not found.settings.get(IS_EXTENDED):
        return found
    return replace(found, problem=History(found.problem, events=storage.history(found.name).events).problem)


def require_same_problem(found: StudyRecord, expected: Problem) -> None:
    for aspect in ("space", "value", "minimize", "further", "constraints", "seed", "cost_unit", "measures_cost"):
        old, new = getattr(found.problem, aspect), getattr(expected, aspect)
        if aspect == "space" and new == old.tuned:
            continue
        if aspect == "space" and old != new:
            raise StudyMismatch(
                f"A study is continued with the space it has, got one for {found.name!r} in which "
                f"{differences(old, new)}. Let it grow with Study.load(…).extend(space, fill={{…}}), give the study "
                "another name=, or delete the old one."
            )
        if aspect == "minimize" and old != new:
            raise StudyMismatch(
                f"A study is continued in its direction, got {expected.direction} where {found.name!r} began with "
                f"{found.problem.direction}={found.problem.value!r}. Write that, or give the study another name=."
            )
        if aspect == "further" and old != new:
            raise StudyMismatch(
                f"A study is continued with the objectives it began with, got {_objectives(expected)} where "
                f"{found.name!r} has {_objectives(found.problem)}. Give the study another name=, or delete the old one."
            )
        if old != new:
            raise StudyMismatch(
                f"A study is continued with the {aspect} it began with, got {_shown(new)} where {found.name!r} has "
                f"{_shown(old)}. Give the study another name=, or delete the old one."
            )


def _shaped(space: Space, found: StudyRecord) -> Space:
    """The space with what the strategy it was begun with adds, where that is not given again."""
    if space == found.problem.space or found.strategy is None or not is_at_hand(found.strategy):
        return space
    return strategy_from_json(found.strategy).shaped(space)


def _objectives(problem: Problem) -> str:
    return ", ".join(f"{one.direction} {one.name!r}" for one in problem.objectives)


def _shown(thing: object) -> str:
    text = repr(thing)
    return text if len(text) <= 100 else text[:97] + "..."


# ------------------------------------------------------------
# Spaces that grow or have parameters retired, and how two spaces differ, in words.

MOST_DIFFERENCES = 4


def extension_of(history: History, space: Space, fill: Mapping[str, Any]) -> Extension:
    """The extension of the history's space to another one, once it is certain that every trial is possible there.

    Nothing may be refused after it: a study whose events cannot be read can never be opened again.
    """
    old = history.problem.space
    _check_kind(old, space)
    added = [name for name in space.parameters if name not in old.parameters]
    gone = [name for name in old.tuned.parameters if name not in space.parameters]
    refuse_non_mapping(fill, what="fill", error=InvalidParams)
    refuse_unknown(fill, [*added, *gone], what="What is filled in (new and retired parameters)", error=InvalidParams)
    after = _with_retired(old, space, {name: fill[name] for name in gone if name in fill})
    checked = {name: after.parameters[name].check(fill[name], name=name) for name in added if name in fill}
    replace(history.problem, space=after)  # refuses a parameter that is named like a value
    extension = Extension(old, after, checked, len(history))
    learned = history.learned
    for params in [one.params for known in (learned.starts, learned.costs) for one in known] if learned else ():
        _check_filled(extension, params)
    for trial in history:
        _check_trial(extension, trial)
    return extension


def refuse_retiring_for(strategy: Strategy, old: Space, new: Space) -> None:
    """Members of a population carry their params along, so a parameter cannot be retired while they train."""
    gone = [name for name in old.tuned.parameters if name not in new.parameters]
    if gone and strategy.needs_checkpoints:
        raise InvalidSpace(
            f"A population must keep every parameter, because its members train on with theirs, got a space without "
            f"{listed(gone)}. Keep them, or begin a study without them."
        )


def differences(old: Space, new: Space) -> str:
    """How the new space differs from the old one: 'dropout is new; lr is Float(0, 2) instead of Float(0, 1)'."""
    found = list(_differences(old, new)) or ["the order of its parts differs"]
    more = f"; and {len(found) - MOST_DIFFERENCES} more" if len(found) > MOST_DIFFERENCES else ""
    return "; ".join(found[:MOST_DIFFERENCES]) + more


def _differences(old: Space, new: Space) -> Iterator[str]:
    for before, after in ((old.parameters, new.parameters), (old.fidelities, new.fidelities)):
        yield from (f"{name} is new" for name in after if name not in before)
        yield from (f"{name} is missing" for name in before if name not in after)
        for name in before:
            if name in after and before[name] != after[name]:
                yield f"{name} is {after[name]!r} instead of {before[name]!r}"
    if dict(old.retired) != dict(new.retired):
        yield f"{listed(new.retired) or 'none'} is retired instead of {listed(old.retired) or 'none'}"
    if list(old.stages) != list(new.stages):
        yield f"the stages are {listed(new.stages) or 'none'} instead of {listed(old.stages) or 'none'}"


def _check_kind(old: Space, new: Space) -> None:
    if new in (old, old.tuned):
        raise InvalidSpace(
            "An extended space must differ from the old one, got the same. Add, widen or leave out a parameter."
        )
    if old.stages or new.stages:
        raise InvalidSpace(
            "A space in stages cannot be extended, because the outputs of its stages are kept under their params. "
            "Give the study another name=, and add() the results that still hold."
        )
    if dict(old.fidelities) != dict(new.fidelities):
        raise InvalidSpace(
            f"An extended space must have the same fidelities, got a space in which {differences(old, new)}. "
            "Give the study another name=, and add() the results that still hold."
        )


def _with_retired(old: Space, new: Space, values: Mapping[str, Any]) -> Space:
    """The new space with the parameters of the old one that it leaves out: they are retired, now or already."""
    gone = {name: parameter for name, parameter in old.parameters.items() if name not in new.parameters}
    retired = {name: {**old.retired, **values}[name] for name in gone if name in old.retired or name in values}
    for name in gone:
        if name not in retired:
            raise InvalidParams(
                f"A parameter that is retired must have a value for the trials to come, got none for {name!r}. "
                f"Give the one that the work uses from now on: fill={{{name!r}: …}}."
            )
    return Space({**new.parameters, **gone}, fidelities=new.fidelities, retired=retired) if gone else new


def _check_filled(extension: Extension, params: Params) -> None:
    for name in extension.after.active_names(params):
        if name not in params and name not in extension.fill:
            raise InvalidParams(
                f"A new parameter must have a value for the trials so far, got none for {name!r}. "
                f"Give the one that the work used until now: fill={{{name!r}: …}}."
            )


def _check_trial(extension: Extension, trial: Trial) -> None:
    _check_filled(extension, trial.params)
    try:
        extension.after.check(extension.filled(trial.params))
    except InvalidParams as error:
        raise InvalidSpace(
            f"Every trial so far must be possible in an extended space, got trial {trial.number}: {error}"
        ) from None
