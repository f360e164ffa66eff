"""Kernels to test, rows for them to act on, and the same kernels in GPyTorch."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

with warnings.catch_warnings():  # linear_operator calls torch.jit.script when it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    import gpytorch
    from botorch.models.kernels.categorical import CategoricalKernel
    from botorch.models.kernels.downsampling import DownsamplingKernel
    from botorch.models.kernels.exponential_decay import ExponentialDecayKernel
    from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

from farthing.models.fidelity_kernels import DataSize, LearningCurve, TimeDecay
from farthing.models.kernels import SE, CategoryOverlap, Constant, Kernel, Matern32, Matern52, Priors

CUBE, CATEGORIES, FIDELITY, TIME = (0, 1, 2), (3, 4), 5, 6
WIDTH = 7


def draw_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    """Three columns of the cube, two of categories, a fidelity in (0, 1), a whole time."""
    X = rng.random((n, WIDTH))
    X[:, CATEGORIES] = rng.integers(0, 3, (n, 2))
    X[:, TIME] = rng.integers(0, 6, n)
    return X


def draw_theta(kernel: Kernel, rng: np.random.Generator) -> np.ndarray:
    priors = Priors.of(kernel.parameters)
    return priors.mean + 0.4 * priors.spread * rng.standard_normal(priors.mean.size)


def _values(kernel: Kernel, theta: np.ndarray) -> torch.Tensor:
    return torch.tensor([p.to_value(t) for p, t in zip(kernel.parameters, theta, strict=True)], dtype=torch.double)


def _radial(kind: Callable[..., gpytorch.kernels.Kernel], **options: object) -> Callable[..., gpytorch.kernels.Kernel]:
    def build(kernel: Any, theta: np.ndarray) -> gpytorch.kernels.Kernel:
        values = _values(kernel, theta)
        theirs = kind(
            active_dims=kernel.columns, ard_num_dims=values.numel() if kernel.ard else None, **options
        ).double()
        theirs.lengthscale = values
        return theirs

    return build


def _overlap(kernel: Any, theta: np.ndarray) -> gpytorch.kernels.Kernel:
    """BoTorch takes the mean over columns where we take the sum."""
    values = _values(kernel, theta)
    theirs = CategoricalKernel(active_dims=kernel.columns, ard_num_dims=values.numel() if kernel.ard else None).double()
    theirs.lengthscale = values / len(kernel.columns)
    return theirs


def _constant(kernel: Kernel, theta: np.ndarray) -> gpytorch.kernels.Kernel:
    theirs = gpytorch.kernels.ConstantKernel().double()
    theirs.constant = _values(kernel, theta)
    return theirs


def _time_decay(kernel: Any, theta: np.ndarray) -> gpytorch.kernels.Kernel:
    """An Ornstein-Uhlenbeck process, Matérn-1/2, of lengthscale −2/log(1 − ω)."""
    theirs = MaternKernel(nu=0.5, active_dims=(kernel.column,)).double()
    theirs.lengthscale = -2.0 / torch.log1p(-_values(kernel, theta))
    return theirs


def _learning_curve(kernel: Any, theta: np.ndarray) -> gpytorch.kernels.Kernel:
    """BoTorch's has the form w + β^α/(s + s' + β)^α."""
    theirs = ExponentialDecayKernel(active_dims=(kernel.column,)).double()
    w, alpha, beta = _values(kernel, theta)
    theirs.offset, theirs.power, theirs.lengthscale = w, alpha, beta
    return theirs


def _data_size(kernel: Any, theta: np.ndarray) -> gpytorch.kernels.Kernel:
    theirs = DownsamplingKernel(active_dims=(kernel.column,)).double()
    theirs.offset, theirs.power = _values(kernel, theta)
    return theirs


@dataclass(frozen=True)
class Problem:
    """A kernel and how to build its twin, leaf by leaf."""

    kernel: Kernel
    twin: Callable[[Kernel, np.ndarray], gpytorch.kernels.Kernel]


def _product(*leaves: Problem) -> Problem:
    return _composed(leaves, lambda a, b: a * b)


def _sum(*leaves: Problem) -> Problem:
    return _composed(leaves, lambda a, b: a + b)


def _composed(leaves: tuple[Problem, ...], join: Callable) -> Problem:
    def twin(kernel: Kernel, theta: np.ndarray) -> gpytorch.kernels.Kernel:
        ends = np.cumsum([len(leaf.kernel.parameters) for leaf in leaves])[:-1]
        twins = [leaf.twin(leaf.kernel, part) for leaf, part in zip(leaves, np.split(theta, ends), strict=True)]
        whole = twins[0]
        for other in twins[1:]:
            whole = join(whole, other)
        return whole

    kernel = leaves[0].kernel
    for leaf in leaves[1:]:
        kernel = join(kernel, leaf.kernel)
    return Problem(kernel, twin)


def _scaled(leaf: Problem) -> Problem:
    def twin(kernel: Kernel, theta: np.ndarray) -> gpytorch.kernels.Kernel:
        whole = ScaleKernel(leaf.twin(leaf.kernel, theta[1:])).double()
        whole.outputscale = np.exp(theta[0])
        return whole

    return Problem(Constant() * leaf.kernel, twin)


_se = Problem(SE(CUBE), _radial(RBFKernel))
_matern52 = Problem(Matern52(CUBE), _radial(MaternKernel, nu=2.5))
_matern32 = Problem(Matern32(CUBE), _radial(MaternKernel, nu=1.5))
_categories = Problem(CategoryOverlap(CATEGORIES), _overlap)
_time = Problem(TimeDecay(TIME), _time_decay)
_curve = Problem(LearningCurve(FIDELITY), _learning_curve)
_data = Problem(DataSize(FIDELITY), _data_size)
_level = Problem(Constant(), _constant)

PROBLEMS = {
    "se": _se,
    "se isotropic": Problem(SE(CUBE, ard=False), _radial(RBFKernel)),
    "matern32": _matern32,
    "matern32 isotropic": Problem(Matern32(CUBE, ard=False), _radial(MaternKernel, nu=1.5)),
    "matern52": _matern52,
    "matern52 isotropic": Problem(Matern52(CUBE, ard=False), _radial(MaternKernel, nu=2.5)),
    "overlap": _categories,
    "overlap ard": Problem(CategoryOverlap(CATEGORIES, ard=True), _overlap),
    "time decay": _time,
    "learning curve": _curve,
    "data size": _data,
    "scaled matern52": _scaled(_matern52),
    "mixed": _scaled(_product(_matern52, _categories)),
    "drifting": _product(_level, Problem(SE(CUBE, ard=False), _radial(RBFKernel)), _time),
    "trace": _scaled(_product(_matern52, _curve, _data)),
    "sum": _sum(_scaled(_se), _scaled(_matern32), _level),
    "sum of products": _sum(_product(_matern52, _categories), _product(_level, _curve)),
}
SMOOTH = [name for name, problem in PROBLEMS.items() if not problem.kernel.rough_columns]
