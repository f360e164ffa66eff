"""Trackers against MLflow with a SQLite store, Weights & Biases offline, and TensorBoard's files."""

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from needing import need

import farthing as ft
from farthing.testing import TrackerContract

SPACE = ft.Space(
    {"lr": ft.Float(1e-3, 1.0, log=True), "kind": ft.Choice("a", "b")},
    fidelities={"epochs": ft.Fidelity(1, 4, integer=True, trace=True)},
)


def train(trial):
    if trial.number == 1:
        raise ValueError("diverged")
    for epoch in range(int(trial.fidelity["epochs"])):
        trial.report(trial.params["lr"] / (epoch + 1), epochs=epoch + 1, metrics={"accuracy": 0.5})
        trial.charge(2.0)


def tracked(tracker: ft.trackers.Tracker, *, storage: str | None = None, trials: int = 3) -> ft.Study:
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0, storage=storage, name="tracked")
    study.run(train, budget=ft.Budget(trials=trials), executor="inline", trackers=[tracker], progress=False)
    return study


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What Farthing logged. wandb's own steps are among the records if it ran in this process before."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("farthing")]


def test_mlflow_has_nested_runs_with_params_curves_cost_and_the_ledger(tmp_path: Path, caplog) -> None:
    need("mlflow")
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=uri)
    client.create_experiment("tracked", artifact_location=(tmp_path / "artifacts").as_uri())
    study = tracked(ft.trackers.MLflow(tracking_uri=uri, patience=300.0))
    assert not said(caplog)

    runs = {
        run.info.run_name: run for run in client.search_runs([client.get_experiment_by_name("tracked").experiment_id])
    }
    assert set(runs) == {"tracked", "trial 0", "trial 1", "trial 2"}
    parent, first, failed = runs["tracked"], runs["trial 0"], runs["trial 1"]
    assert first.data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert float(first.data.params["lr"]) == study.trials[0].params["lr"]
    assert first.data.params["fidelity.epochs"] == "4"
    curve = client.get_metric_history(first.info.run_id, "loss")
    assert [(point.step, point.value) for point in curve] == [
        (point.fidelity["epochs"], point.value) for point in study.trials[0].points
    ]
    assert first.data.metrics["cost"] == study.trials[0].cost == 8.0
    assert first.info.status == "FINISHED"
    assert failed.info.status == "FAILED"
    assert "diverged" in failed.data.tags["farthing.failure"]
    assert parent.data.metrics["spent.total"] == study.ledger.total
    assert parent.data.metrics["best.loss"] == min(trial.value for trial in study.history.done)
    ledger = mlflow.artifacts.load_dict(f"{parent.info.artifact_uri}/ledger.json")
    assert ledger == json.loads(json.dumps(study.ledger.to_json()))


