"""Small trainings that go on while their hyperparameters change: what a round does to the next ones is real."""

import gzip
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import isqrt
from typing import Any, Protocol

import numpy as np

from benchmarks.problems.data import data_folder, missing_file, missing_package
from farthing.models.linalg import Array, IntArray
from farthing.space import Float, Int, Space
from farthing.trials import Params

BATCH, STEPS, HIDDEN = 32, 10, 64
MOST_TRAINED = MOST_TESTED = 4000
STREAM_BATCH, STREAM_FEATURES, STREAM_TURN = 100, 20, 40.0
STREAM_VALIDATED, TABLE_VALIDATED = 2000, 2000
CLASSES = 5
"""Of a table of numbers to predict."""
SOME_CLOTHES, OTHER_CLOTHES = (0, 3, 4, 5, 7), (1, 2, 6, 8, 9)
CLOTHES = ("fashion_mnist/t10k-images-idx3-ubyte.gz", "fashion_mnist/t10k-labels-idx1-ubyte.gz")


class Training(Protocol):
    """A model in training. Its random numbers depend on the seed and the round alone, so that methods are paired."""

    def train(self, round: int, params: Params) -> None: ...

    def validate(self, round: int) -> float: ...

    def test(self, round: int) -> float:
        """The accuracy on examples that no decision saw."""

    def save(self) -> Any: ...

    def restore(self, saved: Any) -> None: ...


@dataclass(frozen=True, eq=False)
class Task:
    """`starts` are settings to begin with, by name. A task that drifts is judged by its mean accuracy, not its last."""

    name: str
    space: Space
    starts: Mapping[str, Params]
    begin: Callable[[int], Training]
    rate: str
    """The parameter that a cosine schedule lowers."""
    grid: tuple[Params, ...] = ()
    """Fixed settings to find the best of."""
    rounds: int = 100
    drifts: bool = False
    validated: int = 400
    """Examples of a validation."""
    missing: Callable[[], str | None] = lambda: None


