"""python -m benchmarks.problems.mean_costs: what a full training costs on average, for the problems of real curves.

Written to `mean_costs.json` beside this file, so that a report can count in mean trainings without the data.
"""

import json
import sys
from pathlib import Path

PATH = Path(__file__).with_suffix(".json")


def mean_costs() -> dict[str, float]:
    """The costs that were written."""
    return dict(json.loads(PATH.read_text(encoding="utf-8")))


def main() -> int:
    from benchmarks.problems import PROBLEMS
    from benchmarks.problems.problem import PricedByMean
    from benchmarks.suites import CURVES_REPORTED

    problems = [problem for name in CURVES_REPORTED if isinstance(problem := PROBLEMS[name], PricedByMean)]
    found = {problem.name: float(f"{problem.mean_cost:.6g}") for problem in problems}
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
