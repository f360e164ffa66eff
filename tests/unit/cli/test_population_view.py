"""What `farthing` shows and draws of a population, and how a study file trains one."""

import json
from pathlib import Path

import pytest

import farthing as ft

PNG = b"\x89PNG"
SPACE = ft.Space(
    {
        "lr": ft.Float(1e-4, 1.0, log=True),
        "units": ft.Int(1, 9),
        "kind": ft.Choice("a", "b"),
        "decay": ft.Float(0, 1),
        "drop": ft.Float(0, 1),
    }
)
WORK = """
import json
import farthing as ft

class Agent(ft.Trainable):
    def setup(self, params):
        self.total = 0.0

    def apply(self, params):
        self.lr = params["lr"]

    def step(self):
        self.total += self.lr
        return self.total

    def save(self, folder):
        (folder / "total.json").write_text(json.dumps(self.total))

    def load(self, folder):
        self.total = json.loads((folder / "total.json").read_text())
"""
FILE = """
[study]
maximize = "reward"
storage = "sqlite:///agents.db"
workers = 2

[space]
lr = {float = [0.0, 1.0]}

[strategy]
name = "PB2"
population = 4
interval = 1
steps = 4

[work]
python = "agent.py:Agent"
"""


@pytest.fixture
def agents(folder: Path) -> ft.Study:
    """Four members, four intervals of two steps; member 1 fails in the second."""
    study = ft.Study(
        SPACE,
        maximize="reward",
        strategy=ft.PBT(population=4, interval=2, steps=8),
        storage="agents.db",
        name="agents",
        cost_unit="steps",
    )
    while trials := study.ask(count=4):
        for trial in trials:
            note = study.trials[trial.number].note
            if (note["member"], note["interval"]) == (1, 2):
                study.tell(trial, failure="diverged", cost=1.0)
                continue
            end = int(trial.fidelity["steps"])
            value = end * (1.0 + 0.1 * note["member"])
            study.tell(trial, cost=2.0, trace=[({"steps": end - 1}, value - 0.5), ({"steps": end}, value)])
    return study


def test_lanes_copies_and_the_winners_schedule_are_shown(farthing, agents: ft.Study) -> None:
    shown = farthing("--debug", "show").output

    assert "━ the way of the winner" in shown
    assert "×" in shown
    copy = agents.lineage.copies[0]
    assert f"{copy.donor}▸" in shown
    assert "The winner's schedule, 8 steps" in shown
    assert all(f"{start:>10} " in shown for start, _ in agents.best.schedule)


def test_json_has_the_schedule(farthing, agents: ft.Study) -> None:
    shown = json.loads(farthing("show", "--json").output)

    assert shown["best"]["schedule"] == agents.best.schedule.to_json()


def test_a_population_is_drawn(farthing, folder: Path, agents: ft.Study) -> None:
    assert farthing("--debug", "plot").output == "Wrote agents.png\n"
    assert (folder / "agents.png").read_bytes().startswith(PNG)
    assert farthing("--debug", "plot", "--kind", "params", "--output", "params.png").exit_code == 0


def test_a_population_that_has_no_result_is_not_drawn(farthing) -> None:
    study = ft.Study(SPACE, maximize="reward", strategy=ft.PB2(population=4, interval=1, steps=3), storage="agents.db")
    study.ask()

    result = farthing("plot")

    assert result.exit_code == 1
    assert "Run the study first" in result.stderr
    assert "…" in farthing("show").output


def test_a_study_file_trains_a_population_without_fidelities_and_budget(farthing, folder: Path) -> None:
    (folder / "agent.py").write_text(WORK)
    (folder / "agents.toml").write_text(FILE)

    ran = farthing("--debug", "run", "agents.toml")

    assert ran.exit_code == 0, ran.output
    study = ft.Study.load("agents", "agents.db")
    assert len(study.trials) == 16
    assert study.best.schedule.steps == 4
    shown = farthing("--debug", "show").output
    assert "checkpoints: 1 kept" in shown
    assert farthing("--debug", "run", "agents.toml").exit_code == 0
    assert farthing("--debug", "resume").exit_code == 0
    assert len(study.trials) == 16


def test_other_strategies_in_a_file_need_a_budget(farthing, folder: Path) -> None:
    (folder / "agent.py").write_text(WORK)
    text = FILE.replace('"PB2"\npopulation = 4\ninterval = 1\nsteps = 4', '"Random"')
    (folder / "agents.toml").write_text(text)

    result = farthing("run", "agents.toml")

    assert result.exit_code == 1
    assert "A run needs a budget" in result.stderr
