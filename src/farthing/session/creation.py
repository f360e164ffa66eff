"""Creates a study, or continues the one of that name."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from farthing.costs import PricesGiven, ResourcePrices
from farthing.errors import InvalidArgument, InvalidSpace, StudyExists, StudyMismatch
from farthing.fields import Number, Whole
from farthing.session.extension import differences
from farthing.session.records import IS_EXTENDED
from farthing.session.strategy import is_at_hand
from farthing.space import Space
from farthing.storage import Storage, StudyRecord
from farthing.strategies import strategy_from_json
from farthing.trials import History, Problem
from farthing.trials.measurement import LARGEST_WHOLE
from farthing.validation import shown


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


def check_leases(lease: float, *, lost_retries: int) -> None:
    Number(above=0.0).checked(lease, what="A lease, in seconds,", advice="60 suits most work.")
    check_retries(lost_retries, name="lost_retries")


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
