"""The arithmetic of a comparison: spreads, paired wins and average ranks. Small scores are good."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

from benchmarks.problems.problem import Span
from benchmarks.spread import Spread

Pair: TypeAlias = tuple[str, int]
"""A problem and a seed: what methods are compared on."""

Scores: TypeAlias = Mapping[Pair, Mapping[str, float]]
"""For each pair the score of each method; infinity where it had nothing to recommend yet."""


class Wins(NamedTuple):
    """How often one method was better than another on the same problem and seed, as good, and worse."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return f"{self.wins}–{self.ties}–{self.losses}"


@dataclass(frozen=True)
class Judgement:
    """How methods compare at a given cost; average ranks and means are over `pairs`, a problem and a seed each.

    There are means of normalised regret only, over all problems and over each family of them.
    """

    at: float
    methods: tuple[str, ...]
    spreads: Mapping[str, Mapping[str, Spread]]
    average_rank: Mapping[str, float]
    pairs: int
    wins: Mapping[tuple[str, str], Wins]
    means: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "at": self.at,
            "regret": {
                problem: {method: spread.to_json() for method, spread in by_method.items()}
                for problem, by_method in self.spreads.items()
            },
            "average_rank": dict(self.average_rank),
            "pairs": self.pairs,
            "mean": {family: dict(by_method) for family, by_method in self.means.items()},
            "wins_ties_losses": {f"{one} against {other}": list(wins) for (one, other), wins in self.wins.items()},
        }


def judge(
    records: Iterable[Mapping[str, Any]], methods: Sequence[str], *, at: float, normalised: bool = False
) -> Judgement:
    scores = scores_at(records, at)
    return Judgement(
        at,
        tuple(methods),
        spreads=spreads(scores),
        average_rank=average_ranks(scores, methods),
        pairs=len(complete_pairs(scores, methods)),
        wins=paired_wins(scores, methods),
        means=mean_scores(scores, methods) if normalised else {},
    )


def scores_at(records: Iterable[Mapping[str, Any]], spent: float) -> dict[Pair, dict[str, float]]:
    """The scores at that cost. Of several records of one run the last counts."""
    scores: dict[Pair, dict[str, float]] = {}
    for record in records:
        scores.setdefault((record["problem"], record["seed"]), {})[record["method"]] = score_at(record, spent)
    return scores


def score_at(record: Mapping[str, Any], spent: float) -> float:
    """The regret of the recommendation at that cost: normalised where the record says by what, and the
    loss where the best is not known."""
    reached = [step for step in record["steps"] if step["spent"] <= spent * (1 + 1e-9)]
    if not reached:
        return math.inf
    if record.get("span"):
        return Span(**record["span"]).normalised(reached[-1]["loss"])
    return float(reached[-1]["loss"] if reached[-1]["regret"] is None else reached[-1]["regret"])


def in_mean_runs(records: Sequence[Mapping[str, Any]], mean_costs: Mapping[str, float]) -> list[dict[str, Any]]:
    """The same records with what was spent counted in mean full runs of their problem, whatever the allowance was."""

    def converted(step: Mapping[str, Any], problem: str) -> dict[str, Any]:
        return {**step, "spent": step["cost"] / mean_costs[problem]}

    return [{**record, "steps": [converted(step, record["problem"]) for step in record["steps"]]} for record in records]


def by_best_touched(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The same records, normalised by the best that anybody recommended on a problem instead of by the best random one.

    Where tuners find better configurations than 20 000 random draws, 0 on that scale is not the end of the way.
    """
    best: dict[str, float] = {}
    for record in records:
        touched = (step["loss"] for step in record["steps"])
        best[record["problem"]] = min(best.get(record["problem"], record["span"]["best"]), *touched)
    return [{**record, "span": {**record["span"], "best": best[record["problem"]]}} for record in records]


def spreads(scores: Scores) -> dict[str, dict[str, Spread]]:
    """Over the seeds, by problem and method."""
    samples: dict[str, dict[str, list[float]]] = {}
    for (problem, _), by_method in scores.items():
        for method, score in by_method.items():
            samples.setdefault(problem, {}).setdefault(method, []).append(score)
    return {
        problem: {method: Spread.of(sample) for method, sample in by_method.items()}
        for problem, by_method in samples.items()
    }


def paired_wins(scores: Scores, methods: Sequence[str]) -> dict[tuple[str, str], Wins]:
    """Every ordered couple of methods, over the pairs that both have."""
    return {(one, other): _wins(scores, one, other) for one, other in permutations(methods, 2)}


def average_ranks(scores: Scores, methods: Sequence[str]) -> dict[str, float]:
    """1 is best; ties share their ranks; over the pairs that all the methods have."""
    complete = complete_pairs(scores, methods)
    ranks = [_ranks([scores[pair][method] for method in methods]) for pair in complete]
    return {method: fmean(own) for method, own in zip(methods, zip(*ranks, strict=True), strict=False)}


def mean_scores(scores: Scores, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Over the pairs that all the methods have: of all problems, then of each family, the part of a name before "/".

    Who has nothing to recommend yet counts as the median random configuration, 1.
    """
    complete = complete_pairs(scores, methods)
    families: dict[str, list[Pair]] = {"all": complete}
    for pair in complete:
        families.setdefault(pair[0].partition("/")[0], []).append(pair)
    return {
        family: {method: fmean(_or_median(scores[pair][method]) for pair in pairs) for method in methods}
        for family, pairs in families.items()
        if pairs
    }


def _or_median(score: float) -> float:
    return score if math.isfinite(score) else 1.0


def complete_pairs(scores: Scores, methods: Sequence[str]) -> list[Pair]:
    return [pair for pair, by_method in scores.items() if all(method in by_method for method in methods)]


def _wins(scores: Scores, one: str, other: str) -> Wins:
    both = [(scores[pair][one], scores[pair][other]) for pair in complete_pairs(scores, (one, other))]
    return Wins(sum(a < b for a, b in both), sum(a == b for a, b in both), sum(a > b for a, b in both))


def _ranks(sample: Sequence[float]) -> list[float]:
    return [
        1 + sum(other < score for other in sample) + (sum(other == score for other in sample) - 1) / 2
        for score in sample
    ]
