"""A whole study in one line."""

from typing import Any, Unpack, cast

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.execution import Work
from farthing.space import Space
from farthing.study.settings import RunSettings, Settings, StudySettings
from farthing.study.study import Study
from farthing.validation import refuse_unknown


def minimize(
    work: Work, space: Space, *, budget: Budget | None = None, value: str = "value", **settings: Unpack[Settings]
) -> Study:
    """Runs a whole study in one line and returns it; `settings` go to `Study` and to `Study.run`."""
    of_study, of_run = _split(settings)
    return _run_whole(Study(space, minimize=value, **of_study), work, budget, of_run)


def maximize(
    work: Work, space: Space, *, budget: Budget | None = None, value: str = "value", **settings: Unpack[Settings]
) -> Study:
    """Like `minimize`, for a value that should be large."""
    of_study, of_run = _split(settings)
    return _run_whole(Study(space, maximize=value, **of_study), work, budget, of_run)


def _split(settings: Settings) -> tuple[StudySettings, RunSettings]:
    refuse_unknown(settings, list(Settings.__annotations__), what="Settings", error=InvalidArgument)
    given = cast(dict[str, Any], settings)
    of_study, of_run = (
        {name: value for name, value in given.items() if name in known.__annotations__}
        for known in (StudySettings, RunSettings)
    )
    return cast(StudySettings, of_study), cast(RunSettings, of_run)


def _run_whole(study: Study, work: Work, budget: Budget | None, settings: RunSettings) -> Study:
    study.run(work, budget=budget, **settings)
    return study
