"""Trials of code that is gone: the stages of a pipeline changed while its study went on."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from farthing.trials.suggestion import Json
from farthing.trials.trial import Trial

if TYPE_CHECKING:
    from farthing.trials.history import Event

CHANGED = "code of stages changed"
"""The kind of event that says so; its payload has the versions `before` and `after`, and whether it was `harmless`."""


def change(before: Mapping[str, str], after: Mapping[str, str], *, harmless: bool) -> dict[str, Json]:
    return {"before": dict(before), "after": dict(after), "harmless": harmless}


@dataclass(frozen=True)
class CodeChanges:
    """The changes of a history. Code that was changed back counts again, and so do its trials."""

    times: tuple[float, ...] = ()
    versions: tuple[str, ...] = ()
    """The version before the first change, and after each."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """For each version one that stands for all that give the same values."""

    @classmethod
    def of(cls, events: "Iterable[Event]") -> "CodeChanges":
        changes = [event for event in events if event.kind == CHANGED]
        if not changes:
            return cls()
        keys = [(_key(event.payload["before"]), _key(event.payload["after"])) for event in changes]
        groups = {key: key for pair in keys for key in pair}
        for (before, after), event in zip(keys, changes, strict=True):
            if event.payload["harmless"]:
                old, new = groups[before], groups[after]
                groups = {key: new if group == old else group for key, group in groups.items()}
        return cls(tuple(event.time for event in changes), (keys[0][0], *(after for _, after in keys)), groups)

    def is_outdated(self, trial: Trial) -> bool:
        """Whether the trial ended under code that gives other values than that of today."""
        if not self.times or trial.finished_at is None:
            return False
        then = sum(time <= trial.finished_at for time in self.times)
        return self.groups[self.versions[then]] != self.groups[self.versions[-1]]


def _key(versions: Mapping[str, str]) -> str:
    return json.dumps(versions, sort_keys=True)
