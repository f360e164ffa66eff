"""A study of each kind, run in earnest but on small functions: for tests of pages, and for the pictures in the docs."""

import math
import sys
import time
from pathlib import Path

import farthing as ft

INJECTION = "<img src=x onerror=alert(1)>\"'</script><script>alert(2)</script>{{7*7}}"
FLAT = ft.Space(
    {"rate": ft.Float(1e-4, 1.0, log=True), "units": ft.Int(8, 512, log=True), "kind": ft.Choice("adam", "sgd")}
)
TRACED = ft.Space(
    {"rate": ft.Float(1e-4, 1.0, log=True), "dropout": ft.Float(0.0, 0.6), "kind": ft.Choice("adam", "sgd")},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)},
)
STAGED = ft.Space(
    stages={
        "clean": {"window": ft.Int(1, 4)},
        "train": {"rate": ft.Float(1e-3, 1e-1, log=True)},
        "cut": {"threshold": ft.Float(0.1, 0.9)},
    }
)
TUNED = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "decay": ft.Float(0.0, 0.1)})


def write_studies(path: Path) -> None:
    plain(path)
    multifidelity(path)
    population(path)
    pipeline(path)
    online(path)
    injected(path)
    maximised(path)
    ft.Study(FLAT, minimize="error", storage=path, name="no trials yet").close()


def loss_of(params, epochs: float = 27) -> float:
    """A valley around a rate of 0.01, reached slowly; sgd is a little worse."""
    floor = 0.05 + 0.06 * abs(math.log10(params["rate"]) + 2) + (0.02 if params["kind"] == "sgd" else 0.0)
    return floor + 0.4 * math.exp(-epochs / 6)


def flat_work(trial: ft.RunningTrial) -> float:
    if trial.number == 5:
        raise MemoryError("the model does not fit")
    trial.charge(0.5 + trial.params["units"] / 100)
    return loss_of(trial.params) + 0.03 * abs(math.log(trial.params["units"] / 64))


def plain(path: Path) -> None:
    with ft.Study(
        FLAT, minimize="error", strategy=ft.EIPerCost(), storage=path, name="digits", seed=2, cost_unit="dollars"
    ) as study:
        study.run(flat_work, budget=ft.Budget(trials=24, cost=120), executor="inline", progress=False, keep_going=True)
        study.annotate(3, tags=["baseline"], comment="the setting of last year")


def traced_work(trial: ft.RunningTrial) -> float:
    loss = math.inf
    for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
        loss = loss_of(trial.params, epoch) + 0.05 * trial.params["dropout"]
        trial.charge(1.0)
        trial.report(loss, epochs=epoch, metrics={"accuracy": 1 - loss})
    with trial.checkpoint() as folder:
        (folder / "weights.json").write_text(str(loss))
        (folder / "picture.png").write_bytes(bytes.fromhex(PIXEL))
        (folder / "page.html").write_text("<script>alert(3)</script>")
    return loss


PIXEL = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


def multifidelity(path: Path) -> None:
    with ft.Study(
        TRACED, minimize="error", strategy=ft.Hyperband(), storage=path, name="curves", seed=1, cost_unit="epochs"
    ) as study:
        study.run(traced_work, budget=ft.Budget(cost=220), executor="inline", progress=False)


def maximised(path: Path) -> None:
    """Short runs by a model, whose recommendation need not be the best that was measured."""
    with ft.Study(
        TRACED, maximize="score", strategy=ft.TraceKG(), storage=path, name="maximised", seed=4, cost_unit="epochs"
    ) as study:
        study.run(score_work, budget=ft.Budget(cost=120), executor="inline", progress=False)


def score_work(trial: ft.RunningTrial) -> float:
    score = 0.0
    for epoch in range(1, int(trial.fidelity["epochs"]) + 1):
        score = 1 - loss_of(trial.params, epoch)
        trial.charge(1.0)
        trial.report(score, epochs=epoch)
    return score


def population(path: Path) -> None:
    with ft.Study(
        TRACED,
        minimize="error",
        strategy=ft.PBT(population=5, interval=3),
        storage=path,
        name="population",
        seed=3,
        cost_unit="epochs",
    ) as study:
        study.run(member_work, executor="inline", progress=False)


def member_work(trial: ft.RunningTrial) -> float:
    loss = math.inf
    for epoch in range(int(trial.fidelity["epochs"]) - 2, int(trial.fidelity["epochs"]) + 1):
        loss = loss_of(trial.params, epoch)
        trial.charge(1.0)
        trial.report(loss, epochs=epoch)
    with trial.checkpoint() as folder:
        (folder / "weights.json").write_text(str(loss))
    return loss


def clean(data, *, window):
    time.sleep(0.01)
    return {"noise": 1.0 / window}


def train(data, *, rate):
    time.sleep(0.03)
    return {"noise": data["noise"], "fit": abs(math.log10(rate) + 2)}


def cut(data, *, threshold):
    return data["noise"] * 0.1 + data["fit"] * 0.2 + (threshold - 0.4) ** 2


def pipeline(path: Path) -> None:
    with ft.Study(STAGED, minimize="error", strategy=ft.LaMBO(), storage=path, name="pipeline", seed=1) as study:
        work = ft.Pipeline(source={"images": 1.0}, clean=clean, train=train, cut=cut)
        study.run(work, budget=ft.Budget(trials=20), executor="inline", progress=False)


def online(path: Path) -> None:
    start = {"rate": 0.02, "decay": 0.01}
    tuner = ft.OnlineTuner(TUNED, maximize="accuracy", rounds=120, initial=start, storage=path, name="online", seed=1)
    level = 0.2
    for decision in tuner:
        level += 0.02 * (1 - level) * math.exp(-abs(math.log10(decision.params["rate"]) + 1))
        decision.observe(lambda: level)  # noqa: B023  # it is called at once


def injected(path: Path) -> None:
    """Names, notes and errors that would be scripts if a page took them for HTML."""
    space = ft.Space({"x": ft.Float(0, 1), "choice": ft.Choice(INJECTION, "b")})
    with ft.Study(
        space, minimize="loss", cost_unit=INJECTION[:40], storage=path, name=f"study {INJECTION}", strategy=ft.Random()
    ) as study:
        for place in range(6):
            study.add({"x": place / 6, "choice": INJECTION if place % 2 else "b"}, place / 3, cost=1.0)
        study.annotate(2, tags=[INJECTION], comment=INJECTION)
        trial = study.ask()
        study.tell(trial, failure=INJECTION)


if __name__ == "__main__":
    write_studies(Path(sys.argv[1]))
