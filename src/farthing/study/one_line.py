"""A whole study in one line."""

import inspect
from typing import Any

from farthing.costs import Budget
from farthing.errors import InvalidArgument
from farthing.space import Space
from farthing.study.study import Study, Work
from farthing.validation import refuse_unknown


def minimize(work: Work, space: Space, *, budget: Budget | None = None, value: str = "value", **settings: Any) -> Study:
    """Runs a whole study in one line and returns it; `settings` go to `Study` and to `Study.run`."""
    return _run_whole(work, space, budget, {"minimize": value}, settings)


def maximize(work: Work, space: Space, *, budget: Budget | None = None, value: str = "value", **settings: Any) -> Study:
    """Like `minimize`, for a value that should be large."""
    return _run_whole(work, space, budget, {"maximize": value}, settings)


def _run_whole(work: Work, space: Space, budget: Budget | None, aim: dict[str, Any], settings: dict[str, Any]) -> Study:
    of_study, of_run = (inspect.signature(method).parameters.keys() for method in (Study, Study.run))
    refuse_unknown(settings, [*of_study, *of_run], what="Settings", error=InvalidArgument)
    for_run = settings.keys() & of_run
    study = Study(space, **aim, **{name: value for name, value in settings.items() if name not in for_run})
    study.run(work, budget=budget, **{name: settings[name] for name in for_run})
    return study
