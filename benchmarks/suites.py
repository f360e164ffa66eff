"""The named benchmarks: which methods are compared on which problems, and where they are judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from benchmarks.pipelines.sklearn import SKLEARN_TABLES
from benchmarks.pipelines.synthetic import CENTRED, EQUAL_PRICES, NOISES, PLACED, SHIFTED, STALLING, StagedFunction
from benchmarks.problems import Problem
from benchmarks.problems.augmented import AUGMENTED, FROM_ZERO
from benchmarks.problems.conditional import CONDITIONAL, CONDITIONAL_FOR_TUNING
from benchmarks.problems.noisy import NOISY, NOISY_FOR_TUNING
from benchmarks.problems.problem import PricedByMean
from benchmarks.problems.recorded import ROWS, TABLE_FILES
from benchmarks.problems.synthetic import FUNCTIONS, MORE_FUNCTIONS
from benchmarks.problems.tables import CELLS, TABLES
from benchmarks.problems.vector_functions import CONSTRAINED_FUNCTIONS, LIMITED_FUNCTIONS, VECTOR_FUNCTIONS
from benchmarks.problems.vector_tables import LIMITED_CURVES, LIMITED_TABLES, VECTOR_CURVES, VECTOR_TABLES
from farthing.costs import Budget

SECONDS: Final = "seconds with suggesting"
Unit: TypeAlias = Literal["evaluations", "full runs", "mean full runs", "cost", "seconds with suggesting"]


@dataclass(frozen=True)
class Allowance:
    """The allowance of a method: evaluations, the cost of usual or of mean runs at full fidelity, plain cost, or the
    seconds of work and of suggesting together.

    A usual run has the median cost of random configurations, which on learning curves is 0.6 to 0.8 of their mean.
    """

    amount: float
    unit: Unit

    def spent(self, problem: Problem, *, evaluations: int, cost: float, suggesting: float = 0.0) -> float:
        """What was spent, in this unit."""
        if self.unit == SECONDS:
            return cost + suggesting
        return evaluations if self.unit == "evaluations" else cost / self._cost_of_one(problem)

    def budget(self, problem: Problem) -> Budget:
        """The same for a study."""
        if self.unit == "evaluations":
            return Budget(trials=round(self.amount))
        return Budget(cost=self.amount * self._cost_of_one(problem))

    def _cost_of_one(self, problem: Problem) -> float:
        if self.unit == "mean full runs":
            assert isinstance(problem, PricedByMean), f"{problem.name} has no mean cost"
            return problem.mean_cost
        return problem.full_cost if self.unit == "full runs" else 1.0

    def to_json(self) -> dict[str, Any]:
        return {"amount": self.amount, "unit": self.unit}


@dataclass(frozen=True)
class Contest:
    """Methods that are comparable, on problems of one kind. `judged_at` are amounts spent, the last one the end.

    `most_seeds` limits methods that take too long for all of them. Where it is `normalised`, regret is on the scale of
    random search: 0 is the best of 20 000 random configurations, 1 their median.
    """

    name: str
    problems: tuple[str, ...]
    methods: tuple[str, ...]
    judged_at: tuple[float, ...]
    unit: Unit
    most_seeds: Mapping[str, int] = field(default_factory=dict)
    normalised: bool = False

    @property
    def allowance(self) -> Allowance:
        return Allowance(self.judged_at[-1], self.unit)

    @property
    def has_one_scale(self) -> bool:
        """Whether regrets on different problems may be averaged: normalised, or of functions scaled to [0, 1]."""
        return self.normalised or all(name.startswith(("shifted/", "centred/")) for name in self.problems)


@dataclass(frozen=True)
class Suite:
    """Contests that are run and reported together; seeds count from the first, and are the same for all methods."""

    name: str
    contests: tuple[Contest, ...]
    seeds: int = 10
    first_seed: int = 0

    def quick(self) -> "Suite":
        """The same with two seeds, ended where it is judged first: to see that everything works."""
        shorter = tuple(replace(contest, judged_at=contest.judged_at[:1]) for contest in self.contests)
        return Suite(f"{self.name}-quick", shorter, seeds=2, first_seed=self.first_seed)


HELD_OUT = ("fcnet/parkinsons_telemonitoring", "hpobench-mlp/segment")
"""Tables on which `LogEI` and `EIPerCost` were tuned: how those do on them is not reported."""

REPORTED_TABLES = tuple(problem.name for problem in TABLES if problem.name not in HELD_OUT)

CURVES_FOR_TUNING = (
    *(f"lcbench/{instance}" for instance in (3945, 7593, 126025, 126026, 146212, 167104)),
    *(f"lcbench/{instance}" for instance in (168910, 189354, 189865, 189866, 189905, 189906, 189909)),
)
"""Learning curves on which `TraceKG` and the multi-fidelity baselines were tuned: the report is on others."""

CURVES_REPORTED = (
    *(
        f"lcbench/{instance}"
        for instance in (167152, 167161, 167181, 167184, 167190, 167200, 168329, 168330, 168335, 168868)
    ),
    "taskset/imdb_patch128_LSTM128_bs64",
    "taskset/imdb_patch32_GRU64_avg_bs128",
    "taskset/imdb_patch32_VRNN64_tanh_avg_bs128",
    "rbv2_xgboost/16",
    "rbv2_xgboost/470",
    "rbv2_svm/182",
    "rbv2_svm/1457",
    "opda/convnext",
)

LEARNING_CURVES = tuple(name for name in CURVES_REPORTED if name.startswith("lcbench/"))
TRAINING_SIZES = tuple(name for name in CURVES_REPORTED if name.startswith("rbv2_"))
SIZES_REPORTED = (*TRAINING_SIZES, "iaml_glmnet/41146", "iaml_glmnet/1489")
SIZES_FOR_TUNING = (
    *("iaml_glmnet/40981", "iaml_glmnet/1067", "rbv2_svm/1462", "rbv2_svm/1476"),
    *("rbv2_xgboost/11", "rbv2_xgboost/40983"),
)
RECORDED_ROWS = (
    "taskset-rows/imdb_patch128_LSTM128_bs64",
    "taskset-rows/imdb_patch32_GRU64_avg_bs128",
    "taskset-rows/imdb_patch32_VRNN64_tanh_avg_bs128",
    "opda-rows/convnext",
)

PEERS_OF_CURVES = ("dehb", "neps-priorband", "optuna-tpe-hyperband", "smac-multi-fidelity", "neps", "neps-asha")
BASELINES_OF_CURVES = ("bohb", "asha", "hyperband", "random")

COST_AWARE = ("ei-per-cost-cheap", "ei-per-cost", "log-ei", "random")
CHEAP_PEERS = ("optuna-tpe", "flaml-cfo", "flaml-blendsearch")


def _names(*problems: Problem) -> tuple[str, ...]:
    return tuple(problem.name for problem in problems)


def _named(beginning: str) -> tuple[str, ...]:
    return tuple(name for name in REPORTED_TABLES if name.startswith(beginning))


def _noisy(problems: tuple[Problem, ...]) -> Contest:
    return Contest(
        "noise of a third of the distance from the best to the median",
        problems=_names(*problems),
        methods=("log-ei", "log-ei-augmented", "log-ei-augmented-by-mean", "cmaes", "optuna-gp", "random"),
        judged_at=(20, 40),
        unit="evaluations",
        most_seeds={"optuna-gp": 5},
    )


def _conditional(problems: Sequence[Problem]) -> Contest:
    return Contest(
        "which branch, and where in it",
        problems=_names(*problems),
        methods=("log-ei", "optuna-tpe", "optuna-gp", "random"),
        judged_at=(30, 60),
        unit="evaluations",
        most_seeds={"optuna-gp": 2},
    )


PIPELINE_METHODS = ("prefix-ei", "staged-ei-cooled", "eeipu", "lambo", "staged-ei", "staged-mes", "staged-random")
IN_LAMBO = ("lambo", "staged-ei", "staged-ei-cooled", "prefix-ei", "lambo-paper", "staged-lcb", "staged-mes")
"""Those of the LaMBO paper's Figure 3, and `PrefixEI`; "staged-lcb" is its GP-UCB, by lower bounds of a loss."""
IN_ALL = (5, 10, 12, 13, 18, 28)
"""Costs at which pipelines are judged, in full evaluations from the first one on, the design included."""
SEEDS_OF_A_PLACE, SEEDS_OF_STALLING = 2, 4


