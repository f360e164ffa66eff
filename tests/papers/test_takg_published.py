"""`TraceKG.paper()` to the letter: what the paper says where `TraceKG()` does otherwise, and studies of before."""

import logging
import lzma
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import farthing as ft
from farthing.acquisition.knowledge_gradient import KnowledgeGradient
from farthing.cli.app import farthing
from farthing.costs import Remaining
from farthing.models.fitting import fit, hyperparameter_posterior, sample_hyperparameters
from farthing.models.kernels import SE, CategoryOverlap, Kernel, Matern52, Product
from farthing.models.linalg import Array
from farthing.strategies import Randomness, strategy_from_json
from farthing.strategies.multifidelity import ascent
from farthing.strategies.multifidelity.ascent import Climb
from farthing.strategies.multifidelity.context import CurveContext, read_context
from farthing.strategies.multifidelity.curve_model import fit_curves
from farthing.strategies.multifidelity.loss_scale import RawLoss
from farthing.strategies.multifidelity.published import PublishedTraceKG
from farthing.strategies.multifidelity.runs import runs_of
from farthing.trials import History, Measurement, Problem, State, Suggestion, Trial

SPACE = ft.Space(
    {"a": ft.Float(0, 1), "b": ft.Float(0, 1), "kind": ft.Choice("p", "q")},
    fidelities={"epochs": ft.Fidelity(1, 20, integer=True, trace=True)},
)
FORMER = {
    "name": "TraceKG",
    "arguments": {
        "zero_avoiding": False,
        "retain": 3,
        "samples": "map",
        "basket": 10,
        "floor": None,
        "batch_cost": "max",
        "fidelity_kernel": "decays",
        "search": "ascent",
        "recommends": "anywhere",
        "halving": False,
    },
}
"""What `TraceKG.paper(zero_avoiding=False, retain=3)` stored before it followed the paper to the letter."""


def trained(number: int, suggestion: Suggestion) -> Trial:
    """Falls by factors, so that its logarithm would be taken by default."""
    a, b, kind = (suggestion.params[name] for name in ("a", "b", "kind"))
    worst = 0.02 + (a - 0.3) ** 2 + 0.5 * (b - 0.6) ** 2 + 0.1 * (kind == "p")
    epochs = range(1, int(suggestion.fidelity["epochs"]) + 1)
    points = tuple(
        Measurement(value=worst * (1.0 + 20.0 / epoch**2), fidelity={"epochs": epoch}, cost={"training": 1.0})
        for epoch in epochs
    )
    return Trial(number, suggestion, State.DONE, measurements=points, value=points[-1].value)


@cache
def history_of(strategy: PublishedTraceKG, trials: int) -> History:
    history, rng = History(Problem(SPACE)), Randomness(3)
    for number in range(trials):
        [one] = strategy.suggest(history, Remaining(), 1, rng)
        history = history.updated([trained(number, one)], version=number)
    return history


def context_of(strategy: PublishedTraceKG, trials: int = 8) -> CurveContext:
    context = read_context(strategy, history_of(strategy, trials), Randomness(3), ())
    assert context is not None
    return context


def parts_of(kernel: Kernel) -> Sequence[Kernel]:
    return kernel.kernels if isinstance(kernel, Product) else [kernel]


# ------------------------------------------------------------------------------------------------ the five differences


def test_params_have_a_squared_exponential_kernel() -> None:
    """Section 5.3; `TraceKG()` has a Matérn-5/2 kernel."""
    parts = parts_of(context_of(ft.TraceKG.paper(samples=1)).model.gp.kernel)
    assert [part.columns for part in parts if isinstance(part, SE)] == [(0, 1)]
    assert not any(isinstance(part, Matern52) for part in parts)
    assert [part.columns for part in parts if isinstance(part, CategoryOverlap)] == [(2,)]


def test_losses_are_modelled_as_they_are() -> None:
    """The observations of the process are an affine function of the losses; by default they are logarithms."""
    strategy = ft.TraceKG.paper(samples=1)
    context = context_of(strategy)
    assert isinstance(context.model.scale, RawLoss)
    model, history = context.model, context.history
    ends = np.array([trial.value for trial in history if trial.value is not None])
    seen = model.standard.undo(model.gp.y)
    assert all(np.isclose(seen, end, rtol=1e-12).any() for end in ends)


def test_information_is_averaged_over_ten_samples_of_the_hyperparameters() -> None:
    """Section 3: 10 sets of values, from their posterior and not its mode."""
    model = context_of(ft.TraceKG.paper()).model
    assert model.draws.shape == (10, len(model.posterior.parameters)) == (10, model.theta.size)
    assert len({tuple(draw) for draw in model.draws.tolist()}) > 5
    parts = Climb(context_of(ft.TraceKG.paper()), 1).objective(2).parts
    np.testing.assert_array_equal([part.gp.theta for part in parts], model.draws[:, :-1])


