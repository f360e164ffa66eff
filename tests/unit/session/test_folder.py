"""A study's files: where they are, and what is said of those that are gone."""

import gc

import farthing as ft
from farthing.files.file_lock import remove_abandoned
from farthing.session.folder import temporary_folder


class Owner:
    """What the folder belongs to."""


def test_a_temporary_folder_lasts_as_long_as_its_owner():
    owner = Owner()
    folder = temporary_folder(owner)
    (folder / "file").write_text("kept")
    remove_abandoned()
    temporary_folder(Owner())
    assert (folder / "file").exists()
    del owner
    gc.collect()
    assert not folder.exists()
    assert not folder.with_suffix(".lock").exists()


def test_studies_that_are_given_one_place_do_not_share_what_their_stages_made(tmp_path):
    space = ft.Space(stages={"first": {"x": ft.Choice(1)}, "last": {"y": ft.Float(0, 1)}})

    def value(name, factor):
        study = ft.Study(space, minimize="error", strategy=ft.Random(), name=name, folder=tmp_path)
        first = ft.Stage(lambda previous, x: x * factor, version="1")
        study.run(ft.Pipeline(first=first, last=lambda made, y: made), budget=ft.Budget(trials=2), executor="inline")
        return [trial.value for trial in study.trials]

    assert (value("one", 1), value("other", 100)) == ([1, 1], [100, 100])


def test_a_run_says_which_outputs_of_stages_are_not_used_again(tmp_path, caplog):
    space = ft.Space(stages={"first": {"x": ft.Choice(1, 2)}, "last": {"y": ft.Float(0, 1)}})
    study = ft.Study(space, minimize="error", strategy=ft.Random(), seed=0, storage=tmp_path / "study.db")

    def said(version, trials):
        caplog.clear()
        first = ft.Stage(lambda previous, x: x, version=version)
        pipeline = ft.Pipeline(first=first, last=lambda made, y: made)
        study.run(pipeline, budget=ft.Budget(trials=trials), executor="inline")
        return caplog.messages

    assert said("1", 6) == said("1", 7) == []
    assert [message.split(":")[0] for message in said("2", 8)] == [
        "2 of 2 outputs of stages cannot be used again",
        "first changed since the last run",
    ]
