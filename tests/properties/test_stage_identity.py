"""The identity of a stage's code, over many kinds of code that users write."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from stage_kinds import (
    FILLED,
    HELPER,
    HELPER_TEXT,
    IMPORTED_BY_A_TEXT,
    KINDS,
    PACKAGE,
    UNSEEN,
    importing,
)

import farthing as ft
from farthing.errors import WorkError

TESTS = Path(__file__).parents[1]
PLACES = {kind: f"kind_{place:02}" for place, kind in enumerate(KINDS)}
CHANGES = [(kind, change) for kind, found in KINDS.items() for change in found.changes]


def written(folder: Path, modules: dict[str, str], helper: str = HELPER_TEXT) -> Path:
    (folder / PACKAGE).mkdir(parents=True)
    (folder / PACKAGE / "__init__.py").write_text("")
    (folder / PACKAGE / f"{HELPER}.py").write_text(helper)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def printed(modules: dict[str, str], *, hash_seed: int = 0, order: str = "forward", helper: str = HELPER_TEXT) -> dict:
    with TemporaryDirectory() as parent:
        folder = written(Path(parent) / "code", modules, helper)
        environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(TESTS / "stage_digests.py"), str(folder), order]
        return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@cache
def of_two_processes() -> list[dict[str, list[str]]]:
    modules = {PLACES[kind]: found.text for kind, found in KINDS.items()}
    return [printed(modules, hash_seed=1), printed(modules, hash_seed=2, order="backward")]


@cache
def of_changed_code() -> dict[str, list[str]]:
    modules = {f"kind_{place:03}": KINDS[kind].changed(change)[0] for place, (kind, change) in enumerate(CHANGES)}
    return printed(modules)


@cache
def with_helper(text: str) -> dict[str, list[str]]:
    return printed({PLACES[kind]: found.text for kind, found in KINDS.items()}, helper=text)


def test_there_are_more_than_fifty_kinds() -> None:
    assert len(KINDS) >= 50


@pytest.mark.parametrize("kind", KINDS)
def test_code_that_stays_has_one_identity_at_all_calls_and_in_all_processes(kind: str) -> None:
    found = [process[PLACES[kind]] for process in of_two_processes()]
    assert len({identity for process in found for identity in process}) == 1, found


@pytest.mark.parametrize(("kind", "change"), CHANGES, ids=lambda part: part if isinstance(part, str) else part[1][:12])
def test_a_changed_line_constant_or_attribute_gives_another_identity(kind: str, change: tuple[str, str]) -> None:
    before = of_two_processes()[0][PLACES[kind]][0]
    if change[0].startswith(">"):
        assert with_helper(KINDS[kind].changed(change)[1])[PLACES[kind]][0] != before
    else:
        assert of_changed_code()[f"kind_{CHANGES.index((kind, change)):03}"][0] != before


@cache
def of_studies() -> tuple[dict, dict]:
    """Of every kind a study that was killed after three trials and resumed, and one that was not."""
    with TemporaryDirectory() as parent:
        folder = written(Path(parent) / "code", {PLACES[kind]: found.text for kind, found in KINDS.items()})

        def told(name: str, trials: int) -> dict:
            command = [sys.executable, str(TESTS / "stage_studies.py")]
            arguments = [str(folder), f"sqlite:///{parent}/{name}.db", str(trials)]
            ended = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
            assert ended.returncode == -SIGKILL, ended.stderr
            return json.loads(ended.stdout)

        told("resumed", 3)
        return told("resumed", 6), told("unbroken", 6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_that_was_killed_and_resumed_is_the_unbroken_one(kind: str) -> None:
    resumed, unbroken = (found[PLACES[kind]] for found in of_studies())
    assert resumed == unbroken
    assert resumed["changes"] == 0
    computed, loaded = resumed["stages"]["first"]
    assert (computed, loaded) == (2, 4), "outputs of before the kill are loaded"


def run_in_a_study(folder: Path, modules: dict[str, str]) -> None:
    """One trial of the stage in the first of these modules."""
    written(folder, modules)
    sys.path.insert(0, str(folder))
    try:
        stage = __import__(next(iter(modules))).stage
        space = ft.Space(stages={"first": {"a": ft.Float(1, 2)}, "last": {"c": ft.Float(0, 1)}})
        work = ft.Pipeline(source=1.0, first=stage, last=lambda x, c: x * c)
        study = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0)
        study.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
        assert study.trials[0].value is not None, study.trials[0].failure
    finally:
        sys.path.remove(str(folder))
        for name in [*modules, PACKAGE, f"{PACKAGE}.{HELPER}"]:
            sys.modules.pop(name, None)


LOADS = "def stage(data, a):\n    return load(a).smooth(data) * a\n"
LOADS_THROUGH = "import loads\ndef stage(data, a):\n    return loads.load(a).smooth(data) * a\n"


def test_an_import_of_a_name_in_the_code_is_no_reason_to_refuse(tmp_path: Path) -> None:
    said = importing('importlib.import_module("stage_tools.filters")')
    run_in_a_study(tmp_path / "own", {"says_its_name": said + LOADS})
    run_in_a_study(tmp_path / "other", {"calls_another": LOADS_THROUGH, "loads": said})


@pytest.mark.parametrize("kind", IMPORTED_BY_A_TEXT)
def test_an_import_of_a_name_that_the_code_does_not_say_is_refused(kind: str, tmp_path: Path) -> None:
    loads = importing(IMPORTED_BY_A_TEXT[kind])
    with pytest.raises(WorkError, match=r"got 'first', which imports a module by a name that is not in the code\."):
        run_in_a_study(tmp_path / "own", {"computes_a_name": loads + LOADS})
    with pytest.raises(WorkError, match=r"by a name that is not in the code of 'loads'\. Write the name"):
        run_in_a_study(tmp_path / "other", {"calls_another": LOADS_THROUGH, "loads": loads})


class Notebook:
    """A study of a stage in the globals of a session, which runs in this process itself."""

    def __init__(self, text: str) -> None:
        self.globals: dict[str, Any] = {"SHIFT": 2.0, "__name__": "__main__"}
        self.execute(text)
        space = ft.Space(stages={"first": {"a": ft.Choice(1.0, 1.5)}, "last": {"c": ft.Float(0.5, 1.0)}})
        self.study = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0)

    def execute(self, cell: str) -> None:
        exec(cell, self.globals)

    def run(self, trials: int, **arguments: Any) -> int:
        """Runs up to so many trials; the number of first stages that were computed in all."""
        work = ft.Pipeline(source=np.arange(5.0), first=self.globals["stage"], last=lambda x, c: float(x.sum() * c))
        budget = ft.Budget(trials=trials)
        self.study.run(work, budget=budget, executor="inline", progress=False, **arguments)
        return self.study.ledger.stages["first"].computed

    @property
    def changes(self) -> int:
        return [event.kind for event in self.study.history.events].count("code of stages changed")


@pytest.mark.parametrize("kind", FILLED)
def test_what_a_stage_fills_as_it_runs_is_no_change_of_its_code(kind: str) -> None:
    notebook = Notebook(FILLED[kind])
    assert [notebook.run(trials) for trials in (3, 6, 9)] == [2, 2, 2]
    assert notebook.changes == 0


@pytest.mark.parametrize("kind", FILLED)
def test_a_cell_that_was_changed_after_a_run_filled_something_is_noticed(kind: str) -> None:
    notebook = Notebook(FILLED[kind])
    before = notebook.run(3)
    notebook.execute(FILLED[kind].replace("data * ", "data / ").replace("ravel() *", "ravel() /"))
    assert notebook.run(6) > before
    assert notebook.changes == 1


@pytest.mark.parametrize("kind", [kind for kind in FILLED if kind != "a memo of objects in a closure"])
def test_a_global_that_was_changed_after_a_run_filled_something_is_noticed(kind: str) -> None:
    notebook = Notebook(FILLED[kind])
    before = notebook.run(3)
    notebook.execute("SHIFT = 3.0")
    assert notebook.run(6) > before
    assert notebook.changes == 1


def test_objects_that_a_run_left_in_a_closure_are_refused_once_something_else_changed() -> None:
    notebook = Notebook(FILLED["a memo of objects in a closure"])
    notebook.run(3)
    notebook.execute("SHIFT = 3.0")
    with pytest.raises(WorkError, match=r"must say what it does, got 'first', which holds .*Model"):
        notebook.run(6)


def test_a_table_that_was_changed_by_hand_is_noticed() -> None:
    notebook = Notebook("TABLE = {}\ndef stage(data, a):\n    return data * TABLE.setdefault(a, a) * SHIFT")
    assert (notebook.run(3), notebook.run(6), notebook.changes) == (2, 2, 0)
    notebook.execute("TABLE[1.0] = 7.0")
    assert notebook.run(9) > 2
    assert notebook.changes == 1


@pytest.mark.parametrize(
    "cell", ["def helper(x):\n    return x * 3", "__import__('pathlib').Path(file).write_text('4')"]
)
def test_code_and_files_that_another_hand_changes_during_a_run_are_noticed(cell: str, tmp_path: Path) -> None:
    (tmp_path / "gain.txt").write_text("3")
    text = f"from pathlib import Path\nfile = {str(tmp_path / 'gain.txt')!r}\nGAIN, MEMO = Path(file), {{}}\n"
    notebook = Notebook(
        f"{text}def helper(x):\n    return x * 2\n"
        "def stage(data, a):\n    return data * MEMO.setdefault(a, a) * float(GAIN.read_text()) * helper(a)"
    )
    edits = iter([cell])
    assert notebook.run(3, callbacks=[lambda study, trial: notebook.execute(next(edits, ""))]) == 2
    assert notebook.run(6) > 2
    assert notebook.changes == 1


@pytest.mark.parametrize("kind", UNSEEN)
def test_an_object_whose_content_nobody_can_tell_counts_as_changed(kind: str, tmp_path: Path) -> None:
    text = f"{UNSEEN[kind]}\ndef stage(data, a):\n    return HELD and data * a\n"
    seen = f"{text}HELD = None\n"
    found = [printed({"kind_0": one}, hash_seed=1)["kind_0"] for one in (text, seen, seen)]
    assert len(set(found[0])) == len(found[0])
    assert found[1] == found[2]
