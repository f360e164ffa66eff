import numpy as np

import farthing as ft
from farthing.costs import Remaining
from farthing.models.kernels import Constant, Matern52
from farthing.strategies import Randomness
from farthing.strategies.shared.surrogate import KEPT, KEPT_IN_HASTE, MOST_ROWS, Compression, active_rows, fit_surrogate
from farthing.trials import History, Problem, State, Suggestion, Trial


def test_all_rows_are_active_while_they_are_few() -> None:
    loss = np.random.default_rng(0).standard_normal(MOST_ROWS)
    np.testing.assert_array_equal(active_rows(loss), np.arange(MOST_ROWS))


def test_of_many_rows_the_best_and_some_of_all_others_are_active() -> None:
    loss = np.random.default_rng(0).standard_normal(20 * MOST_ROWS)
    rows = active_rows(loss)
    ranks = np.argsort(np.argsort(loss))[rows]
    assert rows.size == KEPT
    assert np.all(np.diff(rows) > 0)
    assert set(range(KEPT // 2)) <= set(ranks.tolist())
    assert ranks.max() == loss.size - 1
    assert np.diff(np.sort(ranks)).max() < 3 * loss.size / KEPT, "there is a gap among the others"


def test_equal_losses_are_no_obstacle() -> None:
    assert np.unique(active_rows(np.zeros(3 * MOST_ROWS))).size == KEPT


def test_fewer_rows_are_taken_in_haste_and_the_best_among_them() -> None:
    loss = np.random.default_rng(0).random(MOST_ROWS)
    rows = active_rows(loss, in_haste=True)
    assert rows.size == KEPT_IN_HASTE
    assert set(np.argsort(loss)[: KEPT_IN_HASTE // 2]) <= set(rows)
    np.testing.assert_array_equal(active_rows(loss[:KEPT_IN_HASTE], in_haste=True), np.arange(KEPT_IN_HASTE))


def test_a_process_does_not_grow_beyond_the_active_rows() -> None:
    X = np.random.default_rng(0).random((MOST_ROWS + 1, 2))
    loss, history = X.sum(axis=1), History(Problem(ft.Space({"x": ft.Float(0, 1), "y": ft.Float(0, 1)})))
    kernel, compression = Constant() * Matern52((0, 1)), Compression.of(X.sum(axis=1))
    surrogate = fit_surrogate(X, loss, kernel, history, compression=compression)
    assert surrogate.gp.n == KEPT
    assert surrogate.fitted_on == MOST_ROWS + 1, "when to fit again depends on all that was seen"
    np.testing.assert_array_equal(surrogate.gp.X, X[active_rows(compression.apply(loss))])


def test_what_was_tried_is_not_suggested_again_though_it_is_not_active() -> None:
    space = ft.Space({"a": ft.Int(0, 39), "b": ft.Int(0, 39)})
    cells = np.random.default_rng(0).permutation(1600)[: MOST_ROWS + 200].tolist()
    tried = [{"a": cell // 40, "b": cell % 40} for cell in cells]
    history = History(
        Problem(space),
        [
            Trial(number, Suggestion(params), State.DONE, value=float((params["a"] - 20) ** 2 + params["b"]))
            for number, params in enumerate(tried)
        ],
    )
    suggestions = ft.LogEI().suggest(history, Remaining(), 3, Randomness(0))
    assert not [suggestion.params for suggestion in suggestions if suggestion.params in tried]
