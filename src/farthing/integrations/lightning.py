"""PyTorch Lightning: trials that are paused and continued from its checkpoints, and runs that are tuned as they train.

def work(trial):
    callback = TrialCallback(trial, monitor="val_loss")
    trainer = L.Trainer(max_epochs=callback.epochs, callbacks=[callback])
    trainer.fit(Net(trial.params["lr"]), train, valid, ckpt_path=callback.resume_path)
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from farthing.errors import InvalidArgument, MissingExtra, WorkError
from farthing.execution import RunningTrial
from farthing.execution.ranks import ADVICE
from farthing.integrations.epochs import epochs_of, leave_params, refuse_without_effect, require_best_so_far
from farthing.integrations.pytorch import BuiltOptimizer, Controls, Knobs, Snapshots
from farthing.online.arguments import OnlineSettings
from farthing.online.run import Decision
from farthing.online.tuner import OnlineTuner
from farthing.space import Space
from farthing.trials import Params
from farthing.validation import shown

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.lightning needs Lightning, which is absent. Run: pip install 'farthing[lightning]'."
    ) from error

CHECKPOINT_FILE = "lightning.ckpt"

MakeKnobs = Callable[[LightningModule], Knobs]
"""From the module to the settings that params control beside the optimizer's."""


class TrialCallback(Callback):  # type: ignore[misc]
    """One trial of a study: reports every validation, charges its seconds, and leaves a checkpoint to continue from.

    Params that are settings of an optimizer (`lr` or `learning_rate`, `momentum`, `weight_decay`) are set after a
    checkpoint was restored, so that what was chosen takes effect. Its groups keep their ratios, and those without decay
    stay without. Others that change from one trial of a run to the next, as in a population, need a knob.

    Sent to another process, which trains along as another rank, it does the same there and reports nothing.

    Args:
        trial: the trial, in a space with one trace fidelity in whole epochs.
        monitor: the metric that is reported, as the module logs it.
        knobs: makes knobs for further params: `lambda module: Knobs().dropout("dropout", module)`.
    """

    def __init__(self, trial: RunningTrial, monitor: str, *, knobs: MakeKnobs | None = None) -> None:
        self._trial: RunningTrial | _TrialElsewhere = trial
        self._monitor, self._knobs = monitor, knobs
        self._fidelity = epochs_of(trial)
        self._timing = ExitStack()
        self._reported = 0
        self._began = False
        self._process = os.getpid()

    def __getstate__(self) -> dict[str, Any]:
        trial = self._trial
        return {**vars(self), "_trial": _TrialElsewhere(trial.params, trial.fidelity, trial.resume_dir)}

    @property
    def epochs(self) -> int:
        """For `Trainer(max_epochs=…)`: the epochs of the trial, those before it counted."""
        return int(self._trial.fidelity[self._fidelity])

    @property
    def resume_path(self) -> str | None:
        """For `trainer.fit(…, ckpt_path=…)`: the checkpoint to continue from, if there is one."""
        folder = self._trial.resume_dir
        return None if folder is None else str(folder / CHECKPOINT_FILE)

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        self._began = True
        if trainer.early_stopping_callbacks and isinstance(self._trial, RunningTrial):
            require_best_so_far(self._trial, self._fidelity)
        is_here = isinstance(self._trial, RunningTrial) and os.getpid() == self._process
        if trainer.world_size > 1 and is_here != trainer.is_global_zero:
            raise _several(trainer)

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Comes before Lightning restores the optimizers."""
        self._built = [BuiltOptimizer.of(optimizer) for optimizer in trainer.optimizers]

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Comes after Lightning has restored the optimizers."""
        if trainer.max_epochs != self.epochs:
            raise WorkError(
                f"A trial must train for its own epochs, got max_epochs={trainer.max_epochs} in a trial of "
                f"{self.epochs}. Write Trainer(max_epochs=callback.epochs)."
            )
        params = self._trial.params
        controls = Controls(Knobs() if self._knobs is None else self._knobs(module), self._built, params)
        refuse_without_effect(self._trial, controls.takes)
        controls.apply(params, _schedulers(trainer))

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        """The last epoch is validated, however few others are: its checkpoint has a value then."""
        if trainer.current_epoch + 1 == self.epochs:
            if trainer.check_val_every_n_epoch is None:  # counted in steps through all epochs
                trainer.val_check_batch = trainer.num_training_batches
            trainer.check_val_every_n_epoch = 1

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        if not trainer.sanity_checking:
            self._timing.enter_context(self._trial.timing("validation"))

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        self._timing.close()
        if not trainer.sanity_checking:
            self._reported = trainer.current_epoch + 1
            value = _metric(trainer, self._monitor)
            place: dict[str, Any] = {self._fidelity: self._reported}
            self._trial.report(value, **place)

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        if not self._reported:
            raise WorkError(f"A trial must be measured, but {self._monitor!r} was never validated. Give a val loader.")
        trainer.save_checkpoint(
            self._trial.checkpoint_dir / CHECKPOINT_FILE
        )  # all ranks must, and the first one writes
        if isinstance(self._trial, RunningTrial):
            leave_params(self._trial)

    def on_exception(self, trainer: Trainer, module: LightningModule, exception: BaseException) -> None:
        self._timing.close()
        if trainer.num_devices > 1 and not self._began:
            raise _several(trainer) from exception