def test_a_resumed_study_continues_its_mlflow_run(tmp_path: Path) -> None:
    need("mlflow")
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.MlflowClient(uri).create_experiment("tracked", artifact_location=(tmp_path / "artifacts").as_uri())
    for trials in (2, 4):
        tracked(
            ft.trackers.MLflow(tracking_uri=uri, patience=300.0),
            storage=f"sqlite:///{tmp_path / 'study.db'}",
            trials=trials,
        ).close()
    client = mlflow.MlflowClient(tracking_uri=uri)
    runs = client.search_runs([client.get_experiment_by_name("tracked").experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["tracked", "trial 0", "trial 1", "trial 2", "trial 3"]


def test_an_mlflow_server_that_is_not_there_stops_nothing(caplog, monkeypatch) -> None:
    need("mlflow")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    study = tracked(ft.trackers.MLflow(tracking_uri="http://127.0.0.1:9", patience=300.0))
    assert len(study.history.done) == 2
    assert [message.startswith("The tracker MLflow failed") for message in said(caplog)] == [True]


def test_wandb_offline_has_a_run_for_each_trial_and_one_for_the_study(tmp_path: Path, caplog) -> None:
    need("wandb")
    study = tracked(ft.trackers.WandB(mode="offline", folder=tmp_path, patience=300.0))
    assert not said(caplog)
    runs = {path.stem.rpartition("-")[2]: wandb_records(path) for path in tmp_path.glob("wandb/offline-run-*/*.wandb")}
    assert set(runs) == {"0", "1", "2", "study"}
    first = runs["0"]
    assert first["config"]["lr"] == study.trials[0].params["lr"]
    assert [row["loss"] for row in first["history"]] == [point.value for point in study.trials[0].points]
    assert [row["_step"] for row in first["history"]] == [1, 2, 3, 4]
    assert first["summary"]["cost"] == 8.0
    assert first["summary"]["state"] == "done"
    assert runs["1"]["summary"]["state"] == "failed"
    assert runs["study"]["summary"]["spent.total"] == study.ledger.total


def test_work_reaches_its_own_run_of_mlflow(tmp_path: Path) -> None:
    need("mlflow")
    import mlflow

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=uri)
    client.create_experiment("tracked", artifact_location=(tmp_path / "artifacts").as_uri())

    def work(trial):
        with trial.tracker() as run:
            mlflow.log_text(f"of trial {trial.number}", "note.txt")
            mlflow.log_metric("gradient_norm", 0.25, step=1)
            assert mlflow.active_run().info.run_id == run.info.run_id
        return trial.params["lr"]

    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0, name="tracked")
    study.run(work, budget=ft.Budget(trials=2), trackers=[ft.trackers.MLflow(tracking_uri=uri, patience=300.0)])
    assert [trial.failure for trial in study.trials] == [None, None]
    runs = client.search_runs([client.get_experiment_by_name("tracked").experiment_id])
    assert sorted(run.info.run_name for run in runs) == ["tracked", "trial 0", "trial 1"], "no other run was made"
    for run in (run for run in runs if run.info.run_name != "tracked"):
        number = run.data.tags["farthing.trial"]
        assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/note.txt") == f"of trial {number}"
        assert run.data.metrics["gradient_norm"] == 0.25
        assert run.data.metrics["cost"] == study.trials[int(number)].cost
        assert run.info.status == "FINISHED"


def test_work_has_a_run_of_wandb_beside_that_of_its_trial(tmp_path: Path) -> None:
    need("wandb")

    def work(trial):
        with trial.tracker() as run:
            run.log({"gradient_norm": 0.25}, step=1)
        return trial.params["lr"]

    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0, name="tracked")
    tracker = ft.trackers.WandB(mode="offline", folder=tmp_path, patience=300.0)
    study.run(work, budget=ft.Budget(trials=1), trackers=[tracker])
    assert study.trials[0].failure is None
    paths = tmp_path.glob("wandb/offline-run-*/*.wandb")
    runs = {path.stem.split("-", maxsplit=2)[2]: path for path in paths}
    assert set(runs) == {"study", "0", "0-work"}
    assert [row["gradient_norm"] for row in wandb_records(runs["0-work"])["history"]] == [0.25]


def test_work_reaches_its_own_folder_of_tensorboard(tmp_path: Path) -> None:
    need("tensorboard")

    def work(trial):
        with trial.tracker("TensorBoard") as folder:
            (folder / "graph.txt").write_text(str(trial.number))
        return trial.params["lr"]

    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0, name="tracked")
    study.run(work, budget=ft.Budget(trials=2), trackers=[ft.trackers.TensorBoard(tmp_path, patience=300.0)])
    assert [(tmp_path / f"tracked/trial-{number}/graph.txt").read_text() for number in (0, 1)] == ["0", "1"]


