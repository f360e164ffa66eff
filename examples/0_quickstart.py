"""Tune a function, then the same with short runs first: the first five minutes with Farthing.

    python examples/0_quickstart.py

It takes a few seconds, and leaves nothing behind.
"""

import numpy as np

import farthing as ft


def load():
    """400 examples to learn from, 200 to judge by; labels are -1 and 1."""
    rng = np.random.default_rng(0)
    inputs, noise = rng.normal(size=(600, 20)), rng.normal(size=600)
    labels = np.sign(inputs @ rng.normal(size=20) + 4 * noise)
    return inputs[:400], labels[:400], inputs[400:], labels[400:]


def descend(weights, inputs, labels, params):
    """One step of gradient descent for logistic regression."""
    pull = labels / (1 + np.exp(labels * (inputs @ weights)))
    return weights + params["rate"] * (inputs.T @ pull / len(labels) - params["decay"] * weights)


def loss_of(weights, inputs, labels):
    return np.mean(np.logaddexp(0, -labels * (inputs @ weights)))


def train(trial):
    inputs, labels, unseen, answers = load()
    weights = np.zeros(20)
    for _ in range(27):
        weights = descend(weights, inputs, labels, trial.params)
    return loss_of(weights, unseen, answers)


params = {"rate": ft.Float(1e-3, 10.0, log=True), "decay": ft.Float(1e-5, 1.0, log=True)}

print("Full runs")
study = ft.minimize(train, ft.Space(params), budget=ft.Budget(trials=20), value="loss", workers=2, seed=0)
print(study, end="\n\n")


def train_and_pause(trial):
    """The same, up to the epochs that the trial asks for, from where another trial stopped."""
    inputs, labels, unseen, answers = load()
    weights, done = np.zeros(20), 0
    if trial.resume_dir:
        weights = np.load(trial.resume_dir / "weights.npy")
        done = int((trial.resume_dir / "epochs").read_text())
    for epoch in range(done + 1, trial.fidelity["epochs"] + 1):
        weights = descend(weights, inputs, labels, trial.params)
        trial.report(loss_of(weights, unseen, answers), epochs=epoch)
    np.save(trial.checkpoint_dir / "weights.npy", weights)
    (trial.checkpoint_dir / "epochs").write_text(str(epoch))


print("Short runs first; the best are carried on")
space = ft.Space(params, fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)})
study = ft.Study(space, minimize="loss", cost=lambda params, fidelity: fidelity["epochs"], cost_unit="epochs", seed=0)
study.run(train_and_pause, budget=ft.Budget(cost=200), workers=2)
print(study)
