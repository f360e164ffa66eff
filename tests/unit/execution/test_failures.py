"""What is kept of an exception."""

import pytest

from farthing.errors import InvalidValue
from farthing.execution import as_work
from farthing.execution.failures import LONGEST_REASON, LONGEST_TRACEBACK, WorkFailed, describe_exit, failure_of


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def caught(error):
    try:
        raise error
    except BaseException as raised:
        return raised


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad\nvery bad"), "ValueError: bad"),
        (KeyError("lr"), "KeyError: 'lr'"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (InvalidValue("The value must be finite, got nan."), "The value must be finite, got nan."),
        (Unspeakable(), "Unspeakable: (its message could not be made)"),
        (WorkFailed("The command exited with code 3", details="no data"), "The command exited with code 3"),
    ],
)
def test_the_reason_is_one_line(error, reason):
    assert failure_of(caught(error)).reason == reason


def test_a_long_message_is_cut():
    assert len(failure_of(caught(ValueError("x" * 10_000))).reason) == LONGEST_REASON


def test_the_traceback_shows_the_users_frames_only(plain, make_trial):
    def broken(trial):
        try:
            trial.report("bad")
        except InvalidValue as error:
            raise RuntimeError("report failed") from error

    with pytest.raises(RuntimeError) as raised:
        as_work(broken).run(make_trial(plain))
    text = failure_of(raised.value).traceback
    assert 'trial.report("bad")' in text
    assert "direct cause" in text
    assert "farthing/execution" not in text


def test_an_exception_group_keeps_its_members():
    text = failure_of(caught(ExceptionGroup("two", [ValueError("one"), KeyError("other")]))).traceback
    assert "ValueError: one" in text
    assert "KeyError: 'other'" in text


def test_a_long_traceback_keeps_its_beginning_and_its_end():
    text = failure_of(caught(ValueError("first" + "x" * 50_000 + "last"))).traceback
    assert len(text) < LONGEST_TRACEBACK + 20
    assert text.startswith("Traceback")
    assert text.endswith("last\n")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (3, "exited with code 3"),
        (-11, "died of SIGSEGV"),
        (-9, "was killed by SIGKILL: out of memory, or killed from outside"),
        (-64, "died of SIGRTMAX"),
        (-99, "died of signal 99"),
    ],
)
def test_an_exit_is_described_in_words(code, words):
    assert describe_exit(code) == words
