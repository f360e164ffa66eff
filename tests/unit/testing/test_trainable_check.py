"""`check_trainable` passes what is safe in a population and names what is not."""

import json

import numpy as np
import pytest

from farthing.errors import InvalidArgument, WorkError
from farthing.execution import Trainable
from farthing.testing import check_trainable

PARAMS, OTHER = {"lr": 0.1, "momentum": 0.5}, {"lr": 0.2, "momentum": 0.9}


class Descent(Trainable):
    """Noisy descent with momentum; its settings are part of what it saves, as in an optimizer's state dict."""

    def setup(self, params):
        self.rng = np.random.default_rng([self.trial.problem.seed, self.trial.number])
        self.state = {"x": 1.0, "speed": 0.0, **params}

    def apply(self, params):
        self.state |= params

    def step(self):
        slope = self.state["x"] + 0.1 * self.rng.normal()
        self.state["speed"] = self.state["momentum"] * self.state["speed"] - self.state["lr"] * slope
        self.state["x"] += self.state["speed"]
        return self.state["x"] ** 2

    def save(self, folder):
        (folder / "state.json").write_text(json.dumps([self.state, self.rng.bit_generator.state]))

    def load(self, folder):
        self.state, self.rng.bit_generator.state = json.loads((folder / "state.json").read_text())


class KeepsOldParams(Descent):
    """The best-known bug: what was restored undoes what was chosen."""

    def apply(self, params):
        pass


class KeepsOldMomentum(Descent):
    def apply(self, params):
        self.state["lr"] = params["lr"]


class ForgetsSpeed(Descent):
    def load(self, folder):
        super().load(folder)
        self.state["speed"] = 0.0


class ForgetsRandomness(Descent):
    def load(self, folder):
        self.state, _ = json.loads((folder / "state.json").read_text())


class Unseeded(Descent):
    def setup(self, params):
        super().setup(params)
        self.rng = np.random.default_rng()


class Says(Descent):
    def params_in_effect(self):
        return {name: self.state[name] for name in PARAMS}


class SaysUnseeded(Unseeded):
    def params_in_effect(self):
        return {name: self.state[name] for name in PARAMS}


class SaysOld(KeepsOldParams, Says):
    pass


class SavesNothing(Trainable):
    def setup(self, params):
        pass

    def step(self):
        return 1.0


class Breaks(Descent):
    def step(self):
        raise RuntimeError("no data")


def check(trainable, **arguments):
    return check_trainable(trainable, **{"params": PARAMS, "other_params": OTHER, "processes": False, **arguments})


def test_a_safe_class_passes_in_processes_of_its_own():
    report = check(Descent, processes=True)
    assert report.is_deterministic
    assert report.continues_exactly
    assert list(report.effective) == ["lr", "momentum"]
    assert "exactly as unbroken" in str(report)


class SaysOnly(Says):
    """Its values are too coarse to show what changed."""

    def step(self):
        return float(super().step() > 1e9)


def test_the_values_show_it_or_the_class_says_it():
    assert check(Says).effective["lr"] == "other values than without the change"
    assert check(SaysOnly).effective["lr"] == "params_in_effect() has the new value"


@pytest.mark.parametrize(
    ("trainable", "complaint"),
    [
        (KeepsOldParams, r"same values with lr=0\.1 and 0\.2 from KeepsOldParams"),
        (KeepsOldMomentum, r"same values with momentum=0\.5 and 0\.9"),
        (ForgetsSpeed, "must continue exactly as the unbroken one"),
        (ForgetsRandomness, "must continue exactly as the unbroken one"),
        (Unseeded, r"Two runs .* must have the same values.* Seed it in setup"),
        (SaysOld, r"got lr=0\.1 from SaysOld where 0\.2 was chosen"),
        (SavesNothing, "got no files from SavesNothing"),
        (Breaks, "RuntimeError: no data"),
    ],
)
def test_what_is_not_safe_is_named(trainable, complaint):
    with pytest.raises(WorkError, match=complaint):
        check(trainable)


def test_without_determinism_the_class_must_say_what_is_in_effect():
    report = check(SaysUnseeded, exact=False)
    assert not report.is_deterministic
    assert "nothing exact can be shown" in str(report)
    with pytest.raises(WorkError, match=r"shown by params_in_effect\(\)"):
        check(Unseeded, exact=False)


def test_one_step_cannot_be_interrupted():
    with pytest.raises(InvalidArgument, match="steps, of which one comes before the restore, must be"):
        check(Descent, steps=1)


def test_other_params_are_the_same_params():
    with pytest.raises(InvalidArgument, match="those with other values"):
        check(Descent, other_params={"lr": 0.2})


@pytest.mark.parametrize("wrong", [3, object(), int])
def test_the_check_names_its_argument(wrong: object) -> None:
    with pytest.raises(InvalidArgument, match="trainable, the first argument of check_trainable, must be"):
        check_trainable(wrong, params={"lr": 0.1}, other_params={"lr": 0.2})  # type: ignore[arg-type]
