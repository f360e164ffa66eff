"""python -m benchmarks.predictions.record NAME: runs a real study and stores it for the benchmark of predictions.

Each is as a user would run it: two workers, default strategy unless the name says otherwise, seconds as cost.
"""

import argparse
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import farthing as ft
from benchmarks.predictions.recorded import FOLDER, write
from benchmarks.problems.data import REPOSITORY, data_folder

# ------------------------------------------------------------------------------------------- programs


def digits(trial: Any) -> None:
    """The work of `farthing demo`: epochs of a small network, on part of the data."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, answers = load_digits(return_X_y=True)
    images = images / 16
    if trial.resume_dir:
        model = pickle.loads((trial.resume_dir / "model.pickle").read_bytes())  # written by this work
    else:
        params = trial.params
        model = MLPClassifier((params["units"],), learning_rate_init=params["rate"], batch_size=params["batch"])
    while int(getattr(model, "t_", 0)) // 1200 < trial.fidelity["epochs"]:
        model.partial_fit(images[:1200], answers[:1200], classes=range(10))
        with trial.timing("validation"):
            error = 1.0 - model.score(images[1200:], answers[1200:])
        trial.report(error, epochs=int(model.t_) // 1200)
    (trial.checkpoint_dir / "model.pickle").write_bytes(pickle.dumps(model))


DIGITS = ft.Space(
    {
        "rate": ft.Float(1e-4, 1e-1, log=True),
        "units": ft.Int(8, 512, log=True),
        "batch": ft.Int(8, 256, log=True),
    },
    fidelities={"epochs": ft.Fidelity(1, 40, integer=True, trace=True)},
)


def fashion(trial: Any) -> None:
    """A small convolutional network in PyTorch, on Fashion-MNIST; data are read once a process."""
    import torch

    torch.set_num_threads(1)
    images, answers = _fashion_data()
    params = trial.params
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, params["width"], 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(4),
        torch.nn.Flatten(),
        torch.nn.Linear(params["width"] * 49, 10),
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=params["rate"], momentum=params["momentum"])
    begun = 0
    if trial.resume_dir:
        saved = torch.load(trial.resume_dir / "state.pt", weights_only=True)
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        begun = saved["epochs"]
    for epoch in range(begun, int(trial.fidelity["epochs"])):
        order = torch.randperm(2000)
        for batch in torch.split(order, params["batch"]):
            loss = torch.nn.functional.cross_entropy(net(images[batch]), answers[batch])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
        with torch.no_grad(), trial.timing("validation"):
            error = float((net(images[2000:]).argmax(1) != answers[2000:]).float().mean())
        trial.report(error, epochs=epoch + 1)
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epochs": int(trial.fidelity["epochs"])}
    torch.save(state, trial.checkpoint_dir / "state.pt")


@cache
def _fashion_data() -> tuple[Any, Any]:
    import gzip

    import torch

    folder = data_folder() / "fashion_mnist"
    pixels = gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes())[8:]
    images = np.frombuffer(pixels, dtype=np.uint8)[: 3000 * 784].reshape(3000, 1, 28, 28) / 255.0
    answers = np.frombuffer(labels, dtype=np.uint8)[:3000].astype(np.int64)
    return torch.tensor(images, dtype=torch.float32), torch.tensor(answers)


FASHION = ft.Space(
    {
        "rate": ft.Float(1e-3, 1.0, log=True),
        "momentum": ft.Float(0.0, 0.95),
        "width": ft.Int(4, 32, log=True),
        "batch": ft.Int(16, 256, log=True),
    },
    fidelities={"epochs": ft.Fidelity(1, 12, integer=True, trace=True)},
)


def boosting(trial: Any) -> None:
    """Rounds of LightGBM, reported every ten; a run goes on from its stored trees."""
    import lightgbm

    images, answers = _boosting_data()
    params = {
        "objective": "binary",
        "num_leaves": trial.params["leaves"],
        "learning_rate": trial.params["rate"],
        "feature_fraction": trial.params["columns"],
        "num_threads": 1,
        "verbose": -1,
        "min_data_in_leaf": 5,
    }
    data = lightgbm.Dataset(images[:12000], answers[:12000], free_raw_data=False)
    model = None
    if trial.resume_dir:
        model = lightgbm.Booster(model_file=trial.resume_dir / "model.txt")
    done = model.current_iteration() if model else 0
    while done < trial.fidelity["rounds"]:
        new = min(10, int(trial.fidelity["rounds"]) - done)
        model = lightgbm.train(params, data, num_boost_round=new, init_model=model, keep_training_booster=True)
        done += new
        chances = np.clip(model.predict(images[12000:]), 1e-6, 1 - 1e-6)
        truth = answers[12000:]
        trial.report(-np.mean(truth * np.log(chances) + (1 - truth) * np.log(1 - chances)), rounds=done)
    assert model is not None, "at least ten rounds"
    model.save_model(trial.checkpoint_dir / "model.txt")


@cache
def _boosting_data() -> tuple[Any, Any]:
    from sklearn.datasets import make_classification

    images, answers = make_classification(16000, 40, n_informative=15, flip_y=0.05, random_state=0)
    return images, answers


BOOSTING = ft.Space(
    {"leaves": ft.Int(4, 256, log=True), "rate": ft.Float(0.01, 0.5, log=True), "columns": ft.Float(0.2, 1.0)},
    fidelities={"rounds": ft.Fidelity(10, 200, integer=True, trace=True)},
)

COMMAND = ft.Space(
    {
        "learning_rate": ft.Float(1e-3, 10.0, log=True),
        "l2": ft.Float(1e-6, 1e-1, log=True),
        "momentum": ft.Choice(0.0, 0.5, 0.9),
    },
    fidelities={"epochs": ft.Fidelity(3, 243, integer=True, trace=True)},
)


def command() -> Any:
    """`examples/train_digits.py` as a program of its own: each trial starts an interpreter."""
    program = REPOSITORY / "examples" / "train_digits.py"
    return ft.Command(
        f"{sys.executable} {program} --learning-rate {{learning_rate}} --l2 {{l2}} --momentum {{momentum}} "
        "--epochs {epochs} --save {checkpoint_dir} --resume {resume_dir}"
    )


def forest(trial: Any) -> float:
    """A forest on made-up tables: no fidelity, costs over two orders of magnitude."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import cross_val_score

    images, answers = _boosting_data()
    params = trial.params
    model = RandomForestClassifier(
        params["trees"], max_depth=params["depth"], max_features=params["columns"], random_state=0, n_jobs=1
    )
    return 1.0 - float(np.mean(cross_val_score(model, images[:3000], answers[:3000], cv=2)))