def test_the_best_params_are_on_the_run_of_the_study(tmp_path: Path) -> None:
    for library in ("mlflow", "wandb", "tensorboard"):
        need(library)
    import mlflow
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    mlflow.MlflowClient(uri).create_experiment("tracked", artifact_location=(tmp_path / "artifacts").as_uri())
    trackers = [
        ft.trackers.MLflow(tracking_uri=uri, patience=300.0),
        ft.trackers.WandB(mode="offline", folder=tmp_path, patience=300.0),
        ft.trackers.TensorBoard(tmp_path, patience=300.0),
    ]
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0, name="tracked")
    study.run(train, budget=ft.Budget(trials=5), executor="inline", trackers=trackers, progress=False)
    best = min(study.history.done, key=lambda trial: trial.value or 0.0)
    assert best.number > 0, "it changed meanwhile"
    client = mlflow.MlflowClient(tracking_uri=uri)
    [parent] = client.search_runs(
        [client.get_experiment_by_name("tracked").experiment_id], "tags.`farthing.trial` = 'study'"
    )
    assert parent.data.tags["best.trial"] == str(best.number)
    assert {name: parent.data.tags[f"best.{name}"] for name in best.params} == {
        name: str(value) for name, value in best.params.items()
    }
    [path] = [path for path in tmp_path.glob("wandb/offline-run-*/*.wandb") if path.stem.endswith("-study")]
    summary = wandb_records(path)["summary"]
    assert {name: summary[f"best.{name}"] for name in best.params} == best.params
    events = EventAccumulator(str(tmp_path / "tracked" / "study")).Reload()
    text = events.Tensors("best")[-1].tensor_proto.string_val[0].decode()
    assert str(best.params["lr"]) in text


def wandb_records(path: Path) -> dict:
    """What an offline file of wandb says: config, history and summary."""
    found: dict = {"config": {}, "history": [], "summary": {}}
    for record in written_records(path):
        if record.HasField("run"):
            found["config"] |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        if record.HasField("history"):
            found["history"].append(
                {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            )
        if record.HasField("summary"):
            found["summary"] |= {
                item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.summary.update
            }
    return found


def written_records(path: Path) -> list:
    """wandb writes the file from a process of its own, which may go on after a run has finished, up to its exit."""
    from wandb.proto.wandb_internal_pb2 import Record

    records: list = []
    while not (records and records[-1].HasField("exit")):
        time.sleep(0.05)
        records = [Record.FromString(message) for message in wandb_messages(path.read_bytes())]
    return records


def wandb_messages(file: bytes, block: int = 32768) -> Iterator[bytes]:
    """The whole messages of a file in LevelDB's log format, after wandb's header of seven bytes."""
    at, message = 7, b""
    while at + 7 <= len(file):
        if block - at % block < 7:  # too short for a chunk: padding
            at += block - at % block
            continue
        length, kind = struct.unpack("<HB", file[at + 4 : at + 7])
        if at + 7 + length > len(file):
            return
        message += file[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last chunk
            yield message
            message = b""


def test_tensorboard_reads_back_what_was_written(tmp_path: Path, caplog) -> None:
    need("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    study = tracked(ft.trackers.TensorBoard(tmp_path, patience=300.0))
    assert not said(caplog)
    events = {folder.name: EventAccumulator(str(folder)).Reload() for folder in (tmp_path / "tracked").iterdir()}
    assert set(events) == {"study", "trial-0", "trial-1", "trial-2"}
    assert numbers(events["trial-0"], "loss") == [
        (point.fidelity["epochs"], pytest.approx(point.value)) for point in study.trials[0].points
    ]
    assert numbers(events["trial-0"], "cost") == [(0, 8.0)]
    assert numbers(events["study"], "spent.total") == [(0, pytest.approx(study.ledger.total))]
    assert "ledger" in events["study"].Tags()["tensors"]
    assert "_hparams_/session_start_info" in events["trial-0"].summary_metadata


def numbers(events, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.tensor_proto.float_val[0]) for event in events.Tensors(tag)]


class TestMLflow(TrackerContract):
    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # MLflow keeps artifacts where it is started

    def tracker(self, folder: Path) -> ft.trackers.Tracker:
        need("mlflow")
        return ft.trackers.MLflow(tracking_uri=f"sqlite:///{folder / 'mlflow.db'}", patience=300.0)


class TestWandB(TrackerContract):
    def tracker(self, folder: Path) -> ft.trackers.Tracker:
        need("wandb")
        return ft.trackers.WandB(mode="offline", folder=folder, patience=300.0)


class TestTensorBoard(TrackerContract):
    def tracker(self, folder: Path) -> ft.trackers.Tracker:
        need("tensorboard")
        return ft.trackers.TensorBoard(folder / "runs", patience=300.0)
