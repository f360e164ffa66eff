"""Nothing outside a study's folder is served, whatever links somebody has planted in it."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import farthing as ft
from farthing.session import session_of
from farthing.storage import Storage
from tests.unit.dashboard.conftest import client_of

SECRET = "what only the account may read"
PLAIN = "what the trial left"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A folder that looks like one of a trial, elsewhere."""
    folder = tmp_path / "elsewhere"
    (folder / "attempt-1.checkpoint-1").mkdir(parents=True)
    for name in ("attempt-1.checkpoint-1/secret.txt", "attempt-1.log", "secret.txt"):
        (folder / name).write_text(SECRET)
    return folder


@pytest.fixture
def study(storage: Storage) -> Iterator[ft.Study]:
    """One trial with a log, and a checkpoint of two files."""
    found = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="loss", storage=storage, name="linked")

    def work(trial: ft.RunningTrial) -> float:
        with trial.checkpoint() as folder:
            (folder / "weights.txt").write_text(PLAIN)
            (folder / "parts").mkdir()
            (folder / "parts" / "first.txt").write_text(PLAIN)
        return 0.5

    found.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
    found.checkpoints.log_path(0, 1).write_text(PLAIN)
    yield found
    found.close()


def root_of(study: ft.Study) -> Path:
    return study.checkpoints.root


def checkpoint_of(study: ft.Study) -> Path:
    return study.checkpoints.path(str(study.trials[0].checkpoint))


def aside(place: Path) -> Path:
    return place.rename(place.with_name(f"{place.name} was here"))


def link_the_file(study: ft.Study, secret: Path) -> None:
    aside(checkpoint_of(study) / "weights.txt")
    (checkpoint_of(study) / "weights.txt").symlink_to(secret / "secret.txt")


def link_a_folder_in_the_checkpoint(study: ft.Study, secret: Path) -> None:
    (checkpoint_of(study) / "more").symlink_to(secret)


def link_the_checkpoint(study: ft.Study, secret: Path) -> None:
    aside(checkpoint_of(study))
    checkpoint_of(study).symlink_to(secret / "attempt-1.checkpoint-1")


def link_the_folder_of_the_trial(study: ft.Study, secret: Path) -> None:
    aside(root_of(study) / "000000")
    (root_of(study) / "000000").symlink_to(secret)


def link_the_log(study: ft.Study, secret: Path) -> None:
    aside(study.checkpoints.log_path(0, 1))
    study.checkpoints.log_path(0, 1).symlink_to(secret / "attempt-1.log")


def link_the_study(study: ft.Study, secret: Path) -> None:
    """To the folder of another study."""
    aside(root_of(study))
    (secret.parent / "other").mkdir()
    secret.rename(secret.parent / "other" / "000000")
    root_of(study).symlink_to(secret.parent / "other")


LINKS = (
    link_the_file,
    link_a_folder_in_the_checkpoint,
    link_the_checkpoint,
    link_the_folder_of_the_trial,
    link_the_log,
    link_the_study,
)


def answers_of(client: TestClient) -> list[str]:
    """What a page could ask for: the trial, its log, and files by every name that there was or may be."""
    trial = client.get("/api/studies/linked/trials/0").json()
    names = [
        "weights.txt",
        "secret.txt",
        "more/secret.txt",
        "parts/first.txt",
        *(one["name"] for one in trial["files"]),
    ]
    files = [client.get("/api/studies/linked/trials/0/file", params={"name": name}).text for name in names]
    return [str(trial), client.get("/api/studies/linked/trials/0/log").text, *files]


def test_what_a_trial_left_is_served(study, storage) -> None:
    found = answers_of(client_of(storage))

    assert sum(PLAIN in answer for answer in found) == 5, "the log, and two files by two names each"


@pytest.mark.parametrize("plant", LINKS)
def test_a_link_leads_nowhere(study, storage, secret, plant: Callable[[ft.Study, Path], None]) -> None:
    plant(study, secret)

    assert not any(SECRET in answer for answer in answers_of(client_of(storage)))


def test_a_folder_of_another_study_is_not_served_for_ones_own(study, storage, tmp_path) -> None:
    """Whoever may write to the database can name any folder in it."""
    thief = ft.Study(study.space, minimize="loss", storage=tmp_path / "thief.db", name="thief")

    def work(trial: ft.RunningTrial) -> float:
        with trial.checkpoint() as folder:
            (folder / "weights.txt").write_text("mine")
        return 0.5

    thief.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False)
    session_of(thief).records.remember({"folder": str(root_of(study))})
    client = client_of(session_of(thief).records._storage)

    assert client.get("/api/studies/thief/trials/0").json()["files"] == []
    assert client.get("/api/studies/thief/trials/0/file", params={"name": "weights.txt"}).status_code == 404
    assert client.get("/api/studies/thief/trials/0/log").status_code == 404
    thief.close()


def test_a_pipe_in_a_checkpoint_is_no_file_and_makes_nobody_wait(study, storage) -> None:
    os.mkfifo(checkpoint_of(study) / "pipe")
    client = client_of(storage)

    assert "pipe" not in [one["name"] for one in client.get("/api/studies/linked/trials/0").json()["files"]]
    assert client.get("/api/studies/linked/trials/0/file", params={"name": "pipe"}).status_code == 404


def test_a_name_that_no_page_could_ask_for_is_left_out(study, storage) -> None:
    with open(os.fsencode(checkpoint_of(study)) + b"/\xff.txt", "wb"):
        pass
    files = client_of(storage).get("/api/studies/linked/trials/0").json()["files"]

    assert [one["name"] for one in files] == ["weights.txt", "parts/first.txt"]


def test_the_log_of_the_tenth_attempt_is_later_than_that_of_the_second(study, storage) -> None:
    for attempt in (2, 10):
        study.checkpoints.log_path(0, attempt).write_text(f"attempt {attempt}")

    assert client_of(storage).get("/api/studies/linked/trials/0/log").json()["text"] == "attempt 10"
