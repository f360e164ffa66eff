"""A hyperparameter that was chosen is the one that took effect, also after a restore."""

import copy

import pytest

from farthing.errors import InvalidArgument

torch = pytest.importorskip("torch")

from farthing.integrations.pytorch import Knobs, Snapshots  # noqa: E402


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