def _placed_contests() -> tuple[Contest, ...]:
    """By noise and number of stages. With three stages they end at 18: a run to 28 has several hundred evaluations."""
    groups = [(noise, stages) for noise in NOISES for stages in (2, 3)]
    return tuple(
        Contest(
            f"places, {('two', 'three')[stages - 2]} stages, noise {noise:g}",
            problems=_names(*(problem for problem in PLACED if _is_of(problem, noise, stages))),
            methods=PIPELINE_METHODS,
            judged_at=IN_ALL if stages == 2 else IN_ALL[:-1],
            unit="full runs",
            most_seeds=dict.fromkeys(PIPELINE_METHODS, SEEDS_OF_A_PLACE),
        )
        for noise, stages in groups
    )


def _is_of(problem: StagedFunction, noise: float, stages: int) -> bool:
    return problem.noise == noise and len(problem.sizes) == stages


_ENTRIES = (
    Suite(
        "foundation",
        (
            Contest(
                "full fidelity",
                problems=_names(*FUNCTIONS, *TABLES),
                methods=("random", "sobol", "optuna-random", "optuna-tpe"),
                judged_at=(30, 60),
                unit="evaluations",
            ),
            Contest(
                "learning curves",
                problems=("lcbench/3945", "lcbench/126025", "lcbench/167104"),
                methods=("random", "asha", "hyperband", "optuna-tpe-hyperband"),
                judged_at=(2, 5, 10),
                unit="full runs",
            ),
        ),
    ),
    Suite(
        "sequential",
        (
            Contest(
                "functions",
                problems=_names(*FUNCTIONS),
                methods=("log-ei", "optuna-gp", "botorch-log-ei", "optuna-tpe", "random"),
                judged_at=(30, 60),
                unit="evaluations",
                most_seeds={"botorch-log-ei": 5},
            ),
            Contest(
                "tables",
                problems=REPORTED_TABLES,
                methods=("log-ei", "optuna-gp", "optuna-tpe", "random"),
                judged_at=(30, 60),
                unit="evaluations",
            ),
            Contest(
                "measured seconds",
                problems=(*_names(*FUNCTIONS), *_named("fcnet/"), *_named("hpobench-mlp/")[:2]),
                methods=("ei-per-cost-measured", "log-ei-measured"),
                judged_at=(30, 60),
                unit="evaluations",
            ),
            Contest(
                "the default as run has it",
                problems=(*_names(*FUNCTIONS, *MORE_FUNCTIONS), *_named("fcnet/"), *_named("hpobench-mlp/")[:2]),
                methods=("default-by-run", "log-ei"),
                judged_at=(30, 60),
                unit="evaluations",
            ),
        ),
    ),
    Suite(
        "optuna-sampler",
        (
            Contest(
                "the same strategy as Optuna's sampler",
                problems=("branin", "hartmann-3", "rosenbrock-4", "fcnet/naval_propulsion", "hpobench-mlp/phoneme"),
                methods=("log-ei", "log-ei-in-optuna"),
                judged_at=(15, 30),
                unit="evaluations",
            ),
        ),
    ),
    Suite(
        "transfer",
        (
            Contest(
                "lcbench, each data set with earlier studies of others",
                problems=LEARNING_CURVES,
                methods=(
                    "TraceKG-learns-20",
                    "TraceKG-learns-3",
                    "TraceKG-learns-1",
                    "TraceKG",
                    "TraceKG-learns-20-negated",
                    "TraceKG-learns-unrelated",
                    "optuna-tpe-hyperband-learns-20",
                    "optuna-tpe-hyperband-learns-3",
                    "optuna-tpe-hyperband-learns-1",
                    "optuna-tpe-hyperband",
                ),
                judged_at=(0.5, 1, 2, 5),
                unit="full runs",
                normalised=True,
            ),
            Contest(
                "TaskSet, rows, each network with earlier studies of others",
                problems=tuple(problem.name for problem in ROWS if problem.name.startswith("taskset-rows/")),
                methods=(
                    "TraceKG-learns-7",
                    "TraceKG-learns-3",
                    "TraceKG-learns-1",
                    "TraceKG",
                    "TraceKG-learns-7-negated",
                    "optuna-tpe-hyperband-learns-7",
                    "optuna-tpe-hyperband-learns-3",
                    "optuna-tpe-hyperband",
                ),
                judged_at=(0.5, 1, 2, 5),
                unit="full runs",
                normalised=True,
            ),
        ),
        seeds=2,
    ),
    Suite(
        "guesses",
        (
            Contest(
                "learning curves, with a guess for every parameter",
                problems=LEARNING_CURVES,
                methods=("TraceKG-guess-good", "TraceKG", "TraceKG-guess-useless", "TraceKG-guess-bad"),
                judged_at=(0.5, 1, 2, 2.5, 10 / 3, 5),
                unit="full runs",
                normalised=True,
            ),
            Contest(
                "functions, with a guess for every parameter",
                problems=_names(*FUNCTIONS),
                methods=("log-ei-guess-good", "log-ei", "log-ei-guess-useless", "log-ei-guess-bad"),
                judged_at=(10, 20, 30),
                unit="evaluations",
            ),
        ),
    ),
    Suite("conditional", (_conditional(CONDITIONAL),)),
    Suite("conditional-tuning", (_conditional(CONDITIONAL_FOR_TUNING),), seeds=4),
    Suite("noisy", (_noisy(NOISY),), seeds=20),
    Suite("noisy-tuning", (_noisy(NOISY_FOR_TUNING),), seeds=8),
    Suite(
        "cost-aware",
        (
            Contest(
                "costs within a factor of ten or so",
                problems=(*_named("fcnet/"), *(problem.name for problem in CELLS)),
                methods=(*COST_AWARE, *CHEAP_PEERS),
                judged_at=(5, 10, 25, 50),
                unit="full runs",
            ),
            Contest(
                "costs over orders of magnitude",
                problems=(*_named("hpobench-mlp/"), "rbv2_xgboost/16", "rbv2_xgboost/470"),
                methods=(*COST_AWARE, *CHEAP_PEERS),
                judged_at=(5, 10, 25, 50),
                unit="full runs",
            ),
            Contest(
                "good runs are expensive ones",
                problems=("rows/finetune_cifar", "rows/gru_code", "rows/resnet_cifar"),
                methods=COST_AWARE,
                judged_at=(5, 10, 25, 50),
                unit="full runs",
            ),
        ),
        first_seed=200,
    ),
    Suite(
        "pipeline-synthetic",
        (
            Contest(
                "shifted",
                problems=_names(*SHIFTED),
                methods=(
                    "prefix-ei",
                    "staged-ei-cooled",
                    "eeipu",
                    "lambo",
                    "staged-ei",
                    "staged-random",
                ),
                judged_at=(5, 10, 20),
                unit="full runs",
            ),
            Contest(
                "variants",
                problems=_names(*SHIFTED),
                methods=(
                    "prefix-ei",
                    "prefix-ei-bundle",
                    "prefix-ei-buys-soon",
                    "prefix-ei-rent",
                    "prefix-ei-plain",
                    "staged-ei-cooled",
                    "staged-ei",
                ),
                judged_at=(5, 10, 20),
                unit="full runs",
                most_seeds=dict.fromkeys(
                    ("prefix-ei-bundle", "prefix-ei-buys-soon", "prefix-ei-rent", "prefix-ei-plain"), 3
                ),
            ),
            Contest(
                "twice as long, two stages",
                problems=_names(*(problem for problem in SHIFTED if len(problem.sizes) == 2)),
                methods=("prefix-ei", "prefix-ei-bundle", "staged-ei-cooled", "lambo", "staged-ei"),
                judged_at=(40,),
                unit="full runs",
                most_seeds=dict.fromkeys(
                    ("prefix-ei", "prefix-ei-bundle", "staged-ei-cooled", "lambo", "staged-ei"), 3
                ),
            ),
            *(
                Contest(name, problems=_names(*problems), methods=IN_LAMBO, judged_at=(20,), unit="full runs")
                for name, problems in (("centred", CENTRED), ("centred, equal prices", (EQUAL_PRICES,)))
            ),
            Contest(
                "stalling",
                problems=_names(*STALLING),
                methods=("prefix-ei", "staged-ei-cooled"),
                judged_at=(5, 10, 13, 18),
                unit="full runs",
                most_seeds=dict.fromkeys(("prefix-ei", "staged-ei-cooled"), SEEDS_OF_STALLING),
            ),
            *_placed_contests(),
        ),
    ),
    Suite(
        "mf-synthetic",
        (
            Contest(
                "one at a time",
                problems=_names(*AUGMENTED),
                methods=("TraceKG", "TraceKG-paper", "kg", "log-ei", "boca", "boca-gap", "hyperband"),
                judged_at=(2, 4, 8, 10),
                unit="cost",
                most_seeds={"TraceKG-paper": 10, "kg": 10, "boca-gap": 10},
            ),
            *(
                Contest(
                    f"batches of {name}",
                    problems=_names(*AUGMENTED),
                    methods=(f"TraceKG-{n}", f"kg-{n}", f"log-ei-{n}", f"hyperband-{n}"),
                    judged_at=(2, 4, 8, 10),
                    unit="cost",
                    most_seeds={f"kg-{n}": 5},
                )
                for name, n in (("four", 4), ("eight", 8))
            ),
            Contest(
                "two points of a curve against three",
                problems=_names(*AUGMENTED),
                methods=("TraceKG-paper", "TraceKG-paper-3"),
                judged_at=(2, 4),
                unit="cost",
            ),
            Contest(
                "taKG and taKG⁰, fidelities from 0.001",
                problems=_names(*FROM_ZERO),
                methods=("TraceKG-paper", "TraceKG-paper-plain"),
                judged_at=(0.25, 0.5),
                unit="cost",
            ),
            Contest(
                "beside BoTorch",
                problems=("augmented-branin", "augmented-hartmann-6"),
                methods=("TraceKG", "botorch-qmfkg"),
                judged_at=(2, 4, 8, 10),
                unit="cost",
                most_seeds={"botorch-qmfkg": 3},
            ),
        ),
        seeds=20,
    ),
    Suite(
        "mf-sizes",
        (
            Contest(
                "training size and epochs",
                problems=("mlp-fashion",),
                methods=("TraceKG", "TraceKG-paper", "kg", "log-ei", "boca", "hyperband"),
                judged_at=(0.5, 1),
                unit="cost",
            ),
        ),
        seeds=5,
    ),
    Suite(
        "mf-gradients",
        (
            Contest(
                "with and without gradients",
                problems=("kernel-learning",),
                methods=("TraceKG-gradients", "TraceKG", "TraceKG-paper-gradients", "TraceKG-paper"),
                judged_at=(0.25, 0.5, 1, 2),
                unit="full runs",
                most_seeds={"TraceKG-paper-gradients": 3, "TraceKG-paper": 3},
            ),
        ),
    ),
    Suite(
        "mf-curves-tuning",
        (
            Contest(
                "learning curves",
                problems=CURVES_FOR_TUNING,
                methods=("TraceKG", *BASELINES_OF_CURVES),
                judged_at=(1, 2, 5, 10),
                unit="full runs",
                normalised=True,
            ),
        ),
        seeds=3,
    ),
    Suite(
        "mf-curves",
        (
            Contest(
                "learning curves and training sizes",
                problems=CURVES_REPORTED,
                methods=(
                    "TraceKG",
                    *BASELINES_OF_CURVES,
                    "optuna-tpe-hyperband",
                    "smac-multi-fidelity",
                    "neps",
                    "neps-asha",
                ),
                judged_at=(1, 2, 5, 10),
                unit="full runs",
                normalised=True,
            ),
            Contest(
                "other rules with the same model of curves",
                problems=CURVES_REPORTED,
                methods=("TraceKG", "freeze-thaw-ei", "boca", "asha"),
                judged_at=(1, 2, 5, 10),
                unit="full runs",
                normalised=True,
                most_seeds={"freeze-thaw-ei": 1, "boca": 1},
            ),
        ),
        seeds=3,
    ),
    Suite(
        "mf-curves-mean",
        tuple(
            Contest(
                name,
                problems=problems,
                methods=("TraceKG", *BASELINES_OF_CURVES, *PEERS_OF_CURVES),
                judged_at=(1, 2, 5, 10),
                unit="mean full runs",
                normalised=True,
                most_seeds=dict.fromkeys(PEERS_OF_CURVES, 4),
            )
            for name, problems in (
                ("learning curves", LEARNING_CURVES),
                ("recorded rows", RECORDED_ROWS),
                ("training sizes", TRAINING_SIZES),
            )
        ),
    ),
)

