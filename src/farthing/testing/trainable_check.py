"""Proves that a Trainable can be paused, copied and continued with other params.

    def test_my_agent_is_safe_in_a_population():
        check_trainable(Agent, params={"lr": 0.1, "decay": 0.0}, other_params={"lr": 0.01, "decay": 0.1})

A population restores members from each other's checkpoints and changes their params there. A class that forgets part of
its state, or whose restored state brings the old params back, trains on all the same: the study then learns from
numbers that belong to other params. Nothing but trying it out shows that.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from farthing.analysis.runs import Schedule
from farthing.errors import InvalidArgument, WorkError
from farthing.execution import Checkpoints, Ended, InlineExecutor, Job, ProcessExecutor, RunningTrial, Trainable
from farthing.execution.executor import News
from farthing.fields import Whole
from farthing.running.replay import problem_of
from farthing.trials import Attempt, Measurement, Params, State
from farthing.validation import shown

FIDELITY = "steps"


@dataclass(frozen=True)
class TrainableReport:
    """The proof. `effective` says for each changed param how its effect after a restore was seen."""

    name: str
    steps: int
    is_deterministic: bool
    continues_exactly: bool
    effective: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        runs = "two runs alike" if self.is_deterministic else "two runs differ, so nothing exact can be shown"
        exactly = "exactly as unbroken" if self.continues_exactly else "not compared"
        effects = [f"  {name} changed at a restore: {how}" for name, how in self.effective.items()]
        return "\n".join([f"{self.name}, {self.steps} steps: {runs}; saved and loaded half-way: {exactly}", *effects])


def check_trainable(
    trainable: type[Trainable],
    *,
    params: Params,
    other_params: Params | None = None,
    steps: int = 4,
    value: str = "value",
    seed: int = 0,
    exact: bool = True,
    processes: bool = True,
) -> TrainableReport:
    """Trains the class several times, each run in a process of its own, and raises `WorkError` where it is not safe.

    1. Two runs with the same params have the same values: the class is deterministic.
    2. A run that is saved half-way, loaded in a fresh process under another trial's number and trained on has the very
       values of the unbroken one: `save` and `load` forget nothing.
    3. For each name in which `other_params` differ, a run that is restored with that one param changed has other values
       than one restored without the change. A class that defines `params_in_effect()` may show it by that instead, and
       must not contradict it.

    Args:
        value: the name under which `step` returns its value, where it returns a mapping.
        exact: False leaves out 1 and 2, for a class that cannot be made deterministic. Effects are then shown by
            `params_in_effect()` alone.
        processes: False runs everything here, for debugging.
    """
    if not (isinstance(trainable, type) and issubclass(trainable, Trainable)):
        raise InvalidArgument(
            f"trainable, the first argument of check_trainable, must be a Trainable class, got {shown(trainable)}. "
            "Pass the class itself, not an instance."
        )
    Whole(least=2).checked(steps, what="steps, of which one comes before the restore,", advice="Try steps=4.")
    changed = _changed(params, other_params)
    with TemporaryDirectory(prefix="farthing-check-") as folder:
        trial_runs = _Runs(trainable, Path(folder), params, steps, value, seed, processes)
        values = trial_runs.unbroken()
        again = trial_runs.unbroken()
        if exact:
            _require_deterministic(trainable, values, again)
        checkpoint = trial_runs.first_half()
        continued = trial_runs.second_half(checkpoint, params)
        if exact:
            _require_exact(trainable, values, continued)
        effective = {
            name: trial_runs.effect_of(name, checkpoint, {**params, name: new}, continued, exact=exact)
            for name, new in changed.items()
        }
    return TrainableReport(trainable.__name__, steps, values == again, exact, effective)


@dataclass
class _Runs:
    """Runs of one class, each with a number of its own."""

    trainable: type[Trainable]
    folder: Path
    params: Params
    steps: int
    value: str
    seed: int
    processes: bool

    def __post_init__(self) -> None:
        schedule = Schedule(((0, self.params),), self.steps, FIDELITY, self.value)
        self._problem = replace(problem_of(schedule), seed=self.seed)
        self._checkpoints = Checkpoints(self.folder)
        self._restored = 0

    def unbroken(self) -> list[float]:
        values, _ = self._run(Attempt(0, 1), self.params, self.steps)
        return values

    def first_half(self) -> Path:
        _, checkpoint = self._run(Attempt(0, 1), self.params, self._half)
        if checkpoint is None:
            raise WorkError(
                f"A Trainable must save its state to be continued, got no files from {self.trainable.__name__}. "
                "Define save and load."
            )
        return checkpoint

    def second_half(self, checkpoint: Path, params: Params) -> list[float]:
        self._restored += 1
        values, _ = self._run(Attempt(self._restored, 1), params, self.steps, resume_dir=checkpoint)
        return values

    def effect_of(self, name: str, checkpoint: Path, params: Params, continued: Sequence[float], *, exact: bool) -> str:
        in_effect = self._in_effect(checkpoint, params)
        if name in in_effect:
            _require_in_effect(self.trainable, name, params[name], in_effect[name])
        if exact and self.second_half(checkpoint, params) != list(continued):
            return "other values than without the change"
        if name in in_effect:
            return "params_in_effect() has the new value"
        if not exact:
            raise WorkError(
                f"Without exact values a param's effect is shown by params_in_effect(), got none for {name!r} from "
                f"{self.trainable.__name__}. Define it: return the optimizer's actual settings."
            )
        raise WorkError(
            f"A param must take effect after a restore, got the same values with {name}={self.params[name]!r} and "
            f"{params[name]!r} from {self.trainable.__name__}. Set it in apply(), which comes after load(); or "
            "try more steps, or values further apart."
        )

    @property
    def _half(self) -> int:
        return self.steps // 2

    def _in_effect(self, checkpoint: Path, params: Params) -> dict[str, Any]:
        """The params in effect that an instance restored with these params reports; empty if it cannot report them."""
        trained = self.trainable()
        in_effect: Callable[[], Mapping[str, Any]] | None = getattr(trained, "params_in_effect", None)
        if in_effect is None:
            return {}
        job = Job(Attempt(self._restored + 1, 1), params, {FIDELITY: self.steps}, resume_dir=checkpoint)
        trained.trial = RunningTrial(job, self._problem, send=lambda _: None, checkpoints=self._checkpoints)
        trained.setup(params)
        trained.apply(params)
        trained.load(checkpoint)
        trained.apply(params)
        return dict(in_effect())

    def _run(
        self, attempt: Attempt, params: Params, steps: int, *, resume_dir: Path | None = None
    ) -> tuple[list[float], Path | None]:
        heard = _Values()
        with self._executor() as executor:
            executor.submit(Job(attempt, params, {FIDELITY: steps}, resume_dir=resume_dir))
            ended: list[Ended] = []
            while not ended:
                ended = executor.wait(heard)
        outcome = ended[0].outcome
        if outcome is None or outcome.state is not State.DONE:
            failure = None if outcome is None else outcome.failure
            error = WorkError(
                f"A Trainable must train to be checked, got a failure of {self.trainable.__name__}: "
                f"{failure.reason if failure else 'it was pruned'}. Try it in a study first."
            )
            error.add_note(failure.traceback if failure else "")
            raise error
        return heard.values, self._checkpoints.path(outcome.checkpoint) if outcome.checkpoint else None

    @contextmanager
    def _executor(self) -> Iterator[InlineExecutor | ProcessExecutor]:
        """A fresh one: its worker has trained nothing before."""
        executor: InlineExecutor | ProcessExecutor
        if self.processes:
            executor = ProcessExecutor(self.trainable, self._problem, workers=1, checkpoints=self._checkpoints)
        else:
            executor = InlineExecutor(self.trainable, self._problem, checkpoints=self._checkpoints)
        try:
            yield executor
        finally:
            executor.close()


class _Values:
    """Hears what a run reports."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_news(self, attempt: Attempt, news: News) -> None:
        if isinstance(news, Measurement) and news.value is not None:
            self.values.append(news.value)


