"""Every problem by name. A new one is one entry in one of the lists that are joined here."""

from benchmarks.problems.curves import CURVES
from benchmarks.problems.problem import Evaluation, Params, Point, Problem, loss, regret
from benchmarks.problems.synthetic import FUNCTIONS
from benchmarks.problems.tables import TABLES

PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in (*FUNCTIONS, *TABLES, *CURVES)}

__all__ = ["PROBLEMS", "Evaluation", "Params", "Point", "Problem", "loss", "regret"]
