"""Hugging Face's Trainer, the real one: reports, charged validation, continued runs, params after a restore."""

import pytest
from needing import need

need("transformers")

import torch  # noqa: E402
from continuing import run_along  # noqa: E402
from torch import nn  # noqa: E402
from transformers import Trainer, TrainingArguments  # noqa: E402

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
        self.layer = nn.Linear(3, 1)

    def forward(self, x, labels=None):
        predicted = self.layer(x)[:, 0]
        return {"loss": nn.functional.mse_loss(predicted, labels), "logits": predicted}


class Work:
    def __init__(self, folder, monitor="eval_loss"):
        self.folder, self.monitor, self.trainers = folder, monitor, []

    def __call__(self, trial):
        args = TrainingArguments(
            output_dir=str(self.folder / str(trial.number)),
            learning_rate=0.5,
            lr_scheduler_type="constant",
            per_device_train_batch_size=16,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=0,
        )
        trainer = Trainer(model=Net(), args=args, train_dataset=ROWS, eval_dataset=ROWS)
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


def test_a_metric_that_is_not_evaluated_is_named(tmp_path):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    study.run(Work(tmp_path, "eval_f1"), budget=ft.Budget(trials=1), executor="inline", progress=False)
    assert "must evaluate 'eval_f1', got ['epoch', 'eval_loss'" in study.trials[0].failure.reason
