"""Hugging Face's Trainer, the real one: reports, charged validation, continued runs, params after a restore."""

import pytest
from needing import need

need("transformers")

import torch  # noqa: E402
from continuing import Continuing, run_along  # noqa: E402
from torch import nn  # noqa: E402
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments  # noqa: E402

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
    """Trains, and keeps the trainers; all of them have one output folder, as in most scripts."""

    def __init__(self, folder, monitor="eval_loss", make=None, **arguments):
        self.folder, self.monitor, self.trainers, self.make = folder, monitor, [], make or Trainer
        self.arguments = arguments

    def __call__(self, trial):
        args = TrainingArguments(
            output_dir=str(self.folder / "output"),
            **{"learning_rate": 0.5, "lr_scheduler_type": "constant", **self.arguments},
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
        self.steps = []

    @property
    def seen(self):
        return set(self.steps)

    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        self.steps.append(tuple((group["lr"], group["weight_decay"]) for group in optimizer.param_groups))


def watched(watches):
    """Makes trainers with a watch each."""

    def make(**arguments):
        watches.append(Watch())
        return Trainer(**arguments, callbacks=[watches[-1]])

    return make


def test_every_member_of_a_population_trains_with_the_rate_that_is_recorded(tmp_path):
    space = ft.Space(
        {"learning_rate": ft.Float(1e-4, 0.1, log=True)}, fidelities={"epochs": SPACE.fidelities["epochs"]}
    )
    watches: list[Watch] = []
    work = Work(tmp_path, make=watched(watches))
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


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_a_schedule_is_that_of_a_full_run_also_in_short_and_continued_trials(tmp_path, schedule):
    watches, whole = [], []
    settings = {"lr_scheduler_type": schedule, "warmup_steps": 3}
    run_along(SPACE, Work(tmp_path / "whole", make=watched(whole), **settings), [6], [{"lr": 0.05}])
    run_along(SPACE, Work(tmp_path, make=watched(watches), **settings), [1, 3, 6], [{"lr": 0.05}] * 3)
    rates = [[groups[0][0] for groups in watch.steps] for watch in (*whole, *watches)]
    assert len(rates[0]) == 18
    assert rates[0] == [*rates[1], *rates[2], *rates[3]]
    assert rates[0][-1] < rates[0][3] / 10, "a full run ends near zero"
    assert rates[1][2] == pytest.approx(0.05 * 2 / 3), "the first trial is still warming up"


STOPPING = ft.Space(
    SPACE.parameters, fidelities={"epochs": ft.Fidelity(1, 6, integer=True, trace=True, best_so_far=True)}
)
EVALUATED = {"eval_strategy": "epoch", "metric_for_best_model": "eval_loss", "greater_is_better": False}


def stopping(**arguments):
    return Trainer(**arguments, callbacks=[EarlyStoppingCallback(1, early_stopping_threshold=0.01)])


def test_early_stopping_ends_a_trial_that_then_counts_as_a_full_run(tmp_path):
    study = run_along(STOPPING, Work(tmp_path, make=stopping, **EVALUATED), [6], [{"lr": 1e-9}])
    [trial] = study.trials
    assert [point.fidelity["epochs"] for point in trial.points] == [1, 2]
    assert study.history.ended_early(trial)
    assert trial.checkpoint is not None


def test_patience_may_count_across_a_pause(tmp_path):
    settings = {**EVALUATED, "restore_callback_states_from_checkpoint": True}
    work = Work(tmp_path, make=lambda **given: Trainer(**given, callbacks=[EarlyStoppingCallback(2, 0.01)]), **settings)
    study = run_along(STOPPING, work, [2, 6], [{"lr": 1e-9}] * 2)
    assert [point.fidelity["epochs"] for point in study.trials[1].points] == [3]


def test_early_stopping_needs_runs_that_are_worth_their_best_point(tmp_path):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    work = Work(tmp_path, make=stopping, **EVALUATED)
    study.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False, retries=0)
    assert "Add best_so_far=True" in study.trials[0].failure.reason


BEST = {**EVALUATED, "save_strategy": "epoch", "load_best_model_at_end": True}
UNSTEADY = [{"lr": 0.5}] * 3


