"""Lightning, the real one: reports, charged validation, continued runs, params after a restore, online tuning."""

import logging

import pytest
from needing import need

need("lightning")

import lightning.pytorch as L  # noqa: E402, N812
import torch  # noqa: E402
from continuing import Continuing, run_along  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import farthing as ft  # noqa: E402
from farthing.errors import InvalidArgument  # noqa: E402
from farthing.integrations.lightning import OnlineCallback, TrialCallback  # noqa: E402
from farthing.integrations.pytorch import Knobs  # noqa: E402

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
SPACE = ft.Space(
    {"lr": ft.Float(1e-9, 1.0, log=True)}, fidelities={"epochs": ft.Fidelity(1, 8, integer=True, trace=True)}
)
X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
DATA = TensorDataset(X, X @ torch.tensor([1.0, -2.0, 0.5]))


class Net(L.LightningModule):
    def __init__(self, lr: float, scheduled: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.0))
        self.lr, self.scheduled = lr, scheduled
        self.trained: list[int] = []
        self.rates: set[float] = set()
        self.validated = 0

    def training_step(self, batch, index):
        return nn.functional.mse_loss(self.layers(batch[0])[:, 0], batch[1])

    def on_train_epoch_start(self):
        self.trained.append(self.current_epoch)

    def on_train_batch_start(self, batch, index):
        self.rates.add(self.trainer.optimizers[0].param_groups[0]["lr"])

    def validation_step(self, batch, index):
        self.log("val_loss", nn.functional.mse_loss(self.layers(batch[0])[:, 0], batch[1]))

    def on_validation_epoch_end(self):
        self.validated += not self.trainer.sanity_checking

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.5)
        if not self.scheduled:
            return optimizer
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)]


def trainer_with(callback, epochs: int, **settings):
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return L.Trainer(
        max_epochs=epochs, callbacks=[callback], accelerator="cpu", enable_checkpointing=False, **quiet, **settings
    )


def loader():
    return DataLoader(DATA, batch_size=16)


class Work:
    """Fits, and keeps the modules."""

    def __init__(self, *, built_with=None, scheduled=False, knobs=None, stopping=None, **settings):
        self.modules, self.callbacks = [], []
        self._built_with, self._scheduled, self._knobs = built_with, scheduled, knobs
        self._stopping, self._settings = stopping, settings

    def __call__(self, trial):
        callback = TrialCallback(trial, monitor="val_loss", knobs=self._knobs)
        module = Net(self._built_with or trial.params["lr"], self._scheduled)
        trainer = trainer_with(callback, callback.epochs, **self._settings)
        if self._stopping is not None:
            trainer.callbacks.append(self._stopping())
        trainer.fit(module, loader(), loader(), ckpt_path=callback.resume_path)
        self.modules.append(module)
        self.callbacks.append(trainer)


def test_a_trial_reports_every_epoch_and_charges_validation():
    study = run_along(SPACE, Work(), [3], [{"lr": 0.1}])
    [trial] = study.trials
    assert [point.fidelity["epochs"] for point in trial.points] == [1, 2, 3]
    assert trial.points[-1].value < trial.points[0].value
    assert trial.costs["validation"] > 0
    assert trial.costs["training"] > 0


def test_a_continued_trial_trains_only_what_it_adds_and_ends_where_the_uninterrupted_one_does():
    whole, parts = Work(), Work()
    run_along(SPACE, whole, [5], [{"lr": 0.1}])
    study = run_along(SPACE, parts, [2, 5], [{"lr": 0.1}] * 2)
    assert [module.trained for module in parts.modules] == [[0, 1], [2, 3, 4]]
    assert [point.fidelity["epochs"] for point in study.trials[1].points] == [3, 4, 5]
    for one, other in zip(whole.modules[0].parameters(), parts.modules[1].parameters(), strict=True):
        assert torch.equal(one, other)


def epochs_reported(study):
    return [[point.fidelity["epochs"] for point in trial.points] for trial in study.trials]


def test_the_last_epoch_of_a_trial_is_validated_also_where_only_every_second_one_is():
    work = Work(check_val_every_n_epoch=2)
    study = run_along(SPACE, work, [1, 3, 6, 8], [{"lr": 0.1}] * 4)
    assert epochs_reported(study) == [[1], [2, 3], [4, 6], [8]]
    assert [module.validated for module in work.modules] == [1, 2, 2, 1]


