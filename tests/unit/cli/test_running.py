"""`farthing run` and `farthing resume` with work in Python, in this process."""

import json
import sys
import threading
from pathlib import Path

import pytest

import farthing as ft
from farthing.cli.file_work import FileWork
from farthing.cli.study_file import read_study_file
from farthing.execution import Checkpoints, Job
from farthing.execution.executor import News
from farthing.running.ask_tell import enqueue_once
from farthing.session import session_of
from farthing.trials import Attempt, Problem

STUDY = """
[study]
name = "parabola"
minimize = "error"
[budget]
trials = 4
[space]
x = {float = [-1.0, 1.0]}
[strategy]
name = "Random"
[work]
python = "PYTHON"
"""


@pytest.fixture(autouse=True)
def _fresh_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of one test are not those of the next."""
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("parabola_work", "shapes", "shapes.parabola"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.fixture
def file(folder: Path) -> Path:
    """A study file in a folder of its own, with its work beside it."""
    place = folder / "project"
    (place / "shapes").mkdir(parents=True)
    (place / "parabola_work.py").write_text(
        "from pathlib import Path\n"
        "def work(trial):\n"
        "    Path('ran-here').touch()\n"
        "    return (trial.params['x'] - 0.5) ** 2\n"
        "def failing(trial):\n"
        "    raise RuntimeError('broken on purpose')\n"
    )
    (place / "shapes" / "__init__.py").touch()
    (place / "shapes" / "parabola.py").write_text("def work(trial):\n    return trial.params['x'] ** 2\n")
    path = place / "study.toml"
    path.write_text(STUDY.replace("PYTHON", "parabola_work.py:work"))
    return path


def rewrite(file: Path, old: str, new: str) -> None:
    file.write_text(file.read_text().replace(old, new))


def test_a_run_ends_with_the_best_the_bill_and_what_to_do_next(farthing, file: Path) -> None:
    result = farthing("run", file, "--inline")

    assert result.exit_code == 0
    assert "parabola ended: the budget is spent." in result.output
    assert "Best error:" in result.output
    assert "trials   done" in result.output
    assert "farthing show parabola" in result.output


def test_results_go_to_the_current_folder_and_work_runs_in_the_files(farthing, folder: Path, file: Path) -> None:
    farthing("run", file, "--inline")

    assert (folder / "farthing.db").is_file()
    assert (file.parent / "ran-here").is_file()
    assert not (folder / "ran-here").exists()


def test_a_run_is_one_json_object_for_a_program(farthing, file: Path) -> None:
    result = farthing("run", file, "--inline", "--json")
    form = json.loads(result.stdout)

    assert set(form) == {"study", "reason", "best", "ledger"}
    assert form["ledger"]["trials"] == {"done": 4}
    assert form["best"]["value"] == pytest.approx((form["best"]["params"]["x"] - 0.5) ** 2)


def test_a_quiet_run_prints_nothing(farthing, file: Path) -> None:
    assert farthing("run", file, "--inline", "--quiet").output == ""


def test_a_module_can_be_named_instead_of_a_file(farthing, file: Path) -> None:
    rewrite(file, "parabola_work.py:work", "shapes.parabola:work")

    assert farthing("run", file, "--inline").exit_code == 0


def test_options_take_the_place_of_the_files_budget(farthing, file: Path) -> None:
    form = json.loads(farthing("run", file, "--inline", "--trials", "2", "--json").stdout)

    assert form["ledger"]["trials"] == {"done": 2}


def test_a_study_is_resumed_with_what_it_remembers(farthing, file: Path) -> None:
    farthing("run", file, "--inline", "--trials", "2")

    form = json.loads(farthing("resume", "--inline", "--trials", "3", "--json").stdout)

    assert form["ledger"]["trials"] == {"done": 5}
    assert json.loads(farthing("resume", "--inline", "--json").stdout)["ledger"]["trials"] == {"done": 5}


def test_limits_of_a_resume_are_that_much_more_and_it_says_so(farthing, file: Path) -> None:
    farthing("run", file, "--inline", "--trials", "2")
    said = farthing("resume", "--inline", "--trials", "3", "--seconds", "1000", "--cost", "500.5").stderr
    with ft.Study.load("parabola", "sqlite:///farthing.db") as study:
        budget, spent = study.budget, sum(trial.cost for trial in study.trials[:2])
        assert budget is not None
        assert budget.trials == 5
        assert budget.cost == pytest.approx(spent + 500.5)
        assert budget.seconds is not None
        assert 1000.0 < budget.seconds < 1000.0 + session_of(study).records.seconds_run()
    assert "trials 5 in all: 2 spent and 3 more; it was 2" in said
    assert "in all: " in said
    assert "and 1000 more" in said
    assert "and 500.5 more" in said
    assert farthing("resume", "--inline", "--trials", "-3").exit_code != 0


def test_a_hard_budget_is_asked_for_kept_and_given_up(farthing, file: Path) -> None:
    farthing("run", file, "--inline", "--trials", "2", "--hard")
    assert ft.Study.load("parabola", "sqlite:///farthing.db").budget == ft.Budget(trials=2, hard=True)
    assert "running trials are ended" in farthing("budget").output
    assert json.loads(farthing("budget", "--json").output)["limits"] == {"trials": 2, "hard": True}
    farthing("resume", "--inline", "--trials", "1")
    assert ft.Study.load("parabola", "sqlite:///farthing.db").budget == ft.Budget(trials=3, hard=True)
    farthing("budget", "--soft")
    assert ft.Study.load("parabola", "sqlite:///farthing.db").budget == ft.Budget(trials=3)


def test_a_study_file_may_ask_for_a_hard_budget(farthing, file: Path) -> None:
    rewrite(file, "[budget]", "[budget]\nhard = true")
    farthing("run", file, "--inline")
    budget = ft.Study.load("parabola", "sqlite:///farthing.db").budget
    assert budget is not None
    assert budget.hard


def test_running_the_file_again_goes_on(farthing, file: Path) -> None:
    farthing("run", file, "--inline", "--trials", "2")

    assert json.loads(farthing("run", file, "--inline", "--json").stdout)["ledger"]["trials"] == {"done": 4}


def test_a_run_with_prices_pays_for_what_its_trials_hold_and_what_was_paid_stays(farthing, file: Path) -> None:
    """Seconds × 2 GPUs × their price; the price of the second half is three times that of the first."""
    rewrite(
        file, "[budget]", 'cost_unit = "dollars"\n[prices]\ngpu = 3600\nper = "hour"\n[resources]\ngpu = 2\n[budget]'
    )
    farthing("run", file, "--inline", "--trials", "2")
    rewrite(file, "gpu = 3600", "gpu = 10800")
    form = json.loads(farthing("run", file, "--inline", "--trials", "3", "--json").stdout)
    form = json.loads(farthing("resume", "--inline", "--trials", "1", "--json").stdout)

    trials = ft.Study.load("parabola", "sqlite:///farthing.db").trials
    assert [point.rate for trial in trials for point in trial.measurements] == [2.0, 2.0, 6.0, 6.0]
    assert form["ledger"]["total"] == pytest.approx(sum(trial.cost for trial in trials))
    assert all(trial.cost > 0.0 for trial in trials)


def test_a_run_with_prices_must_hold_something_that_has_one(farthing, file: Path) -> None:
    rewrite(file, "[budget]", 'cost_unit = "dollars"\n[prices]\ngpu = 2.5\nper = "hour"\n[budget]')
    result = farthing("run", file, "--inline")

    assert result.exit_code == 1
    assert "must hold a resource that has one ('gpu')" in result.stderr


def test_a_study_of_the_same_name_with_another_space_is_refused_and_kept(farthing, file: Path) -> None:
    farthing("run", file, "--inline")
    rewrite(file, "[-1.0, 1.0]", "[-2.0, 2.0]")

    result = farthing("run", file, "--inline")

    assert result.exit_code == 1
    assert "'parabola'" in result.stderr
    assert "4" in farthing("list").output


def test_a_run_without_any_result_ends_with_exit_code_1_and_the_reason(farthing, file: Path) -> None:
    rewrite(file, ":work", ":failing")

    result = farthing("run", file, "--inline")

    assert result.exit_code == 1
    assert "RuntimeError: broken on purpose" in result.output


def test_an_interrupted_run_says_how_to_go_on(farthing, file: Path) -> None:
    rewrite(file, ":work", ":interrupted")
    with (file.parent / "parabola_work.py").open("a") as work:
        work.write("def interrupted(trial):\n    raise KeyboardInterrupt\n")

    result = farthing("run", file, "--inline")

    assert result.exit_code == 130
    assert "farthing resume parabola" in result.stderr
    assert ft.Study.load("parabola", "farthing.db").trials[0].state == "pending"


WRONG = {
    "no function": ("parabola_work.py", "'parabola_work.py'", "Write it like 'train.py:train'."),
    "a missing file": ("parabola_wrok.py:work", "parabola_wrok.py", "Did you mean 'parabola_work.py'?"),
    "a missing function": ("parabola_work.py:wrok", "'wrok'", "Did you mean 'work'?"),
    "a missing module": ("shapes.circle:work", "'shapes.circle'", "Try it"),
    "a module's name": ("json.py:work", "'json.py'", "Rename it"),
    "no work": ("parabola_work.py:Path", "Path", "ft.Trainable"),
}


@pytest.mark.parametrize(("reference", "came", "remedy"), WRONG.values(), ids=WRONG)
def test_wrong_python_work_is_refused_before_anything_is_stored(
    farthing, folder: Path, file: Path, reference: str, came: str, remedy: str
) -> None:
    (file.parent / "json.py").touch()
    rewrite(file, "parabola_work.py:work", reference)

    result = farthing("run", file, "--inline")

    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert came in result.stderr
    assert remedy in result.stderr
    assert not (folder / "farthing.db").exists()


def test_work_that_has_moved_is_refused_and_says_what_to_do(farthing, file: Path) -> None:
    farthing("run", file, "--inline", "--trials", "2")
    file.parent.rename(file.parent.with_name("moved"))

    result = farthing("resume", "--inline", "--trials", "4")

    assert result.exit_code == 1
    assert "farthing run FILE.toml" in result.stderr


CURVES = """
[study]
name = "curves"
minimize = "error"
[budget]
trials = 6
[space]
x = {float = [0.0, 1.0]}
[fidelities]
epochs = {int = [1, 9], trace = true}
[strategy]
name = "ASHA"
[work]
python = "curves_work.py:work"
"""


@pytest.fixture
def curves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study file whose work leaves checkpoints."""
    monkeypatch.delitem(sys.modules, "curves_work", raising=False)
    (folder / "curves_work.py").write_text(
        "def work(trial):\n"
        "    done = int((trial.resume_dir / 'epoch').read_text()) if trial.resume_dir else 0\n"
        "    for epoch in range(done + 1, trial.fidelity['epochs'] + 1):\n"
        "        trial.report(trial.params['x'] + 1 / epoch, epochs=epoch)\n"
        "    (trial.checkpoint_dir / 'epoch').write_text(str(epoch))\n"
    )
    (folder / "curves.toml").write_text(CURVES)
    return folder / "curves.toml"


