"""Makes schema_0001.db, a database as the first version of Farthing wrote it.

Kept to show what is in it, and in schema_0002.db to schema_0004.db, which the last versions with those schemas made by
it. It is not run again: a later version would write a later schema.
"""

from pathlib import Path

from farthing.costs import FakeClock
from farthing.space import Fidelity, Float, Int, Space
from farthing.storage import StudyRecord
from farthing.storage.sql import SqlStorage
from farthing.trials import Attempt, Failure, Measurement, Outcome, Prediction, Problem, State, Suggestion

SPACE = Space(
    {"rate": Float(1e-5, 1e-1, log=True), "units": Int(16, 512, log=True)},
    fidelities={"epochs": Fidelity(1, 50, integer=True, trace=True)},
)


def make(address: str | Path) -> None:
    clock = FakeClock(1_700_000_000.0)
    storage = SqlStorage(address, clock=clock)
    problem = Problem(SPACE, value="error", seed=7)
    storage.create_study(StudyRecord("digits", problem, strategy={"name": "ASHA"}, settings={"budget": {"cost": 60}}))
    run = storage.start_run("digits", lease=60.0)
    suggestion = Suggestion(
        {"rate": 0.001, "units": 64},
        fidelity={"epochs": 2},
        predicted_cost=Prediction(3.0, 0.5),
        note={"rung": 0},
    )
    storage.open_trials("digits", [suggestion] * 3, owner="ada", lease=60.0, retries=1, overhead=0.75)
    for epoch in (1, 2):
        clock.advance(1.5)
        point = Measurement(
            1.0 / epoch,
            cost={"training": 1.5},
            fidelity={"epochs": epoch},
            metrics={"recall": 0.5},
            sequence=epoch - 1,
        )
        storage.record("digits", Attempt(0, 1), [point], lease=60.0)
    storage.close_trial("digits", Attempt(0, 1), Outcome(State.DONE, value=0.5, checkpoint="trial-0"))
    storage.close_trial("digits", Attempt(1, 1), Outcome(State.FAILED, failure=Failure("ValueError: no", "line 1")))
    storage.renew("digits", [Attempt(2, 1)], lease=60.0)
    clock.advance(60.0)
    storage.sweep("digits")
    storage.enqueue_trial("digits", Suggestion({"rate": 0.01, "units": 32}, resume_from=0), tags=["mine"])
    storage.annotate("digits", 0, tags=["good"], comment="the first")
    storage.log_event("digits", "evicted", {"stage": "denoise"})
    storage.touch_run("digits", run)
    storage.close()


if __name__ == "__main__":
    make(Path(__file__).parent / "schema_0001.db")
