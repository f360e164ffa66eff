"""The bridge against BoTorch's own model with the same kernel, hyperparameters and observations.

Both do the same arithmetic in double precision, with other factorisations: 1e-6 leaves room for a condition of 1e8.
"""

import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    PosteriorMean,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf, optimize_acqf_mixed_alternating
from botorch.sampling import SobolQMCNormalSampler
from linear_operator.utils.warnings import NumericalWarning
from unit.models.problems import PROBLEMS, SMOOTH, draw_rows, draw_theta

import farthing as ft
from farthing.acquisition.expected_improvement import LogExpectedImprovement as OurLogExpectedImprovement
from farthing.acquisition.maximize import Domain, maximize
from farthing.errors import InvalidArgument, NoResult
from farthing.integrations.botorch import FarthingModel, bounds_of, study_model
from farthing.models.fitting import fit_gp
from farthing.models.gp import GP, condition
from farthing.models.kernels import SE, Constant, Kernel, Matern52

NOISE, M = 0.01, 0.3
CLOSE = {"rtol": 1e-6, "atol": 1e-7}
BATCH, Q = 4, 3


@dataclass(frozen=True)
class Twins:
    """The same posterior twice, and rows (BATCH, Q, D) to ask it about."""

    gp: GP
    ours: FarthingModel
    theirs: SingleTaskGP
    rows: torch.Tensor


def twins(name: str = "scaled matern52", *, seed: int = 0) -> Twins:
    rng = np.random.default_rng(seed)
    problem = PROBLEMS[name]
    theta, X, y = draw_theta(problem.kernel, rng), draw_rows(12, rng), rng.standard_normal(12)
    rows = torch.tensor(draw_rows(BATCH * Q, rng)).reshape(BATCH, Q, -1)
    rows[..., -1] += 0.5  # away from the kink of time decay
    gp = condition(problem.kernel, theta, X, y, noise=NOISE, m=M)
    theirs = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        covar_module=problem.twin(problem.kernel, theta),
        outcome_transform=None,
    )
    theirs.likelihood.noise = NOISE
    theirs.mean_module.constant.data.fill_(M)
    return Twins(gp, FarthingModel(gp), theirs.eval(), rows)


def value_and_gradient(function, rows):
    rows = rows.clone().requires_grad_()
    value = function(rows)
    (gradient,) = torch.autograd.grad(value.sum(), rows, allow_unused=True)
    return value.detach(), torch.zeros_like(rows) if gradient is None else gradient


def assert_same(ours, theirs, rows):
    """Values and gradients of two functions of rows."""
    for mine, other in zip(value_and_gradient(ours, rows), value_and_gradient(theirs, rows), strict=True):
        torch.testing.assert_close(mine, other, **CLOSE)


def sampler() -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([64]), seed=0)


# ------------------------------------------------------------------------------------------------------- posterior


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("observation_noise", [False, True])
def test_posterior_and_its_gradients_equal_those_of_botorch(name: str, observation_noise: bool) -> None:
    both = twins(name)
    weights = torch.randn(BATCH, Q, Q, dtype=torch.double, generator=torch.Generator().manual_seed(0))

    def mean(model):
        return lambda rows: model.posterior(rows, observation_noise=observation_noise).mean

    def weighted_covariance(model):
        def weighted(rows):
            posterior = model.posterior(rows, observation_noise=observation_noise)
            return (weights * posterior.distribution.covariance_matrix).sum(dim=(-2, -1))

        return weighted

    assert_same(mean(both.ours), mean(both.theirs), both.rows)
    assert_same(weighted_covariance(both.ours), weighted_covariance(both.theirs), both.rows)


@pytest.mark.parametrize("name", ["scaled matern52", "trace", "sum"])
def test_gradients_equal_differences(name: str) -> None:
    both = twins(name)

    def moments(rows):
        posterior = both.ours.posterior(rows)
        return posterior.mean, posterior.distribution.covariance_matrix

    assert torch.autograd.gradcheck(moments, both.rows[:2].clone().requires_grad_())


def test_rows_may_have_any_batch_or_none() -> None:
    both = twins()
    for rows in (both.rows[0], both.rows, both.rows[:, None].expand(BATCH, 2, Q, -1)):
        posterior = both.ours.posterior(rows)
        assert posterior.mean.shape == (*rows.shape[:-1], 1)
        torch.testing.assert_close(posterior.variance, both.theirs.posterior(rows).variance, **CLOSE)


def test_rows_that_are_equal_have_a_posterior_to_sample_from() -> None:
    both = twins()
    posterior = both.ours.posterior(both.rows[0, :1].expand(Q, -1))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # says that jitter is added
        first, *others = sampler()(posterior)[:, :, 0].T

    for other in others:
        torch.testing.assert_close(other, first, rtol=0, atol=1e-2)  # a jitter of 1e-8 or so, four deviations, a root


