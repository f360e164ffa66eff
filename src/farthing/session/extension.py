"""Spaces that grow or have parameters retired, and how two spaces differ, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Space
from farthing.strategies import Strategy
from farthing.trials import History, Trial
from farthing.trials.events import Extension
from farthing.validation import listed, refuse_non_mapping, refuse_unknown

MOST_DIFFERENCES = 4


def extension_of(history: History, space: Space, fill: Mapping[str, Any]) -> Extension:
    """The extension of the history's space to another one, once it is certain that every trial is possible there."""
    old = history.problem.space
    _check_kind(old, space)
    added = [name for name in space.parameters if name not in old.parameters]
    gone = [name for name in old.tuned.parameters if name not in space.parameters]
    refuse_non_mapping(fill, what="fill", error=InvalidParams)
    refuse_unknown(fill, [*added, *gone], what="What is filled in (new and retired parameters)", error=InvalidParams)
    after = _with_retired(old, space, {name: fill[name] for name in gone if name in fill})
    checked = {name: after.parameters[name].check(fill[name], name=name) for name in added if name in fill}
    extension = Extension(old, after, checked, len(history))
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


def _check_trial(extension: Extension, trial: Trial) -> None:
    missing = [name for name in extension.after.active_names(trial.params) if name not in trial.params]
    for name in missing:
        if name not in extension.fill:
            raise InvalidParams(
                f"A new parameter must have a value for the trials so far, got none for {name!r}. "
                f"Give the one that the work used until now: fill={{{name!r}: …}}."
            )
    try:
        extension.after.check(extension.filled(trial.params))
    except InvalidParams as error:
        raise InvalidSpace(
            f"Every trial so far must be possible in an extended space, got trial {trial.number}: {error}"
        ) from None
