"""Hugging Face's Trainer, the real one: reports, charged validation, continued runs, params after a restore."""

import pytest
from needing import need

need("transformers")

import torch  # noqa: E402
from continuing import Continuing, run_along  # noqa: E402
from torch import nn  # noqa: E402
from transformers import Trainer, TrainerCallback, TrainingArguments  # noqa: E402

import farthing as ft  # noqa: E402
from farthing.integrations.transformers import train_epochs  # noqa: E402

SPACE = ft.Space(
    {"lr": ft.Float(1e-9, 1.0, log=True)}, fidelities={"epochs": ft.Fidelity(1, 6, integer=True, trace=True)}
)
X = torch.randn(48, 3, generator=torch.Generator().manual_seed(0))
ROWS = [{"x": x, "labels": x @ torch.tensor([1.0, -2.0, 0.5])} for x in X]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.layer = nn.LayerNorm(3), nn.Linear(3, 1)

    def forward(self, x, labels=None):
        predicted = self.layer(self.norm(x))[:, 0]
        return {"loss": nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Work:
    def __init__(self, folder, monitor="eval_loss", make=None, **arguments):
        self.folder, self.monitor, self.trainers, self.make = folder, monitor, [], make or Trainer
        self.arguments = arguments

    def __call__(self, trial):
        args = TrainingArguments(
            output_dir=str(self.folder / str(trial.number)),
            **{"learning_rate": 0.5, **self.arguments},
            lr_scheduler_type="constant",
            per_device_train_batch_size=16,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=0,
        )
        trainer = self.make(model=Net(), args=args, train_dataset=ROWS, eval_dataset=ROWS)
        self.trainers.append(trainer)
        train_epochs(trial, trainer, monitor=self.monitor)


def test_a_trial_reports_every_epoch_and_charges_validation(tmp_path):
    study = run_along(SPACE, Work(tmp_path), [3], [{"lr": 0.05}])
    [trial] = study.trials
    assert [point.fidelity["epochs"] for point in trial.points] == [1, 2, 3]
    assert trial.points[-1].value < trial.points[0].value
    assert trial.costs["validation"] > 0


def test_a_continued_trial_trains_only_what_it_adds_and_ends_where_the_uninterrupted_one_does(tmp_path):
    whole, parts = Work(tmp_path / "whole"), Work(tmp_path / "parts")
    one = run_along(SPACE, whole, [4], [{"lr": 0.05}])
    study = run_along(SPACE, parts, [2, 4], [{"lr": 0.05}] * 2)
    assert [point.fidelity["epochs"] for point in study.trials[1].points] == [3, 4]
    assert parts.trainers[1].state.global_step == whole.trainers[0].state.global_step == 12
    assert study.trials[1].value == pytest.approx(one.trials[0].value, rel=1e-4)


def test_params_take_effect_also_after_a_restore(tmp_path):
    work = Work(tmp_path)
    study = run_along(SPACE, work, [2, 3], [{"lr": 0.05}, {"lr": 1e-9}])
    rates = [trainer.optimizer.param_groups[0]["lr"] for trainer in work.trainers]
    assert rates == [0.05, 1e-9], "neither the 0.5 of the arguments nor that of the checkpoint"
    assert study.trials[1].value == pytest.approx(study.trials[0].value, rel=1e-4)


class Watch(TrainerCallback):
    """The settings of the optimizer in every step."""

    def __init__(self):
        self.seen = set()

    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        self.seen.add(tuple((group["lr"], group["weight_decay"]) for group in optimizer.param_groups))


def test_every_member_of_a_population_trains_with_the_rate_that_is_recorded(tmp_path):
    space = ft.Space(
        {"learning_rate": ft.Float(1e-4, 0.1, log=True)}, fidelities={"epochs": SPACE.fidelities["epochs"]}
    )
    work, watches = Work(tmp_path), []

    def watched(**arguments):
        watches.append(Watch())
        return Trainer(**arguments, callbacks=[watches[-1]])

    work.make = watched
    study = ft.Study(space, minimize="loss", strategy=ft.PB2(population=4, interval=2), seed=0)
    study.run(work, executor="inline", progress=False)
    assert not [trial.failure for trial in study.trials if trial.failure]
    rates = [trial.params["learning_rate"] for trial in study.trials]
    assert len(rates) == 12
    assert len(set(rates)) > 4, "some were perturbed"
    assert [watch.seen for watch in watches] == [{((rate, 0.0), (rate, 0.0))} for rate in rates]


DECAYED = ft.Space({**SPACE.parameters, "weight_decay": ft.Float(0.0, 1.0)}, fidelities=SPACE.fidelities)


@pytest.mark.parametrize("built_with", [0.0, 0.3])
def test_biases_and_norms_are_not_decayed(tmp_path, built_with):
    work = Work(tmp_path, weight_decay=built_with)
    params = [{"lr": 0.05, "weight_decay": decay} for decay in (0.1, 0.0, 0.2)]
    run_along(DECAYED, work, [1, 2, 3], params)
    groups = [[group["weight_decay"] for group in trainer.optimizer.param_groups] for trainer in work.trainers]
    assert groups == [[0.1, 0.0], [0.0, 0.0], [0.2, 0.0]]
    [decayed, _] = work.trainers[0].optimizer.param_groups
    assert [parameter.shape for parameter in decayed["params"]] == [(1, 3)], "the weight of the linear layer alone"


class LayerWise(Trainer):
    """The layer below learns at a tenth of the rate."""

    def create_optimizer(self, model=None):
        if getattr(self, "optimizer", None) is None:
            net, rate = self.model, self.args.learning_rate
            groups = [
                {"params": list(net.norm.parameters()), "lr": rate / 10},
                {"params": list(net.layer.parameters())},
            ]
            self.optimizer = torch.optim.AdamW(groups, lr=rate)
        return self.optimizer


def test_layer_wise_rates_keep_their_ratios(tmp_path):
    work = Work(tmp_path, make=LayerWise)
    run_along(SPACE, work, [1, 2], [{"lr": 0.1}, {"lr": 0.02}])
    rates = [[group["lr"] for group in trainer.optimizer.param_groups] for trainer in work.trainers]
    assert rates == [[pytest.approx(0.01), pytest.approx(0.1)], [pytest.approx(0.002), pytest.approx(0.02)]]


def test_a_param_that_changes_at_a_restore_must_be_taken_by_something(tmp_path):
    space = ft.Space({**SPACE.parameters, "dropout": ft.Float(0.0, 1.0)}, fidelities=SPACE.fidelities)
    strategy = Continuing((1, 2), ({"lr": 0.1, "dropout": 0.25}, {"lr": 0.1, "dropout": 0.5}))
    study = ft.Study(space, minimize="loss", strategy=strategy, seed=0)
    study.run(Work(tmp_path), executor="inline", progress=False, retries=0)
    assert study.trials[0].failure is None
    assert "got dropout=0.5 after 0.25" in study.trials[1].failure.reason


def test_a_metric_that_is_not_evaluated_is_named(tmp_path):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    study.run(Work(tmp_path, "eval_f1"), budget=ft.Budget(trials=1), executor="inline", progress=False)
    assert "must evaluate 'eval_f1', got ['epoch', 'eval_loss'" in study.trials[0].failure.reason
