"""Tunes a classifier while it learns from a stream whose classes drift, without torch: scikit-learn's `partial_fit`.

    python examples/2_online_sklearn.py

Each round trains on one batch of the stream and may validate on 2000 examples that look like the present. It takes a
few seconds. Needs scikit-learn: pip install 'farthing[sklearn]'.
"""

import numpy as np
from sklearn.linear_model import SGDClassifier

import farthing as ft
from farthing.integrations.sklearn import Snapshots

ROUNDS, BATCH, VALIDATION, FEATURES = 200, 100, 2000, 20
SPACE = ft.Space({"eta0": ft.Float(1e-4, 1.0, log=True), "alpha": ft.Float(1e-6, 1e-1, log=True)})


def stream(seed):
    """A function of the round and a count that draws examples of that moment: the border between classes turns."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, FEATURES))

    def draw(round, count):
        angle = round / 60
        border = np.cos(angle) * first + np.sin(angle) * second
        inputs = rng.standard_normal((count, FEATURES))
        return inputs, np.sign(inputs @ border + 0.5 * rng.standard_normal(count))

    return draw


def run(strategy, seed=0):
    """The mean true accuracy over the run, and what the tuner paid for."""
    draw = stream(seed)
    model = SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.01, random_state=0)
    model.partial_fit(*draw(0, BATCH), classes=[-1, 1])
    snapshots = Snapshots(model)
    tuner = ft.OnlineTuner(
        SPACE,
        rounds=ROUNDS,
        strategy=strategy,
        initial={"eta0": 0.01, "alpha": 1e-4},
        overhead=None,  # this little model trains faster than it validates
        save=snapshots.save,
        restore=snapshots.restore,
        maximize="accuracy",
        seed=seed,
    )
    truth = []
    for decision in tuner:
        round = decision.round
        model.set_params(**decision.params)
        model.partial_fit(*draw(round, BATCH))
        decision.observe(lambda: model.score(*draw(tuner.round, VALIDATION)))
        truth.append(model.score(*draw(round, 500)))
    return np.mean(truth), tuner.summary


def main():
    for name, strategy in {
        "small probes": ft.PairedProbes(),
        "asking by its price": ft.CEGPUCB(),
        "validating always": ft.CEGPUCB(rule=ft.rules.Every(1)),
        "validating every 10th": ft.CEGPUCB(rule=ft.rules.Every(10)),
    }.items():
        accuracy, summary = run(strategy)
        print(f"{name:22} accuracy {accuracy:.3f}, {summary['validations']} validations, {summary['skipped']} skipped")


if __name__ == "__main__":
    main()
