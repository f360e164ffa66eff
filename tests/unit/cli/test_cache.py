"""`farthing cache`: a pipeline's kept outputs are listed, verified and pruned."""

import json
from pathlib import Path

import pytest

import farthing as ft
from farthing.files.file_lock import shared
from farthing.trials.prefixes import EVICTED, cached_prefixes

SPACE = ft.Space(
    stages={"load": {"size": ft.Int(1, 3)}, "scale": {"factor": ft.Int(1, 3)}, "score": {"s": ft.Int(0, 9)}}
)
CONFIGURATIONS = [{"size": 1, "factor": 1, "s": 0}, {"size": 1, "factor": 2, "s": 0}, {"size": 2, "factor": 1, "s": 3}]


def load(source, size, folder):
    (folder / "image.txt").write_text("x" * 1000 * size)
    return folder / "image.txt"


def pipeline(version: int = 1) -> ft.Pipeline:
    return ft.Pipeline(
        load=ft.Stage(load, version=version, folder=True),
        scale=ft.Stage(lambda image, factor: len(image.read_text()) * factor, version=1),
        score=ft.Stage(lambda length, s: float(length + s), version=1),
    )


@pytest.fixture
def study(folder: Path) -> ft.Study:
    """Two outputs of `load`, of 1000 and 2000 characters, and three of `scale`, in `images.db`."""
    study = ft.Study(SPACE, minimize="error", storage="images.db", name="images", strategy=ft.Random(), seed=1)
    for params in CONFIGURATIONS:
        study.enqueue(params)
    study.run(pipeline(), budget=ft.Budget(trials=3), executor="inline")
    return study


def entries(study: ft.Study) -> list[Path]:
    return sorted(study.checkpoints.root.glob("stages/*/output"))


def test_list_has_a_line_for_each_stage(farthing, study: ft.Study) -> None:
    header, first, second, total = farthing("cache", "list").output.splitlines()

    assert header.split() == ["stage", "outputs", "size", "seconds"]
    assert first.split()[:2] == ["load", "2"]
    assert second.split()[:2] == ["scale", "3"]
    assert total.split()[:2] == ["all", "5"]


def test_list_all_has_a_line_for_each_output_with_its_params(farthing, study: ft.Study) -> None:
    lines = farthing("cache", "list", "images", "--all").output.splitlines()

    assert len(lines) == 6
    assert lines[-1].split()[1] == "scale"
    assert lines[-1].endswith("load.size=2 scale.factor=1")


def test_list_is_json_for_a_program(farthing, study: ft.Study) -> None:
    form = json.loads(farthing("cache", "list", "--json").output)

    assert Path(form["folder"]) == study.checkpoints.root / "stages"
    assert [output["params"] for output in form["outputs"]][:2] == [{"load": {"size": 1}}, {"load": {"size": 2}}]
    assert form["bytes"] == sum(output["bytes"] for output in form["outputs"])
    assert {output["key"] for output in form["outputs"]} == {entry.parent.name for entry in entries(study)}


def test_verify_finds_what_is_not_as_it_was_written_and_leaves_it(farthing, study: ft.Study) -> None:
    assert farthing("cache", "verify").output == "None of 5 outputs are damaged.\n"

    next(path for entry in entries(study) for path in entry.rglob("image.txt")).write_text("y")
    ended = farthing("cache", "verify")

    assert ended.exit_code == 1
    assert "0.path/image.txt is not as it was written" in ended.output
    assert "1 of 5 outputs is damaged." in ended.output
    assert len(entries(study)) == 5
    assert len(json.loads(farthing("cache", "verify", "--json").output)["damaged"]) == 1


def test_verify_finds_an_output_without_its_description(farthing, study: ft.Study) -> None:
    (entries(study)[0].parent / "entry.json").unlink()

    ended = farthing("cache", "verify")

    assert ended.exit_code == 1
    assert "its description is missing or damaged" in ended.output


def test_prune_damaged_removes_the_damaged_alone(farthing, study: ft.Study) -> None:
    next(path for entry in entries(study) for path in entry.rglob("image.txt")).write_text("y")

    assert farthing("cache", "prune", "--damaged").output.startswith("Removed 1 output, ")
    assert farthing("cache", "verify").exit_code == 0
    assert len(entries(study)) == 4


