"""What the example of the guide to prompts makes of its five dollars: what it spends, and how sure it is in the end.

    python -m benchmarks.prompts --seeds 20

Each seed is `examples/5_prompt.py` as it stands. A seed on record is not run again.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.problems.data import REPOSITORY
from benchmarks.provenance import commit, versions
from benchmarks.records import Record, results_path
from benchmarks.resuming import make_missing

SUITE = "prompt-dollars"
BUDGET = 5.0
EXAMPLE = REPOSITORY / "examples" / "5_prompt.py"
PRINTED = {
    "spent": re.compile(r"^spent +total +([\d.]+) dollars", re.MULTILINE),
    "questions": re.compile(r"^By (\d+) questions", re.MULTILINE),
    "low": re.compile(r"(\d+)% to \d+% of the answers are wrong"),
    "high": re.compile(r"\d+% to (\d+)% of the answers are wrong"),
}


@dataclass(frozen=True)
class Seed:
    """A run of the example."""

    seed: int

    @property
    def identity(self) -> dict[str, Any]:
        return {"suite": SUITE, "problem": EXAMPLE.name, "method": "default", "seed": self.seed, "settings": {}}

    @property
    def title(self) -> str:
        return f"{EXAMPLE.name}, seed {self.seed}"


def result_of(run: Seed) -> Record:
    line = [sys.executable, str(EXAMPLE), "--seed", str(run.seed), "--dollars", str(BUDGET)]
    printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    found = {name: pattern.search(printed) for name, pattern in PRINTED.items()}
    said = {name: float(match[1]) for name, match in found.items() if match}
    assert said.keys() == PRINTED.keys(), printed
    return {**run.identity, "budget": BUDGET, **said, "versions": versions(("numpy", "scipy")), **commit()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="how many, from 0 on")
    options = parser.parse_args(arguments)
    make_missing(results_path(SUITE), [Seed(seed) for seed in range(options.seeds)], result_of=result_of)
    return 0


if __name__ == "__main__":
    sys.exit(main())
