"""A study as one program holds it: its record in a storage, its strategy and its files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from farthing.costs import Clock, PricesGiven, SystemClock, as_clock
from farthing.fields import Flag
from farthing.session.creation import (
    Create,
    closed_on_error,
    create_or_continue,
    read_lease,
    require_space,
    unit_of_cost,
)
from farthing.session.folder import StudyFiles, chosen_folder, folder_path, mark_for, new_identity
from farthing.session.records import PRICES, Records
from farthing.session.strategy import ChosenStrategy, require_suited
from farthing.space import Space
from farthing.storage import Storage, StorageLike, StudyRecord, open_storage
from farthing.strategies import Strategy, as_strategy
from farthing.trials import DeclaredCost, Json, Problem
from farthing.trials.objectives import Limit, Names, objectives_given, read_constraints

DECLARES_COST = "declares cost"
"""The setting of a study whose cost is a function that the user gave."""


class Session:
    """The parts of a user's study that the rooms of Farthing share; `session_of(study)` returns it.

    `given` is what the user gave for its storage: one that was given open is left open at the end.
    """

    def __init__(
        self,
        storage: Storage,
        record: StudyRecord,
        *,
        given: StorageLike | None,
        strategy: Strategy | str | None,
        cost: DeclaredCost | None,
        lease: float,
        lost_retries: int,
        folder: Path | str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name = record.name
        self.clock = SystemClock() if clock is None else clock
        self.strategy = ChosenStrategy(strategy, record)
        known = replace(record, problem=replace(record.problem, declared_cost=cost))
        self.records = Records(
            storage, known, lease=lease, retries=lost_retries, closes_storage=storage is not given, clock=self.clock
        )
        self.files = StudyFiles(self.records, mark_for(record), place=folder)

    @classmethod
    def created(
        cls,
        space: Space,
        *,
        minimize: Names,
        maximize: Names,
        constraints: Mapping[str, Limit] | None,
        strategy: Strategy | str | None,
        storage: StorageLike | None,
        name: str,
        seed: int | None,
        cost: DeclaredCost | None,
        cost_unit: str | None,
        folder: str | Path | None = None,
        lease: float = 60.0,
        lost_retries: int = 3,
        clock: Clock | None = None,
        noise: bool | None = None,
        prices: PricesGiven | None = None,
        create: Create | None = None,
    ) -> "Session":
        """Of a new study, or of the one of that name, once it is certain that it is the same.

        `create` stores a new one in another way than the storage does by itself.
        """
        require_space(space)
        unit = unit_of_cost(cost_unit, prices, cost=cost)
        lease = read_lease(lease, lost_retries=lost_retries)
        clock, own_folder = as_clock(clock), folder_path(folder)
        if noise is not None:
            Flag().checked(noise, what="noise=", advice="Write noise=False where equal params give equal values.")
        strategy = None if strategy is None else as_strategy(strategy)
        first, *further = objectives_given(minimize, maximize)
        problem = Problem(
            space if strategy is None else strategy.shaped(space),
            value=first.name,
            minimize=first.minimize,
            seed=0 if seed is None else seed,
            cost_unit=unit,
            measures_cost=cost is None and (unit == "seconds" or prices is not None),
            declared_cost=cost,
            further=tuple(further),
            constraints=read_constraints(constraints),
        )
        require_suited(strategy, problem)
        place = open_storage(storage, patience=lease)
        with closed_on_error(place, given=storage):
            settings = new_identity() | chosen_folder(own_folder, name, storage=place)
            settings |= {} if cost is None else {DECLARES_COST: True}
            settings |= {} if prices is None else {PRICES: dict(prices)}
            form = None if strategy is None else strategy.to_json()
            record = create_or_continue(place, StudyRecord(name, problem, form, settings), seed=seed, create=create)
        session = cls(
            place,
            record,
            given=storage,
            strategy=strategy,
            cost=cost,
            folder=own_folder,
            lease=lease,
            lost_retries=lost_retries,
            clock=clock,
        )
        if noise is not None:
            session.records.declare_noise(noise)
        if prices is not None and session.settings.get(PRICES) != dict(prices):
            session.remember(**{PRICES: dict(prices)})
            session.records.hold(None, must_cost=False)
        return session

    @classmethod
    def loaded(
        cls,
        name: str,
        storage: StorageLike,
        *,
        strategy: Strategy | str | None = None,
        cost: DeclaredCost | None = None,
        lease: float = 60.0,
        lost_retries: int = 3,
    ) -> "Session":
        """Of the study of that name, as it was stored."""
        lease = read_lease(lease, lost_retries=lost_retries)
        place = open_storage(storage, patience=lease)
        with closed_on_error(place, given=storage):
            record = place.load_study(name)
        return cls(place, record, given=storage, strategy=strategy, cost=cost, lease=lease, lost_retries=lost_retries)

    @property
    def settings(self) -> Mapping[str, Json]:
        """The settings stored beside the problem, by whoever needs them again at a resume."""
        return self.records.settings

    def remember(self, **settings: Json) -> None:
        self.records.remember(settings)

    @property
    def lacks_declared_cost(self) -> bool:
        """Whether this process was not given the declared cost that the study has: what it suggested would be free."""
        problem = self.records.problem
        is_certain = problem.cost_unit == "seconds" and not problem.measures_cost  # an older version noted no more
        return (is_certain or bool(self.settings.get(DECLARES_COST))) and problem.declared_cost is None


class HasSession(Protocol):
    """A study: it speaks for its session, which is no part of what users see."""

    _session: Session


def session_of(study: HasSession) -> Session:
    return study._session


def session_if_any(thing: object) -> Session | None:
    """The session of a study; None for anything else."""
    found = getattr(thing, "_session", None)
    return found if isinstance(found, Session) else None
