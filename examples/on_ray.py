"""The demo's network, tuned on a Ray cluster: one argument differs from a run on this machine.

    pip install 'farthing[demo,ray]'
    ray start --head --num-cpus=2
    python examples/on_ray.py
    ray stop

Without a cluster, `python examples/on_ray.py --executor processes` does the same here.
"""

import argparse
from pathlib import Path

import farthing as ft
from farthing.cli.digits import SPACE, save_examples, train

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--executor", choices=["ray", "processes"], default="ray")
arguments.add_argument("--seconds", type=float, default=30.0)
arguments.add_argument("--trials", type=int, help="new configurations; continuations come on top")
given = arguments.parse_args()

save_examples(Path.cwd())  # the nodes read them from here: this folder is one that they share
study = ft.Study(SPACE, minimize="error", storage="sqlite:///on_ray.db", name="digits", seed=0)
budget = ft.Budget(seconds=given.seconds, trials=given.trials)
print(study.run(train, budget=budget, executor=given.executor, workers=2))
print(study)
