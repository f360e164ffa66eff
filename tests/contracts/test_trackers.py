"""The suite for trackers, tried on one that writes down its calls; those of ours run it in `tests/integrations`."""

from pathlib import Path

import farthing as ft
from farthing.testing import TrackerContract


class Calls(ft.trackers.Tracker):
    """Refuses what comes in another order."""

    def __init__(self) -> None:
        self.order: list[str] = ["finish"]

    def begin(self, study):
        assert self.order[-1] == "finish"
        self.order.append("begin")

    def start(self, trial):
        assert self.order[-1] != "finish"
        self.order.append(f"start {trial.number}")

    def report(self, trial, point):
        assert f"start {trial.number}" in self.order

    def end(self, trial, so_far):
        assert f"start {trial.number}" in self.order
        self.order.remove(f"start {trial.number}")

    def finish(self, ledger):
        self.order.append("finish")


class TestCalls(TrackerContract):
    def tracker(self, folder: Path) -> ft.trackers.Tracker:
        return Calls()
