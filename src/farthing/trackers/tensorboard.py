"""A study for TensorBoard: event files, a folder for each trial."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farthing.costs import Ledger
from farthing.running.tracking import SoFar, StudyFacts, Tracker
from farthing.trackers.contents import best_of, bill_of, costs_of, library, numbers_at, settings_of, standing
from farthing.trials import Json, Measurement, Trial


class TensorBoard(Tracker):
    """Writes a study as event files for TensorBoard. Needs the extra `farthing[tensorboard]`.

    `FOLDER/STUDY/trial-7` has the curve of trial 7, its costs, and its params for the HPARAMS page;
    `FOLDER/STUDY/study` has the best value and the cost as they went, and the ledger as text. Look at them:
    `tensorboard --logdir FOLDER`.
    """

    def __init__(self, folder: str | Path = "runs", *, patience: float = 10.0) -> None:
        modules = {
            "event": "tensorboard.compat.proto.event_pb2",
            "files": "tensorboard.summary.writer.event_file_writer",
            "scalars": "tensorboard.plugins.scalar.summary_v2",
            "hparams": "tensorboard.plugins.hparams.summary_v2",
            "text": "tensorboard.plugins.text.summary_v2",
        }
        self._library = {
            name: library(module, tracker="TensorBoard", extra="tensorboard") for name, module in modules.items()
        }
        self.patience = patience
        self._folder = Path(folder)
        self._writers: dict[int, Any] = {}

    def address(self, study: StudyFacts) -> dict[str, Json]:
        return {"folder": str(self._folder.absolute() / study.name)}

    @staticmethod
    @contextmanager
    def reach(address: Mapping[str, Any], number: int) -> Iterator[Path]:
        """The folder of the trial, for event files of its own."""
        folder = Path(address["folder"]) / f"trial-{number}"
        folder.mkdir(parents=True, exist_ok=True)
        yield folder

    def begin(self, study: StudyFacts) -> None:
        self._study = study
        self._writers.clear()
        self._whole = self._writer("study")

    def start(self, trial: Trial) -> None:
        if trial.number not in self._writers:
            self._writers[trial.number] = writer = self._writer(f"trial-{trial.number}")
            name = f"{self._study.name} {trial.number}"
            params = {name: _plain(value) for name, value in settings_of(trial).items()}
            self._add(writer, self._library["hparams"].hparams_pb(params, trial_id=name))

    def report(self, trial: Trial, point: Measurement) -> None:
        writer, step = self._writers[trial.number], self._study.step_of(point)
        self._add_numbers(writer, numbers_at(self._study, point), step=step or 0, at=point.time)

    def end(self, trial: Trial, so_far: SoFar) -> None:
        writer = self._writers.pop(trial.number)
        self._add_numbers(writer, costs_of(self._study, trial))
        self._add(writer, self._library["text"].text_pb("state", trial.state.value))
        writer.close()
        self._add_numbers(self._whole, standing(self._study, so_far), step=so_far.trials)
        if so_far.best_trial is trial:
            lines = "\n".join(f"{name} = {value}  " for name, value in best_of(so_far).items())
            self._add(self._whole, self._library["text"].text_pb("best", lines), step=so_far.trials)

    def finish(self, ledger: Ledger) -> None:
        self._add_numbers(self._whole, bill_of(ledger))
        self._add(self._whole, self._library["text"].text_pb("ledger", f"```\n{ledger}\n```"))
        for writer in (*self._writers.values(), self._whole):
            writer.close()

    def _writer(self, part: str) -> Any:
        return self._library["files"].EventFileWriter(str(self._folder / self._study.name / part))

    def _add_numbers(self, writer: Any, numbers: dict[str, float], *, step: int = 0, at: float = 0.0) -> None:
        for name, number in numbers.items():
            self._add(writer, self._library["scalars"].scalar_pb(name, number), step=step, at=at)

    def _add(self, writer: Any, summary: Any, *, step: int = 0, at: float = 0.0) -> None:
        event = self._library["event"].Event
        writer.add_event(event(wall_time=at or time.time(), step=step, summary=summary))


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | float | str) else str(value)