FOREST = ft.Space({"trees": ft.Int(2, 200, log=True), "depth": ft.Int(2, 20, log=True), "columns": ft.Float(0.05, 1.0)})


def nuclei() -> Any:
    """The pipeline of `examples/4_pipeline.py`, three stages over real images."""
    return _nuclei_example().pipeline()


def _nuclei_example() -> ModuleType:
    folder = str(REPOSITORY / "examples")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module("4_pipeline")


PROGRAMS: Mapping[str, tuple[ft.Space, Callable[[], Any], Mapping[str, Any]]] = {
    "digits": (DIGITS, lambda: digits, {"seconds": 75}),
    "digits-asha": (DIGITS, lambda: digits, {"seconds": 75, "strategy": ft.ASHA()}),
    "fashion": (FASHION, lambda: fashion, {"seconds": 110}),
    "fashion-asha": (FASHION, lambda: fashion, {"seconds": 110, "strategy": ft.ASHA()}),
    "boosting": (BOOSTING, lambda: boosting, {"seconds": 90}),
    "boosting-asha": (BOOSTING, lambda: boosting, {"seconds": 90, "strategy": ft.ASHA()}),
    "command": (COMMAND, command, {"seconds": 90}),
    "forest": (FOREST, lambda: forest, {"seconds": 90}),
    "nuclei": (_nuclei_example().SPACE, nuclei, {"seconds": 75, "aim": {"maximize": "f1"}}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PROGRAMS, []], metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name in given.names or PROGRAMS:
        record(name, seed=given.seed)


def record(name: str, *, seed: int) -> None:
    space, work, settings = PROGRAMS[name]
    strategy = settings.get("strategy")
    with tempfile.TemporaryDirectory() as folder:
        study = ft.Study(
            space,
            **settings.get("aim", {"minimize": "error"}),
            storage=f"sqlite:///{folder}/study.db",
            seed=seed,
            **({} if strategy is None else {"strategy": strategy}),
        )
        study.run(work(), budget=ft.Budget(seconds=settings["seconds"]), workers=2)
        write(study, program=name, path=FOLDER / f"{name}-{seed}.json.gz")
        sys.stderr.write(f"{name}, seed {seed}: {len(study.trials)} trials, {study.ledger.total:.3g} seconds\n")


if __name__ == "__main__":
    main()