def test_what_is_recommended_is_trained_to_the_end(farthing, curves: Path) -> None:
    ended = farthing("run", curves, "--inline")
    assert "farthing verify curves" in ended.output

    result = farthing("verify", "--inline")

    assert result.exit_code == 0
    study = ft.Study.load("curves", "farthing.db")
    trial = study.trials[-1]
    assert result.output.startswith(f"error {trial.value:.6g} at epochs=9 (trial {trial.number})\nx=")
    assert f"Its files: {study.checkpoints.path(trial.checkpoint or '')}" in result.output
    assert (trial.fidelity, trial.points[0].fidelity) == ({"epochs": 9}, {"epochs": 4})
    assert "verify" not in farthing("show").output


def test_a_verification_is_json_for_a_program_and_happens_once(farthing, curves: Path) -> None:
    farthing("run", curves, "--inline", "--quiet")
    first, second = (json.loads(farthing("verify", "--inline", "--json").output) for _ in range(2))
    assert first == second
    assert (first["study"], first["best"]["fidelity"]) == ("curves", {"epochs": 9})


def test_a_verification_needs_a_study_that_was_run_here_and_a_budget_that_fits(farthing, curves: Path) -> None:
    farthing("run", curves, "--inline", "--quiet")
    refused = farthing("verify", "--inline", "--cost", "1e-9")
    assert refused.exit_code == 1
    assert "A verification must fit the rest of the budget" in refused.stderr