# ------------------------------------------------------------------------------------------------------------ networks


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs of mean 0 and deviation 1 with the number of their class, in three parts."""

    train: tuple[Array, IntArray]
    validation: tuple[Array, IntArray]
    test: tuple[Array, IntArray]
    classes: int


class Network:
    """One hidden layer, trained by gradient descent with momentum, weight decay, dropout and noise on its inputs.

    It says the class with the largest output; weights that are no numbers any more say the first class.
    """

    def __init__(self, examples: Examples, seed: int, *, augment: Callable[..., Array] | None = None) -> None:
        self._examples, self._seed, self._augment = examples, seed, augment
        rng = np.random.default_rng([seed, 0])
        width = examples.train[0].shape[1]
        sizes = [(width, HIDDEN), (HIDDEN, examples.classes)]
        self._weights = [rng.standard_normal(size) * np.sqrt(2.0 / size[0]) for size in sizes]
        self._biases = [np.zeros(size[1]) for size in sizes]
        self._velocity = [np.zeros_like(each) for each in (*self._weights, *self._biases)]

    def train(self, round: int, params: Params) -> None:
        rng = np.random.default_rng([self._seed, 1, round])
        inputs, labels = self._examples.train
        for _ in range(STEPS):
            batch = rng.integers(0, len(labels), BATCH)
            x = inputs[batch] if self._augment is None else self._augment(inputs[batch], params, rng)
            self._step(x, labels[batch], params, rng)

    def validate(self, round: int) -> float:
        return self._accuracy(*self._examples.validation)

    def test(self, round: int) -> float:
        return self._accuracy(*self._examples.test)

    def save(self) -> Any:
        return deepcopy((self._weights, self._biases, self._velocity))

    def restore(self, saved: Any) -> None:
        self._weights, self._biases, self._velocity = deepcopy(saved)

    def _step(self, x: Array, labels: IntArray, params: Params, rng: np.random.Generator) -> None:
        with np.errstate(all="ignore"):
            gradients = self._gradients(x, labels, dropout=params.get("dropout", 0.0), rng=rng)
            for each, velocity, gradient in zip(self._parameters(), self._velocity, gradients, strict=True):
                velocity *= params.get("momentum", 0.0)
                velocity -= params["lr"] * (gradient + params.get("weight_decay", 0.0) * each)
                each += velocity

    def _gradients(self, x: Array, labels: IntArray, *, dropout: float, rng: np.random.Generator) -> list[Array]:
        kept = (rng.random((len(x), HIDDEN)) >= dropout) / (1.0 - dropout)
        hidden = np.maximum(x @ self._weights[0] + self._biases[0], 0.0) * kept
        outputs = hidden @ self._weights[1] + self._biases[1]
        chances = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        chances[np.arange(len(x)), labels] -= 1.0
        error = chances / len(x)
        back = (error @ self._weights[1].T) * kept * (hidden > 0.0)
        return [x.T @ back, hidden.T @ error, back.sum(axis=0), error.sum(axis=0)]

    def _parameters(self) -> list[Array]:
        return [*self._weights, *self._biases]

    def _accuracy(self, inputs: Array, labels: IntArray) -> float:
        with np.errstate(all="ignore"):
            hidden = np.maximum(inputs @ self._weights[0] + self._biases[0], 0.0)
            outputs = np.nan_to_num(hidden @ self._weights[1] + self._biases[1])
        return float(np.mean(np.argmax(outputs, axis=1) == labels))


def shifted_with_noise(inputs: Array, params: Params, rng: np.random.Generator) -> Array:
    """Square images moved by up to `shift` pixels, with noise of that deviation."""
    most, side = int(params["shift"]), isqrt(inputs.shape[1])
    down, right = rng.integers(-most, most + 1, 2)
    moved = np.roll(inputs.reshape(-1, side, side), (down, right), axis=(1, 2)).reshape(len(inputs), -1)
    return np.asarray(moved + params["noise"] * rng.standard_normal(moved.shape))


@cache
def digits(training: int) -> Examples:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return _parted(X, y, sizes=(training, 400))


@cache
def tabular(name: str, validated: int = TABLE_VALIDATED) -> Examples:
    """At most 4000 examples to train with, and half of a small table."""
    with np.load(data_folder() / f"tabular/{name}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
    return _parted(X, y, sizes=(min(MOST_TRAINED, len(y) // 2), validated))


@cache
def few_of(name: str, training: int) -> Examples:
    """So few examples that a network learns them by heart."""
    with np.load(data_folder() / f"tabular/{name}.npz") as file:
        return _parted(file["X"].astype(float), file["y"], sizes=(training, TABLE_VALIDATED))


@cache
def classed(name: str, validated: int) -> Examples:
    """A table of numbers to predict, as five classes that are equally frequent."""
    with np.load(data_folder() / f"tabular/{name}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
    borders = np.quantile(y, np.arange(1, CLASSES) / CLASSES)
    return _parted(X, np.digitize(y, borders), sizes=(min(MOST_TRAINED, len(y) // 2), validated))


@cache
def clothes(training: int, kinds: tuple[int, ...]) -> Examples:
    """Fashion-MNIST's images of these kinds, 14 × 14, each pixel the mean of four."""
    with gzip.open(data_folder() / CLOTHES[0]) as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    with gzip.open(data_folder() / CLOTHES[1]) as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8).astype(int)
    chosen = np.isin(labels, kinds)
    return _parted(images[chosen].reshape(chosen.sum(), -1), labels[chosen], sizes=(training, TABLE_VALIDATED))


def _parted(X: Array, y: Array, *, sizes: tuple[int, int]) -> Examples:
    """The same three parts for every seed."""
    order = np.random.default_rng(0).permutation(len(y))
    train, validation, test = np.split(order[: sum(sizes) + MOST_TESTED], np.cumsum(sizes))
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0) + 1e-3
    Z, labels = (X - mean) / deviation, np.unique(y, return_inverse=True)[1]
    parts = [(Z[rows], labels[rows]) for rows in (train, validation, test)]
    return Examples(parts[0], parts[1], parts[2], classes=int(labels.max()) + 1)


# -------------------------------------------------------------------------------------------------------------- stream


