"""Records what studies, and an upgrade of a database, do to the disk; test_power_cuts.py runs it and cuts the power.

python recorded_study.py STORAGE RECORDING study|upgrade
"""

import sys

from recording_disk import Recorder
from sqlalchemy import Engine, event

import farthing as ft
from farthing.storage import open_storage

TRIALS_A_SESSION, SESSIONS, REPORTS = 5, 4, 3
SPACE = ft.Space({"x": ft.Float(0, 1), "kind": ft.Choice("a", "b")})
PAGES = 20
"""Of the log, after which it is taken into the database: some fiftieth of the default, so that this happens often."""


def study_in(storage: str) -> ft.Study:
    return ft.Study(SPACE, minimize="error", strategy=ft.Random(), storage=storage, seed=3)


def one_trial(study: ft.Study, recorder: Recorder) -> None:
    trial = study.ask()
    recorder.acknowledge(f"opened {trial.number}")
    for step in range(REPORTS):
        trial.report(trial.params["x"] + step, step=step)
        recorder.acknowledge(f"reported {trial.number} {step}")
    study.tell(trial, trial.params["x"])
    recorder.acknowledge(f"told {trial.number}")


def run_studies(storage: str, recorder: Recorder) -> None:
    """Several sessions: the last connection to close takes the log into the database and deletes it."""
    for _ in range(SESSIONS):
        study = study_in(storage)
        recorder.acknowledge("created")
        for _ in range(TRIALS_A_SESSION):
            one_trial(study, recorder)
        study.close()


def upgrade(storage: str, recorder: Recorder) -> None:
    open_storage(storage).close()
    recorder.acknowledge("upgraded")


def main(storage: str, recording: str, what: str) -> None:
    recorder = Recorder()

    @event.listens_for(Engine, "connect")
    def take_in_the_log_often(connection, record):
        connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}")

    {"study": run_studies, "upgrade": upgrade}[what](storage, recorder)
    recorder.save(recording)


if __name__ == "__main__":
    main(*sys.argv[1:])
