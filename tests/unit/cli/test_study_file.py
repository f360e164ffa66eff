"""Study files: what they can say, and what is said when they are wrong."""

from pathlib import Path

import pytest

import farthing as ft
from farthing.cli.study_file import read_study_file
from farthing.errors import InvalidFile

WHOLE = """
[study]
name = "digits"
maximize = "accuracy"
storage = "sqlite:///digits.db"
seed = 3
workers = 2
time_limit = 90
retries = 1
cost_unit = "dollars"
folder = "files"
[budget]
seconds = 600
cost = 12.5
trials = 40
[space]
lr = {float = [1e-5, 1e-1], log = true}
units = {int = [16, 512], log = true}
momentum = {float = [0.0, 1.0], when = {act = "tanh"}}
act = {choice = ["relu", "tanh"]}
[fidelities]
epochs = {int = [1, 50], trace = true}
[strategy]
name = "ASHA"
reduction = 4
[work]
command = "./train --lr {lr}"
"""

SMALL = """
[study]
minimize = "error"
[space]
lr = {float = [0.1, 1.0]}
[work]
command = "true {lr}"
"""


DOLLARS = SMALL.replace("[study]", '[study]\ncost_unit = "dollars"')


def written(folder: Path, text: str) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_can_say_everything(folder: Path) -> None:
    file = read_study_file(written(folder, WHOLE))

    assert (file.name, file.storage, file.folder) == ("digits", "sqlite:///digits.db", "files")
    assert (file.problem.value, file.problem.direction, file.problem.seed) == ("accuracy", "maximize", 3)
    assert (file.problem.cost_unit, file.problem.measures_cost) == ("dollars", False)
    assert list(file.problem.space.parameters) == ["lr", "units", "momentum", "act"]
    assert file.problem.space.fidelities == {"epochs": ft.Fidelity(1, 50, integer=True, trace=True)}
    assert file.strategy == ft.ASHA(reduction=4)
    assert file.plan.budget == ft.Budget(seconds=600, cost=12.5, trials=40)
    assert (file.plan.workers, file.plan.time_limit, file.plan.retries) == (2, 90, 1)
    assert (file.plan.work.command, file.plan.work.folder) == ("./train --lr {lr}", folder)


def test_a_file_has_prices_and_says_what_a_trial_holds(folder: Path) -> None:
    priced = '[prices]\ngpu = 2.5\ncpu = 0.05\nper = "hour"\n[resources]\ngpu = 1\ncpu = 4\n'
    file = read_study_file(written(folder, DOLLARS + priced))

    assert file.prices == {"gpu": 2.5, "cpu": 0.05, "per": "hour"}
    assert (file.problem.cost_unit, file.problem.measures_cost) == ("dollars", True)
    assert file.plan.resources == {"gpu": 1, "cpu": 4}
    assert type(file.plan).from_json(file.plan.to_json()) == file.plan


def test_a_study_is_named_after_its_file_when_it_has_no_name(folder: Path) -> None:
    assert read_study_file(written(folder, SMALL)).name == "study"


def test_stages_can_be_declared(folder: Path) -> None:
    text = SMALL.replace("[space]\n", "[stages.denoise]\n") + "\n[stages.score]\nk = {int = [1, 5]}\n"

    assert dict(read_study_file(written(folder, text)).problem.space.stages) == {"denoise": ("lr",), "score": ("k",)}


PATTERN = "pattern = 'loss=(?P<value>[0-9.]+)'"


def test_patterns_stay_with_the_work_over_a_resume(folder: Path) -> None:
    one = read_study_file(written(folder, f"{SMALL}{PATTERN}\n")).plan
    several = read_study_file(written(folder, SMALL + "pattern = ['a', 'b']\n")).plan

    assert one.work.pattern == ("loss=(?P<value>[0-9.]+)",)
    assert several.work.pattern == ("a", "b")
    assert type(one).from_json(one.to_json()) == one


def test_a_plan_that_an_older_version_stored_has_no_pattern(folder: Path) -> None:
    plan = read_study_file(written(folder, SMALL)).plan
    form = plan.to_json()
    del form["work"]["pattern"]

    assert type(plan).from_json(form) == plan