REAL_METHODS = ("prefix-ei", "staged-ei-per-price", "lambo", "staged-tpe", "staged-ei", "staged-random")

OF_SEVERAL = ("log-ehvi", "optuna-tpe", "optuna-nsga2", "random")

_OBJECTIVES = (
    Suite(
        "objectives",
        (
            Contest(
                "functions of two and three objectives",
                problems=_names(*VECTOR_FUNCTIONS),
                methods=OF_SEVERAL,
                judged_at=(30, 60, 100),
                unit="evaluations",
            ),
            Contest(
                "under constraints",
                problems=_names(*CONSTRAINED_FUNCTIONS, *LIMITED_FUNCTIONS),
                methods=OF_SEVERAL,
                judged_at=(30, 60, 100),
                unit="evaluations",
            ),
            *(
                Contest(name, problems=_names(*tables), methods=OF_SEVERAL, judged_at=(30, 60, 100), unit="full runs")
                for name, tables in (
                    ("tables, at equal cost", VECTOR_TABLES),
                    ("tables under a limit, at equal cost", LIMITED_TABLES),
                )
            ),
            Contest(
                "beside slower peers",
                problems=("zdt1-10", "dtlz2-6", "c2-dtlz2-6", "nasbench201-of-2/cifar10"),
                methods=("log-ehvi", "log-ehvi-reference", "optuna-gp", "botorch-qlognehvi"),
                judged_at=(30, 60, 100),
                unit="evaluations",
                most_seeds={"log-ehvi": 5, "log-ehvi-reference": 5, "optuna-gp": 5, "botorch-qlognehvi": 3},
            ),
            *(
                Contest(
                    name,
                    problems=_names(*curves),
                    methods=("pareto-halving", "asha", "bohb", "log-ehvi", "random"),
                    judged_at=(5, 10, 20),
                    unit="full runs",
                )
                for name, curves in (
                    ("learning curves, error and time", VECTOR_CURVES),
                    ("learning curves under a limit", LIMITED_CURVES),
                )
            ),
        ),
        first_seed=300,
    ),
)

