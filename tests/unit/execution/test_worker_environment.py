"""Cores are shared out, devices handed round, the user's own settings left alone."""

import pytest

from farthing.execution import platform as module
from farthing.execution.platform import worker_environment


@pytest.fixture(autouse=True)
def _eight_cores(monkeypatch):
    monkeypatch.setattr(module, "usable_cores", lambda: 8)


@pytest.mark.parametrize(("workers", "threads"), [(1, "8"), (3, "2"), (20, "1")])
def test_workers_share_the_cores(workers, threads):
    environment = worker_environment({}, index=0, workers=workers)
    assert environment == {
        "OMP_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
    }


def test_what_the_user_set_stays():
    environment = worker_environment({"OMP_NUM_THREADS": "5", "HOME": "/root"}, index=0, workers=4)
    assert environment["OMP_NUM_THREADS"] == "5"
    assert environment["MKL_NUM_THREADS"] == "2"
    assert environment["HOME"] == "/root"


@pytest.mark.parametrize(
    ("index", "visible", "device"), [(0, "0", "cuda:0"), (1, "1", "cuda:1"), (2, "", "cpu"), (3, "0", "cuda:0")]
)
def test_devices_go_round(index, visible, device):
    environment = worker_environment({}, index=index, workers=4, devices=["cuda:0", "cuda:1", "cpu"])
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["FARTHING_DEVICE"]) == (visible, device)


def test_devices_count_among_those_we_may_see_ourselves():
    base = {"CUDA_VISIBLE_DEVICES": "4,GPU-8a"}
    shown = [
        worker_environment(base, index=index, workers=2, devices=["cuda:0", "cuda:1"])["CUDA_VISIBLE_DEVICES"]
        for index in range(2)
    ]
    assert shown == ["4", "GPU-8a"]


def test_other_devices_are_named_only():
    environment = worker_environment({}, index=0, workers=1, devices=["mps"])
    assert environment["FARTHING_DEVICE"] == "mps"
    assert "CUDA_VISIBLE_DEVICES" not in environment