def test_a_negated_model_shows_what_is_to_be_maximised() -> None:
    both = twins()
    negated = FarthingModel(both.gp, negate=True)

    torch.testing.assert_close(negated.posterior(both.rows).mean, -both.ours.posterior(both.rows).mean)
    torch.testing.assert_close(negated.posterior(both.rows).variance, both.ours.posterior(both.rows).variance)
    torch.testing.assert_close(negated.train_targets, torch.tensor(-both.gp.y))


def test_posteriors_come_back_in_the_precision_that_was_asked_in() -> None:
    both = twins()
    posterior = both.ours.posterior(both.rows.float())

    assert posterior.mean.dtype == torch.float
    torch.testing.assert_close(posterior.mean.double(), both.ours.posterior(both.rows).mean, rtol=1e-4, atol=1e-4)


def test_given_noise_and_transforms_of_the_posterior_are_applied() -> None:
    both = twins()
    noise = torch.full((BATCH, Q, 1), 0.5, dtype=torch.double)
    transform = ScalarizedPosteriorTransform(weights=torch.tensor([2.0], dtype=torch.double), offset=1.0)

    noisy = both.ours.posterior(both.rows, observation_noise=noise, posterior_transform=transform)

    plain = both.ours.posterior(both.rows)
    torch.testing.assert_close(noisy.mean, 1.0 + 2.0 * plain.mean)
    torch.testing.assert_close(noisy.variance, 4.0 * (plain.variance + 0.5))


def test_it_has_one_output_and_no_batch() -> None:
    model = twins().ours

    assert (model.num_outputs, model.batch_shape) == (1, torch.Size([]))
    assert model.subset_output([0]) is model
    with pytest.raises(InvalidArgument, match="output 0 only"):
        model.subset_output([1])


def test_a_process_that_observed_slopes_is_refused() -> None:
    gp = condition(SE((0,)), np.zeros(1), np.zeros((1, 1)), np.zeros(1), noise=0.1, along=np.array([0]))

    with pytest.raises(InvalidArgument, match="slopes"):
        FarthingModel(gp)


# ------------------------------------------------------------------------------------------------------- fantasies


@pytest.mark.parametrize("name", SMOOTH)
def test_conditioning_equals_conditioning_the_process(name: str) -> None:
    both = twins(name)
    X, y = both.rows[0], torch.randn(Q, 1, dtype=torch.double, generator=torch.Generator().manual_seed(1))

    later = FarthingModel(both.gp, negate=True).condition_on_observations(X, -y).posterior(both.rows[1])

    mean, covariance = both.gp.condition_on(X.numpy(), y[:, 0].numpy()).joint(both.rows[1].numpy())
    torch.testing.assert_close(later.mean[:, 0], torch.tensor(-mean), **CLOSE)
    torch.testing.assert_close(later.distribution.covariance_matrix, torch.tensor(covariance), **CLOSE)


def test_fantasies_equal_those_of_botorch() -> None:
    both = twins()
    queries = both.rows[:, :1] + 0.1

    def fantasised(model):
        def variances_and_means(rows):
            sampler = SobolQMCNormalSampler(torch.Size([8]), seed=0)
            posterior = model.fantasize(rows, sampler=sampler).posterior(queries)
            return torch.cat([posterior.mean, posterior.variance], dim=-1)

        return variances_and_means

    assert both.ours.fantasize(both.rows, SobolQMCNormalSampler(torch.Size([8]))).batch_shape == (8, BATCH)
    ours, theirs = (value_and_gradient(fantasised(model), both.rows)[0] for model in (both.ours, both.theirs))
    torch.testing.assert_close(ours, theirs, **CLOSE)


def test_each_fantasy_may_have_a_noise_of_its_own() -> None:
    both = twins()
    X, y = both.rows[0], torch.zeros(2, Q, 1, dtype=torch.double)
    noise = torch.tensor([1e-3, 10.0], dtype=torch.double)[:, None, None].expand(2, Q, 1)

    sure, unsure = both.ours.condition_on_observations(X, y, noise=noise).posterior(X).variance.mean(dim=(1, 2))

    assert sure < 2e-3
    assert unsure > 10 * sure


# ----------------------------------------------------------------------------------------------------- acquisition


ACQUISITIONS = {
    "LogEI": lambda model, rows: LogExpectedImprovement(model, best_f=0.5)(rows[:, :1]),
    "PosteriorMean": lambda model, rows: PosteriorMean(model)(rows[:, :1]),
    "qLogEI": lambda model, rows: qLogExpectedImprovement(model, best_f=0.5, sampler=sampler())(rows),
    "qLogNEI": lambda model, rows: qLogNoisyExpectedImprovement(
        model, X_baseline=model.train_inputs[0], sampler=sampler(), prune_baseline=False
    )(rows),
    "qLogNEI without cache": lambda model, rows: qLogNoisyExpectedImprovement(
        model, X_baseline=model.train_inputs[0], sampler=sampler(), prune_baseline=False, cache_root=False
    )(rows),
    "qKG": lambda model, rows: qKnowledgeGradient(
        model, num_fantasies=2, sampler=SobolQMCNormalSampler(torch.Size([2]), seed=0)
    )(rows),
}


