"""Where a study keeps its files."""

import gc

from farthing.execution.scratch import remove_abandoned
from farthing.study.folder import temporary_folder


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
