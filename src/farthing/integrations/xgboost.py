"""XGBoost with its rounds as a fidelity: a study trains some rounds, and continues the promising models.

def work(trial):
    data, valid = xgb.DMatrix(X, y), xgb.DMatrix(X_valid, y_valid)
    train_rounds(trial, {"objective": "binary:logistic", **trial.params}, data, valid)
"""

from collections.abc import Sequence
from typing import Any

from farthing.errors import MissingExtra
from farthing.execution import RunningTrial
from farthing.integrations.epochs import BoostingRun, pick_metric
from farthing.trials import Params

try:
    import xgboost
    from xgboost.callback import TrainingCallback
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.xgboost needs XGBoost, which is absent. Run: pip install 'farthing[xgboost]'."
    ) from error

MODEL_FILE = "model.ubj"


def train_rounds(
    trial: RunningTrial,
    params: Params,
    train_set: "xgboost.DMatrix",
    valid_set: "xgboost.DMatrix",
    *,
    metric: str | None = None,
    every: int = 10,
    early_stopping: int | None = None,
    custom_metric: Any = None,
    callbacks: Sequence[Any] = (),
) -> "xgboost.Booster":
    """Trains up to the trial's rounds, from the saved model if there is one, reports, and leaves the model.

    It takes the place of `xgboost.train`. A continued trial pays only for the rounds that it adds, under the params it
    is given now.

    Args:
        params: XGBoost's, those of the trial among them: `{"objective": "binary:logistic", **trial.params}`.
        metric: the one that is reported, if there are several: `"auc"`. By default the last, as in XGBoost.
        every: rounds from one report to the next.
        early_stopping: rounds without a better value after which the trial ends by itself; needs a fidelity with
            `best_so_far=True`.
        custom_metric, callbacks: as for `xgboost.train`.
    """
    run = BoostingRun(trial, model=MODEL_FILE, every=every, early_stopping=early_stopping)
    saved = run.saved_model
    booster = xgboost.train(
        _with_new_seed(dict(params), run.done),
        train_set,
        num_boost_round=run.left,
        evals=[(valid_set, "valid")],
        custom_metric=custom_metric,
        xgb_model=None if saved is None else str(saved),
        verbose_eval=False,
        callbacks=[*callbacks, _Watch(run, metric)],
    )
    booster.set_attr(best_iteration=str(run.best_round - 1))
    run.save(lambda path: booster.save_model(str(path)))
    return booster


def _with_new_seed(params: dict[str, Any], done: int) -> dict[str, Any]:
    """XGBoost starts its generator again with a continued model, which must not draw what it drew at its beginning."""
    return {**params, "seed": int(params.get("seed", 0)) + done} if done else params


class _Watch(TrainingCallback):  # type: ignore[misc]
    """XGBoost's callback: shows each round to the run, and ends the training when it says so."""

    def __init__(self, run: BoostingRun, metric: str | None) -> None:
        super().__init__()
        self._run, self._metric = run, metric
        self._seen = 0

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        self._seen += 1
        metrics = evals_log["valid"]
        names = list(metrics)
        place = len(names) - 1 if self._metric is None else pick_metric(names, self._metric)
        value = metrics[names[place]][-1]
        return self._run.see(self._run.done + self._seen, value[0] if isinstance(value, tuple) else value)
