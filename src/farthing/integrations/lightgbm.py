"""LightGBM with its rounds as a fidelity: a study trains some rounds, and continues the promising models.

def work(trial):
    train = lgb.Dataset(X, y)
    train_rounds(trial, {"objective": "binary", **trial.params}, train, train.create_valid(X_valid, y_valid))
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from farthing.errors import MissingExtra
from farthing.execution import RunningTrial
from farthing.integrations.epochs import BoostingRun, pick_metric
from farthing.trials import Params

try:
    import lightgbm
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.lightgbm needs LightGBM, which is absent. Run: pip install 'farthing[lightgbm]'."
    ) from error

MODEL_FILE = "model.txt"
SEEDS = {"bagging_seed": 3, "feature_fraction_seed": 2, "extra_seed": 6}
"""LightGBM's defaults. A continued model starts its generators again; with these as they are it would draw the same
rows and features as at its beginning."""


def train_rounds(
    trial: RunningTrial,
    params: Params,
    train_set: "lightgbm.Dataset",
    valid_set: "lightgbm.Dataset",
    *,
    metric: str | None = None,
    every: int = 10,
    early_stopping: int | None = None,
    feval: Any = None,
    callbacks: Sequence[Callable[..., Any]] = (),
) -> "lightgbm.Booster":
    """Trains up to the trial's rounds, from the saved model if there is one, reports, and leaves the model.

    It takes the place of `lightgbm.train`. A continued trial pays only for the rounds that it adds, under the params it
    is given now. The data sets must still have their raw data: make them in the work, or with `free_raw_data=False`.

    Args:
        params: LightGBM's, those of the trial among them: `{"objective": "binary", **trial.params}`.
        metric: the one that is reported, if there are several: `"auc"`. By default the first.
        every: rounds from one report to the next.
        early_stopping: rounds without a better value after which the trial ends by itself; needs a fidelity with
            `best_so_far=True`.
        feval, callbacks: as for `lightgbm.train`.
    """
    run = BoostingRun(trial, model=MODEL_FILE, every=every, early_stopping=early_stopping)
    saved = run.saved_model
    booster = lightgbm.train(
        _with_new_seeds(dict(params), run.done),
        train_set,
        num_boost_round=run.left,
        valid_sets=[valid_set],
        valid_names=["valid"],
        feval=feval,
        init_model=None if saved is None else str(saved),
        callbacks=[*callbacks, _Watch(run, metric)],
        keep_training_booster=True,
    )
    booster.best_iteration = run.best_round
    run.save(lambda path: _write(booster, path))
    return booster


class _Watch:
    """LightGBM's callback: shows each round to the run, and ends the training when it says so."""

    order = 100  # after those of the user

    def __init__(self, run: BoostingRun, metric: str | None) -> None:
        self._run, self._metric = run, metric

    def __call__(self, env: Any) -> None:
        place = pick_metric([name for _, name, *_ in env.evaluation_result_list], self._metric)
        value = env.evaluation_result_list[place][2]
        rounds = self._run.done + env.iteration - env.begin_iteration + 1
        if self._run.see(rounds, value) and rounds < self._run.done + self._run.left:
            raise lightgbm.callback.EarlyStopException(env.iteration, env.evaluation_result_list)


def _with_new_seeds(params: dict[str, Any], done: int) -> dict[str, Any]:
    if not done:
        return params
    return {name: seed + done for name, seed in SEEDS.items() if name not in params} | params


def _write(booster: "lightgbm.Booster", path: Path) -> None:
    """All rounds: by default LightGBM writes those up to the best."""
    booster.save_model(str(path), num_iteration=-1)
