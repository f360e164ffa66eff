"""A study in Weights & Biases: a group of runs, one for each trial and one for the study."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from farthing.costs import Ledger
from farthing.running.tracking import SoFar, StudyFacts, Tracker
from farthing.trackers.contents import best_of, bill_of, costs_of, library, numbers_at, settings_of, standing
from farthing.trials import Json, Measurement, State, Trial


class WandB(Tracker):
    """Records a study as a group of runs of Weights & Biases. Needs the extra `farthing[wandb]`.

    Each trial is a run with its params as config, its curve, costs and state. One more run, of the type `study`, has
    the best value, its params and the cost as they went, and the ledger in its summary. Work that writes for itself has
    a run beside that of its trial, of the type `work`, because a run has one writer.

    Args:
        project: the project; by default the study's name.
        entity: the user or team.
        mode: "online", "offline" (files for `wandb sync`) or "disabled"; by default what wandb is set to.
        folder: where wandb keeps its files; by default the current folder.
        patience: seconds that the end of a run waits for wandb.
    """

    def __init__(
        self,
        project: str | None = None,
        *,
        entity: str | None = None,
        mode: Literal["online", "offline", "disabled"] | None = None,
        folder: str | Path | None = None,
        patience: float = 30.0,
    ) -> None:
        self._library = library("wandb", tracker="WandB", extra="wandb")
        self.patience = patience
        self._project, self._entity, self._mode, self._folder = project, entity, mode, folder
        self._runs: dict[int, Any] = {}

    def address(self, study: StudyFacts) -> dict[str, Json]:
        folder = None if self._folder is None else str(self._folder)
        own: dict[str, Json] = {"project": self._project or study.name, "entity": self._entity, "group": study.name}
        return {**own, "mode": self._mode, "dir": folder, "id": study.identity[:12]}

    @staticmethod
    @contextmanager
    def reach(address: Mapping[str, Any], number: int) -> Iterator[Any]:
        """A run beside the one that is told about the trial: a run of wandb has one writer."""
        wandb = library("wandb", tracker="WandB", extra="wandb")
        with _opened(wandb, address, f"{number}-work", job_type="work", name=f"trial {number} work") as run:
            yield run

    def begin(self, study: StudyFacts) -> None:
        self._study = study
        self._runs.clear()
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)  # wandb warns of one that is not there
        self._whole = self._begun("study", name=study.name, kind="study", config=study.settings)

    def start(self, trial: Trial) -> None:
        if trial.number not in self._runs:
            own, name = str(trial.number), f"trial {trial.number}"
            self._runs[trial.number] = self._begun(own, name=name, kind="trial", config=settings_of(trial))

    def report(self, trial: Trial, point: Measurement) -> None:
        self._runs[trial.number].log(numbers_at(self._study, point), step=self._study.step_of(point))

    def end(self, trial: Trial, so_far: SoFar) -> None:
        run = self._runs[trial.number]
        failure = {} if trial.failure is None else {"failure": trial.failure.reason}
        run.summary.update({**costs_of(self._study, trial), "state": trial.state.value, **failure})
        run.finish(exit_code=0 if trial.state in (State.DONE, State.PRUNED) else 1)
        self._whole.log(standing(self._study, so_far), step=so_far.trials)
        if so_far.best_trial is trial:
            self._whole.summary.update(best_of(so_far))
        del self._runs[trial.number]

    def finish(self, ledger: Ledger) -> None:
        self._whole.summary.update({**bill_of(ledger), "ledger": str(ledger)})
        for run in (*self._runs.values(), self._whole):
            run.finish()

    def _begun(self, part: str, *, name: str, kind: str, config: dict[str, Any]) -> Any:
        return _opened(self._library, self.address(self._study), part, job_type=kind, name=name, config=config)


def _opened(wandb: Any, address: Mapping[str, Any], part: str, **settings: Any) -> Any:
    """A run of its own beside others that are open, with an identity by which a resumed study and work find it."""
    return wandb.init(
        **{**address, "id": f"{address['id']}-{part}"},
        resume=None if address["mode"] == "offline" else "allow",
        reinit="create_new",
        settings=wandb.Settings(console="off", silent=True),
        **settings,
    )
