"""Logs in an object store are shown if the server may ask the store that the database names."""

import tempfile
import threading

import pytest

import farthing as ft
from farthing.execution import stored_checkpoints
from farthing.session import session_of
from farthing.trials import Attempt
from tests.unit.dashboard.conftest import client_of

pytest.importorskip("fsspec")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(stored_checkpoints, "SECONDS_BETWEEN_LOOKS", 0.01)
    url = f"file://{tmp_path}/store"
    study = ft.Study(
        ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=tmp_path / "far.db", name="far", folder=url
    )
    yield study
    study.close()


def test_a_log_in_a_store_is_shown_if_the_store_may_be_asked(study, tmp_path, monkeypatch) -> None:
    trial, files = study.ask(), session_of(study).files.to_write()
    files.claim()
    files.log_path(0, 1).write_text("as it runs")
    files.show_log(Attempt(0, 1))
    while files.read_live_log(Attempt(0, 1)) is None:
        threading.Event().wait(0.01)
    storage = session_of(study).records._storage
    with monkeypatch.context() as there:
        (tmp_path / "there").mkdir()
        there.setattr(tempfile, "tempdir", str(tmp_path / "there"))
        logs = "/api/studies/far/trials/0/log"
        assert client_of(storage, follows=True).get(logs).json()["text"] == "as it runs"
        refused = client_of(storage).get(logs)
        assert refused.status_code == 404
        assert "on the machine that ran it" in refused.json()["error"]

        files.log_path(0, 1).write_text("as it ended")
        files.keep_log(Attempt(0, 1))
        files.hide_log(Attempt(0, 1))
        study.tell(trial, 0.5)
        assert client_of(storage, follows=True).get(logs).json()["text"] == "as it ended"


def test_the_log_of_the_attempt_that_runs_comes_before_one_that_has_ended(study, tmp_path, monkeypatch) -> None:
    study.ask()
    files, storage = session_of(study).files.to_write(), session_of(study).records._storage
    files.claim()
    files.log_path(0, 1).write_text("the first attempt")
    files.keep_log(Attempt(0, 1))
    with monkeypatch.context() as there:
        (tmp_path / "there").mkdir()
        there.setattr(tempfile, "tempdir", str(tmp_path / "there"))
        logs = "/api/studies/far/trials/0/log"
        client = client_of(storage, follows=True)
        assert client.get(logs).json()["text"] == "the first attempt", "it lies here from now on"
        storage.release_trial("far", Attempt(0, 1))
        study.ask()
        assert client.get(logs).json()["text"] == "the first attempt", "the second has not shown any"
        files.log_path(0, 2).write_text("the second attempt")
        files.show_log(Attempt(0, 2))
        while files.read_live_log(Attempt(0, 2)) is None:
            threading.Event().wait(0.01)
        shown = client.get(logs).json()
        assert (shown["name"], shown["text"]) == (files.log_path(0, 2).name, "the second attempt")
        files.hide_log(Attempt(0, 2))