def test_the_recommendation_is_averaged_over_the_same_samples() -> None:
    strategy = ft.TraceKG.paper()
    context = context_of(strategy)
    best, runs = strategy.recommend(context.history), runs_of(context.history)
    model = fit_curves(
        context.history, runs, retain=2, fidelity_kernel="published", may_refit=False, samples=strategy.samples
    )
    assert best is not None
    assert model is not None
    rng = np.random.default_rng(0)
    rows: Array = np.column_stack([rng.random((500, 2)), rng.integers(0, 2, 500).astype(float), np.ones(500)])
    row = context.at_full(SPACE.encoder.encode([best.params]))
    means = [np.mean([gp.mean(each) for gp in model.processes], axis=0) for each in (row, rows)]
    assert means[0][0] <= means[1].min()


def test_a_full_basket_drops_the_entry_whose_own_search_found_the_least() -> None:
    """Section 2.6; the oldest went before, and nothing goes by default."""
    strategy = PublishedTraceKG(samples=1, basket=4)
    history = history_of(strategy, 14)
    dropped = [(trial.number, number) for trial in history for number in (trial.note or {}).get("dropped", ())]
    assert dropped
    number, least = dropped[0]
    assert history[number].resume_from is None, "only a new run makes the basket too large"
    before = History(Problem(SPACE), list(history)[:number])
    context = read_context(strategy, before, Randomness(3), ())
    assert context is not None
    places = context.basket.places
    assert len(places) >= 4
    alone = {context.runs[place].trials[0].number: _worth(context, place) for place in places}
    assert least == min(alone, key=lambda first: alone[first])
    later = read_context(strategy, history, Randomness(3), ())
    assert later is not None
    kept = {later.runs[place].trials[0].number for place in later.basket.places}
    assert not kept & {one for _, one in dropped}, "what was dropped is not continued"
    assert strategy.resumable(history) == later.basket.last_trials


def _worth(context: CurveContext, place: int) -> float:
    """log taKG⁰ at the end of the search for one entry of the basket, found again among those of all."""
    climb = Climb(context, 1)
    candidates = context.unbought(climb._screened(may_be_new=True))
    value = climb.objective(ascent.SCREENING_PAIRS, is_inner=False)(climb.decisions.of(candidates))
    starts = candidates.picked(ascent.first_of_each(candidates.source, np.argsort(-value, kind="stable")))
    _, found = climb._climbed(starts)
    [at] = np.flatnonzero(starts.source == place)
    return float(found[at])


def test_x_prime_is_searched_for_in_the_whole_space() -> None:
    """Section 2.5: x* minimises μ(x') + σ̃(x') W over all x', not over some fixed points."""
    context = context_of(ft.TraceKG.paper(samples=1))
    climb = Climb(context, 1)
    [part] = climb.objective(4).parts
    candidates = context.unbought(climb._screened(may_be_new=True)).picked(np.arange(3))
    rows, own = climb.decisions.rows(climb.decisions.of(candidates))
    free = np.array([0, 1])
    found = part.minimisers(rows, free)
    rng = np.random.default_rng(0)
    grid: Array = np.column_stack([rng.random((4000, 2)), rng.integers(0, 2, 4000).astype(float), np.ones(4000)])
    at_choices, at_minimum, everywhere = (_lowest(part, rows, where) for where in (own, found, grid))
    assert np.all(at_minimum <= at_choices + 1e-12)
    assert np.mean(at_minimum) < np.mean(at_choices)
    gap = float(np.mean(at_choices - everywhere))
    assert np.mean(at_minimum - everywhere) < 0.25 * gap  # a search of six steps ends in a local minimum now and then


def _lowest(part: KnowledgeGradient, rows: Array, where: Array) -> Array:
    """The lowest simulated mean of each draw over the choices and `where`, (B, 2P)."""
    own = where if where.ndim == 3 else np.repeat(where[None], rows.shape[0], axis=0)
    sigma = part.sigma(rows, own)
    targets = np.concatenate([np.repeat(part.choices[None], rows.shape[0], axis=0), own], axis=1)
    means = np.stack([part.gp.mean(each) for each in targets])
    sides = [part.normals * np.where(np.arange(rows.shape[1]) < part.free, 1.0, side) for side in (1.0, -1.0)]
    return (means[:, None, :] + np.concatenate(sides) @ sigma.transpose(0, 2, 1)).min(axis=2)