class Stream:
    """Logistic regression on examples whose border between two classes turns as rounds go by."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._borders = np.random.default_rng([seed, 0]).standard_normal((2, STREAM_FEATURES))
        self._weights = np.zeros(STREAM_FEATURES)

    def angle(self, round: int) -> float:
        """By how much the border has turned."""
        return round / STREAM_TURN

    def train(self, round: int, params: Params) -> None:
        inputs, labels = self._draw(round, STREAM_BATCH, part=1)
        with np.errstate(all="ignore"):
            pull = labels / (1.0 + np.exp(labels * (inputs @ self._weights)))
            step = inputs.T @ pull / len(labels) - params["decay"] * self._weights
        self._weights = self._weights + params["rate"] * step

    def validate(self, round: int) -> float:
        return self._accuracy(round, STREAM_VALIDATED, part=2)

    def test(self, round: int) -> float:
        return self._accuracy(round, 2000, part=3)

    def save(self) -> Any:
        return self._weights.copy()

    def restore(self, saved: Any) -> None:
        self._weights = saved.copy()

    def _draw(self, round: int, count: int, *, part: int) -> tuple[Array, Array]:
        rng, angle = np.random.default_rng([self._seed, part, round]), self.angle(round)
        border = np.cos(angle) * self._borders[0] + np.sin(angle) * self._borders[1]
        inputs = rng.standard_normal((count, STREAM_FEATURES))
        return inputs, np.sign(inputs @ border + 0.5 * rng.standard_normal(count))

    def _accuracy(self, round: int, count: int, *, part: int) -> float:
        inputs, labels = self._draw(round, count, part=part)
        return float(np.mean(np.sign(inputs @ self._weights) == labels))


# --------------------------------------------------------------------------------------------------------------- tasks


def crossed(**values: tuple[float, ...]) -> tuple[Params, ...]:
    """All combinations."""
    return tuple(dict(zip(values, each, strict=True)) for each in product(*values.values()))


OF_TABLES = Space(
    {"lr": Float(1e-3, 1.0, log=True), "momentum": Float(0.0, 0.98), "weight_decay": Float(1e-6, 1e-1, log=True)}
)


TASKS = (
    Task(
        "digits",
        Space({"lr": Float(1e-3, 1.0, log=True), "momentum": Float(0.0, 0.98), "dropout": Float(0.0, 0.8)}),
        starts={
            "plausible": {"lr": 0.05, "momentum": 0.8, "dropout": 0.2},
            "poor": {"lr": 0.003, "momentum": 0.2, "dropout": 0.6},
        },
        begin=lambda seed: Network(digits(800), seed),
        rate="lr",
        grid=crossed(lr=(0.01, 0.1), momentum=(0.5, 0.9), dropout=(0.0, 0.2)),
        missing=lambda: missing_package("sklearn"),
    ),
    Task(
        "stream",
        Space({"rate": Float(1e-2, 3.0, log=True), "decay": Float(1e-5, 1e-1, log=True)}),
        starts={"plausible": {"rate": 0.5, "decay": 1e-3}, "poor": {"rate": 0.02, "decay": 1e-4}},
        begin=Stream,
        rate="rate",
        grid=crossed(rate=(0.1, 0.3, 1.0, 3.0), decay=(1e-4, 1e-2)),
        rounds=150,
        drifts=True,
        validated=STREAM_VALIDATED,
    ),
    Task(
        "letters",
        OF_TABLES,
        starts={
            "plausible": {"lr": 0.1, "momentum": 0.8, "weight_decay": 1e-4},
            "poor": {"lr": 0.01, "momentum": 0.2, "weight_decay": 2e-2},
        },
        begin=lambda seed: Network(tabular("letter"), seed),
        rate="lr",
        grid=crossed(lr=(0.03, 0.1), momentum=(0.5, 0.9), weight_decay=(1e-5, 1e-3)),
        rounds=150,
        validated=TABLE_VALIDATED,
        missing=lambda: missing_file("tabular/letter.npz"),
    ),
    Task(
        "few digits",
        Space({"lr": Float(1e-3, 1.0, log=True), "shift": Int(0, 3), "noise": Float(0.0, 2.0)}),
        starts={"plausible": {"lr": 0.1, "shift": 1, "noise": 0.3}, "poor": {"lr": 0.3, "shift": 3, "noise": 1.5}},
        begin=lambda seed: Network(digits(100), seed, augment=shifted_with_noise),
        rate="lr",
        grid=crossed(lr=(0.03, 0.1), shift=(0, 1), noise=(0.0, 0.5)),
        missing=lambda: missing_package("sklearn"),
    ),
)
"""The first two decide; the others are for report only."""

# ------------------------------------------------------------------------- tasks to choose rules on, and to report them


REGULARIZED = Space(
    {
        "lr": Float(1e-3, 1.0, log=True),
        "momentum": Float(0.0, 0.98),
        "weight_decay": Float(1e-6, 1e-1, log=True),
        "dropout": Float(0.0, 0.8),
    }
)
AUGMENTED = Space({"lr": Float(1e-3, 1.0, log=True), "shift": Int(0, 3), "noise": Float(0.0, 2.0)})


def _table(
    name: str, *, of: Callable[[str, int], Examples] = tabular, validated: int = TABLE_VALIDATED, rounds: int = 100
) -> Task:
    return Task(
        name,
        OF_TABLES,
        starts={
            "plausible": {"lr": 0.1, "momentum": 0.8, "weight_decay": 1e-4},
            "poor": {"lr": 0.003, "momentum": 0.2, "weight_decay": 5e-2},
        },
        begin=lambda seed: Network(of(name, validated), seed),
        rate="lr",
        grid=crossed(lr=(0.03, 0.1), momentum=(0.5, 0.9), weight_decay=(1e-5, 1e-3)),
        rounds=rounds,
        validated=validated,
        missing=partial(missing_file, f"tabular/{name}.npz"),
    )


def _few(name: str, examples: Callable[[], Examples], *, file: str) -> Task:
    """So few examples that dropout and weight decay do good late and harm early."""
    return Task(
        name,
        REGULARIZED,
        starts={
            "plausible": {"lr": 0.05, "momentum": 0.8, "weight_decay": 1e-3, "dropout": 0.4},
            "poor": {"lr": 0.003, "momentum": 0.2, "weight_decay": 5e-2, "dropout": 0.6},
        },
        begin=lambda seed: Network(examples(), seed),
        rate="lr",
        grid=crossed(lr=(0.03, 0.1), weight_decay=(1e-4, 1e-2), dropout=(0.0, 0.4), momentum=(0.8,)),
        rounds=150,
        validated=TABLE_VALIDATED,
        missing=partial(missing_file, file),
    )


def _few_images(
    name: str, examples: Callable[[], Examples], *, missing: Callable[[], str | None], validated: int = TABLE_VALIDATED
) -> Task:
    """So few images that moving them, and noise, do good late and harm early."""
    return Task(
        name,
        AUGMENTED,
        starts={"plausible": {"lr": 0.1, "shift": 1, "noise": 0.8}, "poor": {"lr": 0.005, "shift": 3, "noise": 1.5}},
        begin=lambda seed: Network(examples(), seed, augment=shifted_with_noise),
        rate="lr",
        grid=crossed(lr=(0.03, 0.1), shift=(0, 1), noise=(0.0, 0.5)),
        rounds=150,
        validated=validated,
        missing=missing,
    )


TO_CHOOSE = (
    *(task for task in TASKS if task.name in ("digits", "letters", "few digits")),
    *(_table(name) for name in ("satimage", "magic")),
    _few("few letters", partial(few_of, "letter", 600), file="tabular/letter.npz"),
    _few("few satimage", partial(few_of, "satimage", 200), file="tabular/satimage.npz"),
    _few_images("few digits, longer", partial(digits, 100), validated=400, missing=partial(missing_package, "sklearn")),
    _few_images("some clothes, moved", partial(clothes, 300, SOME_CLOTHES), missing=partial(missing_file, CLOTHES[0])),
)
"""Rules and constants of `PairedProbes` are chosen on these alone, with seeds below 1000."""

TO_REPORT = (
    _table("adult"),
    _table("spambase", validated=600),
    _table("churn"),
    *(_table(name, of=classed) for name in ("503_wind", "537_houses", "574_house_16H")),
    _few("few spambase", partial(few_of, "spambase", 200), file="tabular/spambase.npz"),
    _few("other clothes", partial(clothes, 300, OTHER_CLOTHES), file=CLOTHES[0]),
    _few_images(
        "other clothes, moved", partial(clothes, 300, OTHER_CLOTHES), missing=partial(missing_file, CLOTHES[0])
    ),
)
"""No rule and no constant was chosen on these: they have other data, and other kinds of clothes. `optdigits` is left
out, because all images of `digits` are among its own."""