PIPELINE_WORK = """
import farthing as ft
calls = []
def double(number, times):
    calls.append(times)
    return number * times
def score(number, shift):
    return number + shift
staged_pipeline = ft.Pipeline(source=2, double=ft.Stage(double, version=1), score=score)  # calls fills up
"""


def test_a_pipeline_can_be_the_work_of_a_study_file(farthing, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "staged_work", raising=False)
    (file.parent / "staged_work.py").write_text(PIPELINE_WORK)
    stages = "[stages.double]\ntimes = {int = [1, 2]}\n[stages.score]\nshift = {float = [0.0, 1.0]}"
    rewrite(file, "[space]\nx = {float = [-1.0, 1.0]}", stages)
    rewrite(file, "parabola_work.py:work", "staged_work.py:staged_pipeline")
    assert farthing("run", file, "--inline").exit_code == 0
    assert farthing("resume", "--inline", "--trials", "5").exit_code == 0
    calls = sys.modules.pop("staged_work").calls
    assert len(calls) == len(set(calls))
    bill = json.loads(farthing("show", "--json").output)["ledger"]["stages"]["double"]
    assert (bill["computed"], bill["loaded"]) == (len(calls), 9 - len(calls))


def test_importing_the_work_is_not_on_a_trials_bill(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, reports = ft.FakeClock(), list[News]()
    monkeypatch.setattr(sys, "fake_clock", clock, raising=False)
    (file.parent / "slow_work.py").write_text(
        "import sys\nsys.fake_clock.advance(50)\n"
        "def work(trial):\n    sys.fake_clock.advance(2)\n    trial.report(0.5)\n"
    )
    problem = Problem(ft.Space({"x": ft.Float(0, 1)}), value="error")
    job = Job(Attempt(0, 1), {"x": 0.5}, {})
    trial = ft.RunningTrial(job, problem, send=reports.append, checkpoints=Checkpoints(file.parent), clock=clock)
    FileWork(file.parent, python="slow_work.py:work").run(trial)
    sys.modules.pop("slow_work")
    assert [report.cost for report in reports] == [{"training": 2.0}]


def test_a_configuration_is_put_in_line_from_the_terminal_and_the_file(farthing, folder: Path) -> None:
    (folder / "study.toml").write_text(
        '[study]\nname = "wishes"\nminimize = "error"\nstorage = "wishes.db"\n[budget]\ntrials = 3\n'
        '[space]\nx = {float = [0, 1]}\nact = {choice = ["relu", "tanh"]}\n'
        '[strategy]\nname = "Random"\n[[enqueue]]\nx = 0.25\n'
        "[work]\ncommand = '''python -c \"import sys; print('error', sys.argv[1])\" {x} {act}'''\n"
        "pattern = 'error (?P<value>[0-9.e-]+)'\n"
    )
    ended = farthing("run", "study.toml", "--inline", "--json")
    assert ended.exit_code == 0, ended.output
    study = ft.Study.load("wishes", "wishes.db")
    assert [trial.params["x"] for trial in study.trials].count(0.25) == 1
    farthing("run", "study.toml", "--inline", "--quiet")
    assert len(study.trials) == 3, "the file's configurations are put in line once"
    put = farthing("enqueue", "wishes", "x=0.125", "act=tanh")
    assert put.output == "Trial 3 waits: x=0.125 act=tanh\n"
    assert farthing("enqueue", "wishes", "x").exit_code == 2
    assert "must lie in" in farthing("enqueue", "wishes", "x=7").output


def test_what_a_file_puts_in_line_is_there_once_whoever_is_killed_while_it_is_put_there(folder: Path) -> None:
    (folder / "study.toml").write_text(
        '[study]\nname = "wishes"\nminimize = "error"\n[budget]\ntrials = 9\n[space]\nx = {float = [0, 1]}\n'
        '[strategy]\nname = "Random"\n[[enqueue]]\nx = 0.25\n[[enqueue]]\nx = 0.5\n[[enqueue]]\nx = 0.25\n'
        "[work]\ncommand = 'echo {x}'\npattern = '(?P<value>.*)'\n"
    )
    declared = read_study_file(folder / "study.toml")
    with declared._study("wishes.db") as killed:
        enqueue_once(session_of(killed), 0, {"x": 0.25})
    programs = [threading.Thread(target=lambda: declared.create_or_continue("wishes.db").close()) for _ in range(3)]
    for program in programs:
        program.start()
    for program in programs:
        program.join()
    with declared.create_or_continue("wishes.db") as study:
        assert [trial.params["x"] for trial in study.trials] == [0.25, 0.5, 0.25]
        assert {trial.state for trial in study.trials} == {ft.State.PENDING}


def test_a_study_of_a_python_program_is_resumed_by_naming_its_work(farthing, folder: Path) -> None:
    (folder / "work_of_mine.py").write_text("def train(trial):\n    return trial.params['x']\n")
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", storage="p.db", name="p", strategy=ft.Random())
    study.run(lambda trial: trial.params["x"], budget=ft.Budget(trials=2), executor="inline")
    refused = farthing("resume", "p", "--trials", 4)
    assert "--work train.py:train" in refused.output
    ended = farthing("resume", "p", "--work", "work_of_mine.py:train", "--trials", 2, "--inline", "--quiet")
    assert (ended.exit_code, len(study.trials)) == (0, 4), ended.output
    again = farthing("resume", "p", "--trials", 1, "--inline", "--quiet")
    assert (again.exit_code, len(study.trials)) == (0, 5), "it is remembered"
    verified = farthing("verify", "p", "--work", "work_of_mine.py:train", "--top", 2, "--inline", "--json")
    assert [form["trials"] for form in json.loads(verified.output)] != [], verified.output
    line = "python -c 'print('{\"error\": 1}')' {x}".replace('{"', '{{"').replace("1}", "1}}")
    assert farthing("resume", "p", "--command", line, "--trials", 1, "--inline", "--quiet").exit_code == 0


@pytest.mark.parametrize("is_in_file", [True, False])
def test_a_study_learns_from_earlier_ones_by_the_file_or_by_the_command(
    folder: Path, file: Path, farthing, is_in_file: bool
) -> None:
    farthing("run", file, "--quiet")
    earlier = ft.Study.load("parabola", "farthing.db").best.params
    rewrite(file, 'name = "parabola"', 'name = "again"' + ('\nlearn_from = ["parabola"]' if is_in_file else ""))
    result = farthing("run", file, *([] if is_in_file else ["--learn-from", "parabola"]))
    assert result.exit_code == 0, result.output
    study = ft.Study.load("again", "farthing.db")
    assert study.trials[0].params == earlier
    assert "1 start from parabola" in farthing("show", "again").output
    assert json.loads(farthing("show", "again", "--json").output)["learned"]["sources"] == ["parabola"]
    assert (
        farthing("run", file, "--learn-from", "all", "--trials", 5).exit_code == 0
    )  # what it learnt is not read again
    assert len(ft.Study.load("again", "farthing.db").trials) == 5


def test_before_any_result_the_first_start_is_shown(folder: Path, farthing) -> None:
    space = ft.Space({"x": ft.Float(-1, 1)})
    with ft.Study(space, minimize="error", storage="farthing.db", name="may") as earlier:
        earlier.add({"x": 0.25}, 0.1)
    with ft.Study(space, minimize="error", storage="farthing.db", name="june", learn_from="all"):
        pass
    assert "0.25" in farthing("show", "june").output
    found, known = (json.loads(farthing("best", name, "--json").output) for name in ("june", "may"))
    assert (found["params"], found["value"], found["trial"], found["source"]) == ({"x": 0.25}, None, None, "may")
    assert found.keys() == known.keys()
