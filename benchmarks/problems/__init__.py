"""Every problem by name. A new one is one entry in one of the lists that are joined here."""

from benchmarks.pipelines.nuclei import NUCLEI
from benchmarks.pipelines.sklearn import SKLEARN_TABLES
from benchmarks.pipelines.synthetic import STAGED_FUNCTIONS
from benchmarks.problems.curves import CURVES
from benchmarks.problems.problem import Evaluation, Params, Point, Problem, loss, regret
from benchmarks.problems.synthetic import FUNCTIONS, TUNING_FUNCTIONS
from benchmarks.problems.tables import CELLS, TABLES

_ALL = (*FUNCTIONS, *TUNING_FUNCTIONS, *TABLES, *CELLS, *CURVES, *STAGED_FUNCTIONS, NUCLEI, *SKLEARN_TABLES)

PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in _ALL}

__all__ = ["PROBLEMS", "Evaluation", "Params", "Point", "Problem", "loss", "regret"]
