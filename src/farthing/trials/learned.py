"""Knowledge from earlier studies, frozen as an event in the history of a study, so that replay needs no other."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from farthing.scalars import with_tuples
from farthing.trials.suggestion import Json, Params

if TYPE_CHECKING:
    from farthing.trials.history import Event

LEARNED = "learned from earlier studies"
"""The kind of event; its payload is a `Learned`. Of several, which two processes may log at once, the first counts."""


@dataclass(frozen=True)
class LearnedStart:
    """The best configuration of an earlier study, as one of today's space."""

    params: Params
    source: str


@dataclass(frozen=True)
class RandomResult:
    """The value that a configuration of an earlier study's initial design had, and its share of the full fidelity."""

    source: str
    reach: float
    value: float


@dataclass(frozen=True)
class EarlierCost:
    """The cost of a run of an earlier study from nothing to that share of the full fidelity."""

    params: Params
    reach: float
    cost: float


@dataclass(frozen=True)
class Learned:
    """`starts` are in the order in which they are tried; `sources` names every study that was learnt from."""

    sources: tuple[str, ...]
    starts: tuple[LearnedStart, ...] = ()
    random: tuple[RandomResult, ...] = ()
    costs: tuple[EarlierCost, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {
            "sources": list(self.sources),
            "starts": [asdict(one) for one in self.starts],
            "random": [asdict(one) for one in self.random],
            "costs": [asdict(one) for one in self.costs],
        }

    @classmethod
    def from_json(cls, form: Mapping[str, Any]) -> "Learned":
        return cls(
            tuple(form["sources"]),
            tuple(LearnedStart(with_tuples(one["params"]), one["source"]) for one in form["starts"]),
            tuple(RandomResult(**one) for one in form["random"]),
            tuple(EarlierCost(with_tuples(one["params"]), one["reach"], one["cost"]) for one in form["costs"]),
        )

    def filled(self, fill: Callable[[Params], Params]) -> "Learned":
        """The same in a space that has grown."""
        return replace(
            self,
            starts=tuple(replace(one, params=fill(one.params)) for one in self.starts),
            costs=tuple(replace(one, params=fill(one.params)) for one in self.costs),
        )

    def summary(self) -> str:
        """`3 starts from digits-may, digits-june`"""
        count = len(self.starts)
        names = dict.fromkeys(start.source for start in self.starts) or self.sources
        return f"{count} start{'' if count == 1 else 's'} from {', '.join(names)}"


def learned_of(events: "Iterable[Event]") -> Learned | None:
    payload = next((event.payload for event in events if event.kind == LEARNED), None)
    return None if payload is None else Learned.from_json(payload)


def random_by_source(results: Sequence[RandomResult]) -> dict[str, list[RandomResult]]:
    found: dict[str, list[RandomResult]] = {}
    for result in results:
        found.setdefault(result.source, []).append(result)
    return found
