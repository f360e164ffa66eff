"""Spaces that grow, and how two spaces differ, in words."""

from collections.abc import Iterator, Mapping
from typing import Any

from farthing.errors import InvalidParams, InvalidSpace
from farthing.space import Space
from farthing.trials import History, Trial
from farthing.trials.extension import Extension
from farthing.validation import listed, refuse_non_mapping, refuse_unknown

MOST_DIFFERENCES = 4


def extension_of(history: History, space: Space, fill: Mapping[str, Any]) -> Extension:
    """The extension of the history's space to another one, once it is certain that every trial is possible there."""
    old = history.problem.space
    _check_kind(old, space)
    added = [name for name in space.parameters if name not in old.parameters]
    refuse_non_mapping(fill, what="fill", error=InvalidParams)
    refuse_unknown(fill, added, what="What is filled in (new parameters)", error=InvalidParams)
    checked = {name: space.parameters[name].check(value, name=name) for name, value in fill.items()}
    extension = Extension(old, space, checked, len(history))
    for trial in history:
        _check_trial(extension, trial)
    return extension


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
    if list(old.stages) != list(new.stages):
        yield f"the stages are {listed(new.stages) or 'none'} instead of {listed(old.stages) or 'none'}"


def _check_kind(old: Space, new: Space) -> None:
    if old == new:
        raise InvalidSpace("An extended space must differ from the old one, got the same. Add or widen a parameter.")
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
    gone = [name for name in old.parameters if name not in new.parameters]
    if gone:
        raise InvalidSpace(
            f"An extended space must keep every parameter, got one without {listed(gone)}. Keep them; to try no other "
            "value of one, begin a study without it and add() the results that still hold."
        )


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
