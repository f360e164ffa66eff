"""Prices of resources: measured seconds become money, and stay at the price that they were paid at."""

import math
from pathlib import Path

import pytest

import farthing as ft
from farthing.costs import FakeClock
from farthing.errors import InvalidArgument
from farthing.running.loop import SECONDS_TO_HOLD
from farthing.session.prices import Prices
from farthing.storage import MemoryStorage
from farthing.testing import Faults, SimulatedExecutor
from farthing.trials import Attempt, Measurement, Params, State, Suggestion, Trial
from farthing.trials.events import IDLE

SPACE = ft.Space({"x": ft.Float(0, 1)})
PRICES = {"gpu": 2.5, "cpu": 0.05, "per": "hour"}
HOLDS = {"gpu": 1, "cpu": 4}
RATE = (2.5 + 4 * 0.05) / 3600.0


def study_of(executor: SimulatedExecutor, **settings: object) -> ft.Study:
    defaults = {"prices": PRICES, "cost_unit": "dollars", "strategy": ft.Sobol(), "seed": 0}
    return ft.Study(SPACE, minimize="loss", **{**defaults, **executor.settings, **settings})  # type: ignore[arg-type]


def run(study: ft.Study, executor: SimulatedExecutor, *, trials: int, **settings: object) -> None:
    def work(trial: ft.RunningTrial) -> float:
        executor.spend(3600.0)
        trial.report(0.7)
        with trial.timing("validation"):
            executor.spend(1800.0)
        return 0.5

    arguments = {"budget": ft.Budget(trials=trials), "resources": HOLDS, "progress": False, **settings}
    study.run(work, executor=executor, **arguments)  # type: ignore[arg-type]


def test_measured_seconds_are_paid_at_the_price_of_what_a_trial_holds() -> None:
    executor = SimulatedExecutor(workers=2, thinking=0.0)
    study = study_of(executor)
    run(study, executor, trials=4)
    assert [trial.cost for trial in study.trials] == pytest.approx([5400.0 * RATE] * 4)
    assert study.ledger.spent == pytest.approx({"training": 4 * 2.7, "validation": 4 * 1.35})
    assert study.ledger.seconds == pytest.approx({"training": 4 * 3600.0, "validation": 4 * 1800.0})
    assert ("spent", "training", "10.8 dollars, 1.44e+04 seconds") in study.ledger.rows()
    assert study.ledger.to_json()["seconds"] == pytest.approx({"training": 14400.0, "validation": 7200.0})


def test_what_workers_cost_while_nothing_runs_is_on_the_bill_as_money_and_as_a_share() -> None:
    executor = SimulatedExecutor(workers=2, thinking=900.0)
    study = study_of(executor)
    run(study, executor, trials=3)
    ledger = study.ledger
    work = sum(ledger.seconds.values())
    assert ledger.price == pytest.approx(RATE)
    assert ledger.overhead == pytest.approx(900.0 * 2), "two were suggested at once"
    held = 2 * executor.clock.elapsed()
    assert ledger.waiting + ledger.idle + work == pytest.approx(held), "every second of both workers is accounted for"
    assert ledger.idle > 0.0
    assert ledger.overhead_share == pytest.approx(1800.0 / work)
    money, share = ledger.idle * RATE, ledger.idle / work
    assert ("overhead", "idle workers", f"{ledger.idle:.3g} seconds, {money:.3g} dollars, {share:.0%} of the cost") in (
        ledger.rows()
    )
    assert any(item == "waiting for suggestions" and "dollars" in amount for _, item, amount in ledger.rows())
    assert ledger.to_json()["idle_seconds"] == ledger.idle
    assert ledger.to_json()["price_of_a_second"] == pytest.approx(RATE)


def test_without_prices_idle_workers_are_no_event() -> None:
    executor = SimulatedExecutor(workers=2, thinking=0.0)
    study = ft.Study(SPACE, minimize="loss", strategy=ft.Sobol(), **executor.settings)
    run(study, executor, trials=3, resources=None)
    assert IDLE not in [event.kind for event in study.history.events]
    assert ("overhead", "suggesting", "0 seconds, 0% of the cost") in study.ledger.rows()


