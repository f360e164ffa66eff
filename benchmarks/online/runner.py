"""Runs a suite of bandits, continues one that was interrupted, and reports: `python -m benchmarks.run online-…`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.online.playing import play
from benchmarks.online.report import as_text, report
from benchmarks.online.suites import ONLINE_SUITES, OnlineSuite
from benchmarks.online.worlds import World
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, append_record, key_of, read_records, results_path
from farthing.systems.online import OnlineStrategy
from farthing.systems.online.strategy import to_json

PACKAGES = ("numpy", "scipy")


def names_online_suite(arguments: Sequence[str] | None) -> bool:
    """Whether a command line is for this runner: its suites are played in rounds, not by trials."""
    return any(argument in ONLINE_SUITES for argument in (sys.argv[1:] if arguments is None else arguments)[:1])


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    suite = ONLINE_SUITES[options.name].quick() if options.quick else ONLINE_SUITES[options.name]
    path = options.output or results_path(suite.name)
    carry_out(suite, path, seeds=options.seeds or suite.seeds, problems=options.problems, methods=options.methods)
    records = [record for record in read_records(path) if record["suite"] == suite.name]
    if not records:
        sys.stderr.write(f"Nothing of {suite.name} can be run: the patterns match nothing, or all of it is left out.\n")
        return 1
    print(as_text(report(suite, records), as_json=options.json))
    return 0


def carry_out(
    suite: OnlineSuite, path: Path, *, seeds: int, problems: Sequence[str] | None, methods: Sequence[str] | None
) -> None:
    """Plays every game that the file has no result of, and adds each result as soon as it is there."""
    present = {key_of(record) for record in read_records(path)}
    for world, seed, name in _games(suite, seeds=seeds, problems=problems, methods=methods):
        strategy = suite.contenders[name](world.facts())
        identity = _identity(world, strategy, name=name, seed=seed)
        if key_of(identity) not in present:
            append_record(path, _result(suite, world, strategy, identity))


def _games(
    suite: OnlineSuite, *, seeds: int, problems: Sequence[str] | None, methods: Sequence[str] | None
) -> Iterator[tuple[World, int, str]]:
    """For each world and seed all strategies, one after another."""
    for world in suite.worlds:
        if not _matches(world.name, problems):
            continue
        if reason := world.missing():
            sys.stderr.write(f"left out: {world.name}: {reason}\n")
            continue
        for seed in range(seeds):
            for name in suite.contenders:
                if _matches(name, methods):
                    yield world, seed, name


def _matches(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _identity(world: World, strategy: OnlineStrategy, *, name: str, seed: int) -> dict[str, Any]:
    settings = to_json(strategy)
    arguments = settings["arguments"]
    arguments |= {key: "fitted" for key in ("kernel", "offset") if isinstance(arguments.get(key), list)}
    return {"problem": world.name, "method": name, "seed": seed, "settings": settings}


def _result(suite: OnlineSuite, world: World, strategy: OnlineStrategy, identity: dict[str, Any]) -> Record:
    score = play(strategy, world, seed=identity["seed"])
    return {
        "suite": suite.name,
        **identity,
        "rounds": world.rounds,
        **score.to_json(),
        "bounds": _bounds(world) if suite.measure == "reward" else None,
        "versions": versions(PACKAGES),
        **commit(),
    }


def _bounds(world: World) -> dict[str, float]:
    F = world.truth(0).F
    return {
        "a random arm": float(np.mean(F)),
        "the arm that was best before": float(np.mean(F[:, int(np.argmax(world.facts()["offset"]))])),
        "the best fixed arm": float(np.max(np.mean(F, axis=0))),
        "the best arm of each step": float(np.mean(np.max(F, axis=1))),
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.run", description=__doc__)
    parser.add_argument("name", choices=ONLINE_SUITES, help="the suite")
    parser.add_argument("--seeds", type=int, help="how many seeds, from 0; the suite's own number by default")
    parser.add_argument("--quick", action="store_true", help="two seeds and two worlds, kept in a file of its own")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="only these worlds; patterns work")
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="only these; patterns work")
    parser.add_argument("--output", type=Path, metavar="FILE", help="JSON lines to continue; benchmarks/results/ else")
    return parser


if __name__ == "__main__":
    sys.exit(main())
