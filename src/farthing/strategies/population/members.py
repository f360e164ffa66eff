"""A history read as a population: which trial is which member's, and how far each has come."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from farthing.trials import History, State, Trial, noted


@dataclass(frozen=True)
class Place:
    """The place of a trial in its population: its member, its interval, and the number of repeats."""

    member: int
    interval: int
    repeat: int = 0


def place_of(trial: Trial) -> Place | None:
    """The place that a strategy of this family noted on the trial; None for other trials."""
    note = noted(trial.note)
    if not isinstance(note.get("member"), int):
        return None
    return Place(note["member"], int(note["interval"]), int(note.get("repeat", 0)))


@dataclass(frozen=True)
class Members:
    """The trials of a population of `size`, by member and by interval."""

    history: History
    size: int

    @cached_property
    def trials(self) -> dict[int, list[Trial]]:
        """Every member's trials in the order of their intervals; members that have not begun have none."""
        found: dict[int, list[Trial]] = {member: [] for member in range(self.size)}
        for trial in self.history:
            place = place_of(trial)
            if place is not None and place.member in found:
                found[place.member].append(trial)
        return found

    @cached_property
    def begun(self) -> list[int]:
        """Members with a trial."""
        return [member for member, own in self.trials.items() if own]

    @cached_property
    def latest(self) -> dict[int, Trial]:
        """The last trial of each member that has begun."""
        return {member: self.trials[member][-1] for member in self.begun}

    @cached_property
    def successes(self) -> dict[int, dict[int, Trial]]:
        """For each interval the trials that are done, by member."""
        found: dict[int, dict[int, Trial]] = {}
        for member, own in self.trials.items():
            for trial in own:
                if is_success(trial):
                    found.setdefault(interval_of(trial), {})[member] = trial
        return found

    @property
    def frontier(self) -> tuple[int, int]:
        """The last interval that any member has begun, and its last repeat."""
        places = [(interval_of(trial), repeat_of(trial)) for trial in self.latest.values()]
        return max(places, default=(0, 0))

    def generation(self, interval: int, repeat: int = 0) -> dict[int, Trial]:
        """The trials of one interval, by member."""
        return {
            member: trial
            for member, own in self.trials.items()
            for trial in own
            if (interval_of(trial), repeat_of(trial)) == (interval, repeat)
        }

    def last_success(self, member: int) -> Trial | None:
        return next((trial for trial in reversed(self.trials[member]) if is_success(trial)), None)

    def best(self, trials: Iterable[Trial]) -> Trial:
        """The trial with the least loss, the first of equals."""
        return min(trials, key=lambda trial: (self.loss(trial), trial.number))

    def ranked(self, trials: Mapping[int, Trial]) -> list[int]:
        """The members, the best first."""
        return sorted(trials, key=lambda member: (self.loss(trials[member]), member))

    def loss(self, trial: Trial | None) -> float:
        """The loss to minimise; ∞ for a trial without a result."""
        if trial is None or not is_success(trial) or trial.value is None:
            return math.inf
        return self.history.loss(trial.value)


@lru_cache(maxsize=2)
def members_of(history: History, size: int) -> Members:
    """The population in a history, which is read once for all that is asked of it."""
    return Members(history, size)


def is_success(trial: Trial) -> bool:
    """Whether the trial reached the end of its interval and has a value there."""
    return trial.state is State.DONE and trial.value is not None


def interval_of(trial: Trial) -> int:
    place = place_of(trial)
    assert place is not None, "only trials of a population have an interval"
    return place.interval


def repeat_of(trial: Trial) -> int:
    place = place_of(trial)
    assert place is not None, "only trials of a population have an interval"
    return place.repeat
