"""Every strategy keeps the contract. Adding one is adding a line here."""

import re
from types import MappingProxyType

import pytest

import farthing as ft
from benchmarks.baselines.curve_guided import BOCA, FreezeThawEI
from benchmarks.baselines.staged import EEIPU, StagedBO
from farthing.errors import InvalidArgument
from farthing.names import STRATEGIES
from farthing.testing import StrategyContract
from farthing.testing.strategy_contract import learning_curve


class TestRandom(StrategyContract):
    strategy = ft.Random()


class TestSobol(StrategyContract):
    strategy = ft.Sobol()


class TestGrid(StrategyContract):
    strategy = ft.Grid()


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


class TestLogEHVI(StrategyContract):
    strategy = ft.LogEHVI(initial=5)
    trials = 20


class TestParetoHalving(StrategyContract):
    strategy = ft.ParetoHalving()


class SeveralContract(StrategyContract):
    """Two objectives, one of them larger is better, and two limits: one on a number, one on success."""

    aims = MappingProxyType(
        {
            "minimize": "error",
            "maximize": "speed",
            "constraints": {"memory": ft.AtMost(40.0), "runs": ft.Succeeds()},
        }
    )
    trials = 24

    def evaluate(self, params, fidelity):
        speed = 1.0 / (params["layers"] * params["units"])
        return {"error": learning_curve(params, fidelity), "speed": speed, "memory": params["units"]}


class TestRandomOfSeveral(SeveralContract):
    strategy = ft.Random()


class TestSobolOfSeveral(SeveralContract):
    strategy = ft.Sobol()


class TestGridOfSeveral(SeveralContract):
    strategy = ft.Grid()


class TestASHAOfSeveral(SeveralContract):
    strategy = ft.ASHA()


class TestHyperbandOfSeveral(SeveralContract):
    strategy = ft.Hyperband()


class TestBOHBOfSeveral(SeveralContract):
    strategy = ft.BOHB()


class TestParetoHalvingOfSeveral(SeveralContract):
    strategy = ft.ParetoHalving()


class TestLogEHVIOfSeveral(SeveralContract):
    strategy = ft.LogEHVI(initial=5)
    trials = 16


class TestLogEHVIOfFour(SeveralContract):
    """More objectives than the exact improvement takes."""

    strategy = ft.LogEHVI(initial=5)
    aims = MappingProxyType({"minimize": ["error", "memory", "steps"], "maximize": "speed"})
    trials = 16

    def evaluate(self, params, fidelity):
        return {**super().evaluate(params, fidelity), "steps": abs(params["layers"] - 2.0)}


def suites(contract: type[StrategyContract]) -> list[type[StrategyContract]]:
    """Those that inherit from it, but for one that is itself to inherit from."""
    found = [one for own in contract.__subclasses__() for one in [own, *suites(own)]]
    return [one for one in found if hasattr(one, "strategy")]


def test_every_strategy_for_several_values_is_under_contract_with_them() -> None:
    tested = {type(suite.strategy) for suite in suites(SeveralContract)}
    wanted = {getattr(ft, name) for name in STRATEGIES if getattr(ft, name).takes_objectives}
    assert wanted == tested
    with pytest.raises(InvalidArgument) as refusal:
        ft.Study(ft.Space({"x": ft.Float(0.0, 1.0)}), minimize=["error", "latency"], strategy="LogEI")
    named = re.findall(r"\w+", str(refusal.value).partition("or use")[2])
    assert {one.__name__ for one in wanted} == {*named} - {"or"}


def test_every_strategy_of_the_table_is_public_and_under_contract() -> None:
    tested = {type(suite.strategy) for suite in suites(StrategyContract)}
    for name in STRATEGIES:
        assert getattr(ft, name) in tested, f"{name} has no line in this file"


@pytest.mark.long
@pytest.mark.parametrize("suite", suites(StrategyContract))
@pytest.mark.parametrize("seed", range(3, 21))
def test_no_busy_machine_changes_a_suggestion(suite: type[StrategyContract], seed: int) -> None:
    """Twenty seeds with the two of the contract."""
    suite().test_a_busy_machine_changes_no_suggestion(seed)
