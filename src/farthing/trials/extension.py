"""A space that grew while its study went on: an event in the history."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from farthing.errors import StorageError
from farthing.space import Space
from farthing.trials.suggestion import Json, Params
from farthing.trials.trial import Trial
from farthing.validation import shown

if TYPE_CHECKING:
    from farthing.trials.history import Event

EXTENDED = "space extended"
"""The kind of event that says so; its payload is an `Extension`."""


@dataclass(frozen=True)
class Extension:
    """From `before` to `after`, once there were that many `trials`.

    `fill` has the values that trials of the old space had, without saying so, of the new parameters.
    """

    before: Space
    after: Space
    fill: Mapping[str, Any]
    trials: int

    def to_json(self) -> dict[str, Json]:
        return {
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "fill": dict(self.fill),
            "trials": self.trials,
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Extension":
        before, after = Space.from_json(form["before"]), Space.from_json(form["after"])
        return cls(before, after, form["fill"], form["trials"])

    def filled(self, params: Params) -> Params:
        """The params in the new space: parameters that are active there and have no value get theirs."""
        absent = [name for name in self.after.active_names(params) if name not in params]
        if unknown := [name for name in absent if name not in self.fill]:
            raise StorageError(
                f"A stored trial must have a value of {unknown[0]!r}, got {shown(dict(params))}. "
                "Restore the database from a copy."
            )
        missing = {name: self.fill[name] for name in absent}
        return {name: {**params, **missing}[name] for name in self.after.parameters if name in {**params, **missing}}


def extensions_of(events: "Iterable[Event]") -> tuple[Extension, ...]:
    """In the order in which they happened."""
    return tuple(Extension.from_json(event.payload) for event in events if event.kind == EXTENDED)


def filled(trial: Trial, extensions: Sequence[Extension]) -> Trial:
    """The trial as one of the space of today; a trial that has all its params is returned as it is."""
    params = trial.params
    for extension in extensions:
        if any(name not in params for name in extension.after.active_names(params)):
            params = extension.filled(params)
    return trial if params is trial.params else replace(trial, suggestion=replace(trial.suggestion, params=params))


def as_suggested(trial: Trial, space: Space) -> Trial:
    """The trial as one of the space that it was suggested in."""
    params = {name: value for name, value in trial.params.items() if name in space.parameters}
    return replace(trial, suggestion=replace(trial.suggestion, params=params))
