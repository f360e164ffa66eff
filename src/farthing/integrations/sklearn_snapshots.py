"""States of scikit-learn estimators that train on while they are tuned."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any


class Snapshots:
    """Copies of the state of estimators that are trained by `partial_fit` or with `warm_start`, for `OnlineTuner`.

        snapshots = Snapshots(model)
        tuner = ft.OnlineTuner(space, rounds=100, save=snapshots.save, restore=snapshots.restore)

    The estimators stay the same objects. Their settings are part of the state: set the params again in every round.
    """

    def __init__(self, *estimators: Any) -> None:
        self._estimators = estimators

    def save(self) -> list[dict[str, Any]]:
        """The states of all estimators, which later training does not change."""
        return [deepcopy(vars(estimator)) for estimator in self._estimators]

    def restore(self, saved: Sequence[dict[str, Any]]) -> None:
        """Puts the estimators back into these states, which can be used again."""
        for estimator, state in zip(self._estimators, saved, strict=True):
            own = vars(estimator)
            own.clear()
            own.update(deepcopy(state))
