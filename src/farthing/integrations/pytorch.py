"""Params that take effect in a PyTorch run, and training that is saved, restored and continued with other params.

    knobs = Knobs().optimizer(optimizer, "lr", "weight_decay").dropout("dropout", model).hook("shift", augment.shift)
    knobs.apply(decision.params)

Loading an optimizer's state brings its old settings back, so apply the params after every `load_state_dict`; a learning
rate scheduler writes the learning rate too, so let only one of the two have it. `TorchTrainable` sees to both.
"""

import random
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
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
    setting of the optimizer (`lr`, `momentum`, `weight_decay`; `momentum` is the first β of Adam) are set in all its
    param groups after every restore; for others override `knobs`. With a scheduler, `lr` is the rate that it scales.

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
        self._knobs = self.knobs()
        for name, setting in self._settings(params).items():
            self._knobs.optimizer(self.optimizer, groups=None, **{name: setting})

    def apply(self, params: Params) -> None:
        scaled = scheduled_shares(self.optimizer, self.scheduler) if "lr" in params else None
        self._knobs.apply(params)
        if scaled is not None:
            _scale_by_scheduler(self.optimizer, self.scheduler, params["lr"], scaled)

    def params_in_effect(self) -> dict[str, Any]:
        """The params that are settings of the optimizer, as they stand in it."""
        return {name: self._in_effect(name, setting) for name, setting in self._settings(self.trial.params).items()}

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

    def _settings(self, params: Params) -> dict[str, str]:
        """The params that are settings of the optimizer and have no knob of the user's."""
        found = settings_in(self.optimizer, params)
        return {name: setting for name, setting in found.items() if name not in self.knobs().names}

    def _in_effect(self, name: str, setting: str) -> Any:
        if name == "lr" and scheduled_shares(self.optimizer, self.scheduler) is not None:
            return self.scheduler.base_lrs[0]
        key, place = _split(setting)
        value = self.optimizer.param_groups[0][key]
        return value if place is None else value[place]


def apply_to_optimizer(optimizer: "torch.optim.Optimizer", scheduler: Any, params: Params) -> None:
    """Sets the params that are settings of the optimizer in all its groups; others are left alone.

    `momentum` is the first β of Adam. With a scheduler that has base rates, `lr` is the rate that it scales.
    """
    shares = scheduled_shares(optimizer, scheduler) if "lr" in params else None
    for name, setting in settings_in(optimizer, params).items():
        _set_in_groups(optimizer, None, setting, params[name])
    if shares is not None:
        _scale_by_scheduler(optimizer, scheduler, params["lr"], shares)


def settings_in(optimizer: "torch.optim.Optimizer", params: Params) -> dict[str, str]:
    """The params that are settings of the optimizer, each with the setting that it is."""
    group = optimizer.param_groups[0]
    names = {name: name for name in params if name in group and name != "params"}
    if "momentum" in params and "betas" in group:
        names["momentum"] = "betas[0]"
    return names


def scheduled_shares(optimizer: "torch.optim.Optimizer", scheduler: Any) -> list[float] | None:
    """The scheduler's current factor on each group's base rate; None without a scheduler that has base rates."""
    bases = getattr(scheduler, "base_lrs", None)
    if bases is None:
        return None
    return [group["lr"] / base if base else 1.0 for group, base in zip(optimizer.param_groups, bases, strict=True)]


def _scale_by_scheduler(
    optimizer: "torch.optim.Optimizer", scheduler: Any, rate: float, shares: Sequence[float]
) -> None:
    scheduler.base_lrs = [rate] * len(shares)
    for group, share in zip(optimizer.param_groups, shares, strict=True):
        group["initial_lr"], group["lr"] = rate, rate * share


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
