"""Value against params: for slices, and for lines across parallel axes."""

import numpy as np

from farthing.study.runs import last_of_runs, with_value
from farthing.trials import History, Json
from farthing.views.sampling import chosen_places


def parameter_points(history: History, *, most: int) -> dict[str, Json]:
    """The last trial of each run that has a value: its params, value and reach. Of many, the best and some others."""
    runs = last_of_runs(with_value(history))
    losses = np.array([history.loss(trial.value or 0.0) for trial in runs])
    keep = np.zeros(len(runs), dtype=bool)
    keep[np.argsort(losses, kind="stable")[: most // 4]] = True
    shown = [runs[int(place)] for place in chosen_places(len(runs), most, keep=keep)]
    return {
        "number": [trial.number for trial in shown],
        "value": [trial.value for trial in shown],
        "cost": [trial.cost for trial in shown],
        "reach": [history.reach(trial) for trial in shown],
        "params": {name: [trial.params.get(name) for trial in shown] for name in history.problem.space.parameters},
        "of": len(runs),
    }
