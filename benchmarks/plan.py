"""Which runs a suite comes to, in the order in which they are made, and what has to be left out."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from benchmarks.method import Method
from benchmarks.methods import METHODS
from benchmarks.problems import PROBLEMS, Problem
from benchmarks.records import key_of
from benchmarks.suites import Contest, Suite


@dataclass(frozen=True)
class Run:
    """One method on one problem with one seed."""

    contest: Contest
    problem: Problem
    method: Method
    seed: int

    @property
    def title(self) -> str:
        return f"{self.problem.name} · {self.method.name} · seed {self.seed}"

    @property
    def identity(self) -> dict[str, Any]:
        """What tells its result from any other."""
        return {
            "problem": self.problem.name,
            "method": self.method.name,
            "seed": self.seed,
            "settings": {"method": dict(self.method.settings), "allowance": self.contest.allowance.to_json()},
        }


@dataclass(frozen=True)
class Plan:
    """The runs, and for each reason what is left out because of it."""

    suite: Suite
    runs: tuple[Run, ...]
    left_out: dict[str, tuple[str, ...]]

    def left_out_lines(self) -> list[str]:
        return [f"left out: {', '.join(names)}: {reason}" for reason, names in self.left_out.items()]


def make_plan(suite: Suite, *, seeds: int, problems: Sequence[str] = (), methods: Sequence[str] = ()) -> Plan:
    """Everything in the suite that the patterns name (all of it without patterns) and that can be run here.

    What several contests share is one run, at its first place.
    """
    contests = [
        (contest, _chosen(contest.problems, problems), _chosen(contest.methods, methods)) for contest in suite.contests
    ]
    wanted: list[Problem | Method] = [
        *(PROBLEMS[name] for _, named, other in contests if other for name in named),
        *(METHODS[name] for _, other, named in contests if other for name in named),
    ]
    left_out = _missing(wanted)
    absent = {name for names in left_out.values() for name in names}
    runs = [
        run
        for contest, *names in contests
        for run in _interleaved(contest, *names, first_seed=suite.first_seed, seeds=seeds)
    ]
    possible: dict[str, Run] = {}
    for run in runs:
        if run.problem.name not in absent and run.method.name not in absent:
            possible.setdefault(key_of(run.identity), run)
    return Plan(suite, tuple(possible.values()), left_out)


def _interleaved(
    contest: Contest, problems: Iterable[str], methods: Sequence[str], *, first_seed: int, seeds: int
) -> Iterator[Run]:
    """For each problem and seed all methods, one after another, so that none has a quieter machine than the others."""
    for problem in problems:
        for seed in range(seeds):
            for method in methods:
                if seed < contest.most_seeds.get(method, seeds):
                    yield Run(contest, PROBLEMS[problem], METHODS[method], first_seed + seed)


def _chosen(names: Sequence[str], patterns: Sequence[str]) -> list[str]:
    return [name for name in names if matches(name, patterns)]


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns names it; without patterns everything is named."""
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _missing(wanted: Iterable[Problem | Method]) -> dict[str, tuple[str, ...]]:
    """Reasons, each with what it keeps out, in the order in which they were wanted."""
    by_reason: dict[str, dict[str, None]] = {}
    for thing in wanted:
        if reason := thing.missing():
            by_reason.setdefault(reason, {})[thing.name] = None
    return {reason: tuple(names) for reason, names in by_reason.items()}
