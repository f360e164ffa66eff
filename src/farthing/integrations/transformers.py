"""Hugging Face's `Trainer`: trials that are paused and continued from its checkpoints.

def work(trial):
    trainer = Trainer(model=…, args=TrainingArguments(…), train_dataset=…, eval_dataset=…)
    train_epochs(trial, trainer, monitor="eval_loss")
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farthing.errors import MissingExtra, WorkError
from farthing.execution import RunningTrial
from farthing.integrations.epochs import epochs_of, leave_params, refuse_without_effect, require_best_so_far
from farthing.integrations.pytorch import BuiltOptimizer, Controls, Knobs
from farthing.validation import shown

try:
    from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainerState, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.transformers needs Hugging Face's transformers, which is absent. "
        "Run: pip install 'farthing[transformers]'."
    ) from error

STATE_FILE = "trainer_state.json"
"""In the trainer's checkpoints."""

BEST_AND_LAST = 2
"""Checkpoints to keep: the one to load at the end, and the one to continue from."""


def train_epochs(
    trial: RunningTrial, trainer: Trainer, *, monitor: str = "eval_loss", knobs: Knobs | None = None
) -> None:
    """Trains up to the trial's epochs, from its checkpoint if there is one; evaluates, reports, and leaves another.

    It takes the place of `trainer.train()`. Params that are settings of the optimizer (`learning_rate` or `lr`,
    `weight_decay`, `adam_beta1`) are set after the checkpoint was restored; biases and norms are not decayed, and rates
    by layers keep their ratios. Other params that change when a run is continued need a knob. Every epoch is evaluated,
    and its seconds are charged as validation. A schedule of the rate is that of a full run, of which a trial is the
    beginning. With `max_steps` the fidelity counts steps, and `eval_steps` says how often to evaluate.

    Args:
        monitor: the metric of `trainer.evaluate()` that is reported.
        knobs: further settings that params control: `Knobs().dropout("dropout", model)`.
    """
    name = epochs_of(trial)
    if any(isinstance(each, EarlyStoppingCallback) for each in trainer.callback_handler.callbacks):
        require_best_so_far(trial, name)
    _train_to_the_end(trainer.args, name, int(trial.problem.space.fidelities[name].high))
    trainer.model_init = None  # it has made the model; another one would have another optimizer
    callback = TrialCallback(trial, trainer, monitor, controls=_controls(trial, trainer, knobs))
    trainer.add_callback(callback)
    with _own_folder(trainer, trial.checkpoint_dir), callback.evaluating():
        trainer.train(resume_from_checkpoint=_checkpoint_of(trial.resume_dir))
    leave_params(trial)


def _train_to_the_end(args: TrainingArguments, name: str, most: int) -> None:
    """Lets the trainer plan a full run, schedule and all: the callback ends it where the trial ends."""
    if args.max_steps > 0 and args.max_steps != most:
        raise WorkError(
            f"A fidelity counts epochs, or all the steps of a full run, got max_steps={args.max_steps} and a fidelity "
            f"of up to {most} {name}. Leave max_steps out, or give the fidelity its number: "
            f'"steps": ft.Fidelity(…, {args.max_steps}, integer=True, trace=True).'
        )
    args.num_train_epochs = most
    args.eval_strategy = "steps" if args.max_steps > 0 else "epoch"
    args.save_strategy, args.save_steps = "steps", 0  # the callback says when
    args.save_only_model, args.save_total_limit = False, BEST_AND_LAST


@contextmanager
def _own_folder(trainer: Trainer, folder: Path) -> Iterator[None]:
    """Lets the trainer write into this folder, because that of its arguments is other trials' too."""
    theirs, trainer.args.output_dir = trainer.args.output_dir, str(folder)
    try:
        yield
    finally:
        trainer.args.output_dir = theirs