def test_a_budget_of_money_ends_the_run() -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = study_of(executor)
    run(study, executor, trials=99, budget=ft.Budget(cost=10.0))
    assert len(study.trials) == 2, "4.05 dollars each, and a third does not fit"


def test_a_change_of_prices_rewrites_no_bill(tmp_path: Path) -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    storage = f"sqlite:///{tmp_path}/s.db"
    run(study_of(executor, storage=storage), executor, trials=1)
    again = SimulatedExecutor(workers=1, thinking=0.0)
    with study_of(again, storage=storage, prices={"gpu": 5.0, "per": "hour"}) as dearer:
        run(dearer, again, trials=2)
    with ft.Study.load("study", storage) as loaded:
        assert [trial.cost for trial in loaded.trials] == pytest.approx([5400.0 * RATE, 7.5])
        assert [point.rate for point in loaded.trials[0].measurements] == pytest.approx([RATE, RATE])
        assert [point.rate for point in loaded.trials[1].measurements] == pytest.approx([5.0 / 3600.0] * 2)
        assert sum(loaded.ledger.seconds.values()) == pytest.approx(2 * 5400.0)


def test_machines_with_a_label_have_a_price_of_their_own() -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = study_of(executor, prices={"gpu": 2.5, "spot-gpu": 0.5, "per": "hour"})
    run(study, executor, trials=1, resources={"spot-gpu": 2})
    run(study, executor, trials=2, resources=[{"gpu": 1}, {"gpu": 1}])
    assert [trial.cost for trial in study.trials] == pytest.approx([1.5, 7.5])


def test_preempted_work_is_failed_work_in_money() -> None:
    executor = SimulatedExecutor(workers=2, thinking=0.0, faults=Faults(preemption=0.5), seed=3)
    study = study_of(executor)
    run(study, executor, trials=8, retries=50)
    assert {trial.state for trial in study.trials} == {ft.State.DONE}
    assert 0.0 < study.ledger.spent["failed"] == pytest.approx(study.ledger.seconds["failed"] * RATE)


def test_savings_are_money_too() -> None:
    """Otherwise a bill in dollars would have savings in seconds."""
    prices = Prices(ft.Study(SPACE, minimize="loss", prices=PRICES, cost_unit="dollars").problem)
    prices.rate = 0.5
    measured = Measurement(value=0.1, cost={"training": 60.0}, saved={"cache": 8.0})
    paid = prices.measurement(Trial(0, Suggestion({"x": 0.5}), State.RUNNING), measured)
    assert (paid.cost, paid.saved, paid.rate) == ({"training": 30.0}, {"cache": 4.0}, 0.5)


def test_lost_work_is_charged_at_the_rate_of_its_attempt() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock=clock)
    study = ft.Study(
        SPACE, minimize="loss", prices={"cpu": 36.0, "per": "hour"}, cost_unit="dollars", storage=storage, clock=clock
    )
    trial = study.ask()
    clock.advance(20.0)
    storage.release_trial("study", Attempt(trial.number, trial.attempt))
    assert study.trials[0].costs == pytest.approx({"failed": 0.2})
    assert study.ledger.seconds == pytest.approx({"failed": 20.0})


def test_charged_amounts_are_money_already() -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = study_of(executor)

    def work(trial: ft.RunningTrial) -> float:
        executor.spend(3600.0)
        trial.charge(7.0)
        return 0.5

    study.run(work, executor=executor, budget=ft.Budget(trials=1), resources=HOLDS, progress=False)
    assert study.trials[0].cost == 7.0
    assert study.ledger.seconds == {}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prices": {"gpu": 2.5}, "cost_unit": "dollars"}, "under 'per' one of 'second', 'minute', 'hour', 'day'"),
        ({"prices": {"per": "hour"}, "cost_unit": "dollars"}, "must name resources"),
        ({"prices": {"gpu": -1, "per": "hour"}, "cost_unit": "dollars"}, "The price of gpu"),
        ({"prices": PRICES, "cost_unit": "seconds"}, "got prices with cost_unit='seconds'"),
        (
            {"prices": PRICES, "cost_unit": "dollars", "cost": lambda params, fidelity: 1.0},
            "got prices with a declared",
        ),
    ],
)
def test_prices_that_cannot_be_meant_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        ft.Study(SPACE, minimize="loss", **settings)


