"""The network of the demo."""

from pathlib import Path

import numpy as np
import pytest

from farthing.cli.digits import Examples, Network, load_examples, save_examples, shifted_training

PARAMS = {"learning_rate": 0.01, "units": 32, "batch_size": 64, "weight_decay": 1e-3, "activation": "tanh"}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Examples, Examples, Examples]:
    folder = tmp_path_factory.mktemp("examples")
    save_examples(folder)
    return load_examples(folder)


def test_it_learns_from_digits_in_nine_places(tmp_path: Path) -> None:
    save_examples(tmp_path)
    (training, _, _), moved = load_examples(tmp_path), shifted_training(tmp_path)
    places = moved.images.reshape(9, *training.images.shape)
    assert (moved.digits.reshape(9, -1) == training.digits).all()
    np.testing.assert_array_equal(places[4], training.images)
    up = places[7].reshape(-1, 8, 8)[:, :-1]
    np.testing.assert_array_equal(up, training.images.reshape(-1, 8, 8)[:, 1:])


def trained(network: Network, training: Examples, *, epochs: int) -> Network:
    while network.epochs < epochs:
        network.train_epoch(training, PARAMS)
    return network


def test_a_run_that_is_saved_and_loaded_goes_on_bit_for_bit(tmp_path: Path, examples) -> None:
    training, _, _ = examples
    unbroken = trained(Network.fresh(32), training, epochs=4)
    trained(Network.fresh(32), training, epochs=2).save(tmp_path)
    resumed = trained(Network.load(tmp_path), training, epochs=4)

    assert resumed.steps == unbroken.steps
    for name, weights in unbroken.weights.items():
        assert np.array_equal(resumed.weights[name], weights)


def test_it_learns_to_read(examples) -> None:
    training, _, test = examples

    error = trained(Network.fresh(32), training, epochs=10).error(test, activation="tanh")

    assert error < 0.1, "a linear classifier misreads about 5 % of these digits, guessing 90 %"


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_gradients_are_those_of_the_cross_entropy(examples, activation: str) -> None:
    training, _, _ = examples
    batch = Examples(training.images[:20], training.digits[:20])
    network = Network.fresh(5)
    gradient = network._gradients(batch, activation)["hidden"][30, 2]
    step = 1e-6

    losses = []
    for change in (step, -2 * step):
        network.weights["hidden"][30, 2] += change
        _, scores = network._forward(batch.images, activation)
        logarithms = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        losses.append(-logarithms[np.arange(20), batch.digits].mean())

    # Central differences of a smooth function err by O(step²), rounding by about 1e-16 / step.
    assert np.isclose(gradient, (losses[0] - losses[1]) / (2 * step), rtol=1e-4, atol=1e-8)
