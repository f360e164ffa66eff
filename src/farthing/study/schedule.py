"""The schedule that a run was trained by: which params were in force from which step on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from farthing.errors import InvalidArgument
from farthing.fields import Whole
from farthing.scalars import as_int
from farthing.trials import History, Json, Params, Problem, Trial
from farthing.validation import shown

Change = tuple[int, Params]
"""A number of steps, and the params that are in force once these are done."""

EXAMPLE = '{"changes": [[0, {"lr": 0.1}], [50, {"lr": 0.01}]], "steps": 100}'


@dataclass(frozen=True, repr=False)
class Schedule(Sequence[Change]):
    """`[(0, {"lr": 0.1}), (50, {"lr": 0.01})]`, with everything needed to train by it again.

    `steps` is its length; `fidelity` is the name of the steps, and `value` that of the value.
    """

    changes: tuple[Change, ...]
    steps: int
    fidelity: str = "steps"
    value: str = "value"

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", tuple(_change(change) for change in self.changes))
        Whole(least=1).checked(self.steps, what="The steps of a schedule", advice="Give steps=100.")
        starts = [start for start, _ in self.changes]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] >= self.steps:
            raise InvalidArgument(
                f"A schedule must begin at step 0, rise, and end after its last change, got changes at {starts} of "
                f"{self.steps} steps. Write {EXAMPLE}."
            )

    def at(self, step: int) -> Params:
        """The params that are in force once `step` steps are done."""
        return [params for start, params in self.changes if start <= max(0, step)][-1]

    @property
    def segments(self) -> list[tuple[int, int, Params]]:
        """From which step to which, with which params."""
        ends = [*(start for start, _ in self.changes[1:]), self.steps]
        return [(start, end, params) for (start, params), end in zip(self.changes, ends, strict=True)]

    @overload
    def __getitem__(self, index: int) -> Change: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Change]: ...
    def __getitem__(self, index: int | slice) -> Change | Sequence[Change]:
        return self.changes[index]

    def __len__(self) -> int:
        return len(self.changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __repr__(self) -> str:
        return repr(list(self.changes))

    def to_json(self) -> dict[str, Json]:
        changes = [[start, dict(params)] for start, params in self.changes]
        return {"changes": changes, "steps": self.steps, "fidelity": self.fidelity, "value": self.value}

    @classmethod
    def from_json(cls, form: Json) -> "Schedule":
        if not isinstance(form, Mapping) or not isinstance(form.get("changes"), Sequence):
            raise InvalidArgument(f"A schedule must have changes and steps, got {shown(form)}. Write {EXAMPLE}.")
        return cls(**{**form, "changes": tuple(form["changes"])})


def schedule_of(history: History, trial: Trial) -> Schedule | None:
    """How the run that ends with that trial was trained; None where that is not told in steps along one trace."""
    return schedule_along(history.problem, history.lineage(trial.number))


def schedule_along(problem: Problem, chain: Sequence[Trial]) -> Schedule | None:
    """How a run was trained that is this chain of trials, each of which carries on the one before."""
    traces = [name for name, fidelity in problem.space.fidelities.items() if fidelity.trace and fidelity.integer]
    if len(traces) != 1 or not all(traces[0] in link.fidelity for link in chain):
        return None
    ends = [int(link.fidelity[traces[0]]) for link in chain]
    starts = [0, *ends[:-1]]
    if any(end <= start for start, end in zip(starts, ends, strict=True)):
        return None
    changes: list[Change] = []
    for start, link in zip(starts, chain, strict=True):
        if not changes or changes[-1][1] != link.params:
            changes.append((start, dict(link.params)))
    return Schedule(tuple(changes), ends[-1], fidelity=traces[0], value=problem.value)


def _change(given: Any) -> Change:
    try:
        start, params = given
    except (TypeError, ValueError):
        start, params = None, None
    step = as_int(start)
    if step is None or not isinstance(params, Mapping):
        raise InvalidArgument(f"A change of a schedule must be a step and params, got {shown(given)}. Write {EXAMPLE}.")
    return step, dict(params)
