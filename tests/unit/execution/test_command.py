"""A program in any language as work: its arguments, its lines, its end."""

import shlex
import sys

import pytest

from farthing.errors import InvalidArgument, WorkError
from farthing.execution import Command
from farthing.execution.failures import WorkFailed
from farthing.execution.template import Template
from farthing.space import Choice, Fidelity, Float, Space
from farthing.trials import Problem, State

FIELDS = {"lr": 0.1, "act": "re lu; rm -rf $HOME"}


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("train --lr {lr}", ["train", "--lr", "0.1"]),
        ("train --lr={lr:.3e}", ["train", "--lr=1.000e-01"]),
        ("train --act {act}", ["train", "--act", "re lu; rm -rf $HOME"]),
        ("train 'two words' {lr}", ["train", "two words", "0.1"]),
        ("train {{lr}} {lr}", ["train", "{lr}", "0.1"]),
        ("train --resume {resume_dir} --lr {lr}", ["train", "--lr", "0.1"]),
        ("train --resume={resume_dir} --lr {lr}", ["train", "--lr", "0.1"]),
        ("train -r {resume_dir} {lr}", ["train", "0.1"]),
        ("train {resume_dir} {lr}", ["train", "0.1"]),
        ("train --fast --lr {lr} {resume_dir}", ["train", "--fast", "--lr", "0.1"]),
        ("train --path {resume_dir}/model {lr}", ["train", "--path", "/model", "0.1"]),
        ("train '' {lr}", ["train", "", "0.1"]),
    ],
)
def test_fields_are_filled_in_and_left_out_argument_by_argument(line, arguments):
    assert Template(line).filled(FIELDS) == arguments


def test_a_parameter_whose_value_is_none_is_not_left_out():
    assert Template("train --act {act}").filled({"act": None}) == ["train", "--act", "None"]


@pytest.mark.parametrize("line", ["", "train 'open", "train {", "train {}", "train {lr!r}"])
def test_a_line_that_cannot_be_meant_is_refused(line):
    with pytest.raises(WorkError, match="A command must"):
        Command(line)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("true --lr {learning_rate}", "Double the braces"),
        ("true --lr {lr} {resumedir}", "Did you mean 'resume_dir'?"),
        ("true", "without {lr}. Add for example --lr {lr}"),
        ("no-such-program --lr {lr}", "got 'no-such-program', which was not found"),
        ("./train.sh --lr {lr}", "'./train.sh', which was not found"),
    ],
)
def test_a_command_that_cannot_work_is_refused_at_the_start(plain, line, advice):
    with pytest.raises(WorkError) as refusal:
        Command(line).check(plain)
    assert advice in str(refusal.value)


def program(source, *, fields="{lr}"):
    """A command that runs these lines of Python."""
    escaped = shlex.quote(source).replace("{", "{{").replace("}", "}}")
    return Command(f"{shlex.quote(sys.executable)} -c {escaped} {fields}")


def run(command, trial):
    return trial._finish(command.run(trial))


def test_the_last_json_line_is_the_result(plain, make_trial, capfd):
    command = program('import sys; print(\'hello\'); print(\'{"error":\', sys.argv[1] + \', "size": 3, "name": "x"}\')')
    command.check(plain)
    outcome = run(command, make_trial(plain))
    assert (outcome.state, outcome.value) == (State.DONE, 0.5)
    assert capfd.readouterr().out == "hello\n"


def test_lines_are_reports_as_they_come(traced, make_trial, recorder):
    lines = ['{"error": 0.5, "epochs": 1, "auc": 0.7}', '{"error": 0.4, "epochs": 2}', '{"error": 0.3, "auc": 0.9}']
    outcome = run(program(f"print({lines[0]!r}, {lines[1]!r}, {lines[2]!r}, sep=chr(10))"), make_trial(traced))
    assert [(point.value, point.fidelity["epochs"]) for point in recorder.measurements] == [(0.5, 1), (0.4, 2)]
    assert recorder.measurements[0].metrics == {"auc": 0.7}
    assert (outcome.value, outcome.measurements[0].fidelity["epochs"]) == (0.3, 10)
    assert outcome.measurements[0].metrics == {"auc": 0.9}


def test_without_a_result_line_the_last_report_counts(traced, make_trial):
    assert run(program('print(\'{"error": 0.5, "epochs": 1}\')'), make_trial(traced)).value == 0.5


