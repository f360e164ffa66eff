"""Every strategy keeps the contract. Adding one is adding a line here."""

import farthing as ft
from farthing.systems.strategy import builtin_strategies
from farthing.testing import StrategyContract


class TestRandom(StrategyContract):
    strategy = ft.Random()


class TestSobol(StrategyContract):
    strategy = ft.Sobol()


class TestASHA(StrategyContract):
    strategy = ft.ASHA()


class TestHyperband(StrategyContract):
    strategy = ft.Hyperband()


class TestBOHB(StrategyContract):
    strategy = ft.BOHB()


class TestBOCA(StrategyContract):
    strategy = ft.BOCA()
    trials = 20


class TestFreezeThawEI(StrategyContract):
    strategy = ft.FreezeThawEI()
    trials = 20


class TestLogEI(StrategyContract):
    strategy = ft.LogEI(initial=5)
    trials = 20


class TestEIPerCost(StrategyContract):
    strategy = ft.EIPerCost(initial=5)
    trials = 20


class TestTraceKG(StrategyContract):
    strategy = ft.TraceKG()
    trials = 14


def test_every_strategy_of_the_package_is_public_and_under_contract() -> None:
    tested = {type(suite.strategy) for suite in StrategyContract.__subclasses__()}
    for name, cls in builtin_strategies().items():
        assert getattr(ft, name) is cls
        assert cls in tested, f"{name} has no line in this file"
