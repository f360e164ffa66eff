"""Every method by name. A new one is one entry in this list."""

from benchmarks.baselines.curve_guided import BOCA, BOCAWithGap, FreezeThawEI
from benchmarks.baselines.knowledge_gradient import KG
from benchmarks.baselines.staged import EEIPU, StagedBO
from benchmarks.drivers.botorch import BoTorch
from benchmarks.drivers.botorch_front import BoTorchFront
from benchmarks.drivers.botorch_mf import BoTorchMFKG
from benchmarks.drivers.cheap import OursCheap
from benchmarks.drivers.dehb import DEHB
from benchmarks.drivers.flaml import FLAML
from benchmarks.drivers.guessing import QUALITIES, OursGuessing
from benchmarks.drivers.learning import Earlier, OptunaLearning, OursLearning
from benchmarks.drivers.neps import NePS
from benchmarks.drivers.optuna import Optuna, OursInOptuna
from benchmarks.drivers.ours import Ours, OursByRun
from benchmarks.drivers.sklearn import Randomized, Search
from benchmarks.drivers.smac import SMAC
from benchmarks.drivers.staged import Staged, StagedTPE
from benchmarks.method import Method
from benchmarks.noise_rules import LogEIAugmented
from farthing.strategies.multifidelity import TraceKG
from farthing.strategies.multifidelity.bohb import BOHB
from farthing.strategies.multifidelity.halving import ASHA, Hyperband
from farthing.strategies.multifidelity.pareto import ParetoHalving
from farthing.strategies.pipeline.lambo import LaMBO
from farthing.strategies.pipeline.prefix_ei import PrefixEI
from farthing.strategies.plain.bayesian import EIPerCost, LogEI
from farthing.strategies.plain.cmaes import CMAES
from farthing.strategies.plain.grid import Grid
from farthing.strategies.plain.hypervolume import LogEHVI
from farthing.strategies.plain.random import Random, Sobol

_ENTRIES: tuple[Method, ...] = (
    Ours("random", Random()),
    Ours("sobol", Sobol()),
    Ours("grid", Grid()),
    Ours("cmaes", CMAES()),
    Ours("asha", ASHA()),
    Ours("hyperband", Hyperband()),
    Ours("TraceKG", TraceKG()),
    Ours("TraceKG-decays", TraceKG(fidelity_kernel="decays")),
    Ours("TraceKG-plain", TraceKG(zero_avoiding=False)),
    Ours("TraceKG-paper", TraceKG.paper()),
    Ours("TraceKG-paper-3", TraceKG.paper(retain=3)),
    Ours("TraceKG-paper-plain", TraceKG.paper(zero_avoiding=False)),
    Ours("TraceKG-gradients", TraceKG(), gradients=True),
    Ours("TraceKG-paper-gradients", TraceKG.paper(), gradients=True),
    Ours("kg", KG()),
    Ours("bohb", BOHB()),
    Ours("boca", BOCA()),
    Ours("boca-gap", BOCAWithGap()),
    Ours("freeze-thaw-ei", FreezeThawEI()),
    Ours("log-ei", LogEI()),
    Ours("log-ehvi", LogEHVI()),
    Ours("log-ehvi-reference", LogEHVI(), knows_reference=True),
    Ours("pareto-halving", ParetoHalving()),
    Ours("log-ei-augmented", LogEIAugmented()),
    Ours("log-ei-augmented-by-mean", LogEIAugmented(by_mean=True)),
    OursByRun("default-by-run"),
    Ours("ei-per-cost", EIPerCost()),
    OursCheap("ei-per-cost-cheap", EIPerCost()),
    Ours("ei-per-cost-measured", EIPerCost(), measured=True),
    Ours("log-ei-measured", LogEI(), measured=True),
    *(Ours(f"TraceKG-{n}", TraceKG(), batch=n) for n in (4, 8)),
    *(Ours(f"kg-{n}", KG(), batch=n) for n in (4, 8)),
    *(Ours(f"log-ei-{n}", LogEI(), batch=n) for n in (4, 8)),
    *(Ours(f"hyperband-{n}", Hyperband(), batch=n) for n in (4, 8)),
    Optuna("optuna-random", "RandomSampler"),
    Optuna("optuna-tpe", "TPESampler"),
    Optuna("optuna-nsga2", "NSGAIISampler"),
    Optuna("optuna-gp", "GPSampler", packages=("optuna", "numpy", "torch")),
    Optuna("optuna-tpe-hyperband", "TPESampler", prunes=True),
    OursInOptuna("log-ei-in-optuna"),
    *(OursLearning(f"TraceKG-learns-{n}", TraceKG(), earlier=Earlier(n)) for n in (1, 3, 7, 20)),
    *(
        OptunaLearning(f"optuna-tpe-hyperband-learns-{n}", "TPESampler", prunes=True, earlier=Earlier(n))
        for n in (1, 3, 7, 20)
    ),
    *(
        OursGuessing(f"{name}-guess-{quality}", strategy, quality=quality)
        for name, strategy in (("TraceKG", TraceKG()), ("log-ei", LogEI()))
        for quality in QUALITIES
    ),
    OursLearning("TraceKG-learns-20-negated", TraceKG(), earlier=Earlier(20, "negated")),
    OursLearning("TraceKG-learns-7-negated", TraceKG(), earlier=Earlier(7, "negated")),
    OursLearning("TraceKG-learns-unrelated", TraceKG(), earlier=Earlier(1, "unrelated")),
    BoTorch("botorch-log-ei"),
    BoTorchFront("botorch-qlognehvi"),
    Staged("prefix-ei", PrefixEI()),
    Staged("prefix-ei-bundle", PrefixEI(rent_or_buy=None)),
    Staged("prefix-ei-buys-soon", PrefixEI(rent_or_buy=1.0)),
    Staged("prefix-ei-rent", PrefixEI(bundle=None, rent_or_buy=0.5)),
    Staged("prefix-ei-plain", PrefixEI(bundle=None, rent_or_buy=None)),
    Staged("lambo", LaMBO()),
    Staged("lambo-paper", LaMBO.paper()),
    Staged("staged-ei", StagedBO(cost="none")),
    Staged("staged-lcb", StagedBO(value="lcb", cost="none")),
    Staged("staged-mes", StagedBO(value="mes", cost="none")),
    Staged("staged-ei-per-price", StagedBO(cost="price")),
    Staged("staged-ei-cooled", StagedBO(cost="cooled")),
    Staged("eeipu", EEIPU()),
    Staged("staged-random", Random()),
    StagedTPE("staged-tpe"),
    Search("search-prefix-ei", PrefixEI()),
    Search("search-optuna-tpe"),
    Randomized("search-randomized"),
    BoTorchMFKG("botorch-qmfkg"),
    SMAC("smac-multi-fidelity"),
    NePS("neps"),
    NePS("neps-asha", optimizer="asha"),
    NePS("neps-priorband", optimizer="priorband"),
    DEHB("dehb"),
    FLAML("flaml-cfo", "CFO"),
    FLAML("flaml-blendsearch", "BlendSearch"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ENTRIES}
