"""Every problem by name. A new one is one entry in one of the lists that are joined here."""

from benchmarks.pipelines.fashion import FASHION
from benchmarks.pipelines.nuclei import NUCLEI, NUCLEI_IN_TWO
from benchmarks.pipelines.sklearn import SKLEARN_TABLES
from benchmarks.pipelines.synthetic import STAGED_FUNCTIONS
from benchmarks.problems.augmented import AUGMENTED, FROM_ZERO
from benchmarks.problems.conditional import CONDITIONAL, CONDITIONAL_FOR_TUNING
from benchmarks.problems.curves import CURVES
from benchmarks.problems.forests import FORESTS
from benchmarks.problems.kernel_learning import KERNEL_LEARNING
from benchmarks.problems.noisy import NOISY, NOISY_FOR_TUNING
from benchmarks.problems.problem import Evaluation, Params, Point, Problem, loss, regret
from benchmarks.problems.recorded import RECORDED, ROWS
from benchmarks.problems.sizes_and_epochs import SIZES_AND_EPOCHS
from benchmarks.problems.synthetic import FUNCTIONS, MORE_FUNCTIONS, TUNING_FUNCTIONS
from benchmarks.problems.tables import CELLS, TABLES
from benchmarks.problems.training_size import SIZES
from benchmarks.problems.vector_functions import (
    CONSTRAINED_FUNCTIONS,
    LIMITED_FUNCTIONS,
    VECTOR_FUNCTIONS,
    VECTOR_FUNCTIONS_FOR_TUNING,
)
from benchmarks.problems.vector_tables import (
    LIMITED_CURVES,
    LIMITED_CURVES_FOR_TUNING,
    LIMITED_TABLES,
    VECTOR_CURVES,
    VECTOR_TABLES,
)

_ALL = (
    *FUNCTIONS,
    *MORE_FUNCTIONS,
    *TUNING_FUNCTIONS,
    *NOISY,
    *NOISY_FOR_TUNING,
    *AUGMENTED,
    *FROM_ZERO,
    *KERNEL_LEARNING,
    *TABLES,
    *CELLS,
    *CURVES,
    *SIZES,
    *CONDITIONAL,
    *CONDITIONAL_FOR_TUNING,
    *RECORDED,
    *ROWS,
    *FORESTS,
    SIZES_AND_EPOCHS,
    *STAGED_FUNCTIONS,
    NUCLEI,
    NUCLEI_IN_TWO,
    FASHION,
    *SKLEARN_TABLES,
    *VECTOR_FUNCTIONS,
    *VECTOR_FUNCTIONS_FOR_TUNING,
    *CONSTRAINED_FUNCTIONS,
    *LIMITED_FUNCTIONS,
    *VECTOR_TABLES,
    *LIMITED_TABLES,
    *VECTOR_CURVES,
    *LIMITED_CURVES,
    *LIMITED_CURVES_FOR_TUNING,
)

PROBLEMS: dict[str, Problem] = {problem.name: problem for problem in _ALL}

__all__ = ["PROBLEMS", "Evaluation", "Params", "Point", "Problem", "loss", "regret"]
