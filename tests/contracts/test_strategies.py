"""Every strategy keeps the contract. Adding one is adding a line here."""

import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, FreezeThawEI
from benchmarks.baselines.staged import EEIPU, StagedBO
from farthing.names import STRATEGIES
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
    strategy = BOCA()
    trials = 20


class TestFreezeThawEI(StrategyContract):
    strategy = FreezeThawEI()
    trials = 20


class TestLogEI(StrategyContract):
    strategy = ft.LogEI(initial=5)
    trials = 20


class TestEIPerCost(StrategyContract):
    strategy = ft.EIPerCost(initial=5)
    trials = 20


class TestCMAES(StrategyContract):
    strategy = ft.CMAES(population=4)


class TestPB2(StrategyContract):
    strategy = ft.PB2(population=5, interval=3)
    trials = 25


class TestPB2OfThePaper(StrategyContract):
    strategy = ft.PB2.paper(population=5, interval=3)
    trials = 25


class TestPB2Async(StrategyContract):
    strategy = ft.PB2(population=5, interval=3, mode="async")
    trials = 25


class TestPBT(StrategyContract):
    strategy = ft.PBT(population=5, interval=3)


class TestClone(StrategyContract):
    strategy = ft.Clone(population=5, interval=3)


STAGED_SPACE = ft.Space(
    stages={
        "prepare": {"rate": ft.Float(1e-4, 1e-1, log=True), "layers": ft.Int(1, 3)},
        "train": {"optimizer": ft.Choice("adam", "sgd"), "momentum": ft.Float(0.0, 0.99, when={"optimizer": "sgd"})},
        "finish": {"units": ft.Int(4, 64, log=True)},
    }
)


class TestPrefixEI(StrategyContract):
    strategy = ft.PrefixEI()
    space = STAGED_SPACE
    trials = 14


class TestPrefixEIOnAPlainSpace(StrategyContract):
    strategy = ft.PrefixEI(bundle=None, rent_or_buy=None)
    trials = 10


class TestLaMBO(StrategyContract):
    strategy = ft.LaMBO(restart=5)
    space = STAGED_SPACE
    trials = 14


class TestStagedBO(StrategyContract):
    strategy = StagedBO(cost="cooled")
    space = STAGED_SPACE
    trials = 10


class TestStagedConfidenceBound(StrategyContract):
    strategy = StagedBO(value="lcb", cost="none")
    space = STAGED_SPACE
    trials = 10


class TestStagedMaxValueEntropy(StrategyContract):
    strategy = StagedBO(value="mes", cost="none")
    space = STAGED_SPACE
    trials = 10


class TestEEIPU(StrategyContract):
    strategy = EEIPU()
    space = STAGED_SPACE
    trials = 10


class TestTraceKG(StrategyContract):
    strategy = ft.TraceKG()
    trials = 14


def test_every_strategy_of_the_table_is_public_and_under_contract() -> None:
    tested = {type(suite.strategy) for suite in StrategyContract.__subclasses__()}
    for name in STRATEGIES:
        assert getattr(ft, name) in tested, f"{name} has no line in this file"


@pytest.mark.long
@pytest.mark.parametrize("suite", StrategyContract.__subclasses__())
@pytest.mark.parametrize("seed", range(3, 21))
def test_no_busy_machine_changes_a_suggestion(suite: type[StrategyContract], seed: int) -> None:
    """Twenty seeds with the two of the contract."""
    suite().test_a_busy_machine_changes_no_suggestion(seed)
