"""Params that take effect in a PyTorch run: optimizer settings, dropout, and whatever else a function can set.

    knobs = Knobs().optimizer(optimizer, "lr", "weight_decay").dropout("dropout", model).hook("shift", augment.shift)
    knobs.apply(decision.params)

Loading an optimizer's state brings its old settings back, so apply the params after every `load_state_dict`; a learning
rate scheduler writes the learning rate too, so let only one of the two have it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from farthing.errors import InvalidArgument, MissingExtra
from farthing.trials import Params

if TYPE_CHECKING:
    import torch

Setter = Callable[[Any], None]


class Knobs:
    """What params turn. Each call adds some and returns the same object."""

    def __init__(self) -> None:
        self._setters: dict[str, list[Setter]] = {}

    def optimizer(
        self, optimizer: "torch.optim.Optimizer", *names: str, groups: Sequence[int] | None = None, **renamed: str
    ) -> "Knobs":
        """Settings of the optimizer's param groups, all of them or those numbered.

        A param has the name of its setting, or is given one: `learning_rate="lr"`. `betas[0]` is the first of a tuple.
        """
        chosen = [optimizer.param_groups[i] for i in groups] if groups is not None else optimizer.param_groups
        for param, setting in [*((name, name) for name in names), *renamed.items()]:
            _require_setting(chosen, setting)
            self._add(param, partial(_set_in_groups, optimizer, groups, setting))
        return self

    def dropout(self, param: str, *modules: "torch.nn.Module") -> "Knobs":
        """The probability of every dropout layer in these modules."""
        layers = [layer for module in modules for layer in module.modules() if isinstance(layer, _dropout_class())]
        if not layers:
            raise InvalidArgument(f"A module for {param!r} must have a dropout layer, got none. Add nn.Dropout to it.")
        self._add(param, lambda value: _set_dropout(layers, value))
        return self

    def hook(self, param: str, setter: Setter) -> "Knobs":
        """Anything else: the function is called with the param's value."""
        self._add(param, setter)
        return self

    def apply(self, params: Params) -> None:
        """Turns every knob to its param. Nothing is set if a param has no knob, or a knob no param."""
        unknown, missing = sorted(set(params) - set(self._setters)), sorted(set(self._setters) - set(params))
        if unknown or missing:
            raise InvalidArgument(
                f"Params and knobs must match, got params without a knob: {unknown or 'none'}, and knobs without a "
                f"param: {missing or 'none'}. Add a hook for the one, or leave the other out."
            )
        for name, value in params.items():
            for setter in self._setters[name]:
                setter(value)

    def _add(self, param: str, setter: Setter) -> None:
        self._setters.setdefault(param, []).append(setter)


def _set_in_groups(optimizer: "torch.optim.Optimizer", groups: Sequence[int] | None, setting: str, value: Any) -> None:
    """Groups are looked up when they are set: `load_state_dict` replaces them."""
    chosen = optimizer.param_groups if groups is None else [optimizer.param_groups[i] for i in groups]
    name, place = _split(setting)
    for group in chosen:
        if place is None:
            group[name] = value
        else:
            group[name] = tuple(value if i == place else old for i, old in enumerate(group[name]))


def _require_setting(groups: Iterable[dict[str, Any]], setting: str) -> None:
    name, _ = _split(setting)
    for group in groups:
        if name not in group:
            known = ", ".join(sorted(key for key in group if key != "params"))
            raise InvalidArgument(f"An optimizer's setting must be one of {known}, got {setting!r}. Rename the param.")


def _split(setting: str) -> tuple[str, int | None]:
    """`betas[0]` is ("betas", 0)."""
    name, bracket, rest = setting.partition("[")
    return name, int(rest.rstrip("]")) if bracket else None


def _set_dropout(layers: Iterable[Any], p: float) -> None:
    for layer in layers:
        layer.p = p


def _dropout_class() -> Any:
    try:
        from torch.nn.modules.dropout import _DropoutNd
    except ImportError as error:
        raise MissingExtra("Knobs need torch, which is absent. Install it: pip install 'farthing[torch]'.") from error
    return _DropoutNd