def test_the_last_epoch_is_validated_also_where_validations_are_counted_in_steps():
    work = Work(check_val_every_n_epoch=None, val_check_interval=6)
    study = run_along(SPACE, work, [1, 4], [{"lr": 0.1}] * 2)
    assert epochs_reported(study) == [[1], [2, 3, 4]], "after steps 4, 6, 12 and 16"


def test_several_validations_of_an_epoch_are_one_point_of_what_it_ended_with():
    study = run_along(SPACE, Work(val_check_interval=0.5), [1, 3], [{"lr": 0.1}] * 2)
    whole = run_along(SPACE, Work(), [3], [{"lr": 0.1}])
    values = [point.value for trial in study.trials for point in trial.points]
    assert values == [point.value for point in whole.trials[0].points]


def test_early_stopping_ends_a_trial_that_then_counts_as_a_full_run():
    def stopping():
        return L.callbacks.EarlyStopping("val_loss", min_delta=0.01, patience=1)

    best = ft.Fidelity(1, 8, integer=True, trace=True, best_so_far=True)
    space = ft.Space(SPACE.parameters, fidelities={"epochs": best})
    study = run_along(space, Work(stopping=stopping), [8], [{"lr": 1e-9}])
    assert epochs_reported(study) == [[1, 2]]
    assert study.history.ended_early(study.trials[0])
    refused = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    refused.run(Work(stopping=stopping), budget=ft.Budget(trials=1), executor="inline", progress=False, retries=0)
    assert "Add best_so_far=True" in refused.trials[0].failure.reason


def test_params_take_effect_after_a_restore():
    work = Work()
    study = run_along(SPACE, work, [2, 4], [{"lr": 0.1}, {"lr": 1e-9}])
    assert work.callbacks[1].optimizers[0].param_groups[0]["lr"] == 1e-9
    assert study.trials[1].value == pytest.approx(study.trials[0].value, rel=1e-4), "nothing moves at that rate"
    again = Work(built_with=0.5)
    run_along(SPACE, again, [2], [{"lr": 1e-9}])
    assert again.callbacks[0].optimizers[0].param_groups[0]["lr"] == 1e-9, "also if the module ignores the params"


def test_a_scheduler_scales_the_rate_that_was_chosen():
    work = Work(scheduled=True)
    run_along(SPACE, work, [2, 3], [{"lr": 0.1}, {"lr": 0.01}])
    assert work.callbacks[1].optimizers[0].param_groups[0]["lr"] == pytest.approx(0.01 * 0.5)


def test_knobs_take_effect_after_a_restore():
    space = ft.Space({**SPACE.parameters, "dropout": ft.Float(0.0, 0.9)}, fidelities=SPACE.fidelities)
    work = Work(knobs=lambda module: Knobs().dropout("dropout", module))
    run_along(space, work, [1, 2], [{"lr": 0.1, "dropout": 0.1}, {"lr": 0.1, "dropout": 0.4}])
    assert [module.layers[1].p for module in work.modules] == [0.1, 0.4]


def test_every_member_of_a_population_trains_with_the_rate_that_is_recorded():
    space = ft.Space(
        {"learning_rate": ft.Float(1e-4, 0.1, log=True)}, fidelities={"epochs": SPACE.fidelities["epochs"]}
    )
    used = {}

    def work(trial):
        callback, module = TrialCallback(trial, monitor="val_loss"), Net(trial.params["learning_rate"])
        trainer_with(callback, callback.epochs).fit(module, loader(), loader(), ckpt_path=callback.resume_path)
        used[trial.number] = module.rates

    study = ft.Study(space, minimize="loss", strategy=ft.PB2(population=4, interval=2), seed=0)
    study.run(work, executor="inline", progress=False)
    assert len(used) == 16
    assert len({trial.params["learning_rate"] for trial in study.trials}) > 4, "some were perturbed"
    assert used == {trial.number: {trial.params["learning_rate"]} for trial in study.trials}


