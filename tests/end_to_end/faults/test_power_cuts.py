"""The power ends at any moment: what was acknowledged is there, the database is whole, and the study goes on."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded_study import SPACE, study_in
from recording_disk import Recording

import farthing as ft
from farthing.errors import FarthingError
from farthing.storage import open_storage

PROGRAM = Path(__file__).with_name("recorded_study.py")
FIRST_SCHEMA = Path(__file__).parents[2] / "data" / "schema_0001.db"
NAME = "study.db"


def record(folder: Path, what: str, *, options: str = "", before: Path | None = None) -> Recording:
    folder.mkdir()
    if before is not None:
        shutil.copy(before, folder / NAME)
    arguments = [f"sqlite:///{folder / NAME}{options}", str(folder / "recording"), what]
    subprocess.run([sys.executable, str(PROGRAM), *arguments], check=True)
    return Recording.load(folder / "recording", {NAME: before.read_bytes()} if before else {})


def images(recording: Recording, folder: Path, *, cuts: int, seed: object) -> list[tuple[Path, list[str]]]:
    """What is left on disk after each cut, and what had been acknowledged by then."""
    rng = random.Random(str(seed))
    made = []
    for number in range(cuts):
        image = folder / f"cut-{number}"
        image.mkdir()
        cut = rng.randint(0, len(recording.events))
        recording.cut_power(cut, image, rng)
        made.append((image / NAME, recording.acknowledged(cut)))
    return made


def lost(path: Path, acknowledged: list[str]) -> list[str]:
    """What was acknowledged and is not in the database."""
    if not acknowledged:
        return []
    trials = ft.Study.load("study", path).trials
    reported = {(trial.number, point.step) for trial in trials for point in trial.measurements}
    told = {trial.number for trial in trials if trial.state is ft.State.DONE and trial.value == trial.params["x"]}
    is_kept: dict[str, Callable[..., bool]] = {
        "created": lambda: True,
        "opened": lambda number: number < len(trials),
        "reported": lambda number, step: (number, step) in reported,
        "told": lambda number: number in told,
    }
    words = [line.split() for line in acknowledged]
    return [" ".join([what, *rest]) for what, *rest in words if not is_kept[what](*map(int, rest))]


def goes_on(path: Path) -> None:
    """The study suggests what it would have suggested, and finishes."""
    study = study_in(f"sqlite:///{path}")
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=len(study.trials) + 1), executor="inline")
    unbroken = ft.Study(SPACE, minimize="error", strategy=ft.Random(), seed=3)
    unbroken.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=len(study.trials)), executor="inline")
    assert [trial.params for trial in study.trials] == [trial.params for trial in unbroken.trials]
    assert all(trial.state is ft.State.DONE for trial in study.trials)
    study.close()


def cut_studies(folder: Path, *, cuts: int) -> None:
    recording = record(folder / "recorded", "study")
    for path, acknowledged in images(recording, folder, cuts=cuts, seed=cuts):
        storage = open_storage(path)
        assert storage.check() == []
        storage.close()
        assert lost(path, acknowledged) == []
        goes_on(path)
        shutil.rmtree(path.parent)


def cut_upgrades(folder: Path, *, cuts: int) -> None:
    recording = record(folder / "recorded", "upgrade", before=FIRST_SCHEMA)
    for path, _ in images(recording, folder, cuts=cuts, seed=f"upgrade {cuts}"):
        storage = open_storage(path)
        assert storage.check() == []
        assert [trial.value for trial in storage.history("digits").trials][:1] == [0.5]
        storage.close()
        shutil.rmtree(path.parent)


def test_nothing_acknowledged_is_lost_in_a_power_cut(tmp_path: Path) -> None:
    cut_studies(tmp_path, cuts=20)


def test_a_power_cut_while_a_database_is_created_leaves_one_that_can_be_opened(tmp_path: Path) -> None:
    recording, rng = record(tmp_path / "recorded", "study"), random.Random(0)
    first = recording.events.index(("acknowledged", "created"))
    for number, cut in enumerate([*range(12), *range(12), first]):
        image = tmp_path / f"cut-{number}"
        image.mkdir()
        recording.cut_power(cut, image, rng)
        storage = open_storage(image / NAME)
        assert storage.check() == []
        storage.close()


def test_a_power_cut_in_an_upgrade_leaves_the_old_database_or_the_new_one(tmp_path: Path) -> None:
    cut_upgrades(tmp_path, cuts=5)


def test_a_disk_that_is_not_made_to_write_loses_what_was_acknowledged(tmp_path: Path) -> None:
    """So these tests can fail: without syncs they do."""
    recording = record(tmp_path / "recorded", "study", options="?synchronous=off")
    assert not any(event[0] == "sync" for event in recording.events)
    damaged = 0
    for path, acknowledged in images(recording, tmp_path, cuts=20, seed="off"):
        try:
            damaged += bool(lost(path, acknowledged))
        except FarthingError:
            damaged += 1
    assert damaged > 0


@pytest.mark.long
@pytest.mark.timeout(36_000)
def test_many_power_cuts_in_an_upgrade_leave_the_old_database_or_the_new_one(tmp_path: Path) -> None:
    cut_upgrades(tmp_path, cuts=100)
