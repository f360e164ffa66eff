"""A study in MLflow: a parent run, and a nested run for each trial."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from farthing.costs import Ledger
from farthing.errors import WorkError
from farthing.running.tracking import SoFar, StudyFacts, Tracker
from farthing.trackers.contents import best_of, bill_of, costs_of, library, numbers_at, settings_of, standing
from farthing.trials import Json, Measurement, State, Trial

STUDY, TRIAL, STATE = "farthing.study", "farthing.trial", "farthing.state"
"""Tags by which a resumed study finds its runs again, and a reader the state of a trial."""


class MLflow(Tracker):
    """Records a study as nested runs of MLflow. Needs the extra `farthing[mlflow]`.

    Trials have their params, curves by epoch or step, costs and state; the parent run has the best value and the cost
    as they went, and the ledger, as metrics and as `ledger.json`. A resumed study continues its runs.

    Args:
        experiment: the experiment's name; by default the study's.
        tracking_uri: of the server or the store, `sqlite:///mlflow.db`; by default what MLflow is set to.
        patience: seconds that the end of a run waits for MLflow.
    """

    def __init__(
        self, experiment: str | None = None, *, tracking_uri: str | None = None, patience: float = 10.0
    ) -> None:
        self._library = library("mlflow", tracker="MLflow", extra="mlflow")
        self._entities = library("mlflow.entities", tracker="MLflow", extra="mlflow")
        self.patience = patience
        self._experiment_name, self._uri = experiment, tracking_uri
        self._runs: dict[int, str] = {}

    def address(self, study: StudyFacts) -> dict[str, Json]:
        uri, name = self._uri or self._library.get_tracking_uri(), self._experiment_name or study.name
        return {"uri": str(uri), "experiment": name, "study": study.identity, "patience": self.patience}

    @staticmethod
    @contextmanager
    def reach(address: Mapping[str, Any], number: int) -> Iterator[Any]:
        """MLflow's active run, once the study has made it."""
        mlflow = library("mlflow", tracker="MLflow", extra="mlflow")
        before = mlflow.get_tracking_uri()
        mlflow.set_tracking_uri(address["uri"])
        try:
            with mlflow.start_run(run_id=_awaited_run(mlflow.MlflowClient(address["uri"]), address, number)) as run:
                yield run
        finally:
            mlflow.set_tracking_uri(before)

    def begin(self, study: StudyFacts) -> None:
        self._study = study
        self._client = self._library.MlflowClient(tracking_uri=self._uri)
        self._experiment = self._find_experiment(self._experiment_name or study.name)
        self._runs.clear()
        self._parent = self._find_run(TRIAL, "study") or self._create(study.name, {TRIAL: "study"})
        self._client.update_run(self._parent, status="RUNNING")
        self._log_params(self._parent, study.settings)

    def start(self, trial: Trial) -> None:
        number = str(trial.number)
        found = self._find_run(TRIAL, number) if trial.attempt > 1 else None
        tags = {TRIAL: number, "mlflow.parentRunId": self._parent}
        self._runs[trial.number] = run = found or self._create(f"trial {number}", tags)
        self._log_params(run, settings_of(trial))
        self._client.set_tag(run, STATE, State.RUNNING)

    def report(self, trial: Trial, point: Measurement) -> None:
        step = self._study.step_of(point)
        self._log_numbers(self._runs[trial.number], numbers_at(self._study, point), step=step or 0, at=point.time)

    def end(self, trial: Trial, so_far: SoFar) -> None:
        run = self._runs.pop(trial.number)
        self._log_numbers(run, costs_of(self._study, trial))
        self._client.set_tag(run, STATE, trial.state.value)
        if trial.failure is not None:
            self._client.set_tag(run, "farthing.failure", trial.failure.reason)
        is_good = trial.state in (State.DONE, State.PRUNED)
        self._client.set_terminated(run, status="FINISHED" if is_good else "FAILED")
        self._log_numbers(self._parent, standing(self._study, so_far), step=so_far.trials)
        if so_far.best_trial is trial:  # as tags: MLflow's params cannot change
            tags = [self._entities.RunTag(_named(name), str(value)) for name, value in best_of(so_far).items()]
            self._client.log_batch(self._parent, tags=tags)

    def finish(self, ledger: Ledger) -> None:
        self._log_numbers(self._parent, bill_of(ledger))
        self._client.log_dict(self._parent, ledger.to_json(), "ledger.json")
        self._client.set_terminated(self._parent, status="FINISHED")

    def _find_experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        return str(found.experiment_id if found else self._client.create_experiment(name))

    def _find_run(self, tag: str, value: str) -> str | None:
        return _found(self._client, self._experiment, study=self._study.identity, tag=tag, value=value)

    def _create(self, name: str, tags: dict[str, str]) -> str:
        own = {STUDY: self._study.identity, **tags}
        return str(self._client.create_run(self._experiment, tags=own, run_name=name).info.run_id)

    def _log_params(self, run: str, params: dict[str, Any]) -> None:
        entries = [self._entities.Param(name, str(value)) for name, value in params.items()]
        self._client.log_batch(run, params=entries)

    def _log_numbers(self, run: str, numbers: dict[str, float], *, step: int = 0, at: float = 0.0) -> None:
        milliseconds = int(1000 * (at or time.time()))
        metrics = [self._entities.Metric(_named(name), number, milliseconds, step) for name, number in numbers.items()]
        self._client.log_batch(run, metrics=metrics)


def _found(client: Any, experiment: str, *, study: str, tag: str, value: str) -> str | None:
    wanted = f"tags.`{STUDY}` = '{study}' and tags.`{tag}` = '{value}'"
    found = client.search_runs([experiment], filter_string=wanted, max_results=1)
    return str(found[0].info.run_id) if found else None


LOOKS = 0.05
"""Seconds between two looks for a run that the study has yet to make: some milliseconds as a rule. A guess."""


def _awaited_run(client: Any, address: Mapping[str, Any], number: int) -> str:
    until = time.monotonic() + address["patience"]
    while True:
        experiment = client.get_experiment_by_name(address["experiment"])
        run = experiment and _found(
            client, experiment.experiment_id, study=address["study"], tag=TRIAL, value=str(number)
        )
        if run:
            return str(run)
        if time.monotonic() > until:
            raise WorkError(
                f"A trial must have a run in MLflow before work writes to it, got none within {address['patience']:g} "
                f"seconds from {address['uri']}. Look at the warnings of the study, or give MLflow more patience=."
            )
        time.sleep(LOOKS)


def _named(name: str) -> str:
    """A name that MLflow takes: letters, digits, and `_ - . : / ` with spaces."""
    return "".join(letter if letter.isalnum() or letter in "_-. :/" else "_" for letter in name)
