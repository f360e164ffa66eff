"""The steps of a scikit-learn pipeline as the stages of a space, and what is tuned of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import sklearn
from sklearn.base import clone
from sklearn.pipeline import Pipeline as SklearnPipeline

from farthing.errors import InvalidArgument
from farthing.integrations.sklearn_identity import digest_of, spelled
from farthing.integrations.sklearn_spaces import as_parameter, objects_in
from farthing.space import Choice, Parameter, Space
from farthing.space.parameters import with_condition
from farthing.space.stages import local_name
from farthing.validation import listed, refuse_unknown, shown

SpaceLike = Space | Mapping[str, Parameter] | Mapping[str, Mapping[str, Parameter]]


@dataclass(frozen=True)
class Steps:
    """A pipeline and what is tuned of it. `parameters` are by their names in scikit-learn: `step` or `step__param`."""

    estimator: Any
    parameters: Mapping[str, Parameter]
    alternatives: Mapping[str, Mapping[Any, Any]]
    config: Mapping[str, Any] = field(default_factory=sklearn.get_config)
    """scikit-learn's own settings, which worker processes do not inherit."""

    @classmethod
    def of(cls, estimator: Any, space: SpaceLike, alternatives: Mapping[str, Mapping[Any, Any]]) -> "Steps":
        if not isinstance(estimator, SklearnPipeline):
            raise InvalidArgument(
                f"The estimator must be a sklearn.pipeline.Pipeline, got {shown(estimator)}. "
                f"Wrap it: make_pipeline(StandardScaler(), estimator)."
            )
        steps = cls(estimator, _by_full_name(space), alternatives)
        steps._check()
        return steps

    @property
    def names(self) -> list[str]:
        return list(self.parameters)

    @property
    def fixed(self) -> dict[str, str]:
        """The settings that are not tuned, in words: searches in which they differ are different studies."""
        params = self.estimator.get_params() | {"alternatives": self.alternatives}
        tuned = {*self.parameters, "steps"}
        return {name: _told(value) for name, value in params.items() if name not in tuned and _matters(name)}

    @cached_property
    def staged(self) -> Space:
        """The space of the study: parameters keep their names, as far as these are identifiers."""
        names = {name: identifier(name) for name in self.parameters}
        named = {name: _renamed(parameter, names) for name, parameter in self.parameters.items()}
        return Space(
            stages={
                identifier(step): {names[name]: named[name] for name in named if _step_of(name) == step}
                for step, _ in self.estimator.steps
            }
        )

    def params_of(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A trial's params under scikit-learn's names."""
        return {name: params[identifier(name)] for name in self.parameters if identifier(name) in params}

    def with_params(self, params: Mapping[str, Any]) -> Any:
        """An unfitted pipeline with these params."""
        chosen = {name: self._alternative(name, value) for name, value in params.items() if "__" not in name}
        pipeline = clone(self.estimator).set_params(**chosen)
        return pipeline.set_params(**{name: value for name, value in params.items() if "__" in name})

    def fit_params(self, params: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The arguments of each step's fit, from `step__name` as in scikit-learn."""
        steps = dict(self.estimator.steps)
        wrong = next((name for name in params if "__" not in name or _step_of(name) not in steps), None)
        if wrong is not None:
            raise TypeError(
                f"Arguments of fit must be groups or of a step, as in clf__sample_weight, got {wrong!r}. "
                f"The steps are {listed(steps)}."
            )
        return {step: {_local(name): params[name] for name in params if _step_of(name) == step} for step in steps}

    def step(self, place: int, params: Mapping[str, Any]) -> Any:
        """A fresh estimator for that step under these params, or None for one that passes everything through."""
        chosen = self.with_params(self.params_of(params)).steps[place][1]
        return None if isinstance(chosen, str) else chosen

    def version(self, place: int) -> str:
        step, estimator = self.estimator.steps[place]
        settings = [sklearn.__version__, self.config["transform_output"]]
        return digest_of([settings, spelled(estimator), spelled(self.alternatives.get(step))])

    def _alternative(self, name: str, value: Any) -> Any:
        options = self.alternatives.get(name, {})
        return clone(options[value]) if value in options else value

    def _check(self) -> None:
        steps = [step for step, _ in self.estimator.steps]
        refuse_unknown((_step_of(name) for name in self.parameters), steps, what="Steps", error=InvalidArgument)
        refuse_unknown(self.alternatives, self.parameters, what="Steps with alternatives", error=InvalidArgument)
        for name, parameter in self.parameters.items():
            if "__" not in name:
                self._check_choice_of_step(name, parameter)
        known = self.estimator.get_params()
        fixed = [name for name in self.parameters if _step_of(name) not in self.parameters]
        refuse_unknown(fixed, known, what="Parameters of the pipeline", error=InvalidArgument)
        _ = self.staged  # refuses conditions that cannot be meant
        for name in self.parameters:
            if "__" in name and _step_of(name) in self.parameters:
                self._check_param_of_alternatives(name)

    def _check_choice_of_step(self, step: str, parameter: Parameter) -> None:
        if not isinstance(parameter, Choice):
            raise InvalidArgument(f"A step itself must be a Choice, got {parameter!r} for {step!r}. See alternatives=.")
        options = [*self.alternatives.get(step, {}), "passthrough"]
        refuse_unknown(parameter.options, options, what=f"Options of the step {step!r}", error=InvalidArgument)

    def _check_param_of_alternatives(self, name: str) -> None:
        """Refuses a parameter that some estimator has not that its step may be when the parameter is active."""
        step, options = _step_of(name), self.alternatives.get(_step_of(name), {})
        having = [option for option in options if _local(name) in options[option].get_params()]
        without = next((option for option in self._options_behind(name, step) if option not in having), None)
        if without is not None:
            remedy = f"Add when={{{step!r}: {having}}}." if having else "Check the spelling."
            raise InvalidArgument(
                f"A parameter must be one of every estimator that its step may be, got {name!r}, which {without!r} "
                f"has not. {remedy}"
            )

    def _options_behind(self, name: str, step: str) -> list[Any]:
        """The options of the step while the parameter is active, by its own condition and those of its parents."""
        if name == step:
            choice = self.parameters[step]
            assert isinstance(choice, Choice), "checked before"
            return list(choice.options)
        when = self.parameters[name].when
        behind = [self._options_behind(parent, step) for parent in (*when, step)]
        allowed = when.get(step, behind[-1])
        return [option for option in allowed if all(option in options for options in behind)]


def _by_full_name(space: SpaceLike) -> dict[str, Parameter]:
    """The parameters as `step__param`, however they were given; conditions name their parents in the same way."""
    if isinstance(space, Space):
        full = {name: f"{step}__{local_name(name)}" for step, names in space.stages.items() for name in names}
        return {full.get(name, name): _renamed(parameter, full) for name, parameter in space.parameters.items()}
    flat: dict[str, Parameter] = {}
    for step, own in space.items():
        if isinstance(own, Mapping):
            full = {name: f"{step}__{name}" for name in own}
            flat |= {full[name]: _renamed(_parameter(name, given), full) for name, given in own.items()}
        else:
            flat[step] = _parameter(step, own)
    return flat


def _parameter(name: str, given: Any) -> Parameter:
    if isinstance(given, list | tuple) and objects_in(given):
        raise InvalidArgument(
            f"Options of a step must be plain values, got {shown(given)} for {name!r}. Name them: a Choice of names in "
            "the space, and the estimators in alternatives=."
        )
    return as_parameter(name, given)


def _matters(param: str) -> bool:
    return param.rpartition("__")[2] not in ("n_jobs", "verbose", "memory")


def _told(value: Any) -> str:
    """A value as text that is the same in every process: objects and functions by their names."""
    if isinstance(value, Mapping):
        return str({str(name): _told(part) for name, part in value.items()})
    if isinstance(value, list | tuple):
        return str([_told(part) for part in value])
    is_plain = isinstance(value, str | int | float | bool | None)
    return repr(value) if is_plain else getattr(value, "__qualname__", type(value).__qualname__)


def _renamed(parameter: Parameter, names: Mapping[str, str]) -> Parameter:
    """The parameter with other names for the parents in its condition."""
    return with_condition(parameter, {names.get(parent, parent): values for parent, values in parameter.when.items()})


def identifier(name: str) -> str:
    return re.sub(r"\W|^(?=\d)", "_", name)


def _step_of(name: str) -> str:
    return name.partition("__")[0]


def _local(name: str) -> str:
    return name.partition("__")[2]
