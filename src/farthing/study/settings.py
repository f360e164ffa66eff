"""The types of what studies and runs are told."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from farthing.costs import Clock, PricesGiven
from farthing.execution import Executor
from farthing.execution.ray import RayExecutor, Resources
from farthing.knowledge.earlier import LearnFrom
from farthing.storage import StorageLike
from farthing.strategies import Strategy
from farthing.study.tracking import Tracker
from farthing.trials import DeclaredCost, Trial

if TYPE_CHECKING:
    from farthing.study.study import Study

ExecutorName: TypeAlias = Literal["processes", "inline", "ray"]
ExecutorLike: TypeAlias = ExecutorName | RayExecutor | Executor
ExportFormat: TypeAlias = Literal["csv", "json"]
OnInterrupt: TypeAlias = Literal["raise", "return"]
Callback: TypeAlias = Callable[["Study", Trial], object]


class StudySettings(TypedDict, total=False):
    """The arguments of `Study` beside its space and its value."""

    strategy: Strategy | str | None
    storage: StorageLike | None
    name: str
    seed: int | None
    cost: DeclaredCost | None
    cost_unit: str | None
    folder: str | Path | None
    lease: float
    lost_retries: int
    clock: Clock | None
    noise: bool | None
    prices: PricesGiven | None
    learn_from: LearnFrom | None


class WorkSettings(TypedDict, total=False):
    """How work is carried out: the arguments that `Study.run` and `Study.verify` share, beside the budget."""

    workers: int
    executor: ExecutorLike
    time_limit: float | None
    retries: int | None
    devices: Sequence[str] | None
    resources: Resources | None
    progress: bool | None


class RunSettings(WorkSettings, total=False):
    """The arguments of `Study.run` beside the work and its budget."""

    callbacks: Iterable[Callback]
    trackers: Iterable[Tracker]
    on_interrupt: OnInterrupt
    keep_going: bool
    harmless_change: bool
    verify: bool


class Settings(StudySettings, RunSettings, total=False):
    """The arguments that `minimize` and `maximize` pass on."""