class Grouped(Net):
    """Half the rate below, and no decay of the bias."""

    def __init__(self, params):
        super().__init__(params["lr"])
        self.params = params

    def configure_optimizers(self):
        lr, decay, layer = self.params["lr"], self.params["weight_decay"], self.layers[0]
        groups = [{"params": [layer.weight], "lr": lr / 2}, {"params": [layer.bias], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=lr, weight_decay=decay)


def test_groups_of_the_optimizer_keep_their_zeros_and_ratios():
    space = ft.Space({**SPACE.parameters, "weight_decay": ft.Float(0.0, 1.0)}, fidelities=SPACE.fidelities)
    seen = []

    def work(trial):
        callback = TrialCallback(trial, monitor="val_loss")
        trainer = trainer_with(callback, callback.epochs)
        trainer.fit(Grouped(trial.params), loader(), loader(), ckpt_path=callback.resume_path)
        seen.append([(group["lr"], group["weight_decay"]) for group in trainer.optimizers[0].param_groups])

    params = [{"lr": 0.1, "weight_decay": 0.0}, {"lr": 0.02, "weight_decay": 0.5}]
    run_along(space, work, [1, 2], params)
    assert seen == [[(0.05, 0.0), (0.1, 0.0)], [(0.01, 0.5), (0.02, 0.0)]]


BATCHED = ft.Space({**SPACE.parameters, "batch_size": ft.Int(4, 32)}, fidelities=SPACE.fidelities)
TWO_SIZES = [{"lr": 0.1, "batch_size": 8}, {"lr": 0.1, "batch_size": 16}]


def test_a_param_that_changes_at_a_restore_must_be_taken_by_something():
    study = ft.Study(BATCHED, minimize="loss", strategy=Continuing((1, 2), tuple(TWO_SIZES)), seed=0)
    study.run(Work(), executor="inline", progress=False, retries=0)
    assert study.trials[0].failure is None
    assert "got batch_size=16 after 8" in study.trials[1].failure.reason
    own = Work(knobs=lambda module: Knobs().elsewhere("batch_size"))
    run_along(BATCHED, own, [1, 2], TWO_SIZES)


def test_params_that_do_not_change_need_nothing():
    run_along(BATCHED, Work(), [1, 2], TWO_SIZES[:1] * 2)


def test_a_study_continues_good_runs():
    study = ft.Study(SPACE, minimize="loss", strategy=ft.ASHA(), seed=0)
    study.run(Work(), budget=ft.Budget(trials=5), executor="inline", progress=False)
    assert not [trial.failure for trial in study.trials if trial.failure]
    assert any(trial.resume_from is not None for trial in study.trials)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda trial, callback: trainer_with(callback, 99).fit(Net(0.1), loader(), loader()), "for its own epochs"),
        (lambda trial, callback: trainer_with(callback, callback.epochs).fit(Net(0.1), loader()), "never validated"),
    ],
)
def test_what_cannot_be_meant_is_said(fault, message):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    study.run(
        lambda trial: fault(trial, TrialCallback(trial, "val_loss")),
        budget=ft.Budget(trials=1),
        executor="inline",
        progress=False,
    )
    assert message in study.trials[0].failure.reason


@pytest.mark.parametrize("name", ["lr", "learning_rate"])
def test_online_validates_only_when_it_is_asked_for_and_applies_what_it_decides(name):
    space = ft.Space({name: ft.Float(1e-3, 0.5, log=True)})
    candidates = [{name: 0.01}, {name: 0.1}, {name: 0.3}]
    strategy = ft.CEGPUCB(rule=ft.rules.Every(3))
    settings = {"candidates": candidates, "strategy": strategy, "overhead": None}  # no clock decides
    callback = OnlineCallback(space, minimize="val_loss", **settings)
    module = Net(0.2)
    rates = []

    class Watch(L.Callback):
        def on_train_batch_end(self, trainer, module, *rest):
            rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    trainer = L.Trainer(
        max_epochs=24,
        callbacks=[callback, Watch()],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader(), loader())
    assert callback.tuner.round == 24
    assert 4 <= module.validated <= 12, "every third round, and in the first ones"
    assert len(set(rates)) > 1, "several rates were in effect"
    assert set(rates) <= {0.01, 0.1, 0.3}, "and not what the module was built with"


def test_online_refuses_a_param_that_nothing_takes():
    callback = OnlineCallback(ft.Space({"width": ft.Float(0.0, 1.0)}), minimize="val_loss")
    with pytest.raises(InvalidArgument, match="width"):
        trainer_with(callback, 2).fit(Net(0.01), loader(), loader())


def test_online_refuses_several_processes_which_would_decide_each_for_itself():
    callback = OnlineCallback(ft.Space({"lr": ft.Float(1e-3, 0.5)}), minimize="val_loss")
    with pytest.raises(Exception, match="trained by one process, got 2"):
        trainer_with(callback, 2, devices=2, strategy="ddp_fork").fit(Net(0.01), loader(), loader())


def test_online_needs_one_metric():
    with pytest.raises(InvalidArgument, match="has one metric"):
        OnlineCallback(SPACE)
