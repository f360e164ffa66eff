"""Estimators are put back into an earlier state, for probes of an online tuner that are taken back."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

from farthing.integrations.sklearn import Snapshots


@pytest.mark.parametrize(
    "make",
    [
        lambda: SGDClassifier(loss="log_loss", average=True, random_state=0),
        lambda: MLPClassifier(hidden_layer_sizes=(5,), solver="adam", random_state=0),
    ],
    ids=["linear", "network"],
)
def test_an_estimator_is_put_back_more_than_once(make) -> None:
    rng = np.random.default_rng(0)
    X, model = rng.standard_normal((200, 4)), make()
    y = (X[:, 0] > 0.0).astype(int)
    snapshots = Snapshots(model)

    def step(part: int) -> np.ndarray:
        model.partial_fit(X[50 * part : 50 * part + 50], y[50 * part : 50 * part + 50], classes=[0, 1])
        return model.predict_proba(X)

    step(0)
    saved = snapshots.save()
    after = step(1)
    for _ in range(2):
        step(2)
        snapshots.restore(saved)
        np.testing.assert_array_equal(step(1), after)
