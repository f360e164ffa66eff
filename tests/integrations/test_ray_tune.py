"""Ray Tune, the real one: a searcher in a Tuner, and a study that is there again after a restore."""

import pytest
from needing import need

need("ray.tune")

from ray import tune  # noqa: E402

import farthing as ft  # noqa: E402
from farthing.errors import InvalidArgument  # noqa: E402
from farthing.integrations.ray_tune import FarthingSearcher  # noqa: E402

CONFIG = {
    "x": tune.uniform(-5, 5),
    "model": {"lr": tune.loguniform(1e-4, 1.0), "kind": tune.choice(["a", "b"])},
    "layers": tune.randint(1, 4),
    "width": tune.quniform(0.0, 1.0, 0.25),
    "fixed": 7,
}


def searcher(config=CONFIG, **settings):
    made = FarthingSearcher(ft.LogEI(), metric="loss", mode="min", seed=0, **settings)
    assert made.set_search_properties("loss", "min", config)
    return made


def loss_of(config):
    return (config["x"] - 1) ** 2 + config["layers"]


def test_configurations_are_of_the_space_and_keep_its_shape():
    made = searcher()
    for number in range(12):
        config = made.suggest(str(number))
        assert config["fixed"] == 7
        assert -5 <= config["x"] <= 5
        assert 1e-4 <= config["model"]["lr"] <= 1
        assert config["model"]["kind"] in ("a", "b")
        assert config["layers"] in (1, 2, 3)
        assert config["width"] in (0.0, 0.25, 0.5, 0.75, 1.0)
        made.on_trial_complete(str(number), {"loss": loss_of(config), "time_total_s": 2.0})
    assert made.study.history.cost == 24.0
    assert made.study.best.value < 4


def test_failures_are_failures():
    made = searcher()
    made.suggest("a")
    made.on_trial_complete("a", {"loss": 1.0}, error=True)
    made.suggest("b")
    made.on_trial_complete("b", {"loss": float("nan")})
    assert [trial.state for trial in made.study.trials] == ["failed", "failed"]


def test_a_restored_searcher_knows_what_it_knew_and_goes_on_alike(tmp_path):
    made = searcher()
    for number in range(8):
        config = made.suggest(str(number))
        made.on_trial_complete(str(number), {"loss": loss_of(config), "time_total_s": 1.0})
    running = made.suggest("running")
    made.save(str(tmp_path / "state"))

    again = searcher()
    again.restore(str(tmp_path / "state"))
    assert [trial.value for trial in again.study.trials] == [trial.value for trial in made.study.trials]
    for one in (made, again):
        one.on_trial_complete("running", {"loss": loss_of(running), "time_total_s": 1.0})
    assert [dict(trial.params) for trial in again.study.trials] == [dict(trial.params) for trial in made.study.trials]
    assert again.study.trials[-1].value == loss_of(running)


def test_grids_and_unknown_domains_are_refused():
    with pytest.raises(InvalidArgument, match="got a grid for 'x'"):
        searcher({"x": tune.grid_search([1, 2])})
    with pytest.raises(InvalidArgument, match="must be uniform, log-uniform or a choice"):
        searcher({"x": tune.randn(0, 1)})
    with pytest.raises(InvalidArgument, match="needs a space"):
        searcher({"x": 3})


def test_ray_tune_runs_what_the_searcher_suggests(tmp_path):
    import ray

    ray.init(
        address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False
    )  # not one that another program has started on this machine
    try:
        made = FarthingSearcher(ft.LogEI(), seed=0)
        tuner = tune.Tuner(
            lambda config: {"loss": (config["x"] - 1) ** 2},
            param_space={"x": tune.uniform(-5, 5)},
            tune_config=tune.TuneConfig(
                metric="loss", mode="min", num_samples=4, search_alg=made, max_concurrent_trials=1
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        )
        results = tuner.fit()
        assert not results.errors
        assert len(results) == 4
        assert results.get_best_result().metrics["loss"] == min(result.metrics["loss"] for result in results)
    finally:
        ray.shutdown()
