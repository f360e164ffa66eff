"""BoTorch, imported before the tests are: linear_operator calls `torch.jit.script` then, which warns."""

import warnings

import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import botorch.models  # noqa: F401


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
