"""What is wrong with stored trials, in words."""

from typing import Any

import pytest

from farthing.storage.lifecycle import broken_invariants
from farthing.trials import Measurement, State, Suggestion, Trial


def trial(number: int = 0, state: State = State.DONE, resume_from: int | None = None, **more: Any) -> Trial:
    ends = {"finished_at": 2.0} if state.is_finished else {}
    lease = {"lease_until": 9.0} if state is State.RUNNING else {}
    return Trial(number, Suggestion({}, resume_from=resume_from), state, **{**ends, **lease, **more})


def test_sound_trials_have_no_faults() -> None:
    trials = [trial(number, state) for number, state in enumerate(State)]
    assert broken_invariants("study", [*trials, trial(len(trials), resume_from=0)]) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (trial(3), "not numbered 0, 1, 2, …: [3]"),
        (trial(finished_at=None), "trial 0 is done and has finished_at=None"),
        (trial(state=State.PENDING, finished_at=2.0), "trial 0 is pending and has finished_at=2.0"),
        (trial(state=State.RUNNING, lease_until=None), "trial 0 is running and has lease_until=None"),
        (trial(lease_until=9.0), "trial 0 is done and has lease_until=9.0"),
        (trial(attempt=0), "has the attempt number 0"),
        (trial(value=float("inf")), "has the value inf"),
        (trial(measurements=(Measurement(value=float("-inf")),)), "has a measurement of the value -inf"),
        (trial(measurements=(Measurement(cost={"training": float("nan")}),)), "has a measurement of the cost nan"),
        (trial(resume_from=0), "resumes trial 0, which was not opened before it"),
        (trial(state=State.FAILED, measurements=(Measurement(attempt=2),)), "has a measurement of attempt 2"),
    ],
)
def test_a_fault_is_told_in_words(wrong: Trial, said: str) -> None:
    (fault,) = broken_invariants("study", [wrong])
    assert said in fault
    assert fault.startswith("Study 'study': ")