def test_a_run_that_holds_nothing_with_a_price_is_refused() -> None:
    executor = SimulatedExecutor(workers=1)
    study = study_of(executor, prices={"gpu": 2.5, "per": "hour"})
    with pytest.raises(InvalidArgument, match=r"must hold a resource that has one \('gpu'\)"):
        study.run(lambda trial: 0.0, budget=ft.Budget(trials=1), executor="inline")
    with pytest.raises(InvalidArgument, match=r"held on a Ray cluster, got .* or give the study prices"):
        ft.Study(SPACE, minimize="loss").run(
            lambda trial: 0.0, budget=ft.Budget(trials=1), executor="inline", resources={"gpu": 1}
        )


def test_resources_that_follow_from_params_have_their_price_also_when_work_is_lost() -> None:
    def held(params: Params) -> dict[str, float]:
        return {"gpu": 4} if params["x"] > 0.5 else {"gpu": 1}

    executor = SimulatedExecutor(workers=2, thinking=0.0, faults=Faults(preemption=0.3))
    study = study_of(executor)
    run(study, executor, trials=8, resources=held, retries=20)
    rates = {trial.number: held(trial.params)["gpu"] * 2.5 / 3600.0 for trial in study.trials}
    assert set(rates.values()) == {2.5 / 3600.0, 10.0 / 3600.0}
    assert any(trial.attempt > 1 for trial in study.trials)
    for trial in study.trials:
        paid = [point for point in trial.measurements if point.cost]
        assert [point.rate for point in paid] == pytest.approx([rates[trial.number]] * len(paid))


@pytest.mark.parametrize("nothing", [None, {}, "gpu", 3])
def test_resources_must_be_there_for_all_params(nothing: object) -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = study_of(executor)
    with pytest.raises(InvalidArgument, match=r"resources= must return what a trial holds, got .* for \{'x': "):
        run(study, executor, trials=1, resources=lambda params: nothing)


def test_resources_of_a_trial_that_cost_nothing_are_refused() -> None:
    executor = SimulatedExecutor(workers=1, thinking=0.0)
    study = study_of(executor)
    with pytest.raises(InvalidArgument, match="must hold a resource that has one"):
        run(study, executor, trials=1, resources=lambda params: {"disk": 1})


def test_resources_by_params_without_prices_need_a_cluster() -> None:
    study = ft.Study(SPACE, minimize="loss")
    with pytest.raises(InvalidArgument, match="held on a Ray cluster, got resources=a function of params"):
        study.run(lambda trial: 0.5, budget=ft.Budget(trials=1), resources=lambda params: {"gpu": 1})


class Holding(SimulatedExecutor):
    """Its idle workers hold what others could use, and give it back when nothing more will begin."""

    has_given_back = False

    def give_back(self, *, after: float) -> int:
        self.has_given_back = self.has_given_back or after == 0.0
        return 0 if self.has_given_back else self.free


def test_what_is_held_by_idle_workers_is_on_the_bill_without_prices_until_it_is_given_back() -> None:
    executor = Holding(workers=2, thinking=0.0)
    study = study_of(executor, prices=None, cost_unit="seconds")
    run(study, executor, trials=3, resources=None)
    assert executor.has_given_back
    assert study.ledger.idle == pytest.approx(0.0, abs=1.0), "one worker ran the last trial, for 5400 seconds"

    holding = SimulatedExecutor(workers=2, thinking=0.0)
    priced = study_of(holding)
    run(priced, holding, trials=3)
    assert priced.ledger.idle == pytest.approx(5400.0, abs=2.0)


def test_workers_that_wait_for_others_hold_what_they_have_for_a_while() -> None:
    asked: list[float] = []

    class Asked(SimulatedExecutor):
        def give_back(self, *, after: float) -> int:
            asked.append(after)
            return self.free

    executor = Asked(workers=2, thinking=0.0)
    study = study_of(executor, prices=None, cost_unit="seconds", strategy=ft.Grid(points=3))
    run(study, executor, trials=99, resources=None)
    assert set(asked) == {math.inf, SECONDS_TO_HOLD}
    assert study.ledger.idle > 5000.0
    assert ("overhead", "idle workers") in [row[:2] for row in study.ledger.rows()]
