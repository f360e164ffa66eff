"""Diagnosing a study with a model."""

import json
from collections.abc import Callable

import numpy as np
import pytest

import farthing as ft
from farthing.analysis.diagnosis import RESOLUTION
from farthing.analysis.model import REACH, fit_history, model_of
from farthing.errors import NoResult
from farthing.models.gp import condition
from farthing.session import session_of
from farthing.trials import Outcome, Params, State, Suggestion

PLANE = ft.Space({"strong": ft.Float(0.1, 10, log=True), "weak": ft.Float(-1, 1)})


def plane(params: Params) -> float:
    return np.log10(params["strong"]) ** 2 + 0.05 * params["weak"]


def told(
    space: ft.Space, value: Callable[[Params], float], *, trials: int = 24, noise: float = 0.0, aim: str = "minimize"
) -> ft.Study:
    """A study whose trials fill the space and have these values."""
    study = ft.Study(space, **{aim: "error"}, strategy=ft.Sobol(), seed=0)
    rng = np.random.default_rng(0)
    for trial in study.ask(count=trials):
        study.tell(trial, value(trial.params) + noise * rng.standard_normal(), cost=1.0)
    return study


def test_predictions_are_those_of_a_model_that_does_not_know_the_trial() -> None:
    study = told(PLANE, plane, trials=12)
    fitted = fit_history(study.history)
    gp = fitted.gp

    diagnosis = study.diagnose()

    for row in (0, 5, 11):
        X, y = np.delete(gp.X, row, axis=0), np.delete(gp.y, row)
        without = condition(gp.kernel, gp.theta, X, y, noise=gp.noise, m=gp.m)
        mean, variance = without.predict(gp.X[row : row + 1])
        expected, low, high = fitted.intervals(mean, variance + gp.noise)
        assert diagnosis.predicted[row] == pytest.approx(expected[0], rel=1e-6)
        assert (diagnosis.low[row], diagnosis.high[row]) == pytest.approx((low[0], high[0]), rel=1e-5)
        assert diagnosis.observed[row] == pytest.approx(study.trials[row].value)


def test_error_is_in_the_units_of_the_value() -> None:
    small, large = told(PLANE, plane).diagnose(), told(PLANE, lambda params: 1000 * plane(params)).diagnose()

    assert large.rms_error == pytest.approx(1000 * small.rms_error, rel=1e-3)
    assert large.explained == pytest.approx(small.explained, rel=1e-6)
    misses = np.abs(np.subtract(large.observed, large.predicted))
    assert large.rms_error == pytest.approx(np.sqrt(np.mean(misses**2)))
    assert np.mean(misses <= large.median_error) == 0.5


def test_a_smooth_value_is_explained_and_a_random_one_is_not() -> None:
    rng = np.random.default_rng(1)
    smooth, random = told(PLANE, plane).diagnose(), told(PLANE, lambda _: rng.standard_normal()).diagnose()

    assert smooth.explained is not None
    assert random.explained is not None
    assert smooth.explained > 0.95
    assert random.explained < 0.2


def test_what_matters_comes_first() -> None:
    diagnosis = told(PLANE, plane).diagnose()

    assert list(diagnosis.importance) == ["strong", "weak"]
    assert diagnosis.importance["strong"] > 0.8
    assert sum(diagnosis.importance.values()) == pytest.approx(1)
    assert [part.parameter for part in diagnosis.slices] == ["strong", "weak"]


def test_intervals_hold_as_many_values_as_they_should() -> None:
    diagnosis = told(PLANE, plane, trials=128, noise=0.1).diagnose()

    observed = np.array(diagnosis.observed)
    inside = (observed >= diagnosis.low) & (observed <= diagnosis.high)
    assert np.mean(inside) == pytest.approx(diagnosis.calibration[0.95], abs=0.02), "1.96 is not quite 95 %"
    for level, share in diagnosis.calibration.items():
        deviation = np.sqrt(level * (1 - level) / 128)
        assert abs(share - level) < 3 * deviation


def test_noise_is_seen_where_trials_are_repeated() -> None:
    rng = np.random.default_rng(0)
    study = told(PLANE, plane, trials=16)
    for trial in study.trials:
        for _ in range(3):
            study.add(trial.params, plane(trial.params) + 0.1 * rng.standard_normal())

    noise = study.diagnose().noise

    assert told(PLANE, plane).diagnose().noise < 0.01
    assert 0.05 < noise < 0.2, "three in four values have a noise of 0.1"


def test_slices_go_through_the_best_trial() -> None:
    study = told(PLANE, plane)
    diagnosis = study.diagnose()
    best = study.trials[diagnosis.best]

    for part in diagnosis.slices:
        expected = np.interp(best.params[part.parameter], part.values, part.expected)
        assert diagnosis.best == study.best.trial.number
        assert expected == pytest.approx(best.value, abs=0.01)
        assert part.nearness[diagnosis.trials.index(diagnosis.best)] == pytest.approx(1)
        assert all(0 <= nearness <= 1 + 1e-12 for nearness in part.nearness)
        assert all(low <= mean <= high for low, mean, high in zip(part.low, part.expected, part.high, strict=True))


