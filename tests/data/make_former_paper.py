"""Makes former_paper.db.xz, a study with trials of `TraceKG.paper()` before it followed the paper to the letter.

Kept to show what is in it. It ran at commit 2797565d, and is not run again: a later version stores the published form.
"""

import lzma
import math
import sqlite3
import tempfile
from pathlib import Path

import farthing as ft

SPACE = ft.Space(
    {"rate": ft.Float(1e-3, 1.0, log=True), "width": ft.Float(0.0, 1.0)},
    fidelities={"epochs": ft.Fidelity(1, 27, integer=True, trace=True)},
)
TRIALS = 9


def loss(params: dict[str, float], epoch: int) -> float:
    worst = 0.1 + (math.log10(params["rate"]) + 1.5) ** 2 / 10.0 + (params["width"] - 0.6) ** 2
    return worst * (1.0 + 5.0 / epoch)


def make(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "former.db"
        strategy = ft.TraceKG.paper(zero_avoiding=False, retain=3)
        address = f"sqlite:///{database}"
        study = ft.Study(SPACE, minimize="loss", strategy=strategy, storage=address, name="former", seed=0)
        for _ in range(TRIALS):
            trial = study.ask()
            begun = 0 if trial.resume_from is None else int(study.trials[trial.resume_from].fidelity["epochs"])
            for epoch in range(begun + 1, int(trial.fidelity["epochs"]) + 1):
                trial.report(loss(dict(trial.params), epoch), epochs=epoch)
            study.tell(trial)
        study.close()
        connection = sqlite3.connect(database)
        with connection:
            connection.execute("UPDATE trial SET owner = 'somebody'")
            connection.execute("UPDATE study SET settings = replace(settings, ?, '/tmp')", (folder,))
        connection.execute("VACUUM")
        connection.close()
        path.write_bytes(lzma.compress(database.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    make(Path(__file__).parent / "former_paper.db.xz")
