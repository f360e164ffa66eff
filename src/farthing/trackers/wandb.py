"""A study in Weights & Biases: a group of runs, one for each trial and one for the study."""

from pathlib import Path
from typing import Any, Literal

from farthing.costs import Ledger
from farthing.study.tracking import SoFar, StudyFacts, Tracker
from farthing.trackers.contents import bill_of, costs_of, library, numbers_at, settings_of, standing
from farthing.trials import Measurement, State, Trial


class WandB(Tracker):
    """Records a study as a group of runs of Weights & Biases. Needs the extra `farthing[wandb]`.

    Each trial is a run with its params as config, its curve, costs and state. One more run, of the type `study`, has
    the best value and the cost as they went, and the ledger in its summary.

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
        run.summary.update({**costs_of(trial), "state": trial.state.value, **failure})
        run.finish(exit_code=0 if trial.state in (State.DONE, State.PRUNED) else 1)
        self._whole.log(standing(self._study, so_far), step=so_far.trials)
        del self._runs[trial.number]

    def finish(self, ledger: Ledger) -> None:
        self._whole.summary.update({**bill_of(ledger), "ledger": str(ledger)})
        for run in (*self._runs.values(), self._whole):
            run.finish()

    def _begun(self, part: str, *, name: str, kind: str, config: dict[str, Any]) -> Any:
        """A run of its own beside others that are open, with an identity by which a resumed study finds it."""
        return self._library.init(
            project=self._project or self._study.name,
            entity=self._entity,
            mode=self._mode,
            dir=None if self._folder is None else str(self._folder),
            id=f"{self._study.identity[:12]}-{part}",
            resume=None if self._mode == "offline" else "allow",
            group=self._study.name,
            job_type=kind,
            name=name,
            config=config,
            reinit="create_new",
            settings=self._library.Settings(console="off", silent=True),
        )
