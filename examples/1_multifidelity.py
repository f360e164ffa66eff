"""Real training with two fidelities, epochs and part of the data: short runs first, the promising ones carried on.

    pip install 'farthing[sklearn]'
    python examples/1_multifidelity.py           # about a minute; start it again and it goes on
    python examples/1_multifidelity.py --again   # then trains the same trials from the start, to compare the bills

Scikit-learn trains a neural network on handwritten digits. The study decides for every trial the parameters, how many
epochs, on what part of the data, and whether to continue an earlier run instead.
"""

import argparse
import pickle

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import farthing as ft


def train(trial):
    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(images / 16, digits, test_size=600, random_state=0, stratify=digits)
    images, unseen, digits, answers = parts
    used = int(trial.fidelity["data"] * len(digits))
    model = start_of(trial)
    while epochs_of(model, used) < trial.fidelity["epochs"]:
        model.partial_fit(images[:used], digits[:used], classes=range(10))
        with trial.timing("validation"):
            loss = log_loss(answers, np.clip(model.predict_proba(unseen), 1e-6, 1), labels=range(10))
        trial.report(loss, epochs=epochs_of(model, used))
    (trial.checkpoint_dir / "model.pickle").write_bytes(pickle.dumps(model))


def start_of(trial):
    """The model as an earlier trial left it, optimiser and all, or a fresh one."""
    if trial.resume_dir:
        return pickle.loads((trial.resume_dir / "model.pickle").read_bytes())
    params = trial.params
    return MLPClassifier(
        (params["units"],),
        learning_rate_init=params["rate"],
        alpha=params["decay"],
        batch_size=params["batch"],
        activation=params["activation"],
        random_state=0,
    )


def epochs_of(model, used):
    """How often the model has seen the data: its own count, which goes on where a checkpoint stopped."""
    return int(getattr(model, "t_", 0)) // used


arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--seconds", type=float, default=40.0, help="wall clock of all runs of the study")
arguments.add_argument("--trials", type=int, help="new configurations; continuations come on top")
arguments.add_argument("--seed", type=int, default=0)
arguments.add_argument("--again", action="store_true", help="train the same trials again, each from the start")
given = arguments.parse_args()

space = ft.Space(
    {
        "rate": ft.Float(1e-4, 1e-1, log=True),
        "units": ft.Int(8, 256, log=True),
        "batch": ft.Int(16, 256, log=True),
        "decay": ft.Float(1e-6, 1e0, log=True),
        "activation": ft.Choice("relu", "tanh"),
    },
    fidelities={
        "epochs": ft.Fidelity(2, 50, integer=True, trace=True),  # a curve: every epoch on the way is reported
        "data": ft.Fidelity(0.1, 1.0),  # one value: training on less is another run
    },
)
place = {"minimize": "loss", "storage": "1_multifidelity.db", "seed": given.seed}
study = ft.Study(space, name=f"digits-{given.seed}", **place)
study.run(train, budget=ft.Budget(seconds=given.seconds, trials=given.trials), workers=2)
print(study)

trial = study.verify(train)  # the model itself: goes on with the recommended run, to all epochs on all of the data
print(f"\nTrained to the end: loss {trial.value:.4f}, trial {trial.number}, for {trial.cost:.2g} more seconds")

if given.again:
    cold = ft.Study(space, name=f"digits-{given.seed}-cold", strategy=ft.Random(), **place)
    for trial in study.trials[len(cold.trials) :]:
        cold.enqueue(trial.params, fidelity=trial.fidelity)
    cold.run(train, budget=ft.Budget(trials=len(study.trials)), workers=2)
    print(f"\nThe same trials, each from the start: {cold.ledger.total / study.ledger.total:.2f} times the cost")
