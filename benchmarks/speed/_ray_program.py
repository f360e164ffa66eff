"""One sample of `_ray_overhead`: starts Ray, runs empty trials, stops Ray, and prints the wall seconds of the trials.

All processes that it starts stay below it in the tree, also those whose parents have ended, so that their CPU seconds
can be counted from outside.
"""

import ctypes
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

ADOPT_ORPHANS = 36
"""Linux: PR_SET_CHILD_SUBREAPER."""


def main(name: str, trials: str, workers: str, seed: str) -> None:
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)
    os.environ["RAY_raylet_start_wait_time_s"] = "200"  # noqa: SIM112  # as Ray spells it
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    ray.init("local", num_cpus=int(workers), include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        if name != "nothing":
            run = run_farthing if name == "farthing" else run_tune
            run(Path(folder), int(trials), workers=int(workers), seed=int(seed), lean="lean" in name)
        wall = time.perf_counter() - began
        ray.shutdown()
        wait_for_all()
    sys.stdout.write("\n" + json.dumps({"wall": wall}) + "\n")


def run_farthing(folder: Path, trials: int, *, workers: int, seed: int, lean: bool) -> None:
    import farthing as ft

    study = ft.Study(
        ft.Space({"x": ft.Float(0, 1)}),
        minimize="loss",
        strategy=ft.Random(),
        storage=f"sqlite:///{folder}/study.db",
        seed=seed,
    )
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=trials), executor="ray", workers=workers)
    assert sum(trial.state is ft.State.DONE for trial in study.trials) == trials


def run_tune(folder: Path, trials: int, *, workers: int, seed: int, lean: bool) -> None:
    if lean:
        os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    from ray import tune

    def empty(config):  # type: ignore[no-untyped-def]
        tune.report({"loss": config["x"]})

    tuner = tune.Tuner(
        empty,
        param_space={"x": tune.uniform(0.0, 1.0)},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=trials, max_concurrent_trials=workers, reuse_actors=lean
        ),
        run_config=tune.RunConfig(storage_path=str(folder), verbose=0),
    )
    assert len(tuner.fit()) == trials


def wait_for_all() -> None:
    """Returns when every child has ended, the adopted ones too."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
