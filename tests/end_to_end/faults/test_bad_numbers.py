"""One bad number ends one trial: the attempt fails with its reason, and the run goes on."""

import io
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import farthing as ft
from farthing.analysis.export import write_csv
from farthing.execution.wire import HEADER
from farthing.trials import State

SPACE = ft.Space({"x": ft.Float(0, 1)})


def report_a_step_beyond_64_bits(trial):
    trial.report(1.0, step=2**70)


def report_10_to_the_400(trial):
    trial.report(10**400)


def return_10_to_the_400(trial):
    return 10**400


def return_a_metric_of_10_to_the_400(trial):
    return {"error": 1.0, "size": 10**400}


def charge_beyond_64_bits(trial):
    trial.charge(1e300)
    return 1.0


def charge_until_it_overflows(trial):
    for _ in range(4):
        trial.charge(2.0**62)
    return 1.0


def raise_a_surrogate(trial):
    raise ValueError("half a \ud83d character")


BAD: dict[Callable[[Any], Any], str] = {
    report_a_step_beyond_64_bits: "A step must be",
    report_10_to_the_400: "The value 'error' must be",
    return_10_to_the_400: "The value 'error' must be",
    return_a_metric_of_10_to_the_400: "The metric 'size' must be",
    charge_beyond_64_bits: "Cost must be at most",
    charge_until_it_overflows: "Cost must be at most",
    raise_a_surrogate: r"ValueError: half a \ud83d character",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "study.db") if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def run_with(bad: Callable[[Any], Any], address: str | None, *, executor: str) -> list[ft.Trial]:
    """The trials of a run whose first trial is the bad one."""

    def work(trial):
        return bad(trial) if trial.number == 0 else trial.params["x"]

    study = ft.Study(SPACE, minimize="error", storage=address, strategy=ft.Random())
    stopped = study.run(work, budget=ft.Budget(trials=3), executor=executor, retries=0)
    assert stopped.reason is ft.StopReason.BUDGET_SPENT
    trials = list(study.trials)
    file = io.StringIO()
    write_csv(study.history, file)
    file.getvalue().encode()
    study.close()
    return trials


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_bad_number_ends_one_trial(bad: Callable[[Any], Any], executor: str) -> None:
    first, *others = run_with(bad, None, executor=executor)
    assert first.state is State.FAILED
    assert first.failure is not None
    assert first.failure.reason.startswith(BAD[bad])
    assert [trial.state for trial in others] == [State.DONE] * 2


def test_numbers_of_64_bits_are_kept(address: str) -> None:
    def work(trial):
        trial.charge(2.0**62)
        trial.report(1.0, step=3_000_000_000)
        trial.report(1e308, step=2**63 - 1)

    study = ft.Study(SPACE, minimize="error", storage=address, strategy=ft.Random(), lost_retries=2**40)
    study.run(work, budget=ft.Budget(trials=2), executor="inline")
    for trial in study.trials:
        assert [point.step for point in trial.points] == [3_000_000_000, 2**63 - 1]
        assert (trial.state, trial.value, trial.cost) == (State.DONE, 1e308, 2.0**62)
    study.close()


def measurement(**changes: Any) -> dict[str, Any]:
    sound = {"value": 0.5, "cost": {"training": 0.1}, "charged": False, "fidelity": {}, "step": 1, "metrics": {}}
    more = {"saved": {}, "params": None, "gradient": None, "attempt": 1, "sequence": 0, "time": 0.0}
    return {**sound, **more, **changes}


def outcome(**changes: Any) -> dict[str, Any]:
    sound = {"state": "done", "value": 0.5, "measurements": [], "failure": None, "checkpoint": None}
    return {**sound, **changes}


FORGED: dict[str, bytes] = {
    "no JSON": b"\x80\x04.",
    "nested too deeply": b"[" * 100_000,
    "a number of a million digits": b"9" * 1_000_000,
    "no news": b'["weather", 1]',
    **{
        name: json.dumps(form).encode()
        for name, form in {
            "ready twice": ["ready", None],
            "unready late": ["unready", {"reason": "no", "traceback": ""}],
            "a value of text": ["reported", measurement(value="good")],
            "a value of true": ["reported", measurement(value=True)],
            "a value of infinity": ["reported", measurement(value=float("inf"))],
            "a value beyond floats": ["reported", measurement(value=10**400)],
            "a cost of nothing": ["reported", measurement(cost={"training": None})],
            "an infinite cost": ["reported", measurement(cost={"training": float("inf")})],
            "a negative cost": ["reported", measurement(cost={"training": -1.0})],
            "a cost of an unknown kind": ["reported", measurement(cost={"bribes": 1.0})],
            "a step beyond 64 bits": ["reported", measurement(step=2**70)],
            "a step of text": ["reported", measurement(step="one")],
            "a negative sequence": ["reported", measurement(sequence=-1)],
            "a sequence beyond 64 bits": ["reported", measurement(sequence=2**63)],
            "an unknown fidelity": ["reported", measurement(fidelity={"epochs": 3})],
            "a gradient along nothing": ["reported", measurement(gradient={"y": 1.0})],
            "metrics that are a list": ["reported", measurement(metrics=[1])],
            "params of nothing": ["reported", measurement(params={"x": [[]]})],
            "a checkpoint elsewhere": ["committed", "../../etc"],
            "a checkpoint that is no name": ["committed", {"a": 1}],
            "a checkpoint of another trial": ["committed", "000007/attempt-1.checkpoint-1"],
            "an eviction of numbers": ["evicted", {"prefix": 1, "length": "a", "why": [], "detail": None}],
            "an end without an outcome": ["finished", None],
            "an end that is none": ["finished", outcome(state="running")],
            "an end without a value": ["finished", outcome(value=None)],
            "an end at infinity": ["finished", outcome(value=float("nan"))],
            "an end with a text for a checkpoint": ["finished", outcome(checkpoint="\ud800")],
            "one sequence twice": ["finished", outcome(measurements=[measurement(), measurement()])],
            "a failure of numbers": ["finished", outcome(state="failed", failure={"reason": 1, "traceback": []})],
        }.items()
    },
}


@pytest.mark.parametrize("payload", FORGED.values(), ids=FORGED.keys())
def test_a_forged_message_ends_one_trial(payload: bytes, tmp_path: Path) -> None:
    frame = HEADER.pack(len(payload)) + payload

    def forge(trial):
        for descriptor in range(3, 64):
            try:
                wire = socket.socket(fileno=os.dup(descriptor))
                wire.sendall(frame)
            except OSError:
                continue
        os.kill(os.getpid(), 19)  # stop: what was sent must speak for itself

    first, *others = run_with(forge, str(tmp_path / "study.db"), executor="processes")
    assert (first.state, [trial.state for trial in others]) == (State.FAILED, [State.DONE] * 2)
    assert first.failure is not None
    assert "broke the connection to its worker" in first.failure.reason