@pytest.mark.parametrize("save", [{}, {"save_total_limit": 1}, {"save_strategy": "best"}, {"save_only_model": True}])
def test_the_best_model_is_loaded_at_the_end_and_the_last_is_continued(tmp_path, save):
    whole, parts = Work(tmp_path / "whole", **{**BEST, **save}), Work(tmp_path / "parts", **{**BEST, **save})
    one = run_along(STOPPING, whole, [5], UNSTEADY[:1])
    study = run_along(STOPPING, parts, [2, 3, 5], UNSTEADY)
    values = [point.value for point in one.trials[0].points]
    assert [point.value for trial in study.trials for point in trial.points] == pytest.approx(values, rel=1e-4)
    assert values.index(min(values)) == 0, "no trial ends with the best"
    for trainer in (*whole.trainers, *parts.trainers):
        assert trainer.evaluate()["eval_loss"] == pytest.approx(min(values), rel=1e-4)


STEPS = ft.Space(SPACE.parameters, fidelities={"steps": ft.Fidelity(2, 12, integer=True, trace=True)})


def test_a_fidelity_may_count_steps(tmp_path):
    settings = {"max_steps": 12, "eval_steps": 4, "lr_scheduler_type": "linear"}
    one = run_along(STEPS, Work(tmp_path / "whole", **settings), [12], [{"lr": 0.05}])
    work = Work(tmp_path / "parts", **settings)
    study = run_along(STEPS, work, [5, 12], [{"lr": 0.05}] * 2)
    assert [[point.fidelity["steps"] for point in trial.points] for trial in study.trials] == [[4, 5], [8, 12]]
    assert study.trials[1].value == pytest.approx(one.trials[0].value, rel=1e-4)
    assert [trainer.state.global_step for trainer in work.trainers] == [5, 12]


def test_steps_that_are_not_those_of_the_fidelity_are_refused(tmp_path):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    work = Work(tmp_path, max_steps=500)
    study.run(work, budget=ft.Budget(trials=1), executor="inline", progress=False, retries=0)
    assert "got max_steps=500 and a fidelity of up to 6" in study.trials[0].failure.reason


def test_a_model_that_the_trainer_makes_is_trained_with_the_chosen_rate(tmp_path):
    watches = []

    def make(model, **arguments):
        watches.append(Watch())
        return Trainer(model_init=Net, **arguments, callbacks=[watches[-1]])

    run_along(SPACE, Work(tmp_path, make=make), [1, 2], [{"lr": 0.1}, {"lr": 0.02}])
    assert [watch.seen for watch in watches] == [{((rate, 0.0), (rate, 0.0))} for rate in (0.1, 0.02)]


@pytest.mark.parametrize("told", [{"eval_on_start": True}, {"eval_delay": 3}, {"eval_strategy": "steps"}])
def test_every_epoch_is_evaluated_once_whatever_the_arguments_say(tmp_path, told):
    study = run_along(SPACE, Work(tmp_path, **told), [2, 3], [{"lr": 0.05}] * 2)
    assert [[point.fidelity["epochs"] for point in trial.points] for trial in study.trials] == [[1, 2], [3]]


def test_several_sets_are_evaluated_and_one_of_their_metrics_counts(tmp_path):
    def make(eval_dataset, **arguments):
        return Trainer(eval_dataset={"easy": ROWS[:16], "hard": ROWS[16:]}, **arguments)

    study = run_along(SPACE, Work(tmp_path, "eval_hard_loss", make=make), [2], [{"lr": 0.05}])
    assert [point.fidelity["epochs"] for point in study.trials[0].points] == [1, 2]


def test_trials_at_the_same_time_do_not_write_into_one_folder(tmp_path):
    work = Work(tmp_path, **BEST)
    run_along(STOPPING, work, [2, 3], [{"lr": 0.05}] * 2)
    assert not list((tmp_path / "output").glob("checkpoint-*")), "both have this folder"
    assert work.trainers[0].args.output_dir == str(tmp_path / "output"), "where the user saves the model"


def test_a_metric_that_is_not_evaluated_is_named(tmp_path):
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Random(), seed=0)
    study.run(Work(tmp_path, "eval_f1"), budget=ft.Budget(trials=1), executor="inline", progress=False)
    assert "must evaluate 'eval_f1', got ['epoch', 'eval_loss'" in study.trials[0].failure.reason
