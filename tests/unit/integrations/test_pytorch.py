"""A hyperparameter that was chosen is the one that took effect, also after a restore."""

import copy

import pytest

from farthing.errors import InvalidArgument

torch = pytest.importorskip("torch")

from farthing.integrations.pytorch import BuiltOptimizer, Controls, Knobs, Snapshots  # noqa: E402


@pytest.fixture
def model():
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.1), torch.nn.Dropout1d(0.2))


def test_params_reach_the_optimizer_the_dropout_layers_and_hooks(model) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
    strengths = []
    knobs = Knobs().optimizer(optimizer, "weight_decay", rate="lr", beta="betas[0]")
    knobs.dropout("p", model).hook("strength", strengths.append)
    knobs.apply({"rate": 0.5, "weight_decay": 0.25, "beta": 0.7, "p": 0.3, "strength": 4})
    (group,) = optimizer.param_groups
    assert (group["lr"], group["weight_decay"], group["betas"]) == (0.5, 0.25, (0.7, 0.999))
    assert [layer.p for layer in model[1:]] == [0.3, 0.3]
    assert strengths == [4]


def test_params_take_effect_in_the_next_step(model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    knobs = Knobs().optimizer(optimizer, "lr")
    weight = model[0].weight
    weight.grad = torch.ones_like(weight)
    before = weight.detach().clone()
    knobs.apply({"lr": 0.125})
    optimizer.step()
    torch.testing.assert_close(before - weight, torch.full_like(weight, 0.125))


def test_what_is_chosen_wins_over_what_a_checkpoint_restores(model) -> None:
    """The best-known open bug of the peers: a restored optimizer keeps the old learning rate."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    knobs = Knobs().optimizer(optimizer, "lr")
    knobs.apply({"lr": 0.5})
    checkpoint = copy.deepcopy(optimizer.state_dict())
    knobs.apply({"lr": 0.1})
    optimizer.load_state_dict(checkpoint)
    assert optimizer.param_groups[0]["lr"] == 0.5
    knobs.apply({"lr": 0.1})
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_only_the_groups_named_are_set(model) -> None:
    groups = [{"params": [model[0].weight]}, {"params": [model[0].bias]}]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    Knobs().optimizer(optimizer, "lr", groups=[1]).apply({"lr": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.5]


def test_a_param_without_a_knob_is_refused_and_nothing_is_set(model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    knobs = Knobs().optimizer(optimizer, "lr")
    with pytest.raises(InvalidArgument, match="momentun"):
        knobs.apply({"lr": 0.5, "momentun": 0.9})
    assert optimizer.param_groups[0]["lr"] == 1.0


def test_a_setting_the_optimizer_does_not_have_is_refused(model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with pytest.raises(InvalidArgument, match="betas"):
        Knobs().optimizer(optimizer, "betas")


def test_a_module_without_dropout_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="dropout layer"):
        Knobs().dropout("p", torch.nn.Linear(2, 2))


def test_a_snapshot_puts_model_and_optimizer_back_more_than_once(model) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    snapshots = Snapshots(model, optimizer)

    def step():
        optimizer.zero_grad()
        model[0](torch.ones(2, 3)).sum().backward()
        optimizer.step()
        return model[0].weight.detach().clone()

    step()
    saved = snapshots.save()
    after = step()
    for _ in range(2):
        step()
        snapshots.restore(saved)
        torch.testing.assert_close(step(), after)


def controls_of(optimizer, chosen):
    return Controls(Knobs(), [BuiltOptimizer.of(optimizer)], chosen)


@pytest.mark.parametrize(
    ("param", "setting"), [("learning_rate", "lr"), ("adam_epsilon", "eps"), ("eps", "eps"), ("weight_decay",) * 2]
)
def test_params_are_known_by_their_usual_names(model, param, setting) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    controls_of(optimizer, {param: 0.25}).apply({param: 0.25}, [None])
    assert optimizer.param_groups[0][setting] == 0.25


@pytest.mark.parametrize(
    ("param", "betas"), [("beta1", (0.5, 0.999)), ("adam_beta2", (0.9, 0.5)), ("momentum", (0.5, 0.999))]
)
def test_betas_have_several_names(model, param, betas) -> None:
    optimizer = torch.optim.Adam(model.parameters())
    controls_of(optimizer, {param: 0.5}).apply({param: 0.5}, [None])
    assert optimizer.param_groups[0]["betas"] == betas


def test_two_params_for_one_setting_are_refused(model) -> None:
    params = {"lr": 0.5, "learning_rate": 0.25}
    with pytest.raises(InvalidArgument, match="'lr' and 'learning_rate' for 'lr'"):
        controls_of(torch.optim.SGD(model.parameters(), lr=1.0), params).apply(params, [None])


def grouped(model, rates, **settings):
    parts = zip((model[0].weight, model[0].bias), rates, strict=True)
    return torch.optim.SGD([{"params": [part], "lr": rate} for part, rate in parts], **settings)


@pytest.mark.parametrize(
    ("rates", "default", "chosen", "expected"),
    [
        ([0.25, 2.5], 1.0, 0.25, [0.5, 5.0]),  # built with the chosen rate, and ten times of it
        ([0.25, 2.5], 0.25, None, [0.5, 5.0]),  # built with the optimizer's own
        ([0.25, 2.5], 1.0, None, [0.05, 0.5]),  # else the largest is meant
        ([1.0, 0.0], 1.0, None, [0.5, 0.0]),  # a frozen group
        ([0.0, 0.0], 1.0, None, [0.5, 0.5]),  # nothing to go by
    ],
)
def test_groups_keep_the_ratios_that_they_were_built_with(model, rates, default, chosen, expected) -> None:
    optimizer = grouped(model, rates, lr=default)
    controls = controls_of(optimizer, {} if chosen is None else {"lr": chosen})
    for rate in (0.7, 0.0, 0.5):
        controls.apply({"lr": rate}, [None])
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx(expected)


def warm_up(optimizer):
    schedules = torch.optim.lr_scheduler
    parts = [schedules.ConstantLR(optimizer, factor=0.5, total_iters=3), schedules.StepLR(optimizer, 2, gamma=0.5)]
    return schedules.SequentialLR(optimizer, parts, milestones=[3])


def one_cycle(optimizer):
    rates = [10 * group["lr"] for group in optimizer.param_groups]
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rates, total_steps=8)


@pytest.mark.parametrize("schedule", [warm_up, one_cycle])
def test_a_rate_that_is_chosen_later_is_scheduled_as_if_it_had_been_chosen_first(model, schedule) -> None:
    def trained(lr, *, then):
        optimizer = grouped(model, [lr, lr / 2], lr=lr)
        scheduler = schedule(optimizer)
        chosen = max(group.get("max_lr", group["initial_lr"]) for group in optimizer.param_groups)
        controls, rates = controls_of(optimizer, {"lr": chosen}), []
        for step in range(7):
            if step == 2:
                controls.apply({"lr": then * chosen / lr}, [scheduler])
            rates += [group["lr"] for group in optimizer.param_groups] if step >= 2 else []
            optimizer.step()
            scheduler.step()
        return rates

    assert trained(0.25, then=0.5) == pytest.approx(trained(0.5, then=0.5))