BAD = {
    "a typo in the syntax": (SMALL.replace('minimize = "error"', "minimize = error"), "line 3", "Correct it"),
    "a name twice": (SMALL.replace("[work]", "lr = {int = [1, 2]}\n[work]"), "line 6", "Correct it"),
    "an end too early": (SMALL + "x = [", "TOML", "Correct it"),
    "an unknown table": (SMALL.replace("[space]", "[spcae]"), "'spcae'", "Did you mean 'space'?"),
    "an unknown key": (SMALL.replace("minimize", "minimise"), "'minimise'", "Did you mean 'minimize'?"),
    "an unknown limit": (SMALL + "[budget]\nsecond = 5", "'second'", "Did you mean 'seconds'?"),
    "a limit below zero": (SMALL + "[budget]\nseconds = -5", "-5", "Write seconds = 600."),
    "a limit that is none": (SMALL + '[budget]\nseconds = "5"', "'5'", "Write seconds = 600."),
    "a value in both directions": (
        SMALL.replace("[study]", '[study]\nmaximize = "error"'),
        "got error, error",
        "Leave out the second one",
    ),
    "no direction": (SMALL.replace('minimize = "error"', ""), "neither", 'minimize = "error"'),
    "a number for a name": (SMALL.replace("[study]", "[study]\nname = 3"), "got 3", 'Write name = "digits".'),
    "a wrong kind of workers": (SMALL.replace("[study]", "[study]\nworkers = true"), "got True", "Write workers = 2."),
    "no workers": (SMALL.replace("[study]", "[study]\nworkers = 0"), "got 0", "Write workers = 2."),
    "a time limit of nothing": (
        SMALL.replace("[study]", "[study]\ntime_limit = 0"),
        "got 0",
        "Write time_limit = 600.",
    ),
    "reversed bounds": (SMALL.replace("[0.1, 1.0]", "[1.0, 0.1]"), "Float(1.0, 0.1)", "Swap"),
    "log with zero": (SMALL.replace("[0.1, 1.0]", "[0.0, 1.0], log = true"), "log=True", "Raise low"),
    "an unknown key of a parameter": (SMALL.replace("1.0]", "1.0], lgo = true"), "'lgo'", "Did you mean 'log'?"),
    "one name for two things": (SMALL + "[fidelities]\nlr = {int = [1, 9]}", "'lr' for both", "Rename"),
    "a reserved name": (SMALL.replace("lr =", "cost ="), "'cost'", "Rename"),
    "no space": (SMALL.replace("[space]\nlr = {float = [0.1, 1.0]}", ""), "got none", "Add one"),
    "no work": (SMALL.partition("[work]")[0], "neither", "train.py:train"),
    "two works": (SMALL + 'python = "a.py:b"', "command and python", "train.py:train"),
    "a table that is none": ("work = 3\n" + SMALL.partition("[work]")[0], "got 3", "Write [work]"),
    "an unknown strategy": (SMALL + '[strategy]\nname = "ASAH"', "'ASAH'", "Did you mean 'ASHA'?"),
    "an unknown argument": (
        SMALL + '[strategy]\nname = "ASHA"\nreductoin = 4',
        "'reductoin'",
        "Did you mean 'reduction'?",
    ),
    "prices for no time": (DOLLARS + "[prices]\ngpu = 2.5", "{'gpu': 2.5}", "'per': 'hour'"),
    "prices per a table": (
        DOLLARS + "[prices]\ngpu = 2.5\nper = {hour = 1}",
        "{'gpu': 2.5, 'per': {'hour': 1}}",
        "'per': 'hour'",
    ),
    "a price below zero": (DOLLARS + '[prices]\ngpu = -1\nper = "hour"', "got -1", "Leave out what is free."),
    "prices in seconds": (
        DOLLARS.replace("dollars", "seconds") + '[prices]\ngpu = 2.5\nper = "hour"',
        "cost_unit='seconds'",
        "cost_unit='dollars'",
    ),
    "a resource below zero": (DOLLARS + "[resources]\ngpu = -1", "got -1", "Write gpu = 1."),
    "a strategy without a name": (SMALL + "[strategy]\nreduction = 4", "got None", 'name = "ASHA"'),
}


@pytest.mark.parametrize(("text", "came", "remedy"), BAD.values(), ids=BAD)
def test_a_wrong_file_is_refused_with_its_name_what_came_and_what_to_do(
    folder: Path, text: str, came: str, remedy: str
) -> None:
    path = written(folder, text)

    with pytest.raises(InvalidFile) as refusal:
        read_study_file(path)

    message = str(refusal.value)
    assert "\n" not in message
    assert "study.toml" in message
    assert came in message
    assert remedy in message


def test_a_missing_file_is_named_and_the_nearest_one_offered(folder: Path) -> None:
    written(folder, SMALL)

    with pytest.raises(InvalidFile, match=r"'stduy.toml'.*Did you mean 'study.toml'\?"):
        read_study_file(Path("stduy.toml"))


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "study.toml").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidFile, match="UTF-8"):
        read_study_file(folder / "study.toml")