@dataclass(frozen=True)
class _TrialElsewhere:
    """A trial as other ranks see it, to which its callback was sent: they train along, and report nothing."""

    params: Params
    fidelity: Mapping[str, float]
    resume_dir: Path | None
    checkpoint_dir = Path()

    def report(self, value: float, **fidelity: Any) -> None:
        """The rank that runs the trial does."""

    def timing(self, kind: str) -> AbstractContextManager[None]:
        return nullcontext()


class OnlineCallback(Callback):  # type: ignore[misc]
    """Tunes params while the module trains, an epoch a round, and validates only when it is worth its price.

    Before each epoch the tuner decides; validation runs after those epochs in which it asks for it. A setting that
    did harm is taken back: model and optimizers are saved before a probe, and restored. `tuner` is the `OnlineTuner`.

    Args:
        space: params that are settings of the optimizers, or have knobs. Let no learning rate scheduler write them.
        minimize, maximize: the metric that the module logs when it validates.
        knobs: as for `TrialCallback`.
        settings: the other arguments of `OnlineTuner`: `initial`, `overhead`, `storage`, …
    """

    tuner: OnlineTuner

    def __init__(
        self,
        space: Space,
        *,
        minimize: str | None = None,
        maximize: str | None = None,
        knobs: MakeKnobs | None = None,
        **settings: Unpack[OnlineSettings],
    ) -> None:
        if (minimize is None) == (maximize is None):
            raise InvalidArgument(
                f"An online run has one metric, got minimize={minimize!r} and maximize={maximize!r}. Give one of them."
            )
        self._monitor = minimize or maximize or ""
        self._aim: dict[str, Any] = {"minimize" if minimize else "maximize": re.sub(r"\W|^(?=\d)", "_", self._monitor)}
        self._space, self._knobs, self._settings = space, knobs, settings
        self._clock = _WithoutValidation()
        self._decision: Decision | None = None
        self._began = 0.0

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        if trainer.world_size > 1:
            raise InvalidArgument(
                f"An online run is trained by one process, got {trainer.world_size}, which would decide each for "
                "itself. Write Trainer(devices=1)."
            )

    def on_fit_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._built = [BuiltOptimizer.of(optimizer) for optimizer in trainer.optimizers]

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        knobs = Knobs() if self._knobs is None else self._knobs(module)
        initial = self._settings.get("initial")
        self._controls = Controls(knobs, self._built, initial if isinstance(initial, Mapping) else {})
        self._controls.require(self._space.parameters)
        snapshots = Snapshots(module, *trainer.optimizers)
        self.tuner = OnlineTuner(
            self._space,
            rounds=trainer.max_epochs or 0,
            save=snapshots.save,
            restore=snapshots.restore,
            clock=self._clock,
            **self._aim,
            **self._settings,
        )

    def on_train_epoch_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._decision = next(self.tuner)
        self._controls.apply(self._decision.params, _schedulers(trainer))
        trainer.check_val_every_n_epoch = 1 if self._decision.measure else NEVER

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        self._began = time.perf_counter()

    def on_validation_end(self, trainer: Trainer, module: LightningModule) -> None:
        if trainer.sanity_checking or self._decision is None or not self._decision.measure:
            return
        seconds, value = time.perf_counter() - self._began, _metric(trainer, self._monitor)
        self._clock.leave_out(seconds)
        self._decision.observe(lambda: self._clock.after(seconds, value))


NEVER = 10**9
"""Epochs between validations in which there is none."""


class _WithoutValidation:
    """A clock on which Lightning's validation takes no time, until the tuner reads its value: then all of it."""

    def __init__(self) -> None:
        self._left_out = 0.0

    def now(self) -> float:
        return time.time()

    def elapsed(self) -> float:
        return time.perf_counter() - self._left_out

    def leave_out(self, seconds: float) -> None:
        self._left_out += seconds

    def after(self, seconds: float, value: float) -> float:
        self._left_out -= seconds
        return value


def _several(trainer: Trainer) -> WorkError:
    return WorkError(
        f"A trial of Lightning trains in the process that reports on it, got {type(trainer.strategy).__name__} with "
        f"{trainer.world_size} processes. {ADVICE}"
    )


def _schedulers(trainer: Trainer) -> list[Any]:
    """Of each optimizer its learning rate scheduler, or None."""
    schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
    return [
        next((one for one in schedulers if getattr(one, "optimizer", None) is optimizer), None)
        for optimizer in trainer.optimizers
    ]


def _metric(trainer: Trainer, monitor: str) -> float:
    if monitor not in trainer.callback_metrics:
        raise WorkError(
            f"The module must log {monitor!r} when it validates, got {shown(sorted(trainer.callback_metrics))}. "
            f'Call self.log("{monitor}", …) in validation_step.'
        )
    return float(trainer.callback_metrics[monitor])
