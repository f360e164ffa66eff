"""Measures the savings of continued runs: the study of `examples/1_multifidelity.py`, with and without checkpoints.

Both train the same networks to the same losses and differ only in cost. The number of configurations is limited, not
the time: the study continues until all of them have finished their epochs, however busy the machine is. Work is counted
in epochs over all of the data; cost is measured seconds, which include the start-up of every trial.
"""

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.bars import Result, at_most
from benchmarks.problems.data import REPOSITORY, missing_package
from benchmarks.spread import Spread
from farthing import Study

CONFIGURATIONS, QUICK_CONFIGURATIONS = 12, 4
MOST_SECONDS = 600


@dataclass(frozen=True)
class Pair:
    """One study with warm starts, and without."""

    trials: int
    continued: int
    same_values: bool
    work: float
    work_again: float
    cost: float
    cost_again: float
    said_saved: float

    @classmethod
    def of(cls, warm: Study, cold: Study) -> "Pair":
        values = [[trial.value for trial in study.trials] for study in (warm, cold)]
        return cls(
            trials=len(warm.trials),
            continued=sum(trial.resume_from is not None for trial in warm.trials),
            same_values=values[0] == values[1],
            work=_work(warm),
            work_again=_work(cold),
            cost=warm.ledger.total,
            cost_again=cold.ledger.total,
            said_saved=warm.ledger.saved.get("warm starts", 0.0),
        )


def run(*, seeds: int, quick: bool) -> Result:
    if missing := missing_package("sklearn"):
        return Result(figures={}, bars=[], left_out=[missing])
    pairs = [_pair(seed, configurations=QUICK_CONFIGURATIONS if quick else CONFIGURATIONS) for seed in range(seeds)]
    work = Spread.of(pair.work / pair.work_again for pair in pairs)
    return Result(
        figures={
            "work, continued / from the start": work.to_json(),
            "cost, continued / from the start": Spread.of(pair.cost / pair.cost_again for pair in pairs).to_json(),
            "cost from the start, by the ledger / measured": Spread.of(
                (pair.cost + pair.said_saved) / pair.cost_again for pair in pairs
            ).to_json(),
            "trials": median(pair.trials for pair in pairs),
            "continued": median(pair.continued for pair in pairs),
            "values are the same": all(pair.same_values for pair in pairs),
            "each": [asdict(pair) for pair in pairs],
        },
        bars=[at_most("work of a study with warm starts", limit=1.0, measured=work.median, unit="× that without")],
        left_out=[],
    )


def _pair(seed: int, *, configurations: int) -> Pair:
    with TemporaryDirectory() as folder:
        program = REPOSITORY / "examples" / "1_multifidelity.py"
        options = {"--seed": seed, "--trials": configurations, "--seconds": MOST_SECONDS}
        command = [sys.executable, str(program), "--again", *(str(part) for pair in options.items() for part in pair)]
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "src")}
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        place = Path(folder) / "1_multifidelity.db"
        return Pair.of(Study.load(f"digits-{seed}", place), Study.load(f"digits-{seed}-cold", place))


def _work(study: Study) -> float:
    """Epochs that were trained, times the part of the data they were trained on."""
    return sum(len(trial.points) * trial.fidelity["data"] for trial in study.trials)
