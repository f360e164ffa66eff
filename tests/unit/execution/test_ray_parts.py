"""What can be said of Ray without a cluster: resources, refusals, and how a worker ended."""

import pytest

import farthing as ft
from farthing.errors import InvalidArgument
from farthing.execution.failures import Exit
from farthing.execution.ray import Bundles


def study():
    return ft.Study(ft.Space({"x": ft.Float(0, 1)}), minimize="error", strategy=ft.Sobol())


def refused(**settings):
    with pytest.raises(InvalidArgument) as error:
        study().run(lambda trial: 0.5, budget=ft.Budget(trials=1), **settings)
    return str(error.value)


def test_resources_are_rays_options():
    bundles = Bundles.of({"cpu": 2, "GPU": 0.25, "memory": 10**9, "big_disk": 1})
    assert bundles.options == {"num_cpus": 2.0, "num_gpus": 0.25, "memory": 1e9, "resources": {"big_disk": 1.0}}
    assert str(bundles) == "2 CPU, 0.25 GPU, 1e+09 memory, 1 big_disk"
    assert not bundles.is_group


def test_a_worker_has_one_core_unless_told_otherwise():
    assert Bundles.of(None).options == {"num_cpus": 1.0, "resources": {}}
    assert Bundles.of({"gpu": 1}).options == {"num_cpus": 0, "num_gpus": 1.0, "resources": {}}


def test_a_list_of_resources_is_a_placement_group():
    bundles = Bundles.of([{"cpu": 1}, {"cpu": 4, "gpu": 1}])
    assert bundles.is_group
    assert bundles.bundles == ({"CPU": 1.0}, {"CPU": 4.0, "GPU": 1.0})


def test_what_no_node_has_is_named():
    nodes = [{"CPU": 2.0, "GPU": 1.0}, {"CPU": 4.0}]
    assert Bundles.of({"cpu": 3, "gpu": 1}).lacking(nodes) == []
    assert Bundles.of({"cpu": 5, "gpu": 2, "tpu": 1}).lacking(nodes) == ["CPU", "GPU", "tpu"]
    assert Bundles.of([{"cpu": 1}, {"gpu": 8}]).lacking(nodes) == ["GPU"]
    assert Bundles.of({"cpu": 1}).lacking([]) == ["CPU"]


@pytest.mark.parametrize("given", ["gpu", [], {}, {1: 1}, [{"cpu": 1}, "gpu"], 3])
def test_what_is_no_mapping_of_amounts_is_refused(given):
    with pytest.raises(InvalidArgument, match="must map names to amounts"):
        Bundles.of(given)


def test_amounts_are_numbers_of_at_least_zero():
    with pytest.raises(InvalidArgument, match="An amount of 'gpu' must be"):
        Bundles.of({"gpu": -1})


def test_devices_with_ray_and_resources_without_it_are_refused_with_the_reason():
    assert "Ray assigns them, got devices=['cuda:0']" in refused(executor="ray", devices=["cuda:0"])
    assert "Ray assigns them" in refused(executor=ft.RayExecutor(), devices=["cuda:0"])
    assert "held on a Ray cluster, got resources={'gpu': 1}" in refused(resources={"gpu": 1})


def test_other_names_of_executors_are_refused():
    assert "must be 'processes', 'inline', 'async' or 'ray', got 'dask'" in refused(executor="dask")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"address": 6379}, "address must be"),
        ({"runtime_env": "pip"}, "runtime_env must map"),
        ({"resource_timeout": 0}, "resource_timeout, in seconds, must be"),
        ({"arrangement": "pack"}, "arrangement must be one of"),
    ],
)
def test_settings_of_the_executor_are_checked(settings, words):
    with pytest.raises(InvalidArgument, match=words):
        ft.RayExecutor(**settings)


def test_an_exit_says_whether_a_signal_killed_the_worker():
    assert Exit.of(-9) == Exit("was killed by SIGKILL: out of memory, or killed from outside", was_killed=True)
    assert Exit.of(3) == Exit("exited with code 3", was_killed=False)
