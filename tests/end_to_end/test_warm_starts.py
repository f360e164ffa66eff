"""Real training, two workers and a database: continued runs continue, and starting over costs more for the same."""

from pathlib import Path

import pytest
from test_docs import ROOT, run

import farthing as ft

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> tuple[ft.Study, ft.Study]:
    """The study of the example, and the same trials each trained from the start.

    After four configurations there is nothing to do but to go on with them, until all have come to the end.
    """
    folder: Path = tmp_path_factory.mktemp("multifidelity")
    run(ROOT / "examples" / "1_multifidelity.py", "--trials", "4", "--seconds", "10000", "--again", folder=folder)
    warm, cold = (ft.Study.load(name, folder / "1_multifidelity.db") for name in ("digits-0", "digits-0-cold"))
    return warm, cold


def epochs(trial: ft.Trial) -> list[float]:
    """As the model itself counts them: the count is saved and loaded with it."""
    return [point.fidelity["epochs"] for point in trial.points]


def test_continued_runs_go_on_where_their_checkpoint_stopped(studies: tuple[ft.Study, ft.Study]) -> None:
    warm, _ = studies
    continued = [trial for trial in warm.trials if trial.resume_from is not None]
    assert continued
    for trial in continued:
        source = warm.trials[trial.resume_from or 0]
        assert trial.resume_checkpoint is not None
        assert trial.fidelity["data"] == source.fidelity["data"]
        assert epochs(trial) == list(range(int(source.fidelity["epochs"]) + 1, int(trial.fidelity["epochs"]) + 1))


def test_the_recommendation_was_trained_to_the_end(studies: tuple[ft.Study, ft.Study]) -> None:
    warm, _ = studies
    assert warm.trials[-1].tags == ("verification",)
    assert warm.trials[-1].fidelity == warm.space.full_fidelity


def test_starting_over_gives_the_same_values_for_more_work(studies: tuple[ft.Study, ft.Study]) -> None:
    """So that what the ledger calls saved is what it would have cost. Work is counted, not timed."""
    warm, cold = studies
    assert [trial.value for trial in cold.trials] == pytest.approx([trial.value for trial in warm.trials], rel=1e-6)
    assert {trial.resume_from for trial in cold.trials} == {None}
    work = [sum(len(trial.points) * trial.fidelity["data"] for trial in study.trials) for study in (warm, cold)]
    repeated = sum(
        warm.trials[trial.resume_from].fidelity["epochs"] * trial.fidelity["data"]
        for trial in warm.trials
        if trial.resume_from is not None
    )
    assert work[1] == pytest.approx(work[0] + repeated)
    assert warm.ledger.saved["warm starts"] > 0
    assert "warm starts" not in cold.ledger.saved