def test_without_fidelities_lines_count_their_steps(plain, make_trial, recorder):
    run(program('print(\'{"error": 0.5}\\n{"error": 0.4}\\n{"error": 0.3, "step": 9}\')'), make_trial(plain))
    assert [(point.step, point.value) for point in recorder.measurements] == [(1, 0.5), (2, 0.4), (9, 0.3)]


def test_a_report_that_names_no_place_on_the_trace_is_refused(traced, make_trial):
    with pytest.raises(InvalidArgument, match="how far along 'epochs'"):
        run(program('print(\'{"error": 0.5}\\n{"error": 0.4}\')'), make_trial(traced))


def test_a_cost_line_is_charged(plain, make_trial, recorder):
    outcome = run(program('print(\'{"cost": 2}\\n{"error": 0.4, "cost": 3}\')'), make_trial(plain))
    assert [(point.cost, point.charged) for point in recorder.measurements] == [({"training": 5.0}, True)]
    assert outcome.measurements[0].cost == {}


def test_json_of_the_programs_own_goes_to_the_log(plain, make_trial, capfd):
    run(program('print(\'{"level": "info"}\\n[1]\\n{broken\\n{"error": 0.4}\')'), make_trial(plain))
    assert capfd.readouterr().out == '{"level": "info"}\n[1]\n{broken\n'


def test_a_program_that_says_nothing_has_no_result(plain, make_trial):
    outcome = run(program(""), make_trial(plain))
    assert "returned no value and reported none" in outcome.failure.reason


def test_a_program_that_exits_badly_fails_with_what_it_said_last(plain, make_trial, capfd):
    with pytest.raises(WorkFailed) as failure:
        run(program("import sys; print('first', file=sys.stderr); sys.exit('no data')"), make_trial(plain))
    assert str(failure.value) == "The command exited with code 1: no data"
    assert failure.value.details == "first\nno data\n"
    assert capfd.readouterr().err == "first\nno data\n"


def test_a_program_that_is_killed_says_so(plain, make_trial):
    with pytest.raises(WorkFailed, match="died of SIGSEGV"):
        run(program("import os; os.kill(os.getpid(), 11)"), make_trial(plain))


def test_a_program_saves_and_resumes_through_its_arguments(plain, make_trial, checkpoints):
    save = "import sys; open(sys.argv[2] + '/weights', 'w').write(sys.argv[1]); print('{\"error\": 1}')"
    first = run(program(save, fields="{lr} {checkpoint_dir}"), make_trial(plain))
    source = checkpoints.path(first.checkpoint)
    load = "import sys; print('{\"error\":', open(sys.argv[3] + '/weights').read(), '}')"
    second = run(program(load, fields="{lr} --resume {resume_dir}"), make_trial(plain, resume_dir=source))
    assert second.value == 0.5


def test_an_inactive_parameter_leaves_its_flag_out(make_trial):
    momentum = Float(0.0, 1.0, when={"optimizer": "sgd"})
    problem = Problem(Space({"optimizer": Choice("sgd", "adam"), "momentum": momentum}), value="error")
    command = program(
        "import sys; print('{\"error\": %d}' % len(sys.argv[1:]))", fields="{optimizer} --momentum {momentum}"
    )
    command.check(problem)
    assert run(command, make_trial(problem, params={"optimizer": "adam"})).value == 1
    assert run(command, make_trial(problem, params={"optimizer": "sgd", "momentum": 0.9})).value == 3


def test_fields_of_a_staged_space_have_its_names(make_trial):
    strength = {"strength": Float(0.0, 1.0)}
    problem = Problem(Space(stages={"denoise": strength, "score": strength}))
    line = Template("run {denoise.strength} {score.strength}")
    line.check_fields(problem.space.parameters, needed=problem.space.parameters)
    assert line.filled({"denoise.strength": 0.1, "score.strength": 0.2}) == ["run", "0.1", "0.2"]


def test_every_fidelity_must_be_passed_on():
    space = Space({"lr": Float(0.0, 1.0)}, fidelities={"epochs": Fidelity(1, 10, integer=True, trace=True)})
    with pytest.raises(WorkError, match=r"without \{epochs\}"):
        Command("true {lr}").check(Problem(space))