def test_slices_are_in_the_parameters_own_values() -> None:
    space = ft.Space(
        {
            "rate": ft.Float(1e-4, 1, log=True),
            "layers": ft.Int(1, 4),
            "units": ft.Int(1, 4096, log=True),
            "size": ft.Choice("small", "large", ordered=True),
            "kind": ft.Choice("a", "b", None),
        }
    )
    values = {part.parameter: part.values for part in told(space, lambda params: params["rate"]).diagnose().slices}

    assert len(values["rate"]) == RESOLUTION
    assert (values["rate"][0], values["rate"][-1]) == (1e-4, 1)
    assert values["layers"] == (1, 2, 3, 4)
    assert values["units"][:3] == (1, 2, 3)
    assert values["units"][-1] == 4096
    assert len(set(values["units"])) == len(values["units"]) <= RESOLUTION
    assert values["size"] == ("small", "large")
    assert values["kind"] == ("a", "b", None)


def test_a_parameter_that_is_inactive_in_the_best_trial_has_no_slice_but_its_parent_has() -> None:
    space = ft.Space({"optimizer": ft.Choice("sgd", "adam"), "momentum": ft.Float(0, 1, when={"optimizer": "sgd"})})
    study = told(space, lambda params: params.get("momentum", -1.0) ** 2 - 2 * (params["optimizer"] == "adam"))
    diagnosis = study.diagnose()

    assert study.trials[diagnosis.best].params == {"optimizer": "adam"}
    assert set(diagnosis.importance) == {"optimizer", "momentum"}
    (part,) = diagnosis.slices
    assert part.values == ("sgd", "adam")
    best_with_momentum = min(trial.value for trial in study.trials if "momentum" in trial.params)
    assert part.expected[0] == pytest.approx(best_with_momentum, abs=0.05), "momentum stands as in the best such trial"


def test_a_value_that_is_maximised_keeps_its_sign() -> None:
    diagnosis = told(PLANE, lambda params: -plane(params), aim="maximize").diagnose()

    assert diagnosis.observed[diagnosis.trials.index(diagnosis.best)] == max(diagnosis.observed)
    assert max(diagnosis.slices[0].expected) == pytest.approx(max(diagnosis.observed), abs=0.05)
    assert all(low <= high for low, high in zip(diagnosis.low, diagnosis.high, strict=True))


def test_trials_that_failed_are_learnt_from_but_not_judged_by() -> None:
    study = ft.Study(PLANE, minimize="error", strategy=ft.Sobol(), seed=0)
    for trial in study.ask(count=24):
        failed = trial.params["strong"] > 3
        study.tell(trial, None if failed else plane(trial.params), failure="diverged" if failed else None, cost=1.0)

    diagnosis = study.diagnose()

    assert diagnosis.failed == sum(trial.failure is not None for trial in study.trials) > 0
    assert len(diagnosis.trials) == len(diagnosis.observed) == 24 - diagnosis.failed
    (along,) = [part for part in diagnosis.slices if part.parameter == "strong"]
    assert along.expected[-1] > 0.5 * max(diagnosis.observed), "what failed counts as the worst value"


def test_one_run_that_diverged_does_not_hide_the_others() -> None:
    study = told(PLANE, plane)
    study.add({"strong": 9.9, "weak": 0.9}, 1e12)

    diagnosis = study.diagnose()

    assert next(iter(diagnosis.importance)) == "strong"
    assert np.ptp(diagnosis.slices[1].expected) < 1
    assert max(diagnosis.predicted) <= 1e12


def test_equal_values_leave_nothing_to_explain() -> None:
    diagnosis = told(PLANE, lambda _: 1.0).diagnose()

    assert diagnosis.explained is None
    assert diagnosis.rms_error == pytest.approx(0, abs=1e-6)


def test_a_diagnosis_is_plain_json() -> None:
    form = told(PLANE, plane, trials=8).diagnose().to_json()

    assert json.loads(json.dumps(form)) == form
    assert [entry["level"] for entry in form["calibration"]] == [0.5, 0.8, 0.95]
    assert form["slices"][0]["parameter"] == "strong"


def test_any_strategy_will_do_and_only_full_fidelity_counts() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True)})
    study = ft.Study(space, minimize="error", strategy=ft.ASHA(), seed=0)
    for x in np.linspace(0, 1, 6):
        study.add({"x": x}, x**2)
        study.add({"x": x}, 100.0, fidelity={"epochs": 1})

    assert study.diagnose().observed == pytest.approx([x**2 for x in np.linspace(0, 1, 6)])


def test_too_few_values_are_refused() -> None:
    space = ft.Space({"x": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True)})
    study = ft.Study(space, minimize="error")
    for x in (0.1, 0.2, 0.3, 0.4):
        study.add({"x": x}, x, fidelity={"epochs": 1})

    with pytest.raises(NoResult, match=r"at least 5 configurations with a value, got 4 among 4 trials\. Run some more"):
        study.diagnose()