@pytest.mark.parametrize("name", ["scaled matern52", "trace", "mixed"])
@pytest.mark.parametrize("acquisition", ACQUISITIONS)
def test_acquisition_functions_and_their_gradients_equal_those_on_botorchs_model(name: str, acquisition: str) -> None:
    both = twins(name)
    function = ACQUISITIONS[acquisition]

    assert_same(lambda rows: function(both.ours, rows), lambda rows: function(both.theirs, rows), both.rows)


def test_our_log_ei_of_a_loss_is_botorchs_of_the_negated_model() -> None:
    both = twins()
    X, best = both.rows[0], float(both.gp.y.min())

    theirs = LogExpectedImprovement(FarthingModel(both.gp, negate=True), best_f=-best)(X[:, None])

    np.testing.assert_allclose(OurLogExpectedImprovement(both.gp, best)(X.numpy()), theirs.numpy(), rtol=1e-6)


def test_botorchs_optimiser_finds_what_ours_does() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((12, 2))
    kernel: Kernel = Constant() * Matern52((0, 1))
    gp = fit_gp(kernel, X, np.sin(5 * X[:, 0]) + (X[:, 1] - 0.4) ** 2)
    best = float(gp.y.min())
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
    torch.manual_seed(0)

    _, theirs = optimize_acqf(
        LogExpectedImprovement(FarthingModel(gp, negate=True), best_f=-best),
        bounds=bounds,
        q=1,
        num_restarts=4,
        raw_samples=64,
    )

    ours = maximize(OurLogExpectedImprovement(gp, best), Domain((None, None)), rng=rng)
    # Both climb to a gradient of about 1e-5 on a function whose curvature is of order one.
    assert float(theirs) == pytest.approx(ours.value, abs=1e-4)


# ----------------------------------------------------------------------------------------------------------- study


@pytest.fixture
def study() -> ft.Study:
    space = ft.Space(
        {
            "optimizer": ft.Choice("sgd", "adam", "rmsprop"),
            "momentum": ft.Float(0, 1, when={"optimizer": "sgd"}),
            "rate": ft.Float(1e-4, 1, log=True),
            "layers": ft.Int(1, 4),
        }
    )
    study = ft.Study(space, maximize="accuracy", strategy=ft.Sobol(), seed=0)
    for trial in study.ask(count=16):
        params = trial.params
        study.tell(trial, -abs(np.log10(params["rate"]) + 2) - params.get("momentum", 0.5), cost=1.0)
    return study


def test_the_model_of_a_study_predicts_its_scores(study: ft.Study) -> None:
    model = study_model(study)
    X = torch.tensor(study.space.encoder.encode([trial.params for trial in study.trials]))

    scores = model.posterior(X[:, None]).mean.flatten()

    values = [trial.value for trial in study.trials]
    torch.testing.assert_close(model.train_inputs[0], X, equal_nan=True)
    assert int(model.train_targets.argmax()) == int(np.argmax(values))
    assert np.corrcoef(scores, values)[0, 1] > 0.9, "the values are free of noise"


def test_what_is_inactive_does_not_matter(study: ft.Study) -> None:
    model = study_model(study)
    rows = torch.tensor([[1.0, 0.1, 0.5, 0.5], [1.0, 0.9, 0.5, 0.5]], dtype=torch.double).requires_grad_()

    mean = model.posterior(rows[:, None]).mean
    (gradient,) = torch.autograd.grad(mean.sum(), rows)

    assert mean[0] == mean[1]
    assert torch.all(gradient[:, 1] == 0)
    assert torch.all(gradient[:, 2] != 0)


@pytest.mark.filterwarnings("ignore:Optimization failed:RuntimeWarning")  # it tries again, and says so
def test_botorch_searches_a_mixed_space_and_its_point_can_be_decoded(study: ft.Study) -> None:
    encoder, model = study.space.encoder, study_model(study)
    torch.manual_seed(0)

    X, _ = optimize_acqf_mixed_alternating(
        LogExpectedImprovement(model, best_f=model.train_targets.max()),
        bounds=bounds_of(study.space),
        cat_dims={column: encoder.grid(column).tolist() for column in encoder.categories},
        discrete_dims={column: encoder.grid(column).tolist() for column in encoder.discrete},
        num_restarts=2,
        raw_samples=32,
    )

    (params,) = encoder.decode(X.numpy())
    assert study.space.check(params) == params


def test_bounds_hold_the_coordinates_of_all_values(study: ft.Study) -> None:
    assert bounds_of(study.space).tolist() == [[0, 0, 0, 0.125], [2, 1, 1, 0.875]]


def test_a_study_with_too_few_results_has_no_model() -> None:
    study = ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error")

    with pytest.raises(NoResult, match="at least 5 trials"):
        study_model(study)


def test_without_botorch_the_extra_is_named() -> None:
    program = "import sys; sys.modules['torch'] = None; import farthing.integrations.botorch"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )

    assert "MissingExtra" in ended.stderr
    assert "pip install 'farthing[botorch]'" in ended.stderr
