"""Work in stages, each fed with the output of the one before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from farthing.errors import WorkError
from farthing.execution.running_trial import RunningTrial
from farthing.refusals import listed, shown
from farthing.trials import Problem


@dataclass(frozen=True)
class Stage:
    """One stage of a pipeline: `function(previous_output, **params)` returns the stage's output."""

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise WorkError(
                f"A stage must be a function, got {shown(self.function)}. Write def stage(previous, **params)."
            )


class Pipeline:
    """Stage functions by name, in the order and under the names of the space's stages.

    Each is called with the output of the one before and the params of its own stage; the first gets `source`. The
    last returns the value, or a mapping that holds it by name. What a stage cost is durable as soon as it ends.
    """

    def __init__(self, *, source: object = None, **stages: Stage | Callable[..., Any]) -> None:
        self.source = source
        self.stages: Mapping[str, Stage] = {
            name: stage if isinstance(stage, Stage) else Stage(stage) for name, stage in stages.items()
        }

    def __repr__(self) -> str:
        return f"Pipeline({', '.join(self.stages)})"

    def check(self, problem: Problem) -> None:
        expected = problem.space.stages
        if tuple(self.stages) != tuple(expected):
            raise WorkError(
                f"A pipeline must have the space's stages in their order ({listed(expected) or 'there are none'}), "
                f"got {listed(self.stages) or 'none'}. Name them alike in Space(stages=...) and Pipeline(...)."
            )

    def run(self, trial: RunningTrial) -> object:
        trial.count_as("stage")
        output = self.source
        for index, (name, stage) in enumerate(self.stages.items()):
            output = stage.function(output, **trial.problem.space.stage_params(name, trial.params))
            trial.settle(step=index)
        return output
