"""The same seed gives the same study: on a quiet machine, on a busy one, and however it is run.

Costs are declared: a strategy that weighs measured seconds can only repeat itself given the same seconds.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

import farthing as ft
from farthing.extending import Strategy
from farthing.trials import Params

PLAIN = ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1), "kind": ft.Choice("a", "b")})
CURVES = ft.Space(
    {"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
)
STAGED = ft.Space(stages={"first": {"x": ft.Float(0, 1)}, "last": {"y": ft.Float(0, 1)}})
KINDS: dict[str, tuple[ft.Space, Strategy | None]] = {
    "LogEI": (PLAIN, ft.LogEI()),
    "the default": (PLAIN, None),
    "TraceKG": (CURVES, None),
    "PrefixEI": (STAGED, ft.PrefixEI(costs={"first": 1.0, "last": 0.1})),
}
BUSY = "while True: pass"


def work(trial: ft.RunningTrial) -> float:
    """Takes a few milliseconds, more on a busy machine, so that measured seconds differ from run to run."""
    until = time.perf_counter() + 0.004
    while time.perf_counter() < until:
        pass
    loss = sum((number - 0.3) ** 2 for number in trial.params.values() if isinstance(number, float))
    for epoch in range(1, int(trial.fidelity.get("epochs", 0)) + 1):
        trial.report(loss + 1.0 / epoch, epochs=epoch)
    return float(loss + 1.0 / trial.fidelity.get("epochs", 1))


def found_by(kind: str, **how: object) -> list[object]:
    space, strategy = KINDS[kind]
    study = ft.Study(space, minimize="loss", strategy=strategy, seed=4, cost=_declared, cost_unit="units")
    study.run(work, budget=ft.Budget(trials=16), progress=False, **how)  # type: ignore[arg-type]
    return [(trial.params, trial.fidelity, trial.resume_from) for trial in study.trials]


def _declared(params: Params, fidelity: Mapping[str, float]) -> float:
    return (1.0 + params["x"]) * fidelity.get("epochs", 1.0)


@contextmanager
def busy_machine() -> Iterator[None]:
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(8)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_machine_and_a_worker_process_change_nothing(kind: str) -> None:
    quiet = found_by(kind, executor="inline")
    with busy_machine():
        assert found_by(kind, executor="inline") == quiet
        assert found_by(kind, workers=1) == quiet


def test_measured_seconds_decide_no_more_than_a_stored_power_of_ten() -> None:
    """With measured costs, LogEI suggests the same for the same decision, however the seconds differ."""
    studies = []
    for pause in (0.02, 0.06):
        study = ft.Study(PLAIN, minimize="loss", strategy=ft.LogEI(), seed=4)

        def slow(trial: ft.RunningTrial, pause: float = pause) -> float:
            time.sleep(pause if trial.number >= 5 else 0.1)
            return float((trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.3) ** 2)

        study.run(slow, budget=ft.Budget(trials=16), executor="inline", progress=False)
        studies.append([trial.params for trial in study.trials])
    assert studies[0] == studies[1]