def _changed(params: Params, other_params: Params | None) -> dict[str, Any]:
    if other_params is None:
        return {}
    if set(other_params) != set(params):
        raise InvalidArgument(
            f"Other params must be those with other values, got {sorted(other_params)} for {sorted(params)}. "
            "Give a value for each."
        )
    return {name: new for name, new in other_params.items() if new != params[name]}


def _require_deterministic(trainable: type[Trainable], values: list[float], again: list[float]) -> None:
    if values != again:
        raise WorkError(
            f"Two runs with the same params must have the same values, got {_apart(values, again)} from "
            f"{trainable.__name__}. Seed it in setup, from self.trial.problem.seed and self.trial.number; exact=False "
            "leaves out the checks that need it."
        )


def _require_exact(trainable: type[Trainable], values: list[float], continued: list[float]) -> None:
    rest = values[len(values) - len(continued) :]
    if rest != continued:
        raise WorkError(
            f"A restored run must continue exactly as the unbroken one, got {_apart(rest, continued)} from "
            f"{trainable.__name__}. Save and load all that training changes: weights, optimizer, scheduler, counters, "
            "random generators."
        )


def _require_in_effect(trainable: type[Trainable], name: str, wanted: Any, got: Any) -> None:
    is_close = isinstance(wanted, float) and isinstance(got, (int, float)) and math.isclose(wanted, got, rel_tol=1e-6)
    if wanted != got and not is_close:
        raise WorkError(
            f"A param must take effect after a restore, got {name}={got!r} from {trainable.__name__} where {wanted!r} "
            "was chosen. Set it in apply(), which comes after load()."
        )


def _apart(values: Sequence[float], others: Sequence[float]) -> str:
    """The first step at which two curves differ."""
    for place, (one, other) in enumerate(zip(values, others, strict=False)):
        if one != other:
            return f"{one!r} and {other!r} at step {place + 1} of {len(values)}"
    return f"{len(values)} and {len(others)} values"
