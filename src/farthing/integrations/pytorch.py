"""Params that take effect in a PyTorch run, and training that is saved, restored and continued with other params.

    knobs = Knobs().optimizer(optimizer, "lr", "weight_decay").dropout("dropout", model).hook("shift", augment.shift)
    knobs.apply(decision.params)

Loading an optimizer's state brings its old settings back, so apply the params after every `load_state_dict`; a learning
rate scheduler writes the learning rate too, so let only one of the two have it. `TorchTrainable` sees to both.
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farthing.errors import InvalidArgument, MissingExtra
from farthing.execution import Trainable
from farthing.trials import Params

if TYPE_CHECKING:
    import torch

Setter = Callable[[Any], None]


class Knobs:
    """Settings that params control. Each call adds some and returns the same object."""

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

    def elsewhere(self, *params: str) -> "Knobs":
        """Params that the work puts into effect by itself each time that it is built: a batch size, an augmentation."""
        for param in params:
            self._add(param, lambda value: None)
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

    @property
    def names(self) -> set[str]:
        """The params that have a knob."""
        return set(self._setters)

    def _add(self, param: str, setter: Setter) -> None:
        self._setters.setdefault(param, []).append(setter)


class Snapshots:
    """Copies of the state of models, optimizers and whatever else has a `state_dict`, for `OnlineTuner`.

        snapshots = Snapshots(model, optimizer)
        tuner = ft.OnlineTuner(space, rounds=100, save=snapshots.save, restore=snapshots.restore)

    They stay in memory, on the device of the tensors. Apply the params again after a restore, as in every round.
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = parts

    def save(self) -> list[Any]:
        """The states of all parts, which later training does not change."""
        return [deepcopy(part.state_dict()) for part in self._parts]

    def restore(self, saved: Sequence[Any]) -> None:
        """Puts the parts back into these states, which can be used again."""
        for part, state in zip(self._parts, saved, strict=True):
            part.load_state_dict(deepcopy(state))


STATE_FILE = "state.pt"


class TorchTrainable(Trainable):
    """A Trainable around a model and its optimizer: what must be saved is saved, what was chosen takes effect.

        class Net(TorchTrainable):
            def build(self, params):
                self.model = nn.Linear(10, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=params["lr"], momentum=0.9)

            def step(self):
                ...                       # an epoch
                return accuracy

    A checkpoint holds the state of model, optimizer and scheduler and of the random generators of torch, NumPy and
    Python, as tensors and plain values; nothing in it is unpickled when it is read. Params that are named like a
    setting of the optimizer (`lr` or `learning_rate`, `weight_decay`, `momentum`, which is the first β of Adam) are set
    after every restore; for others override `knobs`. With a scheduler, `lr` is the rate that it scales. Groups that
    `build` gives other rates or decays keep their ratios, and a group without decay stays without.

    The generators are seeded from the study's seed and the trial's number, so that a repeated attempt trains alike.
    """

    model: "torch.nn.Module"
    optimizer: "torch.optim.Optimizer"
    scheduler: Any = None

    @abstractmethod
    def build(self, params: Params) -> None:
        """Sets `self.model`, `self.optimizer` and, where there is one, `self.scheduler`."""

    def knobs(self) -> Knobs:
        """Settings that params control beside the optimizer: `return Knobs().dropout("dropout", self.model)`."""
        return Knobs()

    def setup(self, params: Params) -> None:
        _seed_generators(self.trial.problem.seed, self.trial.number)
        self.build(params)
        self._controls = Controls(self.knobs(), [BuiltOptimizer.of(self.optimizer)], params)

    def apply(self, params: Params) -> None:
        self._controls.require(params)
        self._controls.apply(params, [self.scheduler])

    def params_in_effect(self) -> dict[str, Any]:
        """The params that are settings of the optimizer, as they stand in it."""
        return self._controls.in_effect()

    def save(self, folder: Path) -> None:
        import torch

        scheduler = None if self.scheduler is None else self.scheduler.state_dict()
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "scheduler": scheduler}
        torch.save({**state, "random": _generator_states()}, folder / STATE_FILE)

    def load(self, folder: Path) -> None:
        import torch

        state = torch.load(folder / STATE_FILE, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])
        _restore_generators(state["random"])