def test_prune_of_a_stage_is_told_to_the_history(farthing, study: ft.Study) -> None:
    assert set(cached_prefixes(study.history).values()) == {1, 2}

    assert farthing("cache", "prune", "--stage", "scale").output.startswith("Removed 3 outputs, ")

    again = ft.Study.load("images", "images.db")
    assert set(cached_prefixes(again.history).values()) == {1}
    assert [event.payload["why"] for event in again.history.events if event.kind == EVICTED] == ["pruned"] * 3


def test_a_pruned_output_is_computed_again(farthing, study: ft.Study) -> None:
    farthing("cache", "prune", "--all")
    assert entries(study) == []

    study.enqueue({"size": 2, "factor": 1, "s": 5})
    study.run(pipeline(), budget=ft.Budget(trials=4), executor="inline")

    assert study.trials[-1].value == 2005.0
    assert len(entries(study)) == 2


def test_prune_to_a_limit_keeps_within_it(farthing, study: ft.Study) -> None:
    total = json.loads(farthing("cache", "list", "--json").output)["bytes"]

    dry = json.loads(farthing("cache", "prune", "--limit", total - 1, "--dry-run", "--json").output)
    assert len(dry["removed"]) == 1
    assert len(entries(study)) == 5

    done = json.loads(farthing("cache", "prune", "--limit", total - 1, "--json").output)
    assert [output["key"] for output in done["removed"]] == [output["key"] for output in dry["removed"]]
    assert len(entries(study)) == 4


def test_prune_superseded_removes_what_changed_code_left_behind(farthing, study: ft.Study) -> None:
    study.enqueue({"size": 1, "factor": 1, "s": 9})
    study.run(pipeline(version=2), budget=ft.Budget(trials=4), executor="inline")
    assert "2 outputs are superseded: farthing cache prune --superseded." in farthing("cache", "list").output
    before = {entry.parent.name for entry in entries(study)}

    gone = json.loads(farthing("cache", "prune", "--superseded", "--json").output)["removed"]

    assert [output["params"] for output in gone] == [
        {"load": {"size": 1}},
        {"load": {"size": 1}, "scale": {"factor": 1}},
    ]
    assert {entry.parent.name for entry in entries(study)} == before - {output["key"] for output in gone}


def test_prune_leaves_what_is_in_use(farthing, study: ft.Study) -> None:
    used = entries(study)[0].parent
    with shared(used.with_name(f"{used.name}.lock")):
        text = farthing("cache", "prune", "--all").output

    assert text.startswith("Removed 4 outputs, ")
    assert text.endswith("1 in use: left there.\n")
    assert [entry.parent for entry in entries(study)] == [used]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prune"], "Pruning needs one of --limit, --stage, --superseded, --damaged and --all, got 0 of them."),
        (["prune", "--all", "--stage", "load"], "got 2 of them"),
        (["prune", "--stage", "lod"], "must be among 'load', 'scale', got 'lod'. Did you mean 'load'?"),
        (["prune", "--stage", "score"], "got 'score'. "),
        (
            ["prune", "--limit", "many"],
            "A cache's limit must be a number of bytes or a text such as '2 GB', got 'many'.",
        ),
        (["list", "photos"], "A study must be among 'images', got 'photos'."),
    ],
)
def test_mistakes_are_explained(farthing, study: ft.Study, arguments: list[str], said: str) -> None:
    ended = farthing("cache", *arguments)

    assert ended.exit_code != 0
    assert said in " ".join(ended.output.replace("│", " ").split())
    assert len(entries(study)) == 5


def test_a_study_without_stages_has_no_cache(farthing, digits: ft.Study) -> None:
    ended = farthing("cache", "list", "--storage", "digits.db")

    assert ended.exit_code == 1
    assert "Only pipelines keep outputs of stages, got the study 'digits'" in ended.output


def test_a_study_that_has_not_run_has_no_outputs(farthing, folder: Path) -> None:
    ft.Study(SPACE, minimize="error", storage="images.db", name="images")

    assert farthing("cache", "list").output.startswith("No outputs are kept in ")
    assert farthing("cache", "verify").output == "None of 0 outputs are damaged.\n"
    assert farthing("cache", "prune", "--all").output.startswith("Removed 0 outputs")


@pytest.mark.parametrize("name", ["list", "prune", "verify"])
def test_each_has_an_example_and_says_what_comes_next(farthing, name: str) -> None:
    text = farthing("cache", name, "--help").output

    assert "Example:" in text
    assert "Next:" in text
