"""A program in any language as work: its arguments, its lines, its end."""

import shlex
import sys

import pytest

from farthing.errors import InvalidArgument, WorkError
from farthing.execution import Command
from farthing.execution.command import Template
from farthing.execution.failures import WorkFailed
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


@pytest.mark.parametrize("line", ["true --lr {lr}", "true --lr {lr} --momentum {momentum}"])
def test_a_retired_parameter_may_be_left_out_of_a_command(line):
    params = {"lr": Float(0, 1), "momentum": Float(0, 1)}
    Command(line).check(Problem(Space(params, retired={"momentum": 0.9})))


def program(source, *, fields="{lr}"):
    """A command that runs these lines of Python."""
    escaped = shlex.quote(source).replace("{", "{{").replace("}", "}}")
    return Command(f"{shlex.quote(sys.executable)} -c {escaped} {fields}")


def printing(*lines, pattern):
    """A command that prints these lines, of which the pattern finds something in some."""
    return Command(program(f"print({chr(10).join(lines)!r})")._template.text, pattern=pattern)


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


@pytest.mark.parametrize(
    ("source", "said"), [("", "and no text at all"), ("print('loss 0.5')", "its last line was 'loss 0.5'")]
)
def test_a_program_without_a_value_is_told_of_the_json_line_and_the_pattern(plain, make_trial, source, said):
    with pytest.raises(WorkFailed) as failure:
        run(program(source), make_trial(plain))
    assert said in str(failure.value)
    assert 'a line of JSON such as {"error": 0.5}' in str(failure.value)
    assert "a pattern with a group (?P<value>…)" in str(failure.value)


def test_a_pattern_reads_the_value_from_text_which_goes_to_the_log_too(plain, make_trial, capfd):
    command = printing("epoch done", "val_loss=0.25 (best)", pattern=r"val_loss=(?P<value>[0-9.e+-]+)")
    command.check(plain)
    outcome = run(command, make_trial(plain))
    assert (outcome.state, outcome.value) == (State.DONE, 0.25)
    assert capfd.readouterr().out == "epoch done\nval_loss=0.25 (best)\n"


def test_places_and_metrics_of_earlier_lines_belong_to_the_next_value(traced, make_trial, recorder):
    patterns = [r"epoch=(?P<epochs>\d+)", r"auc (?P<auc>\S+)", r"error (?P<error>\S+)"]
    lines = ["epoch=1 of 2", "auc 0.75", "error 0.5", "epoch=2 of 2 error 0.25"]
    outcome = run(printing(*lines, pattern=patterns), make_trial(traced))
    points = [(point.value, point.fidelity["epochs"], point.metrics) for point in recorder.measurements]
    assert points == [(0.5, 1, {"auc": 0.75}), (0.25, 2, {})]
    assert outcome.value == 0.25


def test_patterns_are_searched_for_in_standard_error_where_programs_log(plain, make_trial, capfd):
    source = "import logging; logging.basicConfig(level='INFO'); logging.info('loss %s', 0.5)"
    escaped = program(source)._template.text
    outcome = run(Command(escaped, pattern=r"loss (?P<value>\S+)"), make_trial(plain))
    assert outcome.value == 0.5
    assert "INFO:root:loss 0.5" in capfd.readouterr().err


def test_every_state_of_a_progress_bar_is_a_line(traced, make_trial, recorder):
    pattern = r"(?P<epochs>\d+)/10 loss (?P<value>\S+)"
    run(printing("1/10 loss 0.5\r2/10 loss 0.25", pattern=pattern), make_trial(traced))
    assert [(point.fidelity["epochs"], point.value) for point in recorder.measurements] == [(1, 0.5), (2, 0.25)]


def test_a_cost_that_a_pattern_finds_is_charged(plain, make_trial, recorder):
    patterns = [r"(?P<cost>[0-9.]+) GPU-hours", r"error (?P<error>\S+)"]
    run(printing("2.5 GPU-hours", "error 0.5", pattern=patterns), make_trial(plain))
    assert [point.cost for point in recorder.measurements] == [{"training": 2.5}]


@pytest.mark.parametrize(
    ("pattern", "complaint"),
    [
        (r"loss=([0-9.]+)", "must have a group for the value 'error'"),
        ("(?P<value>", "must be a regular expression"),
        (3, "must be a text or a list of texts"),
        ([3], "must be a text or a list of texts"),
    ],
)
def test_a_pattern_that_cannot_work_is_refused_at_the_start(plain, pattern, complaint):
    with pytest.raises(WorkError, match=complaint) as refusal:
        Command("true {lr}", pattern=pattern).check(plain)
    assert "Write pattern='val_loss=(?P<value>[0-9.e+-]+)'." in str(refusal.value)


@pytest.mark.parametrize(
    ("pattern", "line", "complaint"),
    [
        (r"loss=(?P<value>\S+)", "loss=low", "'value' of a pattern must match a number, got 'low'"),
        (r"(?P<step>\S+) (?P<value>\S+)", "1.5 2", "'step' of a pattern must match a whole number, got '1.5'"),
    ],
)
def test_a_match_that_is_no_number_fails_the_trial_with_its_text(plain, make_trial, pattern, line, complaint):
    with pytest.raises(WorkError, match=complaint):
        run(printing(line, pattern=pattern), make_trial(plain))


def test_a_program_that_floods_both_streams_is_read_to_its_end(plain, make_trial, capfd):
    flood = "import sys\nfor i in range(20000): print('x' * 50); print('y' * 50, file=sys.stderr)\nprint('error 1.5')"
    escaped = program(flood)._template.text
    assert run(Command(escaped, pattern=r"error (?P<value>\S+)"), make_trial(plain)).value == 1.5
    assert len(capfd.readouterr().err.splitlines()) == 20000


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
