"""Our Gaussian process as a BoTorch model, so that BoTorch's acquisition functions and optimisers run on it.

Covariances and their gradients are ours, joined to PyTorch's graph by `PriorCovariance`; the linear algebra around them
is PyTorch's. All of it is in double precision on the CPU, and goes back as the type of tensor that came.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from farthing.errors import InvalidArgument, MissingExtra
from farthing.models.gp import GP, VALUE
from farthing.models.kernels import Covariance, Kernel
from farthing.models.linalg import Array
from farthing.space import Space

try:
    import torch
    from botorch.models.gpytorch import GPyTorchModel
    from botorch.models.model import FantasizeMixin
    from botorch.posteriors.gpytorch import GPyTorchPosterior
    from gpytorch.constraints import Positive
    from gpytorch.distributions import MultivariateNormal
    from gpytorch.likelihoods import GaussianLikelihood
    from linear_operator import to_linear_operator
    from linear_operator.utils.cholesky import psd_safe_cholesky
    from torch import Tensor
    from torch.autograd.function import once_differentiable
    from torch.linalg import solve_triangular
    from torch.nn.functional import pad
except ImportError as error:
    raise MissingExtra(
        "farthing.integrations.botorch needs BoTorch, which is not installed. Run: pip install 'farthing[botorch]'."
    ) from error

if TYPE_CHECKING:
    from farthing.study import Study


def study_model(study: "Study") -> "FarthingModel":
    """The Gaussian process that `LogEI` would fit to the study, as a model of a score: the more, the better.

    The score is minus the loss on the scale of the model, on which `train_targets` has what was observed. Rows are
    encoded params (`study.space.encoder`); what they hold in inactive columns does not matter.
    """
    from farthing.analysis.model import fit_history

    return FarthingModel(fit_history(study.history).gp, negate=True, snap=study.space.encoder.without_inactive)


def bounds_of(space: Space) -> Tensor:
    """The box (2, D) of encoded params: [0, 1], or from the coordinate of the first to that of the last value."""
    grids = [space.encoder.grid(column) for column in range(space.encoder.dimension)]
    ends = [(0.0, 1.0) if grid is None else (float(grid[0]), float(grid[-1])) for grid in grids]
    return torch.tensor(ends, dtype=torch.double).T


class FarthingModel(GPyTorchModel, FantasizeMixin):
    """A `GP` as a BoTorch model of one output.

    It is a `GPyTorchModel` because acquisition functions that keep a Cholesky factor ask for one.

    Args:
        negate: show −f. A process of a loss is negated for BoTorch, which maximises.
        snap: makes complete rows (N, D) valid ones, NaN where inactive, as `Encoder.without_inactive` does.
    """

    def __init__(self, gp: GP, *, negate: bool = False, snap: Callable[[Array], Array] | None = None) -> None:
        super().__init__()
        if np.any(gp.along != VALUE):
            raise InvalidArgument(
                "A BoTorch model is made of observed values, got a process that observed slopes. Leave them out."
            )
        self._gp, self._sign, self._snap = gp, -1.0 if negate else 1.0, snap
        self._X, self._y, self._L, alpha = (torch.from_numpy(np.array(M)) for M in (gp.X, gp.y, gp.L, gp.alpha))
        self._residual = self._L.mT @ alpha
        """L⁻¹ (y − m)."""
        self.likelihood = GaussianLikelihood(noise_constraint=Positive()).double().requires_grad_(False)
        self.likelihood.noise = gp.noise

    # ------------------------------------------------------------------------------------------ what BoTorch asks

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self._residual.shape[:-1]

    @property
    def train_inputs(self) -> tuple[Tensor]:
        return (self._X,)

    @property
    def train_targets(self) -> Tensor:
        return self._sign * self._y

    def subset_output(self, idcs: Sequence[int]) -> Self:
        if list(idcs) != [0]:
            raise InvalidArgument(f"The model has output 0 only, got {list(idcs)}. Leave the outputs out.")
        return self

    def posterior(  # type: ignore[override]  # BoTorch's two base classes disagree
        self,
        X: Tensor,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
        output_indices: list[int] | None = None,
    ) -> Any:
        """The joint posterior (…, q, 1) of f, or of noisy observations of it, at the rows X (…, q, D).

        μ = m + Vᵀ L⁻¹(y − m)   and   Σ = k(X, X) − Vᵀ V   with   V = L⁻¹ k(rows, X)
        """
        self.subset_output(output_indices or [0])
        rows = self._valid(X)
        V = solve_triangular(self._L, self._k(self._X, rows), upper=False)
        mean = self._sign * (self._gp.m + _times(V.mT, self._residual))
        covariance = self._k(rows, rows) - V.mT @ V
        if observation_noise is not False:
            covariance = covariance + _diagonal(self._variance(observation_noise), X.shape[-2])
        lazy = to_linear_operator(covariance.expand(*mean.shape, X.shape[-2]).to(X))  # factored with jitter, if at all
        posterior = GPyTorchPosterior(MultivariateNormal(mean.to(X), lazy))
        return posterior if posterior_transform is None else posterior_transform(posterior=posterior, X=X)

    def condition_on_observations(self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any) -> Self:
        """The model after observing Y (…, n', 1) at X (…, n', D), with the sign it shows; `noise` is their variance.

        It is differentiable in X and Y. Batches broadcast, and fantasies of one X share its Cholesky factor:

        L becomes [[L, 0], [Sᵀ, M]]   with   S = L⁻¹ k(rows, X),   M Mᵀ = k(X, X) + σ² I − Sᵀ S
        """
        rows, y = self._valid(X), self._sign * Y.to(self._y)[..., 0]
        S = solve_triangular(self._L, self._k(self._X, rows), upper=False)
        variance = self._variance(True if noise is None else noise)
        M = psd_safe_cholesky(self._k(rows, rows) + _diagonal(variance, y.shape[-1]) - S.mT @ S)
        surprise = y - self._gp.m - _times(S.mT, self._residual)
        residual = solve_triangular(M, surprise[..., None], upper=False)[..., 0]
        return self._with(
            _X=_joined(self._X, rows, dim=-2),
            _y=_joined(self._y, y, dim=-1),
            _L=_joined(pad(self._L, (0, y.shape[-1])), _joined(S.mT, M, dim=-1), dim=-2),
            _residual=_joined(self._residual, residual, dim=-1),
        )

    # ----------------------------------------------------------------------------------------------------- pieces

    def _with(self, **changed: Tensor) -> Self:
        later = copy(self)
        vars(later).update(changed)
        return later

    def _k(self, X: Tensor, Z: Tensor) -> Tensor:
        K: Tensor = PriorCovariance.apply(self._gp.kernel, self._gp.theta, X, Z)  # type: ignore[no-untyped-call]
        return K

    def _valid(self, X: Tensor) -> Tensor:
        rows = X.to(self._L)
        if self._snap is None:
            return rows
        flat = rows.detach().reshape(-1, rows.shape[-1]).numpy()
        inactive = torch.from_numpy(np.isnan(self._snap(flat))).reshape(rows.shape)
        return rows.masked_fill(inactive, torch.nan)

    def _variance(self, noise: bool | Tensor) -> Tensor:
        """σ² (…, 1 or q): the given one, else the fitted one."""
        given: Tensor = noise.to(self._L)[..., 0] if isinstance(noise, Tensor) else self.likelihood.noise
        return given


class PriorCovariance(torch.autograd.Function):
    """k(X, Z) at θ, of shape (…, n, m), differentiable in X and Z by the kernel's own pullbacks.

    With W = ∂F/∂K, pulling W back gives ∂F/∂X, and since k(x, z) = k(z, x), pulling Wᵀ back gives ∂F/∂Z.
    """

    @staticmethod
    def forward(ctx: Any, kernel: Kernel, theta: Array, X: Tensor, Z: Tensor) -> Tensor:
        ctx.kernel, ctx.theta = kernel, theta
        ctx.save_for_backward(X, Z)
        ctx.covariance = _evaluate(kernel, theta, X, Z)
        batch = np.broadcast_shapes(X.shape[:-2], Z.shape[:-2])
        return _filled(ctx.covariance.K, (*batch, X.shape[-2], Z.shape[-2]))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, W: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        X, Z = ctx.saved_tensors
        _, _, is_for_X, is_for_Z = ctx.needs_input_grad
        by_X = _pull_back(ctx.covariance, W, X) if is_for_X else None
        by_Z = _pull_back(_evaluate(ctx.kernel, ctx.theta, Z, X), W.mT, Z) if is_for_Z else None
        return None, None, by_X, by_Z


def _evaluate(kernel: Kernel, theta: Array, X: Tensor, Z: Tensor) -> Covariance:
    return kernel.evaluate(theta, X.detach().numpy(), Z.detach().numpy())


def _pull_back(covariance: Covariance, W: Tensor, X: Tensor) -> Tensor:
    """∂F/∂X, summed over the batches to which X was broadcast."""
    gradient = covariance.input_gradient(W.numpy())
    return _filled(gradient, (*W.shape[:-1], X.shape[-1])).sum_to_size(X.shape)


def _filled(array: Array, shape: tuple[int, ...]) -> Tensor:
    return torch.from_numpy(np.array(np.broadcast_to(array, shape)))


def _diagonal(variance: Tensor, n: int) -> Tensor:
    """Diagonal matrices (…, n, n) of variances (…, 1 or n)."""
    return torch.diag_embed(variance.expand(*variance.shape[:-1], n))


def _times(A: Tensor, b: Tensor) -> Tensor:
    return (A @ b[..., None])[..., 0]


def _joined(first: Tensor, second: Tensor, *, dim: int) -> Tensor:
    """One after the other along `dim`; the dimensions before it are broadcast."""
    batch = np.broadcast_shapes(first.shape[:dim], second.shape[:dim])
    return torch.cat([part.expand(*batch, *part.shape[dim:]) for part in (first, second)], dim=dim)
