"""Lineage: the trials of each member, and the donor of each copy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from farthing.trials import History, Trial


@dataclass(frozen=True)
class Copy:
    """A member that became a copy of another: `trial` is the first it trained as such, from `source`."""

    member: int
    donor: int
    trial: Trial
    source: Trial


@dataclass(frozen=True, repr=False)
class Lineage:
    """The trials of a study by member, the oldest first, and who was copied.

    A member is what the strategy numbered so, and without such numbers a run: a trial and those that carry it on.
    """

    history: History
    members: dict[int, tuple[Trial, ...]]

    @classmethod
    def of(cls, history: History) -> "Lineage":
        members: dict[int, list[Trial]] = {}
        place: dict[int, int] = {}
        for trial in history:
            if trial.member is not None:
                place[trial.number] = trial.member
            elif trial.resume_from is None or members[place[trial.resume_from]][-1].number != trial.resume_from:
                place[trial.number] = len(members)
            else:
                place[trial.number] = place[trial.resume_from]
            members.setdefault(place[trial.number], []).append(trial)
        return cls(history, {member: tuple(members[member]) for member in sorted(members)})

    def __len__(self) -> int:
        return len(self.members)

    def __getitem__(self, member: int) -> Sequence[Trial]:
        return self.members[member]

    def __repr__(self) -> str:
        return f"Lineage({len(self)} members, {len(self.copies)} copies)"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    @cached_property
    def is_population(self) -> bool:
        """Whether a strategy numbered the members."""
        return any(trial.member is not None for trial in self.history)

    def member_of(self, trial: Trial) -> int:
        return self._places[trial.number]

    @cached_property
    def copies(self) -> tuple[Copy, ...]:
        """In the order in which they were made."""
        found = []
        for trial in self.history:
            if trial.resume_from is None:
                continue
            source = self.history[trial.resume_from]
            if self.member_of(source) != self.member_of(trial):
                found.append(Copy(self.member_of(trial), self.member_of(source), trial, source))
        return tuple(found)

    def run_of(self, trial: Trial) -> list[Trial]:
        """The chain of trials that ends with this one, through every member that it was copied from."""
        return self.history.lineage(trial.number)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {trial.number: member for member, own in self.members.items() for trial in own}

    def _lines(self) -> list[str]:
        copied = {copy.trial.number: copy.donor for copy in self.copies}
        width = len(str(max(self.members, default=0)))
        lines = []
        for member, own in self.members.items():
            parts = [f"{trial.number}{_source(copied.get(trial.number))}" for trial in own]
            lines.append(f"member {member:>{width}}: trials {' '.join(parts)}")
        return lines


def _source(donor: int | None) -> str:
    return "" if donor is None else f"(copy of {donor})"