SEARCHES: tuple[str, Unit] = ("PipelineSearchCV", "full runs")
COUNTING: tuple[str, Unit] = ("PipelineSearchCV, suggesting counted", SECONDS)

_REAL_PIPELINES = (
    Suite(
        "pipeline-real",
        (
            Contest(
                "Fashion-MNIST",
                problems=("fashion-mnist",),
                methods=REAL_METHODS,
                judged_at=(2, 4, 8),
                unit="full runs",
            ),
            *(
                Contest(
                    name,
                    problems=(name,),
                    methods=(*REAL_METHODS, "lambo-paper"),
                    judged_at=(3, 6, 10, 20),
                    unit="full runs",
                )
                for name in ("nuclei", "nuclei, two modules")
            ),
            *(
                Contest(
                    name,
                    problems=_names(*SKLEARN_TABLES),
                    methods=("search-prefix-ei", "search-optuna-tpe", "search-randomized"),
                    judged_at=(1, 2, 4),
                    unit=unit,
                )
                for name, unit in (SEARCHES, COUNTING)
            ),
        ),
        seeds=8,
    ),
)
"""Real work, whose cost is measured: a full run of these problems is one second by definition. Where it is measured as
it is made, there is a contest in which suggesting counts too."""

TABLES_FOR_TUNING = ("lm_code", "mixer_fashion")
ROWS_FOR_TUNING = (
    *(name for name in _names(*ROWS) if name.startswith("taskset-rows/") and name not in RECORDED_ROWS),
    "opda-rows/deberta",
)
ARENA_BUDGETS = (1, 2, 3, 5, 10)


