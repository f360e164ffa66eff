"""Trains a population of PPO agents to land on the moon, and learns their schedule in the same run.

    pip install --group rl
    python examples/3_population_rl.py                  a short look: four agents, 2 · 10⁴ steps of play each
    python examples/3_population_rl.py --play 10000     2 · 10⁵ steps each, the size of `benchmarks.run population-rl`

`ppo.py` beside this file has the agent: a Trainable that saves all that training changes, its generator included.
"""

import argparse
import sys

import farthing as ft

INTERVALS = 20
SPACE = ft.Space(
    {
        "batch": ft.Int(200, 4000, log=True),
        "gae": ft.Float(0.9, 0.99),
        "clip": ft.Float(0.1, 0.5),
        "lr": ft.Float(1e-5, 1e-3, log=True),
    }
)


def train(play: int, storage: str | None, workers: int) -> None:
    from ppo import Lander

    agent = type("Agent", (Lander,), {"play": play})
    strategy = ft.PB2(population=4, interval=1, steps=INTERVALS)
    study = ft.Study(SPACE, maximize="reward", strategy=strategy, storage=storage, name=f"lander-{play}", seed=0)
    study.run(agent, workers=workers)
    print(f"Reward {study.best.value:.0f} after {INTERVALS * play} steps of play; who was copied over whom:")
    print(study.lineage)
    print("The winner's schedule, in steps of training:")
    for step, params in study.best.schedule:
        print(f"  from {step:2}:", "  ".join(f"{name} {value:.3g}" for name, value in params.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--play", type=int, default=1000, help="steps of play in an interval")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--storage", help="keep the study there, for `farthing show` and `farthing plot`")
    options = parser.parse_args()
    try:
        import Box2D  # noqa: F401
        import gymnasium  # noqa: F401
    except ImportError:
        print("Skipped: gymnasium with Box2D is not installed. Run: pip install --group rl.")
        return
    train(options.play, options.storage, options.workers)


if __name__ == "__main__":
    sys.exit(main())