def short_runs(count: int = 14) -> ft.Study:
    """Runs of which none is full; at every epoch x matters, and much more than y."""
    space = ft.Space(
        {"x": ft.Float(0, 1), "y": ft.Float(0, 1)}, fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)}
    )
    study = ft.Study(space, minimize="error", seed=0)
    for number, (x, y) in enumerate(np.random.default_rng(0).random((count, 2)).tolist()):
        level, epochs = (x - 0.4) ** 2 + 0.02 * y, 2 + number % 4
        trace = [({"epochs": epoch}, level + 0.3 / epoch) for epoch in range(1, epochs + 1)]
        study.add({"x": x, "y": y}, trace[-1][1], fidelity={"epochs": epochs}, trace=trace)
    return study


def test_short_runs_are_diagnosed_by_the_model_of_their_curves() -> None:
    study = short_runs()
    diagnosis = study.diagnose()

    assert diagnosis.is_by_curves
    assert len(diagnosis.trials) == 14
    assert diagnosis.observed == pytest.approx([study.trials[number].value for number in diagnosis.trials])
    assert list(diagnosis.importance) == ["x", "y"]
    assert diagnosis.importance == {name: share.share for name, share in study.importance().items()}
    assert diagnosis.explained is not None
    assert diagnosis.explained > 0.5, "from the other curves it is known how long runs are better than short ones"
    along = diagnosis.slices[0]
    assert along.parameter == "x"
    assert abs(along.values[int(np.argmin(along.expected))] - 0.4) < 0.15
    assert min(along.expected) < min(diagnosis.observed), "it is what is expected at full fidelity"
    assert json.loads(json.dumps(diagnosis.to_json()))["is_by_curves"] is True


def test_the_explanation_is_of_the_fit_that_the_strategy_chose_by() -> None:
    study = short_runs()
    number = study.ask().number
    *theta, _noise = study.history[number].note["theta"]
    assert model_of(study.history).gp.theta.tolist() == theta


def test_a_run_is_predicted_without_any_point_of_its_curve() -> None:
    fitted = model_of(short_runs().history)
    gp, left_out = fitted.gp, fitted.left_out()
    for row, x in enumerate(fitted.points):
        own = np.all(gp.X[:, :2] == x, axis=1)
        end = gp.X[own][np.argmax(gp.X[own, 2])]
        without = condition(gp.kernel, gp.theta, gp.X[~own], gp.y[~own], noise=gp.noise, m=gp.m)
        mean, variance = without.predict(end[None, :])
        assert left_out.mean[row] == pytest.approx(mean[0], abs=1e-5)
        assert left_out.variance[row] == pytest.approx(variance[0] + gp.noise, rel=1e-4)


def test_a_run_that_goes_on_with_other_params_is_diagnosed_by_those_it_began_with() -> None:
    """As the members of a population do."""
    study = short_runs()
    storage = session_of(study).records.storage
    other = Suggestion({"x": 0.9, "y": 0.1}, fidelity={"epochs": 6}, resume_from=0)
    storage.add_trial(study.name, other, Outcome(State.DONE, value=0.2))

    fitted = model_of(study.history)
    assert fitted.points[0].tolist() == pytest.approx(list(study.trials[0].params.values()))
    assert len(study.diagnose().trials) == 14


def test_the_interval_holds_95_percent_of_a_normal_distribution() -> None:
    draws = np.random.default_rng(0).standard_normal(100_000)

    assert np.mean(np.abs(draws) < REACH) == pytest.approx(0.95, abs=0.003)  # four deviations of such a share


def test_an_irrelevant_parent_has_no_share_where_the_value_is_another_parameter() -> None:
    space = ft.Space(
        {
            "x": ft.Float(0, 1),
            "parent": ft.Choice("a", "b"),
            "child": ft.Float(0, 1, when={"parent": "a"}),
        }
    )
    study = ft.Study(space, minimize="loss", strategy=ft.Sobol(), seed=0)
    for trial in study.ask(count=24):
        study.tell(trial, trial.params["x"])
    shares = study.importance()
    assert next(iter(shares)) == "x"
    assert shares["x"].share > 0.95
    assert shares["parent"].share < 0.05
    assert all(0 <= part.deviation < 0.2 for part in shares.values())
    assert list(study.diagnose().importance_deviation) == list(study.diagnose().importance)


def test_the_curve_model_says_what_matters_before_five_trials_are_full() -> None:
    space = ft.Space(
        {"x": ft.Float(0, 1), "idle": ft.Float(0, 1)},
        fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)},
    )
    study = ft.Study(space, minimize="loss", strategy=ft.ASHA(), seed=0)
    with pytest.raises(NoResult, match="at least 5 configurations"):
        study.importance()
    for trial in study.ask(count=12):
        study.tell(trial, 1 + trial.params["x"], trace=[({"epochs": 1}, 1 + trial.params["x"])])
    shares = study.importance()
    assert shares["x"].share > 0.8
