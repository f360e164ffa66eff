"""Augmentations of images, each with a probability of its own."""

import pytest
import torch

from benchmarks.online.augmentation import KINDS, SPACE, STARTS, augmented

NEVER = dict.fromkeys(KINDS, 0.0)


def images():
    return torch.randn(8, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def changed(params):
    return augmented(images(), params, torch.Generator().manual_seed(0))


def test_nothing_is_changed_with_probability_zero():
    torch.testing.assert_close(changed(NEVER), images())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_changes_every_image_with_probability_one_and_half_of_them_with_a_half(kind):
    def share(probability):
        pictures = torch.randn(400, 3, 32, 32, generator=torch.Generator().manual_seed(1))
        after = augmented(pictures, {**NEVER, kind: probability}, torch.Generator().manual_seed(0))
        return float(((after - pictures).abs().amax(dim=(1, 2, 3)) > 1e-3).float().mean())

    assert share(1.0) > 0.99
    assert 0.4 < share(0.5) < 0.6


def test_what_is_drawn_for_one_kind_does_not_depend_on_the_others():
    """So that methods are paired: the same hole is cut whether or not images are flipped too."""
    hole = (changed({**NEVER, "cutout": 1.0}) == 0.0).all(dim=1)
    both = (changed({**NEVER, "cutout": 1.0, "solarize": 1.0}) == 0.0).all(dim=1)
    assert torch.equal(hole, both)
    assert (hole.sum(dim=(1, 2)) == 64).all()


def test_the_starts_are_of_the_space():
    for start in STARTS.values():
        assert SPACE.check(start) == start
