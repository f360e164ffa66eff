"""Makes former_workers.db.xz: studies with several trials in flight, of before notes became differences.

Kept to show what is in it: one that a model decided with eight in flight, one of trials so short that halving decided
in haste, and two of trials so short that evolution did, one of them with categories. It ran at commit 8c7bb7f3, and is
not run again: a later version stores what changed since the last suggestion, and haste and evolution have other rules.
"""

import lzma
import sqlite3
import tempfile
from pathlib import Path

import farthing as ft

PLAIN = ft.Space({"rate": ft.Float(1e-3, 1.0, log=True), "width": ft.Float(0.0, 1.0)})
MIXED = ft.Space({**PLAIN.parameters, "kind": ft.Choice("a", "b", "c")})
CURVES = ft.Space(
    {"rate": ft.Float(1e-3, 1.0, log=True), "width": ft.Float(0.0, 1.0)},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)},
)
STUDIES = {
    "eight": (PLAIN, ft.LogEI(), 8, 40, 60.0),
    "haste": (CURVES, ft.TraceKG(), 3, 60, 0.004),
    "evolution": (PLAIN, ft.EIPerCost(), 3, 60, 0.002),
    "categories": (MIXED, ft.EIPerCost(), 3, 60, 0.002),
}
"""Space, strategy, trials in flight, trials in all, and the seconds of the work of a trial or an epoch."""


def loss(trial: ft.RunningTrial, epoch: int = 27) -> float:
    return 0.1 + abs(trial.params["width"] - 0.6) + (trial.params["rate"] - 0.03) ** 2 + 1.0 / epoch


class Ticking(ft.FakeClock):
    """Each look takes a microsecond: a suggestion that takes no time counts as enqueued."""

    def elapsed(self) -> float:
        self.advance(1e-6)
        return super().elapsed()


def play(name: str, address: str) -> None:
    space, strategy, at_once, trials, seconds = STUDIES[name]
    clock = Ticking()
    study = ft.Study(space, minimize="loss", strategy=strategy, storage=address, name=name, seed=0, clock=clock)
    if seconds == 0.002:  # a budget says that there are many
        study.set_budget(ft.Budget(cost=1.0))
    running = [study.ask() for _ in range(at_once)]
    while running:
        trial = running.pop(0)
        begun = 0 if trial.resume_from is None else int(study.trials[trial.resume_from].fidelity["epochs"])
        for epoch in range(begun + 1, int(trial.fidelity["epochs"]) + 1) if trial.fidelity else ():
            clock.advance(seconds)
            trial.report(loss(trial, epoch), epochs=epoch)
        if trial.fidelity:
            study.tell(trial)
        else:
            clock.advance(seconds)
            study.tell(trial, loss(trial))
        if len(study.trials) < trials:
            running.append(study.ask())
    study.close()


def make(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "former.db"
        for name in STUDIES:
            play(name, f"sqlite:///{database}")
        connection = sqlite3.connect(database)
        with connection:
            connection.execute("UPDATE trial SET owner = 'somebody'")
            connection.execute("UPDATE study SET settings = replace(settings, ?, '/tmp')", (folder,))
        connection.execute("VACUUM")
        connection.close()
        path.write_bytes(lzma.compress(database.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    make(Path(__file__).parent / "former_workers.db.xz")
