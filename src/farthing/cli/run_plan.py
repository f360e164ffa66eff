"""How a study is run: what `farthing run` stores with it and `farthing resume` reads."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from farthing.cli.file_work import FileWork, declared_cost, make_importable
from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.fields import Declaration, positive, whole
from farthing.session import session_of
from farthing.session.strategy import name_of
from farthing.study import Study
from farthing.trials import DeclaredCost, Json

SETTING = "run"
"""Under this name the plan stands in a study's settings."""


@dataclass(frozen=True)
class RunPlan(Declaration):
    """`limits` are those of the budget; a study file may leave them to the command line. `cost` names a declared cost,
    as `train.py:cost`; `resources` is what a trial holds, in a study with prices; `trackers` are tables of a
    study file.
    """

    work: FileWork
    limits: Mapping[str, Any]
    workers: int = whole(1, least=1)
    time_limit: float | None = positive(None)
    retries: int | None = whole(None, least=0)
    cost: str | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    trackers: Sequence[Mapping[str, Any]] = ()

    @property
    def budget(self) -> Budget | None:
        return Budget(**self.limits) if self.limits else None

    def overridden(self, *, workers: int | None, limits: Mapping[str, Any], has_end: bool) -> "RunPlan":
        """This plan with what the command line says instead; `has_end` says that it may do without a budget."""
        plan = replace(self, workers=workers or self.workers, limits={**self.limits, **limits})
        if plan.budget is None and not has_end:
            raise InvalidArgument(
                "A run needs a budget, got none. Add a table [budget] with seconds = 600 to the study file, or give "
                "--seconds, --cost or --trials."
            )
        return replace(plan, limits=plan.budget.to_json() if plan.budget else {})

    def to_json(self) -> dict[str, Json]:
        plain: dict[str, Json] = {
            "limits": dict(self.limits),
            "resources": dict(self.resources),
            "trackers": [dict(table) for table in self.trackers],
        }
        return asdict(self) | {"work": self.work.to_json(), **plain}

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "RunPlan":
        return cls(**{**form, "work": FileWork.from_json(form["work"])})


def stored_cost(settings: Mapping[str, Json]) -> DeclaredCost | None:
    """The declared cost that the study's plan names, if any: imported from beside the study file."""
    form = settings.get(SETTING)
    plan = None if form is None else RunPlan.from_json(form)
    return None if plan is None or plan.cost is None else declared_cost(plan.cost, folder=plan.work.folder)


def import_strategy(study: Study) -> None:
    """Imports a strategy of the user's own, which may stand beside the study file, and says what is imported."""
    session = session_of(study)
    if SETTING in session.settings:
        make_importable(RunPlan.from_json(session.settings[SETTING]).work.folder)
    if not session.strategy.is_at_hand:
        name = name_of(session.strategy.to_json())
        click.echo(f"Importing {name}, which {study.name} names as its strategy.", err=True)
        session.strategy.imported()


def stored_plan(study: Study, *, work: str | None = None, command: str | None = None) -> RunPlan:
    """How the study was run last, with the budget in force; and with the work that is named now, if any, which is
    looked up in this folder.
    """
    form = session_of(study).settings.get(SETTING)
    plan = None if form is None else _with_budget(RunPlan.from_json(form), study.budget)
    if work is not None or command is not None:
        named = FileWork(Path.cwd(), python=work, command=command)
        return _with_budget(RunPlan(named, {}), study.budget) if plan is None else replace(plan, work=named)
    if plan is None:
        raise InvalidArgument(
            f"A study that a Python program began needs its work by name, got none for {study.name!r}. Name it: "
            "--work train.py:train, or --command; or start that program again."
        )
    return plan


def _with_budget(plan: RunPlan, budget: Budget | None) -> RunPlan:
    """Older versions kept the limits in the plan only."""
    return plan if budget is None else replace(plan, limits=budget.to_json())


def store_plan(study: Study, plan: RunPlan) -> None:
    session_of(study).remember(**{SETTING: plan.to_json()})
