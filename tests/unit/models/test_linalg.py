import logging

import numpy as np
import pytest

from farthing.errors import InvalidArgument
from farthing.models.linalg import (
    cholesky,
    extend_cholesky,
    inverse_from_factor,
    log_determinant,
    solve_factored,
    solve_lower,
    solve_upper,
)


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + np.eye(n)


def test_factor_solves_and_determinant_agree_with_numpy():
    K, B = positive_definite(6), np.random.default_rng(1).standard_normal((6, 2))
    L = cholesky(K)
    np.testing.assert_allclose(L, np.linalg.cholesky(K), rtol=1e-12)
    np.testing.assert_allclose(solve_lower(L, B), np.linalg.solve(L, B), rtol=1e-9)
    np.testing.assert_allclose(solve_upper(L, B), np.linalg.solve(L.T, B), rtol=1e-9)
    np.testing.assert_allclose(solve_factored(L, B[:, 0]), np.linalg.solve(K, B[:, 0]), rtol=1e-9)
    np.testing.assert_allclose(inverse_from_factor(L), np.linalg.inv(K), rtol=1e-9)
    assert log_determinant(L) == pytest.approx(np.linalg.slogdet(K)[1])


@pytest.mark.parametrize("old", [0, 1, 4, 6])
def test_an_extended_factor_equals_a_fresh_one(old):
    K = positive_definite(6)
    L = extend_cholesky(cholesky(K[:old, :old]), K[old:, :old], K[old:, old:])
    np.testing.assert_allclose(L, np.linalg.cholesky(K), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("K", [np.ones((5, 5)), np.zeros((3, 3)), np.diag([1.0, 1.0, -1e-9])])
def test_jitter_grows_until_the_factor_exists_and_is_logged(K, caplog):
    with caplog.at_level(logging.INFO, logger="farthing.models.linalg"):
        L = cholesky(K)
    assert np.all(np.isfinite(L))
    np.testing.assert_allclose(L @ L.T, K, atol=1e-6)
    assert "jitter" in caplog.text


def test_a_covariance_that_is_not_finite_is_an_error_that_says_so():
    with pytest.raises(InvalidArgument, match="finite"):
        cholesky(np.full((2, 2), np.nan))
