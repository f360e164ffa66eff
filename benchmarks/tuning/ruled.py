"""One study of one problem under one rule: what the programs that compare rules make again and again."""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


ProblemT = TypeVar("ProblemT", bound=Named)


@dataclass(frozen=True)
class Ruled(Generic[ProblemT]):
    suite: str
    rule: str
    problem: ProblemT
    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        return {
            "suite": self.suite,
            "problem": self.problem.name,
            "method": self.rule,
            "seed": self.seed,
            "settings": {},
        }

    @property
    def title(self) -> str:
        return f"{self.rule}: {self.problem.name}, seed {self.seed}"