def test_each_step_of_the_ascent_has_draws_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theorem 2: fresh W in every step; L-BFGS on fixed normals is no stochastic ascent."""
    seen: list[bytes] = []
    real = Climb.objective

    def noting(self: Climb, pairs: int, *, draw: int = 0, is_inner: bool = True) -> ascent.InformationPerCost:
        found = real(self, pairs, draw=draw, is_inner=is_inner)
        if draw:
            seen.append(found.parts[0].normals.tobytes())
        return found

    monkeypatch.setattr(Climb, "objective", noting)
    assert Climb(context_of(ft.TraceKG.paper(samples=1)), 1).best(limit=np.inf, may_be_new=True) is not None
    assert len(seen) == len(set(seen)) == ascent.STEPS


def test_the_paper_has_no_floor_with_either_form() -> None:
    assert context_of(ft.TraceKG.paper(samples=1, zero_avoiding=False)).floor == 0.0
    assert context_of(ft.TraceKG.paper(samples=1)).floor == 0.0


# ------------------------------------------------------------------------------------------------------- the sampler


def test_the_sampler_finds_a_normal_of_strong_correlation() -> None:
    """The stretch move is invariant under affine maps: of two lengthscales it follows the ridge between them."""
    rng = np.random.default_rng(0)
    X = rng.random((30, 2))
    posterior = hyperparameter_posterior(SE((0, 1)), X, np.sin(4.0 * X[:, 0]) + X[:, 1], noise=0.01)
    draws = sample_hyperparameters(posterior, fit(posterior), 4000, rng=rng, burn_in=200)
    axes = [np.linspace(low, high, 120) for low, high in zip(draws.min(axis=0), draws.max(axis=0), strict=True)]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
    weight = np.exp(posterior.value_and_gradient(grid)[0] - posterior.value_and_gradient(grid)[0].max())
    weight /= weight.sum()
    mean = weight @ grid
    deviation = np.sqrt(weight @ (grid - mean) ** 2)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.2 * deviation.max())  # some 200 independent draws
    np.testing.assert_allclose(draws.std(axis=0), deviation, rtol=0.25)


# ------------------------------------------------------------------------------------------------------ stored studies


def test_a_stored_paper_of_before_opens_and_says_what_changed(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="farthing"):
        found = strategy_from_json(FORMER)
    assert found == ft.TraceKG.paper(zero_avoiding=False, retain=3)
    assert "to the letter" in caplog.text
    assert "squared-exponential" in caplog.text


@pytest.fixture
def former(tmp_path: Path) -> str:
    """A study of nine trials that the former `TraceKG.paper(zero_avoiding=False, retain=3)` chose and stored."""
    packed = (Path(__file__).parents[1] / "data" / "former_paper.db.xz").read_bytes()
    (tmp_path / "former.db").write_bytes(lzma.decompress(packed))
    return f"sqlite:///{tmp_path}/former.db"


def test_a_stored_study_of_before_opens_with_its_trials_and_goes_on(
    former: str, caplog: pytest.LogCaptureFixture
) -> None:
    study = ft.Study.load("former", former)
    assert [trial.state for trial in study.trials] == [State.DONE] * 9
    assert study.best.trial.number in range(9)
    with caplog.at_level(logging.WARNING, logger="farthing"):
        trial = study.ask()
    assert trial.number == 9
    assert trial.params.keys() == {"rate", "width"}
    study.close()
    assert "From now on PublishedTraceKG(" in caplog.text
    assert "which had TraceKG(" in caplog.text


def test_showing_and_exporting_a_stored_study_of_before_say_that_its_form_changed(
    former: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="farthing"):
        shown = CliRunner().invoke(farthing, ["show", "former", "--storage", former])
    assert "9 trials (9 done)" in shown.output
    assert "follows the paper to the letter now, which this study's form did not" in caplog.text + shown.output
    exported = CliRunner().invoke(farthing, ["export", "former", "--storage", former, "--format", "csv"])
    assert exported.exit_code == shown.exit_code == 0
    assert len(exported.stdout.splitlines()) == 10


def test_what_is_stored_of_the_default_is_the_default_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    former = {"samples": "map", "basket": None, "search": "screen", "recommends": "seen"}
    stored = {"name": "TraceKG", "arguments": {**ft.TraceKG().to_json()["arguments"], **former}}
    with caplog.at_level(logging.WARNING, logger="farthing"):
        assert strategy_from_json(stored) == ft.TraceKG()
    assert not caplog.text


def test_a_stored_option_that_went_is_named(caplog: pytest.LogCaptureFixture) -> None:
    stored = {"name": "TraceKG", "arguments": {**ft.TraceKG(retain=3).to_json()["arguments"], "basket": 5}}
    with caplog.at_level(logging.WARNING, logger="farthing"):
        assert strategy_from_json(stored) == ft.TraceKG(retain=3)
    assert "TraceKG has no basket any more" in caplog.text