ALIASES = {
    "learning_rate": "lr",
    "momentum": "betas[0]",
    "beta1": "betas[0]",
    "beta2": "betas[1]",
    "adam_beta1": "betas[0]",
    "adam_beta2": "betas[1]",
    "adam_epsilon": "eps",
}
"""Params under other names than the setting that they are, for optimizers that have no setting of that name."""

IN_PROPORTION = ("lr", "weight_decay")
"""Settings in which the groups of an optimizer differ on purpose: biases without decay, rates by layers."""

SCHEDULED = ("initial_lr", "max_lr", "min_lr")
"""Rates that schedulers keep in the groups, beside `lr`."""


@dataclass(frozen=True)
class BuiltOptimizer:
    """An optimizer and its groups as it was built, before a checkpoint brought older settings back."""

    optimizer: "torch.optim.Optimizer"
    groups: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, optimizer: "torch.optim.Optimizer") -> "BuiltOptimizer":
        return cls(optimizer, [{**group, "params": None} for group in optimizer.param_groups])

    def setting_of(self, param: str) -> str | None:
        """The setting that a param of that name is: `lr`, `betas[0]`; None if it is none."""
        for setting in (param, ALIASES.get(param, param)):
            if setting != "params" and any(_split(setting)[0] in group for group in self.groups):
                return setting
        return None

    def shares(self, setting: str, chosen: float | None) -> list[float]:
        """Each group's multiple of the param. The group that was built with the chosen value has one of it.

        If there is none, it is a group with the optimizer's default, else that with the largest value.
        """
        built = [_base(group, setting) for group in self.groups]
        likely = [value for value in (chosen, self.optimizer.defaults.get(setting)) if value in built]
        one = likely[0] if likely else max(built, key=abs)
        return [value / one if one else 1.0 for value in built]

    def set_in_proportion(self, setting: str, value: float, shares: Sequence[float], scheduler: Any) -> None:
        for group, built, share in zip(self.optimizer.param_groups, self.groups, shares, strict=True):
            if setting == "lr":
                _set_rate(group, built, value * share)
            else:
                group[setting] = value * share
        if setting == "lr":
            _set_bases(scheduler, self.optimizer)


class Controls:
    """Puts params into effect in a training loop: those with a knob, and those that are settings of its optimizers.

    Args:
        optimizers: as they were built, before anything was restored.
        chosen: the params that they were built with, as far as known.
    """

    def __init__(self, knobs: Knobs, optimizers: Sequence[BuiltOptimizer], chosen: Params) -> None:
        self._knobs, self._optimizers, self._chosen = knobs, optimizers, chosen

    def takes(self, param: str) -> bool:
        return param in self._knobs.names or any(each.setting_of(param) for each in self._optimizers)

    def require(self, params: Iterable[str]) -> None:
        """Refuses params that nothing takes."""
        unknown = sorted(param for param in params if not self.takes(param))
        if unknown:
            raise InvalidArgument(
                f"A param must be a setting of the optimizer or have a knob, got params without a knob: {unknown}. "
                f"Add one: knobs.hook({unknown[0]!r}, …)."
            )

    def apply(self, params: Params, schedulers: Sequence[Any]) -> None:
        """Sets what something takes. Of each optimizer there is its learning rate scheduler, or None."""
        self._knobs.apply({name: value for name, value in params.items() if name in self._knobs.names})
        rest = {name: value for name, value in params.items() if name not in self._knobs.names}
        for built, scheduler in zip(self._optimizers, schedulers, strict=True):
            for setting, name in _by_setting(built, rest).items():
                if setting in IN_PROPORTION:
                    shares = built.shares(setting, self._chosen.get(name))
                    built.set_in_proportion(setting, rest[name], shares, scheduler)
                else:
                    _set_in_groups(built.optimizer, None, setting, rest[name])

    def in_effect(self) -> dict[str, Any]:
        """The chosen params that are settings of the first optimizer, as they stand in it."""
        [built, *_] = self._optimizers
        rest = [name for name in self._chosen if name not in self._knobs.names]
        return {name: self._standing(built, setting, name) for setting, name in _by_setting(built, rest).items()}

    def _standing(self, built: BuiltOptimizer, setting: str, name: str) -> Any:
        key, place = _split(setting)
        if setting in IN_PROPORTION:
            shares = built.shares(setting, self._chosen.get(name))
            whole = max(range(len(shares)), key=lambda i: abs(shares[i]))
            return _base(built.optimizer.param_groups[whole], setting) / shares[whole]
        value = next(group[key] for group in built.optimizer.param_groups if key in group)
        return value if place is None else value[place]


