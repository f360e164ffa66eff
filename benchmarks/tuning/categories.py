"""Where the evolution of cheap trials leaves the categories it began with: `python -m benchmarks.tuning.categories`.

For each width at which a search counts as settled, 32 functions whose categories each have a bowl of their own, and 700
trials after a random design of 12. The rows are in `benchmarks/results/tuning-categories.jsonl.xz`; a search that is
never left is the last width.
"""

import json
from statistics import fmean, median

import numpy as np

from benchmarks.records import RESULTS
from benchmarks.speed.cheap import MIXED, shifted
from farthing.strategies.shared import evolution
from farthing.strategies.shared.strategy import Randomness
from farthing.trials import History, Problem, State, Suggestion, Trial

PATH = RESULTS / "tuning-categories.jsonl"
WIDTHS = (0.2, 0.1, 0.03, 0.01, 0.001, evolution.SMALLEST_STEP)
FUNCTIONS = range(1000, 1032)
DESIGN, TRIALS = 12, 700
FOUND = 0.01


def least(seed: int) -> float:
    value, rng = shifted(seed), Randomness(seed)
    history = History(Problem(MIXED, seed=seed), [])
    design = MIXED.encoder.decode_unit(np.random.default_rng(seed).random((DESIGN, MIXED.encoder.dimension)))
    suggestions = [Suggestion(params) for params in design]
    while len(history) < TRIALS:
        if len(history) >= DESIGN:
            [(params, note)] = evolution.evolved(history, 1, rng)
            suggestions.append(Suggestion(params, note=note))
        suggestion = suggestions[len(history)]
        trial = Trial(len(history), suggestion, State.DONE, value=value(suggestion.params))
        history = history.updated([trial], version=len(history) + 1)
    return min(trial.value for trial in history if trial.value is not None)


def main() -> None:
    lines = []
    for evolution.SETTLED in WIDTHS:
        found = [least(seed) for seed in FUNCTIONS]
        row = {"settled": evolution.SETTLED, "found": sum(each < FOUND for each in found), "of": len(found)}
        lines.append(json.dumps(row | {"mean": fmean(found), "median": median(found)}))
        print(lines[-1], flush=True)
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
