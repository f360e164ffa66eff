"""A searcher for Ray Tune: Ray runs the trials and stops the bad ones, Farthing suggests their configurations.

tuner = tune.Tuner(train, param_space={"lr": tune.loguniform(1e-4, 1e-1)},
                   tune_config=tune.TuneConfig(metric="loss", mode="min", search_alg=FarthingSearcher()))
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farthing.errors import InvalidArgument, MissingExtra
from farthing.execution import RunningTrial
from farthing.space import Choice, Float, Int, Parameter, Space
from farthing.strategies import Strategy
from farthing.study import Study
from farthing.validation import shown

try:
    from ray.tune.search import Searcher, sample
    from ray.tune.search.variant_generator import parse_spec_vars
    from ray.tune.utils import flatten_dict
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.ray_tune needs Ray Tune, which is absent. Run: pip install 'farthing[raytune]'."
    ) from error

SECONDS = "time_total_s"
"""The key of a trial's seconds in Ray's results: its cost."""


class FarthingSearcher(Searcher):  # type: ignore[misc]
    """Suggests configurations of a Ray Tune experiment by a strategy of Farthing's, which weighs their seconds.

    `study` is the study it learns in. A restored experiment has it again, and trials that were running keep their
    params.

    Args:
        strategy: for spaces without fidelities, or its name; by default `EIPerCost`. Which trials to stop early is left
            to Ray's scheduler.
        metric, mode: as in Ray Tune, which gives them from its `TuneConfig` too.
        seed: of the study.
    """

    def __init__(
        self,
        strategy: Strategy | str | None = None,
        *,
        metric: str | None = None,
        mode: str | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric: str | None
        self._mode: str | None
        self._strategy, self._seed = strategy, seed
        self._domains: dict[str, Any] = {}
        self._fixed: dict[str, Any] = {}
        self._pending: dict[str, RunningTrial] = {}
        self._told: list[dict[str, Any]] = []
        self.study: Study | None = None

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        if self.study is not None:
            return False
        self._metric, self._mode = metric or self._metric, mode or self._mode or "max"
        fixed, domains, grids = parse_spec_vars(config)
        if grids:
            raise InvalidArgument(
                f"A searcher chooses from distributions, got a grid for {'/'.join(grids[0][0])!r}. "
                "Use tune.choice([…])."
            )
        self._fixed = {"/".join(path): value for path, value in fixed}
        self._domains = {"/".join(path): domain for path, domain in domains}
        self.study = self._new_study()
        return True

    def suggest(self, trial_id: str) -> dict[str, Any] | None:
        trial = self._known_study().ask()
        self._pending[trial_id] = trial
        chosen = {name: _quantized(self._domains[name], trial.params[own]) for own, name in self._names.items()}
        return _nested({**self._fixed, **chosen})

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """The last result counts, also of a trial that a scheduler stopped."""
        trial = self._pending.pop(trial_id, None)
        if trial is None:
            return
        flat: dict[str, Any] = flatten_dict(result or {})
        value = None if error else _finite(flat.get(str(self._metric)))
        seconds = float(flat.get(SECONDS, 0.0))
        self._tell(trial, value, seconds)
        self._told.append({"params": dict(trial.params), "value": value, "cost": seconds})

    def save(self, checkpoint_path: str) -> None:
        pending = {trial_id: dict(trial.params) for trial_id, trial in self._pending.items()}
        Path(checkpoint_path).write_text(json.dumps({"told": self._told, "pending": pending, "seed": self._seed}))

    def restore(self, checkpoint_path: str) -> None:
        """The study as it was saved. Ray gives the space before."""
        state = json.loads(Path(checkpoint_path).read_text())
        self._seed, self._told, self._pending = state["seed"], state["told"], {}
        self.study = study = self._new_study()
        for one in state["told"]:
            study.enqueue(one["params"])
            self._tell(study.ask(), one["value"], one["cost"])
        for trial_id, params in state["pending"].items():
            study.enqueue(params)
            self._pending[trial_id] = study.ask()

    def _new_study(self) -> Study:
        if not self._domains:
            raise InvalidArgument(
                "A searcher needs a space, got none. Give Tuner(param_space={…}) a distribution, such as "
                "tune.loguniform(1e-4, 1e-1)."
            )
        space = Space({own: _parameter(name, self._domains[name]) for own, name in self._names.items()})
        aim = {"minimize" if self._mode == "min" else "maximize": "objective"}
        return Study(space, strategy=self._strategy, seed=self._seed, **aim)  # type: ignore[arg-type]

    @property
    def _names(self) -> dict[str, str]:
        """Ray's name, `model/lr`, for each parameter of the space."""
        return {f"p{place}": name for place, name in enumerate(self._domains)}

    def _known_study(self) -> Study:
        if self.study is None:
            raise InvalidArgument(
                "A searcher must know the space before it suggests, got none. Give it to tune.TuneConfig(search_alg=…)."
            )
        return self.study

    def _tell(self, trial: RunningTrial, value: float | None, seconds: float) -> None:
        failure = "It failed in Ray Tune, or had no finite value." if value is None else None
        self._known_study().tell(trial, value, cost=seconds, failure=failure)


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """`{"model/lr": 0.1}` as `{"model": {"lr": 0.1}}`."""
    config: dict[str, Any] = {}
    for name, value in flat.items():
        *folders, last = name.split("/")
        place = config
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return config


def _parameter(name: str, domain: Any) -> Parameter:
    """The parameter that a domain stands for. Ray's integers end before their upper bound."""
    sampler = domain.get_sampler()
    inner = getattr(sampler, "sampler", None) or sampler
    log = isinstance(inner, sample.LogUniform)
    match domain:
        case sample.Float(lower=low, upper=high) if math.isfinite(low) and math.isfinite(high):
            return Float(low, high, log=log)
        case sample.Integer(lower=low, upper=high):
            return Int(low, high - 1, log=log)
        case sample.Categorical(categories=categories):
            return Choice(*range(len(categories)))
        case _:
            raise InvalidArgument(
                f"A domain must be uniform, log-uniform or a choice, got {shown(domain)} for {name!r}. "
                "Use tune.uniform, tune.loguniform, tune.randint or tune.choice."
            )


def _quantized(domain: Any, value: Any) -> Any:
    """The value as Ray would draw it: an option, or a multiple of the quantum."""
    if isinstance(domain, sample.Categorical):
        return domain.categories[value]
    quantum = getattr(domain.get_sampler(), "q", None)
    if not quantum:
        return value
    return type(value)(min(max(round(value / quantum) * quantum, domain.lower), domain.upper))
