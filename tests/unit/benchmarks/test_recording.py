"""Trainings that are recorded many at once: each row learns as PyTorch's own network and optimizer would."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from benchmarks.recording import networks, stacked
from benchmarks.recording.tables import FinetuneCifar, GruCode, ResnetCifar

CPU = torch.device("cpu")
EXACT = {"rtol": 1e-4, "atol": 1e-5}  # float32, sums of some hundred terms in another order


def test_a_stacked_convolution_is_pytorchs_with_its_gradients():
    torch.manual_seed(0)
    x, weight = torch.randn(3, 2, 6, 6, 4, requires_grad=True), torch.randn(3, 36, 8, requires_grad=True)
    slope = torch.randn(3, 2, 6, 6, 8)
    (networks.Conv3x3.apply(x, weight) * slope).sum().backward()
    for row in range(3):
        one = x[row].detach().permute(0, 3, 1, 2).requires_grad_()
        kernel = weight[row].detach().view(3, 3, 4, 8).permute(3, 2, 0, 1).requires_grad_()
        out = functional.conv2d(one, kernel, padding=1)
        (out * slope[row].permute(0, 3, 1, 2)).sum().backward()
        torch.testing.assert_close(x.grad[row], one.grad.permute(0, 2, 3, 1), **EXACT)
        torch.testing.assert_close(weight.grad[row], kernel.grad.permute(2, 3, 1, 0).reshape(36, 8), **EXACT)


def test_a_stacked_gru_is_pytorchs():
    torch.manual_seed(0)
    layout = networks.recurrent_layout(8, 2, 5)
    rows = layout.fresh(2, CPU).normal_(0.0, 0.3)
    layout.unpacked(rows)["offset"].zero_()
    weights, ids = layout.unpacked(rows), torch.randint(5, (2, 3, 7))
    logits = networks.recurrent_logits(weights, ids, layers=2)
    theirs = torch.nn.GRU(5, 8, num_layers=2)
    for layer in range(2):
        theirs.get_parameter(f"weight_ih_l{layer}").data = weights[f"{layer}.in"][1].T
        theirs.get_parameter(f"weight_hh_l{layer}").data = weights[f"{layer}.again"][1].T
        theirs.get_parameter(f"bias_ih_l{layer}").data = weights[f"{layer}.bias"][1]
        theirs.get_parameter(f"bias_hh_l{layer}").data.zero_()
    states, _ = theirs(functional.one_hot(ids[1].T, 5).float())
    torch.testing.assert_close(logits[1], states @ weights["out"][1], **EXACT)


def test_one_cycle_is_pytorchs():
    lr, pct = torch.tensor([0.1, 2.0]), torch.tensor([0.3, 0.1])
    found = stacked.one_cycle(lr, pct, 50)
    for row in range(2):
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, lr[row].item(), total_steps=50, pct_start=pct[row].item(), cycle_momentum=False
        )
        for step in range(50):
            assert found[step, row].item() == pytest.approx(schedule.get_last_lr()[0], rel=1e-3)
            optimizer.step()
            if step < 49:
                schedule.step()


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_a_row_is_updated_as_by_pytorchs_optimizer(name):
    torch.manual_seed(0)
    weights, slopes = torch.randn(2, 6), [torch.randn(2, 6) for _ in range(4)]
    alone = weights[1].clone().requires_grad_()
    two = torch.tensor([0.3, 0.1])
    if name == "sgd":
        ours = stacked.Nesterov(weights, momentum=1 - two, decay=two)
        theirs = torch.optim.SGD([alone], lr=0.05, momentum=0.9, weight_decay=0.1, nesterov=True)
    else:
        ours = stacked.Adam(
            weights, one_minus_beta1=two, decay=two, clip=torch.tensor([9.0, 0.5]), scale=torch.ones(2, 6)
        )
        theirs = torch.optim.AdamW([alone], lr=0.05, betas=(0.9, 0.999), weight_decay=0.1)
    for slope in slopes:
        ours.update(weights, slope.clone(), torch.tensor([[0.2], [0.05]]))
        alone.grad = slope[1].clone()
        if name == "adam":
            torch.nn.utils.clip_grad_norm_([alone], 0.5)
        theirs.step()
    torch.testing.assert_close(weights[1], alone.detach(), **EXACT)


def test_frozen_stages_keep_the_checkpoints_weights_and_all_others_learn():
    rng = np.random.default_rng(0)
    x, y = rng.integers(256, size=(400, 32, 32, 3), dtype=np.uint8), np.arange(400) % 10
    task = FinetuneCifar(x, y, CPU, before=128, before_epochs=1, train=64, validation=64, epochs=1, width=8)
    shape = {"frozen": 2, "batch": 32}
    settings = task.space.drawn(rng, 2, shape=shape)
    training = task.training(settings, shape)
    layout = networks.residual_layout(8, 5)
    before = layout.unpacked(training.weights.clone())
    measured = stacked.curves(training)
    assert measured.shape == (2, 20)
    moved = {name: not torch.equal(before[name], now) for name, now in layout.unpacked(training.weights).items()}
    assert moved == {name: name[0] in "34" for name in moved}


def test_a_training_begins_at_its_first_step_and_lowers_the_loss_of_the_recurrent_network():
    text = np.tile(np.array([5, 9, 7, 30], dtype=np.uint8), 500)
    task = GruCode(text, CPU, sequences=3840, length=16, validation=8)
    shape = {"layers": 1, "width": 64, "batch": 32}
    settings = task.space.drawn(np.random.default_rng(0), 2, shape=shape)
    settings |= {"lr": np.array([1e-2, 1e-2]), "decay": np.ones(2), "clip": np.ones(2), "dropout": np.zeros(2)}
    measured = stacked.curves(task.training(settings, shape))
    assert (measured[:, 0] > 1.0).all()
    assert (measured[:, -1] < 0.1).all()  # four characters in a circle: nothing is left to guess


def test_shapes_and_configurations_lie_in_the_space():
    for task in (ResnetCifar, FinetuneCifar, GruCode):
        shapes = task.space.shapes()
        drawn = task.space.drawn(np.random.default_rng(0), 50, shape=shapes[-1])
        assert len(task.space.params) == 8
        for name, param in task.space.params.items():
            assert ((drawn[name] >= param.low) & (drawn[name] <= param.high)).all()
