"""Contract suites to inherit and run with pytest, checks of Trainables and of suggestions, and a simulated cluster."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farthing.testing.executor_contract import ExecutorContract
    from farthing.testing.simulated import Faults, SimulatedExecutor
    from farthing.testing.storage_contract import StorageContract
    from farthing.testing.strategy_contract import StrategyContract, check_replay
    from farthing.testing.tracker_contract import TrackerContract
    from farthing.testing.trainable_check import TrainableReport, check_trainable

__all__ = [
    "ExecutorContract",
    "Faults",
    "SimulatedExecutor",
    "StorageContract",
    "StrategyContract",
    "TrackerContract",
    "TrainableReport",
    "check_replay",
    "check_trainable",
]

_HOMES = {
    "ExecutorContract": "farthing.testing.executor_contract",
    "Faults": "farthing.testing.simulated",
    "SimulatedExecutor": "farthing.testing.simulated",
    "StorageContract": "farthing.testing.storage_contract",
    "StrategyContract": "farthing.testing.strategy_contract",
    "TrackerContract": "farthing.testing.tracker_contract",
    "TrainableReport": "farthing.testing.trainable_check",
    "check_replay": "farthing.testing.strategy_contract",
    "check_trainable": "farthing.testing.trainable_check",
}


def __getattr__(name: str) -> Any:
    """Suites are imported when asked for: what else is here works without pytest."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
