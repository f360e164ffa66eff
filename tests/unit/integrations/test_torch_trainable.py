"""A PyTorch run that is saved, restored and carried on with other params."""

import pytest

from farthing.testing import check_trainable

torch = pytest.importorskip("torch")

from farthing.errors import InvalidArgument  # noqa: E402
from farthing.integrations.pytorch import Knobs, TorchTrainable  # noqa: E402

PARAMS = {"lr": 0.05, "momentum": 0.5, "weight_decay": 0.0, "dropout": 0.1}
OTHER = {"lr": 0.2, "momentum": 0.9, "weight_decay": 0.1, "dropout": 0.4}


class Net(TorchTrainable):
    """Fits a line, with dropout and shuffled batches: all its randomness is torch's."""

    def build(self, params):
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(), torch.nn.Linear(8, 1))
        self.optimizer = self.make_optimizer(params)
        self.inputs = torch.linspace(-1, 1, 60).reshape(20, 3)

    def make_optimizer(self, params):
        return torch.optim.SGD(self.model.parameters(), lr=1.0, momentum=0.1, nesterov=True)

    def knobs(self):
        return Knobs().dropout("dropout", self.model)

    def step(self):
        for rows in torch.randperm(20).split(5):
            loss = (self.model(self.inputs[rows]) - self.inputs[rows].sum(1, keepdim=True)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        if self.scheduler is not None:
            self.scheduler.step()
        return loss.item()


class AdamNet(Net):
    def make_optimizer(self, params):
        return torch.optim.AdamW(self.model.parameters(), lr=1.0)


class ScheduledNet(Net):
    def build(self, params):
        super().build(params)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=10)


class SilentNet(Net):
    """Without the method that says what is in effect, so that the values must show it."""

    params_in_effect = None

    def __getattribute__(self, name):
        if name == "params_in_effect":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize("trainable", [Net, AdamNet, ScheduledNet, SilentNet])
def test_it_goes_on_exactly_and_what_was_chosen_takes_effect(trainable):
    report = check_trainable(trainable, params=PARAMS, other_params=OTHER, processes=False)
    assert report.continues_exactly
    assert list(report.effective) == list(PARAMS)


def test_it_goes_on_exactly_in_another_process():
    check_trainable(ScheduledNet, params=PARAMS, processes=True)


def made(trainable, make_trial, problem, params=PARAMS):
    trained = trainable()
    trained.trial = make_trial(problem, params=params, fidelity={"steps": 9})
    trained.setup(params)
    trained.apply(params)
    return trained


@pytest.fixture
def problem():
    from farthing.analysis.runs import Schedule
    from farthing.running.replay import problem_of

    return problem_of(Schedule(((0, PARAMS),), 10))


@pytest.fixture
def make_trial(tmp_path):
    from farthing.execution import Checkpoints, Job, RunningTrial
    from farthing.trials import Attempt

    def make(problem, *, params, fidelity):
        return RunningTrial(
            Job(Attempt(0, 1), params, fidelity), problem, send=lambda news: None, checkpoints=Checkpoints(tmp_path)
        )

    return make


def test_a_restored_optimizer_has_the_params_that_were_chosen(make_trial, problem, tmp_path):
    first = made(Net, make_trial, problem)
    first.step()
    first.save(tmp_path)
    second = made(Net, make_trial, problem, OTHER)
    second.load(tmp_path)
    assert second.optimizer.param_groups[0]["lr"] == PARAMS["lr"]
    second.apply(OTHER)
    group = second.optimizer.param_groups[0]
    assert (group["lr"], group["momentum"], group["weight_decay"]) == (0.2, 0.9, 0.1)
    assert second.model[1].p == 0.4
    assert second.optimizer.state_dict()["state"][0]["momentum_buffer"] is not None


def test_with_a_scheduler_the_rate_is_the_one_it_scales(make_trial, problem, tmp_path):
    first = made(ScheduledNet, make_trial, problem)
    for _ in range(5):
        first.step()
    assert first.optimizer.param_groups[0]["lr"] == pytest.approx(PARAMS["lr"] / 2)
    first.save(tmp_path)
    second = made(ScheduledNet, make_trial, problem, OTHER)
    second.load(tmp_path)
    second.apply(OTHER)
    assert second.optimizer.param_groups[0]["lr"] == pytest.approx(OTHER["lr"] / 2)
    unbroken = made(ScheduledNet, make_trial, problem, OTHER)
    for _ in range(5):
        unbroken.step()
    for _ in range(3):
        second.step(), unbroken.step()
    assert second.optimizer.param_groups[0]["lr"] == pytest.approx(unbroken.optimizer.param_groups[0]["lr"])


def test_momentum_is_the_first_beta_of_adam(make_trial, problem):
    assert made(AdamNet, make_trial, problem).optimizer.param_groups[0]["betas"] == (0.5, 0.999)


def test_a_param_that_turns_nothing_is_refused(make_trial, problem):
    with pytest.raises(InvalidArgument, match="without a knob: \\['width'\\]"):
        made(Net, make_trial, problem, {**PARAMS, "width": 3})


def test_nothing_in_a_checkpoint_is_unpickled(make_trial, problem, tmp_path):
    class Trap:
        def __reduce__(self):
            return (print, ("run by a checkpoint",))

    trained = made(Net, make_trial, problem)
    trained.save(tmp_path)
    torch.save({"model": Trap()}, tmp_path / "state.pt")
    with pytest.raises(Exception, match=r"[Ww]eights"):
        trained.load(tmp_path)