def _by_setting(built: BuiltOptimizer, params: Iterable[str]) -> dict[str, str]:
    """The params that are settings of the optimizer, by setting."""
    found: dict[str, str] = {}
    for param in params:
        setting = built.setting_of(param)
        if setting is not None and setting in found:
            raise InvalidArgument(
                f"A setting of the optimizer has one param, got {found[setting]!r} and {param!r} for {setting!r}. "
                f"Leave one out, or give it a knob."
            )
        if setting is not None:
            found[setting] = param
    return found


def _base(group: Mapping[str, Any], setting: str) -> float:
    """The value from which the group's current one follows: with a scheduler, the rate that it scales."""
    keys = ("max_lr", "initial_lr", "lr") if setting == "lr" else (setting,)
    return float(next((group[key] for key in keys if key in group), 0.0))


def _set_rate(group: dict[str, Any], built: Mapping[str, Any], rate: float) -> None:
    """Sets the rate that a scheduler scales; its current factor on it stays, and so do the built rates' ratios."""
    before, built_rate = _base(group, "lr"), _base(built, "lr")
    factor = group["lr"] / before if before else 1.0
    for key in SCHEDULED:
        if key in group:
            group[key] = rate * built.get(key, built_rate) / built_rate if built_rate else rate
    group["lr"] = rate * factor


def _set_bases(scheduler: Any, optimizer: "torch.optim.Optimizer") -> None:
    for each in (scheduler, *getattr(scheduler, "_schedulers", ())):
        if hasattr(each, "base_lrs"):
            each.base_lrs = [group.get("initial_lr", group["lr"]) for group in optimizer.param_groups]


def _seed_generators(seed: int, number: int) -> None:
    import torch

    own = int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
    torch.manual_seed(own)
    np.random.seed(own)  # noqa: NPY002  # the global generator is what users' augmentations draw from
    random.seed(own)


def _generator_states() -> dict[str, Any]:
    """As tensors and plain values."""
    import torch

    _, words, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [[int(word) for word in words], int(position), int(has_gauss), float(gauss)],
        "python": [list(random.getstate()[1]), random.getstate()[2]],
    }


def _restore_generators(states: dict[str, Any]) -> None:
    import torch

    torch.set_rng_state(states["torch"])
    if torch.cuda.is_available() and len(states["cuda"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(states["cuda"])
    words, position, has_gauss, gauss = states["numpy"]
    np.random.set_state(("MT19937", np.array(words, np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    numbers, next_gauss = states["python"]
    random.setstate((3, tuple(numbers), next_gauss))


def _set_in_groups(optimizer: "torch.optim.Optimizer", groups: Sequence[int] | None, setting: str, value: Any) -> None:
    """Groups are looked up when they are set: `load_state_dict` replaces them."""
    chosen = optimizer.param_groups if groups is None else [optimizer.param_groups[i] for i in groups]
    name, place = _split(setting)
    for group in (group for group in chosen if name in group):
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