def _arena(name: str, *families: tuple[tuple[str, ...], int]) -> Suite:
    """Families of problems, each with its number of seeds; every budget is a contest: it is a study of its own."""
    methods = ("TraceKG", "TraceKG-decays", *BASELINES_OF_CURVES, *PEERS_OF_CURVES)
    contests = tuple(
        Contest(
            f"{problems[0].partition('/')[0]}, a budget of {budget}",
            problems=problems,
            methods=methods,
            judged_at=(budget,),
            unit="mean full runs",
            most_seeds=dict.fromkeys(methods, seeds) | dict.fromkeys(PEERS_OF_CURVES, min(seeds, 8)),
        )
        for problems, seeds in families
        if problems
        for budget in ARENA_BUDGETS
    )
    return Suite(name, contests, seeds=max(seeds for _, seeds in families))


def _tables(kind: str, *, for_tuning: bool) -> tuple[str, ...]:
    return tuple(f"{kind}/{name}" for name in TABLE_FILES if (name in TABLES_FOR_TUNING) == for_tuning)


ARENAS = {
    suite.name: suite
    for suite in (
        _arena("folds-tuning", (("folds/churn", "folds/satimage"), 20)),
        _arena("folds", (("folds/spambase", "folds/optdigits"), 20)),
        _arena(
            "real-curves-tuning",
            (_tables("rows", for_tuning=True), 20),
            (_tables("forest", for_tuning=True), 20),
            (ROWS_FOR_TUNING, 4),
            (CURVES_FOR_TUNING, 3),
            (SIZES_FOR_TUNING, 8),
        ),
        _arena(
            "real-curves",
            (_tables("rows", for_tuning=False), 40),
            (_tables("forest", for_tuning=False), 40),
            (RECORDED_ROWS, 20),
            (LEARNING_CURVES, 8),
            (SIZES_REPORTED, 8),
        ),
    )
}
"""Whole studies of real trainings (`arena`): rules are chosen on the first, reported is the second."""

SUITES = {suite.name: suite for suite in (*_ENTRIES, *_OBJECTIVES, *_REAL_PIPELINES)}