def _checkpoint_of(folder: Path | None) -> str | None:
    """The checkpoint to continue from."""
    if folder is None:
        return None
    last = get_last_checkpoint(str(folder))
    if last is None:
        raise WorkError(
            f"A checkpoint must be one of Hugging Face's trainer, got none in {str(folder)!r}. Continue only trials of "
            "the same integration."
        )
    return str(last)


def _controls(trial: RunningTrial, trainer: Trainer, knobs: Knobs | None) -> Controls:
    """Makes the optimizer, as the trainer would: which of its groups decay is known before a checkpoint is read."""
    trainer.args.weight_decay = trial.params.get("weight_decay", trainer.args.weight_decay)
    built = BuiltOptimizer.of(trainer.create_optimizer())
    return Controls(Knobs() if knobs is None else knobs, [built], trial.params)


class TrialCallback(TrainerCallback):  # type: ignore[misc]
    """Applies the trial's params when training begins, evaluates, reports, and ends training where the trial ends."""

    def __init__(self, trial: RunningTrial, trainer: Trainer, monitor: str, *, controls: Controls) -> None:
        self._trial, self._trainer, self._monitor, self._controls = trial, trainer, monitor, controls
        self._fidelity = epochs_of(trial)
        self._counts_steps = trainer.args.max_steps > 0
        self._reported = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Comes after the optimizer and its scheduler were restored."""
        refuse_without_effect(self._trial, self._controls.takes)
        self._controls.apply(self._trial.params, [kwargs.get("lr_scheduler")])
        self._reported = self._place(state)
        if args.load_best_model_at_end and self._trial.resume_dir is not None:
            state.best_model_checkpoint = _bring_best(self._trial.resume_dir, Path(args.output_dir))

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        control.should_save = False  # before it was evaluated
        if self._counts_steps:
            self._end_if_reached(state, control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not self._counts_steps:
            control.should_evaluate = True
            self._end_if_reached(state, control)

    def _end_if_reached(self, state: Any, control: Any) -> None:
        if self._place(state) >= self._trial.fidelity[self._fidelity]:
            control.should_training_stop = control.should_evaluate = True

    def _place(self, state: Any) -> int:
        """The steps or whole epochs so far."""
        return int(state.global_step if self._counts_steps else state.epoch or 0)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Has the trainer's evaluations timed and reported, while it trains."""
        evaluate = self._trainer.evaluate
        self._trainer.evaluate = lambda *args, **kwargs: self._evaluate(evaluate, *args, **kwargs)
        try:
            yield
        finally:
            self._trainer.evaluate = evaluate

    def _evaluate(self, evaluate: Callable[..., dict[str, float]], *args: Any, **kwargs: Any) -> dict[str, float]:
        if "metric_key_prefix" in kwargs:  # one set of several, called from within
            return evaluate(*args, **kwargs)
        with self._trial.timing("validation"):
            metrics = evaluate(*args, **kwargs)
        place = self._place(self._trainer.state)
        if place > self._reported:
            self._report(metrics, place)
        control = self._trainer.control
        control.should_save = control.should_training_stop or self._trainer.args.load_best_model_at_end
        return metrics

    def _report(self, metrics: dict[str, float], place: int) -> None:
        if self._monitor not in metrics:
            raise WorkError(
                f"The trainer must evaluate {self._monitor!r}, got {shown(sorted(metrics))}. Add it to compute_metrics."
            )
        where: dict[str, Any] = {self._fidelity: place}
        self._trial.report(metrics[self._monitor], **where)
        self._reported = place


def _bring_best(source: Path, target: Path) -> str | None:
    """Copies the best checkpoint of the run that is continued; returns its path, if there is one."""
    last = TrainerState.load_from_json(str(Path(_checkpoint_of(source) or "") / STATE_FILE))
    best = source / Path(last.best_model_checkpoint or "none").name
    if not best.is_dir():
        return None
    shutil.copytree(best, target / best.name)
    return str(target / best.name)
